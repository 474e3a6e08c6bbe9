"""
How do I find curved clusters and outliers in many rows?
========================================================

Kernel k-means and the one-class support vector machine need a matrix of all pairs of rows. On
random features they are two lines of scikit-learn each, ``KMeans`` and ``SGDOneClassSVM``, in time
linear in the rows. Here a ring surrounds a cloud: straight lines do not part them, a Gaussian kernel
does.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import SGDOneClassSVM
from sklearn.pipeline import make_pipeline

from bochner.learn import RandomFeatures

rng = np.random.default_rng(0)
angle, radius = rng.uniform(0, 2 * np.pi, 2000), 3 + 0.3 * rng.standard_normal(2000)
ring = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
X, truth = np.vstack([ring, 0.6 * rng.standard_normal((2000, 2))]), np.repeat([0, 1], 2000)

features = RandomFeatures(gamma=0.3, n_components=512, random_state=0)
clusters = make_pipeline(features, KMeans(2, n_init=5, random_state=0)).fit_predict(X)
plain = KMeans(2, n_init=5, random_state=0).fit_predict(X)
right, wrong = (
    max(np.mean(found == truth), np.mean(found != truth)) for found in (clusters, plain)
)
print(
    f"rows in their own group: {100 * right:.1f} % with the kernel, {100 * wrong:.1f} % without"
)

novelty = make_pipeline(
    RandomFeatures(gamma=2.0, n_components=512, random_state=0),
    SGDOneClassSVM(nu=0.05, random_state=0),
).fit(X)
side = np.linspace(-4.5, 4.5, 120)
points = np.column_stack([axis.ravel() for axis in np.meshgrid(side, side)])
scores = novelty.score_samples(points).reshape(120, 120)
own = novelty.score_samples(X)
unusual = own < np.quantile(
    own, 0.05
)  # its own threshold depends on the last steps of the descent
gap = np.abs(np.hypot(*X.T) - 3) / 0.3
print(
    f"unusual rows of the ring lie {gap[unusual & (truth == 0)].mean():.1f} deviations off it, all {gap[:2000].mean():.1f}"
)

figure, (left, center) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
left.scatter(*X.T, c=clusters, s=2, cmap="coolwarm")
left.set(title="two clusters of kernel k-means", aspect="equal")
shown = center.contourf(side, side, scores, levels=20)
center.scatter(*X[unusual].T, s=4, color="white", label="unusual rows")
center.legend(loc="upper right")
center.set(title="one-class score", aspect="equal")
figure.colorbar(shown, ax=center)
plt.show()
