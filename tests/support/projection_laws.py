"""The laws of projections, as functions that raise: the common suite runs them, and the mutants must break them."""

from __future__ import annotations

import numpy as np
from scipy import stats

from bochner.projections import Operator, Projection
from bochner.projections._structured import StructuredOperator
from bochner.rotations import DrawnRotation
from support.checks import check_law, check_mean, probes


def check_dense_equals_apply(P: Operator, seed: int = 0) -> None:
    """P(X) and P.adjoint(Z) are products with the matrix, in both precisions."""
    rng = np.random.default_rng(seed)
    m, d = P.shape
    W = P.to_dense()
    assert W.shape == (m, d) and W.dtype == np.float64
    X, Z = rng.standard_normal((7, d)), rng.standard_normal((7, m))
    size = np.linalg.norm(W, axis=1).max() * np.sqrt(max(m, d))
    for dtype in (np.float64, np.float32):
        # two orders of magnitude above rounding: transforms of up to 20 levels, in another order than the product
        atol = 100 * np.finfo(dtype).eps * size
        applied, adjoined = P(X.astype(dtype)), P.adjoint(Z.astype(dtype))
        assert applied.dtype == dtype and adjoined.dtype == dtype
        np.testing.assert_allclose(applied, X @ W.T, atol=atol)
        np.testing.assert_allclose(adjoined, Z @ W, atol=atol)
        if isinstance(P, StructuredOperator):  # the transforms too, where the operator would take a product
            P.transform(X.astype(dtype), applied)
            P.transform_back(Z.astype(dtype), adjoined)
            np.testing.assert_allclose(applied, X @ W.T, atol=atol)
            np.testing.assert_allclose(adjoined, Z @ W, atol=atol)


def check_rows_and_combinations(P: Operator, seed: int = 0) -> None:
    """P.rows are rows of the matrix, across blocks too, and P.combine(Z) is the product, to rounding."""
    m, W = P.shape[0], P.to_dense()
    atol = 1e-13 * np.linalg.norm(W, axis=1).max()
    for start, stop in {(0, m), (m // 3, max(2 * m // 3, m // 3 + 1)), (m - 1, m)}:
        np.testing.assert_allclose(P.rows(start, stop), W[start:stop], atol=atol)
    Z = np.random.default_rng(seed).standard_normal((3, m))
    np.testing.assert_allclose(P.combine(Z), Z @ W, atol=m * atol)


def check_adjoint_identity(P: Operator, seed: int = 0) -> None:
    """<P(x), z> = <x, P.adjoint(z)>."""
    rng = np.random.default_rng(seed)
    x, z = rng.standard_normal(P.shape[1]), rng.standard_normal(P.shape[0])
    left, right = P(x) @ z, x @ P.adjoint(z)
    assert abs(left - right) <= 1e-10 * np.linalg.norm(P.radii) * np.linalg.norm(x) * np.linalg.norm(z), (left, right)


def check_orthogonal(R: DrawnRotation) -> None:
    """Every drawn matrix is orthogonal."""
    dense = R.to_dense()
    assert dense.shape == (R.n_blocks, R.dim, R.dim)
    gram = dense @ dense.transpose(0, 2, 1)
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(R.dim), gram.shape), atol=1e-12)


def rows_on(
    projection: Projection, d: int, v: np.ndarray, n_blocks: int, rows: int, seed: int, **options
) -> np.ndarray:
    """(w . v) for all rows of ``n_blocks`` independent blocks of ``rows`` rows: (n_blocks, rows)."""
    return projection.sample(d, n_blocks * rows, seed, **options)(v).reshape(n_blocks, rows)


def check_second_moments(projection: Projection, d: int, rows: int, seed: int, n_blocks: int = 2000) -> None:
    """E (w . v)^2 = |v|^2 for the first and the last row of a block, and on average over the block."""
    for label, v in probes(d, 1.5, seed).items():
        squares = rows_on(projection, d, v, n_blocks, rows, seed) ** 2
        for name, sample in {"first": squares[:, 0], "last": squares[:, -1], "all": squares.mean(axis=1)}.items():
            check_mean(sample, 2.25, f"{projection} d={d} {label} {name} rows: E(w.v)^2")


def check_normal_law(projection: Projection, d: int, rows: int, seed: int, n_blocks: int = 2000) -> None:
    """W . v is N(0, |v|^2): Kolmogorov-Smirnov over one row a block, which are independent."""
    for label, v in probes(d, 1.5, seed).items():
        products = rows_on(projection, d, v, n_blocks, rows, seed)
        for row in {0, rows // 2, rows - 1}:
            check_law(products[:, row], stats.norm(0, 1.5), f"{projection} d={d} {label} row {row}")


def check_exponential_mean(projection: Projection, d: int, rows: int, seed: int, n_blocks: int = 4000) -> None:
    """E exp(w . v) = exp(|v|^2 / 2) where exp is curved: the law that a missing sign fix breaks."""
    for label, v in probes(d, 1.5, seed).items():
        values = np.exp(rows_on(projection, d, v, n_blocks, rows, seed)).mean(axis=1)
        check_mean(values, np.exp(1.125), f"{projection} d={d} {label}: E exp(w.v)")


def check_blocks_are_independent(projection: Projection, d: int, rows: int, seed: int, draws: int = 300) -> None:
    """Two blocks of one draw are independent: w.v, its square and the lengths do not correlate over redraws."""
    rng = np.random.default_rng(seed)
    v = probes(d, 1.5, seed)["generic"]
    drawn = [projection.sample(d, 2 * rows, rng) for _ in range(draws)]
    products = np.array([P(v).reshape(2, rows)[:, 0] for P in drawn])
    radii = np.array([P.radii.reshape(2, rows)[:, 0] for P in drawn])
    for label, values in {"rows": products, "squares": products**2, "lengths": radii}.items():
        if label != "lengths" or values.std() > 1e-9:  # lengths may be all the same by design
            centred = values - values.mean(axis=0)
            check_mean(centred[:, 0] * centred[:, 1], 0.0, f"{projection}: correlation of {label}")
    assert products.std(axis=0).min() > 0.1, f"{projection}: blocks do not vary"


def block_means(
    projection: Projection, d: int, rows: int, Z: np.ndarray, f, n_blocks: int, seed: int, **options
) -> np.ndarray:
    """Estimates of E f(w . z) from each of many independent blocks, weights and the node at zero included.

    One draw of many blocks is as good as many draws of one (`check_blocks_are_independent`).  Returns (n_blocks, n_z).
    """
    P = projection.sample(d, n_blocks * rows, seed, **options)
    weights = P.weights.reshape(n_blocks, rows) * n_blocks
    values = f(P(Z))
    if P.reflected:
        values = (values + f(-P(Z))) / 2
    values = values.reshape(len(Z), n_blocks, rows)
    origin = f(np.zeros(1))[0] * (1 - weights.sum(axis=1))
    return ((values * weights).sum(axis=-1) + origin).T
