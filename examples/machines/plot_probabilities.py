"""
Can the probabilities be trusted?
=================================

``KernelClassifier.predict_proba`` is calibrated on the scores of left-out rows, without
refits. Of the rows that get a probability of 0.7, seven of ten should belong to the class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_moons
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

from bochner.learn import KernelClassifier

X, y = make_moons(400, noise=0.35, random_state=0)
T, t = make_moons(4000, noise=0.35, random_state=1)
models = {
    "KernelClassifier()": KernelClassifier(random_state=0),
    "boosted trees": HistGradientBoostingClassifier(random_state=0),
}

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for name, model in models.items():
    p = model.fit(X, y).predict_proba(T)[:, 1]
    share, mean = calibration_curve(t, p, n_bins=10)
    left.plot(mean, share, "o-", label=name)
    print(f"{name}: log-loss {log_loss(t, p):.3f}, error {np.mean((p > 0.5) != t):.3f}")
left.plot([0, 1], [0, 1], "k--", linewidth=1)
left.set(xlabel="predicted probability", ylabel="share of the class", aspect="equal")
left.legend()
grid = np.stack(np.meshgrid(np.linspace(-2, 3, 80), np.linspace(-1.5, 2, 60)), axis=-1)
p = models["KernelClassifier()"].predict_proba(grid.reshape(-1, 2))[:, 1].reshape(60, 80)
drawn = right.contourf(
    grid[..., 0], grid[..., 1], p, levels=np.linspace(0, 1, 11), cmap="RdBu_r"
)
right.scatter(*X.T, c=y, s=8, cmap="RdBu_r", edgecolors="k", linewidths=0.3)
figure.colorbar(drawn, ax=right, label="probability of the second class")
plt.show()
