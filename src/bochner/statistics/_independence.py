"""The independence test: the Hilbert-Schmidt independence criterion of random features, with permuted pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._random import RNG, as_generator
from .._validation import check_count, check_instance
from ..approximation import Approximation, FeatureMap
from ..linalg.engine import for_each_tile
from ..maps import Landmarks
from ._result import (
    BLOCK,
    KernelTest,
    as_rows,
    blocks,
    centred,
    check_mergeable,
    check_width,
    compared,
    kernel_for,
)

_SAMPLE = 2000  # rows that bandwidths and landmarks are chosen from, at most


def hsic_test(
    X: Any,
    Y: Any,
    *,
    kernel: Any = "gaussian",
    kernel_y: Any = None,
    n_features: int = 128,
    n_permutations: int = 199,
    rng: RNG = None,
) -> KernelTest:
    r"""Test whether two variables are independent, in time linear in the number of rows.

    Use it to find any dependence, not only a linear one: between two variables, or between residuals and inputs.

    Parameters
    ----------
    X : array (n, d)
        Rows of the first variable; a vector is a variable of single numbers.
    Y : array (n, e)
        Rows of the second variable, in the same order.
    kernel : Kernel or str, default "gaussian"
        A kernel of the difference, for X; a name stands for the kernel whose lengthscale is the median distance of rows.
    kernel_y : Kernel or str, optional
        The kernel for Y; by default the same as for X, which must then be a name or fit both.
    n_features : int, default 128
        Width of the features of each variable, which are landmarks (`maps.Landmarks`); the cost grows with its square.
    n_permutations : int, default 199
        Number of permutations; the smallest p-value is one over this number plus one.
    rng : int, numpy.random.Generator or None
        Source of randomness.

    Returns
    -------
    KernelTest

    See Also
    --------
    IndependenceTest : The same for rows that come in parts.
    mmd_test : Test whether two samples are alike.

    Notes
    -----
    The statistic is :math:`\mathrm{HSIC} = |\frac1n\sum_i\phi(x_i)\psi(y_i)^T - \bar\phi\bar\psi^T|_F^2` (gretton2008,
    Equation 4, in the features :math:`\phi`, :math:`\psi`).  The rows of Y are permuted within random blocks; if X and Y are
    independent, pairs are exchangeable under such permutations, so the p-value is exact for any number of rows, features and
    permutations.  Memory does not grow with the number of rows.

    Landmarks are chosen among the rows of each variable by itself, without regard to the pairs, so they leave the p-value
    exact.  Random features of the same width would leave it exact too, but have less power in several columns, since the
    statistic multiplies the errors of two estimates (docs/statistics.md has the numbers).

    References
    ----------
    gretton2008.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.statistics import hsic_test
    >>> x = np.random.default_rng(0).standard_normal(500)
    >>> hsic_test(x, x**2, rng=0).p_value                       # dependent, and not correlated
    0.005
    """
    X, Y = as_rows("hsic_test", "X", X), as_rows("hsic_test", "Y", Y)
    if len(X) != len(Y):
        raise ValueError(f"hsic_test: X and Y must have the same number of rows, got {len(X)} and {len(Y)}.")
    rng = as_generator(rng)
    n_features = check_count("hsic_test", "n_features", n_features, 2)
    sample = rng.permutation(len(X))[:_SAMPLE]
    X, Y = (centred(Z[sample].mean(axis=0, dtype=np.float64), Z)[0] for Z in (X, Y))
    drawn = []
    for chosen, Z in ((kernel, X[sample]), (kernel if kernel_y is None else kernel_y, Y[sample])):
        spec = Approximation(kernel_for("hsic_test", chosen, Z, rng), Landmarks("rpcholesky"), n_projections=n_features)
        drawn.append(spec.fit(Z, rng=rng))
    return IndependenceTest(*drawn, n_permutations=n_permutations, rng=rng).update(X, Y).result()


class IndependenceTest:
    """The independence test of `hsic_test` for rows that arrive in parts: streams, files, several machines.

    Use it for rows that do not fit in memory or are spread over several machines.

    Parameters
    ----------
    features, features_y : FeatureMap
        Features of a kernel for each variable, the same for queries and keys: ``Approximation(kernel).draw(d)``, or
        ``Approximation(kernel, "landmarks").fit(X)`` for rows of the variable.
    n_permutations : int, default 199
        Number of permutations.
    rng : int, numpy.random.Generator or None
        Source of randomness.

    Notes
    -----
    The test holds a matrix of sums of products of features for each permutation.  Rows of Y are permuted among the rows of
    one `update`.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels
    >>> from bochner.statistics import IndependenceTest
    >>> features = Approximation(kernels.Gaussian(), n_projections=32).draw(1, rng=0)
    >>> x = np.random.default_rng(0).standard_normal((2, 300))
    >>> test = IndependenceTest(features, features, rng=0).update(x[0], x[0] ** 2).update(x[1], x[1] ** 2)
    >>> test.n_rows, test.result().p_value
    (600, 0.005)
    """

    def __init__(
        self, features: FeatureMap, features_y: FeatureMap, *, n_permutations: int = 199, rng: RNG = None
    ) -> None:
        self.features = _check_symmetric("features", features)
        self.features_y = _check_symmetric("features_y", features_y)
        self._rng = as_generator(rng)
        n_permutations = check_count("IndependenceTest", "n_permutations", n_permutations)
        self.n_rows = 0
        widths = features.n_features_out, features_y.n_features_out
        self._products = np.zeros((n_permutations + 1, *widths))  # the first: pairs as they are
        self._sums = np.zeros(widths[0]), np.zeros(widths[1])

    def update(self, X: Any, Y: Any) -> IndependenceTest:
        """Return the test with pairs of rows added.

        Parameters
        ----------
        X, Y : array (n, d) and array (n, e)
            Rows of both variables, in the same order.

        Returns
        -------
        IndependenceTest
        """
        X, Y = as_rows("IndependenceTest.update", "X", X), as_rows("IndependenceTest.update", "Y", Y)
        check_width("IndependenceTest.update", "X", X, self.features.n_features_in)
        check_width("IndependenceTest.update", "Y", Y, self.features_y.n_features_in)
        if len(X) != len(Y):
            raise ValueError(
                f"IndependenceTest.update: X and Y must have the same number of rows, got {len(X)} and {len(Y)}."
            )
        products, sums = np.zeros_like(self._products), tuple(np.zeros_like(part) for part in self._sums)
        for rows in blocks(len(X), max(1, len(X) // BLOCK), self._rng):
            self._add(X[rows], Y[rows], products, sums)
        return self._with(products, sums, len(X))

    def merge(self, other: IndependenceTest) -> IndependenceTest:
        """Return the test of the rows of both tests, which must have the same features and number of permutations.

        Parameters
        ----------
        other : IndependenceTest
            The test of other rows.

        Returns
        -------
        IndependenceTest
        """
        check_instance(
            "IndependenceTest.merge", "other", other, IndependenceTest, "IndependenceTest(features, features)"
        )
        for ours, theirs in ((self.features, other.features), (self.features_y, other.features_y)):
            check_mergeable("IndependenceTest", ours, theirs, self._products, other._products)
        return self._with(other._products, other._sums, other.n_rows)

    def result(self) -> KernelTest:
        """Return the statistic and its p-value.

        Returns
        -------
        KernelTest
        """
        n = self.n_rows
        if n < 2:
            raise ValueError(f"IndependenceTest.result: expected at least two pairs of rows, got {n}; call update.")
        covariance = self._products / n - np.multiply.outer(*(part / n for part in self._sums))
        values = np.square(covariance, out=covariance).sum(axis=(1, 2))
        return KernelTest(float(values[0]), compared(values[0], values[1:]), values[1:], float(values[0]))

    def _add(self, X: np.ndarray, Y: np.ndarray, products: np.ndarray, sums: tuple[np.ndarray, ...]) -> None:
        Phi, Psi = self.features.queries(X), self.features_y.queries(Y)
        sums[0][...] += Phi.sum(axis=0, dtype=np.float64)
        sums[1][...] += Psi.sum(axis=0, dtype=np.float64)
        orders = np.tile(np.arange(len(Psi)), (len(products), 1))
        self._rng.permuted(orders[1:], axis=1, out=orders[1:])

        def add(start: int, stop: int) -> None:
            for b in range(start, stop):
                products[b] += Phi.T @ Psi[orders[b]]

        for_each_tile(len(products), 1, add)

    def _with(self, products: np.ndarray, sums: tuple[np.ndarray, ...], n: int) -> IndependenceTest:
        new = object.__new__(IndependenceTest)
        new.__dict__.update(self.__dict__, _products=self._products + products, n_rows=self.n_rows + n)
        new._sums = self._sums[0] + sums[0], self._sums[1] + sums[1]
        return new


def _check_symmetric(name: str, features: Any) -> FeatureMap:
    check_instance("IndependenceTest", name, features, FeatureMap, "Approximation(kernels.Gaussian()).draw(d)")
    if not features.symmetric:
        raise ValueError(
            f"IndependenceTest: {name} must be the same for queries and keys, such as Approximation(kernels.Gaussian())"
            f".draw(d), got {features!r}."
        )
    return features  # type: ignore[no-any-return]
