"""
Which directions separate rings?
================================

Rings cannot be separated by a line. The first kernel principal components unroll them; with
random features the fit takes time linear in the rows, and rows can come in pieces.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_circles
from sklearn.decomposition import PCA

from bochner.learn import KernelPCA

X, y = make_circles(1500, factor=0.4, noise=0.06, random_state=0)
views = {
    "rows": X,
    "PCA": PCA(2).fit_transform(X),
    "kernel PCA, 512 features": KernelPCA(
        2, gamma=4.0, n_features=512, random_state=0
    ).fit_transform(X),
}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for ax, (name, Z) in zip(axes, views.items(), strict=True):
    ax.scatter(*Z.T, c=y, s=5, cmap="coolwarm")
    ax.set(title=name, xticks=(), yticks=())
plt.show()
