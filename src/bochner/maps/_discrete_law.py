"""Discrete features with any law of the exponents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import theory
from .._validation import shown
from ._data import Data
from ._discrete import DiscreteMap
from ._error import ErrorCase
from ._features import as_tuple

_TAIL = 1e-3
"""Mass of the exponents beyond the given ones, a geometric tail with ratio one half: without it the mean would be biased."""
_MORE = 80  # exponents of the tail that errors are summed over; the next ones are below rounding
_MOST = 200  # exponents at most: enough for products of coordinates up to 20
_REACH = 1.5  # points may be this much larger than the data before the tail is felt


@dataclass(frozen=True)
class Discrete(DiscreteMap):
    r"""Discrete features with any law of the exponents; by default the best law for the data, coordinate by coordinate.

    Use it for sparse or non-negative data of moderate dimension, if there are data to choose its law from.

    Parameters
    ----------
    positive : bool
        Whether to shift all points by slightly more than their coordinatewise minimum, which does not change the
        Gaussian kernel and makes every feature positive.  The estimate stays unbiased for new points that fall below
        it.
    weights : sequence (K,) or (d, K) of positive numbers, optional
        Weights of the exponents 0, 1, ..., K - 1, of all coordinates or of each; they need not sum to one.  Chosen from
        the data by default.
    shift : sequence of float, optional
        The point that is subtracted from all points, only with ``positive``; chosen from the data by default.

    See Also
    --------
    Poisson, Geometric : The laws of the paper.

    Notes
    -----
    With independent exponents :math:`P(w_l = k) = p_{lk}`,

    .. math:: f(x) = e^{-|x|^2/2} \prod_l \frac{x_l^{w_l}}{\sqrt{w_l!\,p_{l,w_l}}}

    is unbiased for the Gaussian kernel (times :math:`e^{|x|^2/2}` for softmax) (CRT Eq. 9 and 10), if every exponent has a
    positive probability: 0.001 of the mass is a geometric tail beyond the given exponents.  The second moment of one row is
    :math:`\prod_l e^{-x_l^2-y_l^2}\sum_k (x_ly_l)^{2k}/(k!^2p_{lk})`.  The mean of each factor over independent queries and
    keys is least at

    .. math:: p_{lk} \propto \frac1{k!}\sqrt{E[x_l^{2k}e^{-x_l^2}]\;E[y_l^{2k}e^{-y_l^2}]}

    (Cauchy-Schwarz), the law that is chosen by default.  CRT leaves it open.

    References
    ----------
    crt (Eq. 9, 10); the optimal law is a contribution of this library.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> X = np.random.default_rng(0).standard_normal((20, 3)) * [1, 0.3, 0.1]
    >>> plan = Approximation(kernels.Gaussian(), maps.Discrete(), n_projections=8).plan(X)
    >>> len(plan.map.weights), plan.n_features_out
    (3, 8)
    """

    positive: bool = False
    weights: tuple[Any, ...] | None = None
    shift: tuple[float, ...] | None = None
    name: ClassVar[str] = "discrete"
    formula: ClassVar[str] = r"\prod_k x_k^{n_{ik}}/\sqrt{n_{ik}!\,p(n_{ik})}"
    cost: ClassVar[str] = r"O(d)"
    parameter_name: ClassVar[str] = "weights"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights is None:
            return
        sentence = f"Discrete: weights must be positive numbers of shape (K,) or (d, K), got {shown(self.weights)}."
        try:
            array = np.asarray(self.weights, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(sentence) from None
        if array.ndim not in (1, 2) or not array.size or not (np.isfinite(array).all() and (array > 0).all()):
            raise ValueError(sentence)
        object.__setattr__(self, "weights", as_tuple(array))

    @property
    def remedy_without_data(self) -> str:
        return "call fit(X, Y) with data, or give weights and positive=False"

    def _best(self, data: Data, shift: np.ndarray, rng: np.random.Generator) -> tuple[Any, ...]:
        """Roots of the products of weighted even moments over factorials, up to where they vanish."""
        from scipy.special import gammaln, logsumexp

        sides = [np.log(np.abs(Z.astype(np.float64) - shift) + 1e-300) for Z in (data.X, data.Y)]
        largest = max(float(np.exp(sum(side.max() for side in sides))), 1e-12)
        count = int(min(20 + 4 * _REACH**2 * largest, _MOST))
        k = np.arange(count)
        logs = np.empty((data.d, count))
        for column in range(data.d):
            parts = [side[:, column] for side in sides]
            moments = [logsumexp(2 * k[:, None] * part - np.exp(2 * part), axis=1) for part in parts]
            logs[column] = sum(moments) / 2 - gammaln(k + 1)
        logs -= logs.max(axis=1, keepdims=True)
        best: tuple[Any, ...] = as_tuple(np.exp(np.maximum(logs, -600.0)))
        return best

    def probabilities(self, d: int) -> np.ndarray:
        """Probabilities of the exponents of each coordinate, (d, K)."""
        assert self.weights is not None  # planned
        array = np.atleast_2d(np.asarray(self.weights))
        if array.shape[0] not in (1, d):
            raise ValueError(f"Discrete: weights have {array.shape[0]} rows, the data has {d} columns.")
        array = np.broadcast_to(array, (d, array.shape[1]))
        return np.asarray((1 - _TAIL) * array / array.sum(axis=1, keepdims=True))

    def _table(self, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        p = self.probabilities(shape[1])
        u = rng.random(shape)
        table = np.stack([np.searchsorted(np.cumsum(row), u[:, l], side="right") for l, row in enumerate(p)], axis=1)
        beyond = table >= p.shape[1]
        table[beyond] = p.shape[1] - 1 + rng.geometric(0.5, int(beyond.sum()))  # NumPy's geometric law starts at one
        return table

    def _constants(self, table: np.ndarray) -> tuple[np.ndarray, float | np.ndarray]:
        from scipy.special import gammaln

        d = table.shape[1]
        log_p = np.log(self.probabilities(d))
        K, counts = log_p.shape[1], table.astype(np.int64)
        inside = np.take_along_axis(log_p, np.minimum(counts, K - 1).T, axis=1).T
        tail = np.log(_TAIL) + (counts - K + 1) * np.log(0.5)
        return -0.5 * (np.where(counts < K, inside, tail) + gammaln(counts + 1.0)).sum(axis=1), 0.0

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Error for any law."""
        case.require_time(self)
        p, (X, Y) = self.probabilities(case.d), self._shifted(case)
        tail = np.broadcast_to(_TAIL * 0.5 ** np.arange(1, _MORE + 1), (case.d, _MORE))
        law = np.concatenate([p, tail], axis=1)
        return case.absolute(theory.discrete_log_relative_mse(X, Y, law, case.m))
