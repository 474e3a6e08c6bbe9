"""scikit-learn's own checks hold for the estimators of clusters too, on rows in memory."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from bochner.distributed import GaussianProcess, KernelClassifier, KernelRidge, RandomFeatures, RandomProjection

# checks make data with so few columns that a projection to two does not reduce them
pytestmark = [
    pytest.mark.filterwarnings("ignore:RandomProjection. n_components=.* is above"),
    pytest.mark.filterwarnings("ignore:.*sample_weight has whole numbers"),  # a check gives each row the weight 3
    # targets are noise, and first parts of streams have few rows
    pytest.mark.filterwarnings("ignore:.* explains nothing"),
    pytest.mark.filterwarnings("ignore:.* first call of partial_fit"),
]


@parametrize_with_checks(
    [
        RandomFeatures(map="positive", n_components=8),
        RandomProjection(2),
        KernelRidge("gaussian", metric=None, map="positive", n_components=64),
        KernelClassifier("gaussian", metric=None, map="positive", gamma=1.0, n_components=64),
        GaussianProcess(map="positive", n_components=32, optimize="amplitude"),
    ]
)
@pytest.mark.swept(4)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)
