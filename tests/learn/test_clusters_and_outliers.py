"""Kernel k-means and one-class scores are pipelines of features with scikit-learn, and equal the methods with all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.linear_model import SGDOneClassSVM
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import OneClassSVM

from bochner.kernels import Gaussian
from bochner.learn import RandomFeatures
from bochner.maps import Landmarks

RNG = np.random.default_rng(0)
ANGLE = RNG.uniform(0, 2 * np.pi, 150)
RING = (3 + 0.3 * RNG.standard_normal((150, 1))) * np.column_stack([np.cos(ANGLE), np.sin(ANGLE)])
X = np.vstack([RING, 0.6 * RNG.standard_normal((150, 2))])
GAMMA = 0.3


def kernel_k_means(K, labels, steps=100):
    """Lloyd's algorithm with kernel values alone: |phi(x) - c|^2 = k(x, x) - 2 mean k(x, .) + mean k(., .)."""
    for _ in range(steps):
        members = np.eye(labels.max() + 1)[labels]
        share = members / members.sum(axis=0)
        distances = np.diag(K)[:, None] - 2 * K @ share + np.einsum("ik,ij,jk->k", share, K, share)
        labels = distances.argmin(axis=1)
    return labels


def inertia(K, labels):
    members = np.eye(labels.max() + 1)[labels]
    share = members / members.sum(axis=0)
    return np.trace(K) - np.einsum("ik,ij,jk->", members, K, share)


@pytest.mark.parametrize("features, agreement", [
    (RandomFeatures(map=Landmarks(), gamma=GAMMA, n_components=300, random_state=0), 1.0),
    (RandomFeatures(gamma=GAMMA, n_components=2048, random_state=0), 0.95),
])  # fmt: skip
def test_k_means_on_features_is_kernel_k_means(features, agreement):
    """With all rows as landmarks the features are exact, and so are the clusters; random ones agree closely."""
    found = make_pipeline(features, KMeans(2, n_init=5, random_state=0)).fit_predict(X)
    K = Gaussian((2 * GAMMA) ** -0.5)(X)
    np.testing.assert_array_equal(kernel_k_means(K, found, 1) if agreement == 1 else found, found)  # a fixed point
    starts = [np.random.default_rng(i).integers(0, 2, len(X)) for i in range(20)]
    exact = min((kernel_k_means(K, start) for start in starts), key=lambda labels: inertia(K, labels))
    assert inertia(K, found) <= inertia(K, exact) * (1 + 1e-9) + (1 - agreement) * np.trace(K)
    assert adjusted_rand_score(found, exact) >= agreement - 1e-12
    assert adjusted_rand_score(found, np.repeat([0, 1], 150)) > 0.9


def test_one_class_scores_on_features_are_those_of_the_kernel():
    exact = OneClassSVM(kernel="rbf", gamma=GAMMA, nu=0.1).fit(X)
    linear = SGDOneClassSVM(nu=0.1, tol=1e-6, max_iter=2000, random_state=0)
    found = make_pipeline(RandomFeatures(gamma=GAMMA, n_components=2048, random_state=0), linear).fit(X)
    new = RNG.uniform(-5, 5, (400, 2))
    assert spearmanr(exact.decision_function(new), found.decision_function(new)).statistic > 0.95
    assert abs(np.mean(found.predict(X) < 0) - 0.1) < 0.05
