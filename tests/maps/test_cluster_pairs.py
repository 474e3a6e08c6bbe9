"""Bases of all pairs of clusters computed together, as tensors need it, are the bases one by one."""

import numpy as np
import pytest

from bochner import Approximation, kernels, maps, projections

D = 6
RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, D)) * 0.7 + RNG.integers(0, 2, (40, 1))
Y = RNG.standard_normal((30, D)) * 0.5
PAIRS = {
    "complex": maps.ClusterHybrid(3, 2),
    "real": maps.ClusterHybrid(3, 2, diagonal="real"),
    "one pair": maps.ClusterHybrid(1, 1),
}
APART = {
    "own rows": maps.ClusterHybrid(2, 2, shared=False),
    "light pairs": maps.ClusterHybrid(3, 3, light=0.2),
}


def drawn(kind, kernel=None, projection=None):
    spec = Approximation(kernel or kernels.Softmax(), kind, projection or projections.Orthogonal(), 7)
    return spec.plan(X, Y, rng=0).draw(D, rng=1).features


def values(parts):
    mantissa, logarithm = (np.asarray(part) for part in parts)
    return mantissa * np.exp(logarithm)


@pytest.mark.parametrize("projection", [projections.Orthogonal(), projections.Quadrature()], ids=str)
@pytest.mark.parametrize("kernel", [kernels.Softmax(), kernels.Gaussian()], ids=str)
@pytest.mark.parametrize("name", PAIRS | APART)
def test_tensors_have_the_features_of_arrays(name, kernel, projection):
    torch = pytest.importorskip("torch")
    features = drawn((PAIRS | APART)[name], kernel, projection)
    for rows, key in ((X, False), (Y, True)):
        expected = values(features.scaled(rows, key=key))
        found = values(features.scaled(torch.tensor(rows).reshape(2, -1, D), key=key)).reshape(expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())


def test_pairs_that_mix_real_and_complex_diagonals():
    torch = pytest.importorskip("torch")
    plan = Approximation(kernels.Softmax(), PAIRS["complex"], n_projections=7).plan(X, Y, rng=0).map
    A = np.array(plan.diagonals)
    A[1, 0] = np.abs(A[1, 0])  # a base without sines
    mixed = maps.ClusterHybrid(
        3, 2, query_centers=plan.query_centers, key_centers=plan.key_centers, diagonals=A, light_pairs=()
    )
    features = drawn(mixed)
    assert features.pairs is not None and features.width == 7 * (2 * 5 + 1)
    for rows, key in ((X, False), (Y, True)):
        expected = values(features.scaled(rows, key=key))
        found = values(features.scaled(torch.tensor(rows), key=key))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("name", APART)
def test_bases_that_differ_in_more_than_their_diagonals_are_computed_apart(name):
    assert drawn(APART[name]).pairs is None


def test_rows_far_from_their_cluster_stay_finite():
    torch = pytest.importorskip("torch")
    features = drawn(PAIRS["complex"])
    far = torch.tensor(30.0 * X[:5], requires_grad=True)
    mantissa, logarithm = features.scaled(far, key=False)
    (mantissa * (logarithm - logarithm.detach().amax(-1, keepdim=True)).exp()).sum().backward()
    assert torch.isfinite(mantissa).all() and torch.isfinite(logarithm).all() and torch.isfinite(far.grad).all()


def test_attention_takes_them_in_few_operations():
    torch = pytest.importorskip("torch")
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        n = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.n += 1
            return function(*args, **(kwargs or {}))

    counts = []
    for kind in (maps.ClusterHybrid(2, 2), maps.ClusterHybrid(4, 4)):
        features, rows = drawn(kind), torch.tensor(X)
        with Count() as count:
            features.scaled(rows, key=False)
        counts.append(count.n)
    assert counts[0] == counts[1] < 60  # whatever the number of pairs
