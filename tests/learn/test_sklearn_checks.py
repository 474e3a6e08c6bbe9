"""scikit-learn's own checks, for every estimator, without an exception."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from bochner.learn import AngularHash, KernelClassifier, KernelRidge, RandomFeatures, RandomProjection

# checks make data with so few columns that a projection to two does not reduce them
pytestmark = [
    pytest.mark.filterwarnings("ignore:RandomProjection. n_components=.* is above"),
    # targets are noise, and first parts of streams have few rows
    pytest.mark.filterwarnings("ignore:.* explains nothing"),
    pytest.mark.filterwarnings("ignore:.* first call of partial_fit"),
]

ESTIMATORS = [
    RandomFeatures(n_components=16),
    RandomFeatures("laplacian", gamma="median", n_components=16),
    RandomFeatures(map="positive", n_components=16),
    RandomFeatures("softmax", gamma=1e-3, n_components=16),
    KernelRidge(n_components=16),
    # from 1e-6 on: smaller ones, which these few rows choose, multiply rounding beyond the tolerance of 1e-9 on some CPUs
    KernelRidge("gaussian", metric=None, map="positive", alpha="gcv", alphas=(1e-6, 1e-3, 1.0), n_components=64),
    KernelRidge("gaussian", metric=None, map="positive", alpha="loo", n_components=64),
    KernelRidge(method="nadaraya-watson", gamma=1.0, n_components=64),
    KernelRidge(method="nadaraya-watson", map="positive", n_components=64),
    KernelClassifier(n_components=16),
    KernelClassifier(map="positive", gamma=1.0, n_components=64),
    KernelClassifier(method="nadaraya-watson", n_components=64),
    KernelClassifier(method="nadaraya-watson", map="positive", n_components=64),
    AngularHash(16),
    AngularHash(n_tables=2),
    RandomProjection(2),
    RandomProjection(2, projection="iid", compute_inverse_components=True),
]


@parametrize_with_checks(ESTIMATORS)
@pytest.mark.swept(4)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)
