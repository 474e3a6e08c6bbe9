"""
What are the values at the other nodes?
=======================================

Random walks give every node of a graph a sparse vector of features whose dot products estimate
the diffusion kernel. Regression on them predicts the values of all nodes from a tenth of them,
without a dense matrix.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from bochner.graphs import Diffusion, NodeRegression, Walks

side = 40
line = sparse.diags_array([np.ones(side - 1), np.ones(side - 1)], offsets=[1, -1])
grid = sparse.kron(line, sparse.eye_array(side)) + sparse.kron(sparse.eye_array(side), line)
x, y = np.divmod(np.arange(side**2), side)
height = np.sin(x / 6) * np.cos(y / 8)
rng = np.random.default_rng(0)
known = rng.choice(side**2, side**2 // 10, replace=False)
observed = height[known] + 0.05 * rng.standard_normal(len(known))

model = NodeRegression(
    Walks(Diffusion(15.0), n_walks=64, halting=0.07), noise=0.05, rng=0
).fit(grid, known, observed)
predicted = model.predict(np.arange(side**2))
print(
    f"{len(known)} of {side**2} nodes known; error {np.std(predicted - height):.3f}, deviation {height.std():.3f}"
)

shown = np.full(side**2, np.nan)
shown[known] = observed
figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for ax, (title, values) in zip(
    axes, {"truth": height, "known": shown, "predicted": predicted}.items(), strict=True
):
    ax.imshow(values.reshape(side, side), vmin=-1.1, vmax=1.1, cmap="viridis")
    ax.set(title=title, xticks=(), yticks=())
plt.show()
