"""Kernel principal components: those of the exact kernel as features grow, sums in any order, and the way back."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn import decomposition
from sklearn.utils.estimator_checks import parametrize_with_checks

from bochner import kernels
from bochner.learn import KernelPCA

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 3)) * [2.0, 1.0, 0.5]
X.flags.writeable = False


@parametrize_with_checks([KernelPCA(1, n_features=16, random_state=0)])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_scores_are_those_of_the_exact_kernel_of_the_features():
    """The kernel matrix of the features, centred and decomposed by scikit-learn, has the same scores."""
    ours = KernelPCA(4, gamma=0.1, n_features=64, random_state=0)
    Z = ours.fit_transform(X)
    exact = decomposition.KernelPCA(4, kernel="precomputed").fit_transform(ours.features_.gram(X))
    np.testing.assert_allclose(np.abs(Z), np.abs(exact), atol=1e-9)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(Z.var(axis=0), ours.explained_variance_, rtol=1e-9)


def test_subspace_approaches_that_of_the_exact_kernel():
    """Principal angles to scikit-learn's scores shrink with the width, like one over its root."""
    exact = np.linalg.qr(decomposition.KernelPCA(3, kernel="rbf", gamma=0.1).fit_transform(X))[0]
    sines = []
    for width in (64, 1024):
        runs = [
            np.linalg.qr(KernelPCA(3, gamma=0.1, n_features=width, random_state=i).fit_transform(X))[0]
            for i in range(5)
        ]
        sines.append(np.mean([np.linalg.norm(exact - Q @ (Q.T @ exact)) for Q in runs]))
    assert sines[1] < sines[0] / 2 and sines[1] < 0.15


@pytest.mark.parametrize("kernel", [kernels.Matern(1.5, 2.0), kernels.ExponentialPower(1.0, 3.0)], ids=repr)
def test_rows_in_parts_give_the_same_components(kernel):
    whole = KernelPCA(3, kernel=kernel, n_features=32, random_state=0).fit(X)
    parts = KernelPCA(3, kernel=kernel, n_features=32, random_state=0)
    for i in range(0, 300, 70):
        parts.partial_fit(X[i : i + 70])
    assert parts.n_samples_seen_ == 300
    np.testing.assert_allclose(parts.transform(X), whole.transform(X), atol=1e-9)
    np.testing.assert_allclose(
        parts.inverse_transform(parts.transform(X)), whole.inverse_transform(whole.transform(X)), atol=1e-8
    )


def test_the_way_back_is_least_squares_and_improves_with_components():
    errors = []
    for k in (2, 8, 40):
        model = KernelPCA(k, gamma=0.1, n_features=128, random_state=0)
        Z = model.fit_transform(X)
        back = model.inverse_transform(Z)
        design = np.column_stack([np.ones(300), Z])
        np.testing.assert_allclose(back, design @ np.linalg.lstsq(design, X, rcond=None)[0], atol=1e-6)
        errors.append(np.square(back - X).mean() / X.var())
    assert errors[0] > errors[1] > errors[2] and errors[2] < 0.02


def test_noise_is_taken_out_of_a_curve():
    t = rng.uniform(0, 2 * np.pi, 2000)
    clean = np.stack([np.cos(t), np.sin(t), np.cos(2 * t)], axis=1)
    noisy = clean + 0.2 * rng.standard_normal(clean.shape)
    model = KernelPCA(4, gamma=0.3, n_features=256, random_state=0).fit(noisy)
    found = model.inverse_transform(model.transform(noisy))
    assert np.square(found - clean).mean() < 0.7 * np.square(noisy - clean).mean()


def test_sparse_rows_and_pickles():
    model = KernelPCA(3, n_features=32, random_state=0).fit(sparse.csr_matrix(X))
    np.testing.assert_allclose(
        model.transform(X), KernelPCA(3, n_features=32, random_state=0).fit(X).transform(X), atol=1e-9
    )
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    again.partial_fit(X)
    assert (again.n_samples_seen_, model.n_samples_seen_) == (600, 300)


def test_refusals():
    with pytest.raises(
        ValueError, match=r"^KernelPCA: n_components must be at most 16, the number of features or of rows, got 20"
    ):
        KernelPCA(20, n_features=16).fit(X)
    model = KernelPCA(2, n_features=16).fit(X)
    with pytest.raises(
        ValueError, match=r"^KernelPCA\.inverse_transform: Z must have 2 columns, .* got shape \(300, 3\)"
    ):
        model.inverse_transform(X)
