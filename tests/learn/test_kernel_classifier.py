"""Classification: equal to scikit-learn's ridge, and to the votes of the definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier

from bochner import Approximation, kernels, maps, projections
from bochner.learn import KernelClassifier, KernelRidge, RandomFeatures
from bochner.learn._nadaraya_watson import TargetSums

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 3))
NORM = np.linalg.norm(X, axis=1)
THREE = np.array(["far", "near", "there"])[np.digitize(NORM, [1.2, 2.0])]
TWO = np.where(NORM < 1.5, 3, 7)
LABELS = np.column_stack([X[:, 0] > 0, NORM < 1.5, X[:, 1] > 0.5]).astype(int)
W = RNG.integers(0, 3, 200).astype(float)


def model(**parameters):
    return KernelClassifier(
        **({"gamma": 0.3, "map": None, "alpha": 1.0, "n_components": 60, "random_state": 0} | parameters)
    )


@pytest.mark.parametrize("y", (THREE, TWO, LABELS), ids=["three", "two", "labels"])
@pytest.mark.parametrize("class_weight", (None, "balanced"))
def test_ridge_is_the_ridge_classifier_on_the_features(y, class_weight):
    Phi = RandomFeatures(gamma=0.3, n_components=60, random_state=0).fit_transform(X)
    expected = RidgeClassifier(0.1, class_weight=class_weight).fit(Phi, y, W)
    ours = model(alpha=0.1, class_weight=class_weight).fit(X, y, W)
    np.testing.assert_allclose(ours.decision_function(X), expected.decision_function(Phi), atol=1e-8)
    np.testing.assert_array_equal(ours.predict(X), expected.predict(Phi))
    np.testing.assert_allclose(ours.coef_.ravel(), expected.coef_.ravel(), atol=1e-7)


@pytest.mark.parametrize(
    "kernel, parameters",
    [
        (kernels.Gaussian(1.0), {"n_components": 20000}),
        (kernels.Softmax(), {"n_components": 20000}),
        (kernels.Gaussian(1.0), {"map": maps.AngularHybrid(4), "n_components": 20000}),
        (
            kernels.Gaussian(1.0),
            {"projection": projections.Quadrature(), "map": "trigonometric", "n_components": 20001},
        ),
    ],
    ids=["gaussian", "softmax", "pairs-of-a-hybrid", "pairs-of-a-quadrature"],
)
def test_votes_tend_to_those_of_the_exact_kernel(kernel, parameters):
    K = kernel(X)
    expected = (K @ (THREE[:, None] == np.unique(THREE))) / K.sum(axis=1, keepdims=True)
    near = np.abs(X).max(axis=1) < 1.2  # where the estimates of these kernels have a moderate variance
    fitted = model(kernel=kernel, gamma=None, method="nadaraya-watson", **parameters).fit(X, THREE)
    assert np.abs(fitted.predict_proba(X[near]) - expected[near]).max() < 0.05


@pytest.mark.parametrize("y", (THREE, TWO, LABELS), ids=["three", "two", "labels"])
def test_shares_are_probabilities_and_decide(y):
    fitted = model(method="nadaraya-watson").fit(X, y)
    shares = fitted.predict_proba(X)
    assert (shares >= 0).all() and (shares <= 1).all()
    if y is LABELS:
        np.testing.assert_array_equal(fitted.predict(X), shares > 0.5)
    else:
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[shares.argmax(axis=1)])


@pytest.mark.parametrize("method", ("ridge", "nadaraya-watson"))
@pytest.mark.parametrize("y", (THREE, TWO, LABELS), ids=["three", "two", "labels"])
def test_partial_fit_is_one_fit(y, method):
    parameters = {"method": method, "map": "positive"}  # without constants, which the first rows would choose
    whole, stream = model(**parameters).fit(X, y, W), model(**parameters)
    for rows in np.split(np.arange(200), [50, 60, 150]):
        stream.partial_fit(X[rows], y[rows], classes=None if y is LABELS else np.unique(y), sample_weight=W[rows])
    np.testing.assert_allclose(stream.decision_function(X), whole.decision_function(X), atol=1e-7)


@pytest.mark.parametrize("norm", (30.0, 300.0))
def test_votes_at_large_norms_are_finite_and_right(norm):
    # on opposite rays exp(c x.y) is e^{+-norm^2}: the class of the same side has all of the votes
    Z = norm * np.concatenate([np.eye(3)[[0] * 20], -np.eye(3)[[0] * 20]])
    y = np.repeat([0, 1], 20)
    fitted = model(kernel=kernels.Softmax(), gamma=None, method="nadaraya-watson").fit(Z, y)
    np.testing.assert_allclose(fitted.predict_proba(Z), np.eye(2)[y], atol=1e-6)


def test_sums_merge_in_any_order():
    phi = Approximation(kernels.Softmax(), maps.Positive(), n_projections=20).draw(3, rng=0)
    Y = RNG.standard_normal((200, 2))
    parts = [TargetSums.of(phi, (1 + k) * X[k::3], Y[k::3]) for k in range(3)]
    nothing = TargetSums.of(phi, X[:0], Y[:0])
    a, b = (parts[0] + parts[1]) + parts[2], parts[2] + (parts[0] + (nothing + parts[1]))
    np.testing.assert_allclose(a.keys.values, b.keys.values, rtol=1e-12)
    np.testing.assert_array_equal(a.keys.shift, b.keys.shift)


def test_regression_averages():
    y = np.sin(X[:, 0])
    fitted = KernelRidge(
        kernels.Gaussian(0.8), method="nadaraya-watson", map="positive", n_components=20000, random_state=0
    ).fit(X, y, W)
    K = kernels.Gaussian(0.8)(X) * W
    near = NORM < 1.2
    np.testing.assert_allclose(fitted.predict(X)[near], (K @ y / K.sum(axis=1))[near], atol=0.1)


def test_sums_that_are_not_positive_are_reported():
    far = 4.0 * RNG.standard_normal((50, 3))
    averages = KernelRidge(gamma=1.0, method="nadaraya-watson", map="trigonometric", n_components=10, random_state=0)
    averages.fit(far, far[:, 0])
    with pytest.warns(UserWarning, match=r"KernelRidge: \d+ of 200 rows have an estimated sum of weights that is not"):
        prediction = averages.predict(X * 10)
    assert np.isfinite(prediction).all()
    assert np.isclose(prediction, far[:, 0].mean()).any()


def test_rows_of_weight_zero_do_not_set_the_scale_of_the_votes():
    rows, w = np.vstack([X, 60 * X[:5]]), np.repeat([1.0, 0.0], [200, 5])
    votes = {"kernel": kernels.Gaussian(0.5), "gamma": None, "method": "nadaraya-watson", "map": "positive"}
    shares = model(**votes).fit(rows, np.append(TWO, TWO[:5]), w).predict_proba(X)
    np.testing.assert_allclose(shares, model(**votes).fit(X, TWO).predict_proba(X), atol=1e-9)


def test_the_likeliest_class_is_the_predicted_one_for_signed_votes():
    signed = model(method="nadaraya-watson", map="trigonometric", gamma=3.0, n_components=20).fit(X, THREE)
    with pytest.warns(UserWarning, match="sum of weights that is not positive"):
        shares, labels = signed.predict_proba(2 * X), signed.predict(2 * X)
    assert (shares >= 0).all() and np.allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(signed.classes_[shares.argmax(axis=1)], labels)


def test_sparse_labels():
    expected = model().fit(X, LABELS).predict(X)
    np.testing.assert_array_equal(model().fit(X, sparse.csr_matrix(LABELS)).predict(X), expected)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: model().fit(X, np.zeros(200)), r"KernelClassifier: y has one class, 0\.0, and needs"),
        (lambda: model().partial_fit(X, TWO), r"KernelClassifier: classes must be passed on the first call"),
        (lambda: model().partial_fit(X, TWO, [3, 8]), r"KernelClassifier: y has \[7\], which are not among"),
        (
            lambda: model().partial_fit(X, TWO, [3, 7]).partial_fit(X, TWO, [3, 9]),
            r"KernelClassifier: classes must be those of the first call, \[3, 7\], got \[3, 9\]\.",
        ),
        (
            lambda: model(class_weight="balanced").partial_fit(X, TWO, [3, 7]),
            r"KernelClassifier: class_weight='balanced' needs all rows at once",
        ),
        (
            lambda: model().partial_fit(X, LABELS).partial_fit(X, LABELS[:, 0]),
            r"KernelClassifier: y had several labels per row in the first call, and has one class now\.",
        ),
        (
            lambda: model().partial_fit(X, TWO, [3, 7]).partial_fit(X, LABELS),
            r"KernelClassifier: y had one class per row in the first call, and has several labels now\.",
        ),
        (lambda: model().fit(X, np.column_stack([TWO, TWO])), r"KernelClassifier: y must be classes \(n,\) or"),
        (lambda: model().fit(X, np.column_stack([TWO, NORM.round()])), r"KernelClassifier: y must be classes \(n,\) or"),
    ],
)  # fmt: skip
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_not_fitted():
    for attribute in ("coef_", "intercept_", "alpha_"):
        with pytest.raises(NotFittedError, match="This KernelClassifier instance is not fitted yet"):
            getattr(model(), attribute)
