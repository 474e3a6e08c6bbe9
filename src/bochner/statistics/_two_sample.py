"""The two-sample test: the maximum mean discrepancy of random features, with permuted labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._random import RNG, as_generator
from .._validation import check_count, check_instance
from ..approximation import Approximation, FeatureMap
from ..linalg.engine import multiply
from ._result import (
    BLOCK,
    KernelTest,
    as_rows,
    blocks,
    centred,
    check_features,
    check_mergeable,
    check_width,
    compared,
    kernel_for,
)


def mmd_test(
    X: Any,
    Y: Any,
    *,
    kernel: Any = "gaussian",
    n_features: int = 512,
    n_permutations: int = 199,
    rng: RNG = None,
) -> KernelTest:
    r"""Test whether two samples come from the same distribution, in time linear in the number of rows.

    Use it for drift, A/B tests and generated data, where the kind of difference is not known in advance.

    Parameters
    ----------
    X : array (n, d)
        The first sample; a vector is a sample of single numbers.
    Y : array (p, d)
        The second sample.
    kernel : Kernel or str, default "gaussian"
        A kernel of the difference x - y.  A name stands for the kernel whose lengthscale is the median distance between rows
        of both samples.
    n_features : int, default 512
        Width of the random features.
    n_permutations : int, default 199
        Number of permutations; the smallest p-value is one over this number plus one.
    rng : int, numpy.random.Generator or None
        Source of randomness.

    Returns
    -------
    KernelTest

    See Also
    --------
    TwoSampleTest : The same for rows that come in parts.
    hsic_test : Test whether two variables are independent.

    Notes
    -----
    The statistic is :math:`\mathrm{MMD}^2 = |\frac1n\sum_i\phi(x_i) - \frac1p\sum_j\phi(y_j)|^2` (gretton2012, Equation 5)
    with random features :math:`\phi`; ``statistic`` is its unbiased form.  Labels are permuted within random blocks of both
    samples.  Such permutations are a group under which the rows are exchangeable if both samples have one distribution, so
    the p-value is exact for any number of rows, features and permutations.  Memory does not grow with the number of rows.

    ``directions`` are the eigenvectors of :math:`\sum_j (c_j - \bar c_j) w_j w_j^T`, where :math:`c_j` is the squared
    difference of the characteristic functions at the row :math:`w_j` and :math:`\bar c_j` its mean over permutations: the
    mean outer product of the gradients of the witness function.

    References
    ----------
    gretton2012.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.statistics import mmd_test
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.standard_normal((500, 3)), rng.standard_normal((400, 3))
    >>> Y[:, 1] *= 1.5                                     # the same mean, another spread in one column
    >>> found = mmd_test(X, Y, rng=0)
    >>> found.p_value
    0.005
    >>> int(np.abs(found.directions[0]).argmax())
    1
    """
    X, Y = as_rows("mmd_test", "X", X), as_rows("mmd_test", "Y", Y)
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"mmd_test: X and Y must have the same columns, got {X.shape[1]} and {Y.shape[1]}.")
    rng = as_generator(rng)
    n_features = check_count("mmd_test", "n_features", n_features, 2)
    sample = _both(X, Y, rng)
    spec = Approximation(kernel_for("mmd_test", kernel, sample, rng)).with_width(n_features)
    features = spec.draw(sample.shape[1], rng)
    test = TwoSampleTest(features, n_permutations=n_permutations, rng=rng)
    mean = sample.mean(axis=0, dtype=np.float64)
    return test.update(*centred(mean, X, Y)).result()


class TwoSampleTest:
    """The two-sample test of `mmd_test` for rows that arrive in parts: streams, files, several machines.

    Use it for rows that do not fit in memory or are spread over several machines.

    Parameters
    ----------
    features : FeatureMap
        Trigonometric features of a kernel of the difference, ``Approximation(kernel).draw(d)``; those of one test must be
        the same everywhere.
    n_permutations : int, default 199
        Number of permutations.
    rng : int, numpy.random.Generator or None
        Source of randomness.

    Notes
    -----
    The test holds sums of features, one for each permutation.  Labels are permuted among the rows of one `update`, so each
    must hold rows of both samples, and rows of an update should be comparable (of one day, say): a difference between
    updates is then no evidence of a difference between samples.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels
    >>> from bochner.statistics import TwoSampleTest
    >>> features = Approximation(kernels.Gaussian(2.0)).draw(3, rng=0)
    >>> rng = np.random.default_rng(0)
    >>> test = TwoSampleTest(features, rng=0)
    >>> for day in range(5):
    ...     test = test.update(rng.standard_normal((100, 3)), rng.standard_normal((100, 3)))
    >>> 0.005 <= test.result().p_value <= 1, test.n_rows
    (True, (500, 500))
    """

    def __init__(self, features: FeatureMap, *, n_permutations: int = 199, rng: RNG = None) -> None:
        self.features = check_features("TwoSampleTest", "features", features)
        self._rng = as_generator(rng)
        n_permutations = check_count("TwoSampleTest", "n_permutations", n_permutations)
        self.n_rows = (0, 0)
        self._first = np.zeros(
            (n_permutations + 1, features.n_features_out)
        )  # sums of the first sample; row 0: as it is
        self._total = np.zeros(features.n_features_out)

    def update(self, X: Any, Y: Any) -> TwoSampleTest:
        """Return the test with rows of both samples added.

        Parameters
        ----------
        X, Y : array (n, d) and array (p, d)
            Rows of the first and the second sample, at least one of each.

        Returns
        -------
        TwoSampleTest
        """
        X, Y = as_rows("TwoSampleTest.update", "X", X), as_rows("TwoSampleTest.update", "Y", Y)
        for name, Z in (("X", X), ("Y", Y)):
            check_width("TwoSampleTest.update", name, Z, self.features.n_features_in)
        first, total = np.zeros_like(self._first), np.zeros_like(self._total)
        parts = max(1, min((len(X) + len(Y)) // BLOCK, len(X), len(Y)))
        for i, j in zip(blocks(len(X), parts, self._rng), blocks(len(Y), parts, self._rng), strict=True):
            self._add(np.concatenate([X[i], Y[j]]), len(i), first, total)
        return self._with(first, total, (len(X), len(Y)))

    def merge(self, other: TwoSampleTest) -> TwoSampleTest:
        """Return the test of the rows of both tests, which must have the same features and number of permutations.

        Parameters
        ----------
        other : TwoSampleTest
            The test of other rows.

        Returns
        -------
        TwoSampleTest
        """
        check_instance("TwoSampleTest.merge", "other", other, TwoSampleTest, "TwoSampleTest(features)")
        check_mergeable("TwoSampleTest", self.features, other.features, self._first, other._first)
        return self._with(other._first, other._total, other.n_rows)

    def result(self) -> KernelTest:
        """Return the statistic and its p-value.

        Returns
        -------
        KernelTest
        """
        n, p = self.n_rows
        if n < 2 or p < 2:
            raise ValueError(
                f"TwoSampleTest.result: expected at least two rows of each sample, got {n} and {p}; call update."
            )
        difference = self._first * (1 / n + 1 / p) - self._total / p
        values = np.vecdot(difference, difference)
        x, y = self._first[0], self._total - self._first[0]
        unbiased = (x @ x - n) / (n * (n - 1)) + (y @ y - p) / (p * (p - 1)) - 2 * (x @ y) / (n * p)  # |phi| = 1
        directions, shares = self._directions(difference)
        return KernelTest(
            float(unbiased), compared(values[0], values[1:]), values[1:], float(values[0]), directions, shares
        )

    def witness(self, Z: Any) -> np.ndarray:
        """Evaluate the witness function, positive where the first sample is denser and negative where the second is.

        Parameters
        ----------
        Z : array (m, d)
            Rows.

        Returns
        -------
        float64 array (m,)
        """
        n, p = self.n_rows
        difference = self._first[0] * (1 / n + 1 / p) - self._total / p
        return np.asarray(self.features.queries(as_rows("TwoSampleTest.witness", "Z", Z)) @ difference)

    def _add(self, Z: np.ndarray, n: int, first: np.ndarray, total: np.ndarray) -> None:
        """Add the sums of a block whose first n rows are of the first sample."""
        Phi = self.features.queries(Z)
        labels = np.zeros((len(first), len(Z)), Phi.dtype)
        labels[:, :n] = 1
        self._rng.permuted(labels[1:], axis=1, out=labels[1:])
        sums = np.empty(first.shape, Phi.dtype)
        multiply(labels, Phi, sums)
        first += sums
        total += Phi.sum(axis=0, dtype=np.float64)

    def _with(self, first: np.ndarray, total: np.ndarray, rows: tuple[int, int]) -> TwoSampleTest:
        new = object.__new__(TwoSampleTest)
        new.__dict__.update(self.__dict__, _first=self._first + first, _total=self._total + total)
        new.n_rows = (self.n_rows[0] + rows[0], self.n_rows[1] + rows[1])
        return new

    def _directions(self, difference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        features = self.features
        assert features.spec.kernel is not None
        W = features.features.nodes.to_dense()  # type: ignore[attr-defined]
        W = W * features.spec.kernel.at_unit_scale(np.ones((1, W.shape[1])))
        W = np.ldexp(W, -np.frexp(np.abs(W).max())[1])  # in any unit, so that rows of a tiny one do not overflow
        squares = difference**2
        m = len(W)
        pairs = squares[:, :m] + squares[:, m:]  # all cosines, then all sines
        excess = pairs[0] - pairs[1:].mean(axis=0)
        values, vectors = np.linalg.eigh((W.T * excess) @ W)
        size = np.abs(values).sum()
        return vectors.T[::-1], values[::-1] / (size if size > 0 else 1.0)


def _both(X: np.ndarray, Y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """At most 2000 rows of both samples together, each row with the same probability."""
    n = len(X) + len(Y)
    rows = np.sort(rng.choice(n, min(n, 2000), replace=False))
    return np.concatenate([X[rows[rows < len(X)]], Y[rows[rows >= len(X)] - len(X)]])
