"""
Can the probabilities be trusted?
=================================

``KernelClassifier.predict_proba`` is calibrated on the scores of left-out rows, without
refits. Of the rows that get a probability of 0.7, seven of ten should belong to the class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from bochner.learn import KernelClassifier

tumours = load_breast_cancer()
X, y = (
    tumours.data[:, :2],
    tumours.target == 0,
)  # two of the thirty columns, so that a map shows all
X, T, y, t = train_test_split(X, y, test_size=0.5, random_state=0)
models = {
    "KernelClassifier()": KernelClassifier(random_state=0),
    "boosted trees": HistGradientBoostingClassifier(random_state=0),
}

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for name, model in models.items():
    p = model.fit(X, y).predict_proba(T)[:, 1]
    share, mean = calibration_curve(t, p, n_bins=5)
    left.plot(mean, share, "o-", label=name)
    print(f"{name}: log-loss {log_loss(t, p):.3f}, error {np.mean((p > 0.5) != t):.3f}")
left.plot([0, 1], [0, 1], "k--", linewidth=1)
left.set(xlabel="predicted probability", ylabel="share of malignant tumours", aspect="equal")
left.legend()
grid = np.stack(np.meshgrid(np.linspace(6, 24, 80), np.linspace(9, 40, 60)), axis=-1)
p = (
    models["KernelClassifier()"]
    .fit(X, y)
    .predict_proba(grid.reshape(-1, 2))[:, 1]
    .reshape(60, 80)
)
drawn = right.contourf(
    grid[..., 0], grid[..., 1], p, levels=np.linspace(0, 1, 11), cmap="RdBu_r"
)
right.scatter(*X.T, c=y, s=14, cmap="RdBu_r", edgecolors="k", linewidths=0.3)
right.set(xlabel="mean radius", ylabel="mean texture", xlim=(6, 24), ylim=(9, 40))
figure.colorbar(drawn, ax=right, label="probability of a malignant tumour")
plt.show()
