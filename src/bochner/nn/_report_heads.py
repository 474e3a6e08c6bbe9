"""One head of a model and how each mechanism does on it: errors predicted from theory and measured, and the rows needed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from .._random import RNG, as_generator
from ..approximation import Approximation, FeatureMap
from ..approximation.log_features import key_values, log_features, query_values, stabiliser
from ..maps import Map
from ..projections import IID
from ._recording import Recorded, softmax_of


@dataclass(frozen=True, eq=False)
class HeadSample:
    """Queries X (batch, n, d) and keys Y (batch, p, d) times the root of the scale, and what they have to do.

    Attributes
    ----------
    seen : bool array (batch, n, p)
        Which keys each query sees.
    weights : array (batch, n, p)
        Exact attention.
    """

    X: np.ndarray
    Y: np.ndarray
    seen: np.ndarray
    weights: np.ndarray

    @property
    def norms(self) -> float:
        """Mean of :math:`|x|` times mean of :math:`|y|`: how large logits can be."""
        return float(np.linalg.norm(self.X, axis=-1).mean() * np.linalg.norm(self.Y, axis=-1).mean())


def head_samples(call: Recorded, max_sequences: int, max_queries: int, max_keys: int) -> list[HeadSample]:
    """The heads of a call, on equally spaced members, queries and keys where there are too many."""
    members, queries, keys = (
        _spaced(count, most)
        for count, most in ((len(call.q), max_sequences), (call.q.shape[2], max_queries), (call.k.shape[2], max_keys))
    )
    seen = call.visible()
    shape = (*call.q.shape[:3], call.k.shape[2])
    full = torch.ones(shape, dtype=torch.bool) if seen is None else seen.expand(shape).cpu()
    full = full[members][:, :, queries][:, :, :, keys]
    root = torch.as_tensor(call.scale).double().cpu().sqrt()
    q, k = (x.detach().double().cpu() * root for x in (call.q, call.k))
    q, k = q[members][:, :, queries], k[members][:, :, keys]
    weights = softmax_of(q @ k.mT, full)
    return [HeadSample(*(_array(x[:, h]) for x in (q, k, full, weights))) for h in range(q.shape[1])]


def _spaced(count: int, most: int) -> Tensor:
    return torch.linspace(0, count - 1, min(count, most)).round().long()


def _array(x: Tensor) -> np.ndarray:
    array: np.ndarray = x.numpy()
    return array


def predicted_row_error(spec: Approximation, sample: HeadSample) -> float | None:
    r"""Relative error of the attention matrix with a single row of W; m rows divide it by :math:`\sqrt m`.

    Notes
    -----
    The first-order error of a ratio.  With :math:`a_j` the weights of a query x and
    :math:`M_{jl} = E[Z_jZ_l]/(k_jk_l)` the joint second moment of the estimates for keys j and l,

    .. math:: E(\hat a_j - a_j)^2 \approx \frac{a_j^2}{m}
              \Big(M_{jj} - 2\sum_l a_l M_{jl} + \sum_{l,l'} a_l a_{l'} M_{ll'}\Big),

    and for positive features with parameter A (CRT Theorem 3.1, s = 1) and independent rows

    .. math:: \log M_{jl} = d\log(1-4A) - \tfrac d2\log(1-8A) + \frac{1-4A}{2(1-8A)}|2x+y_j+y_l|^2
              - |x|^2 - \tfrac12|y_j|^2 - \tfrac12|y_l|^2 - x\cdot(y_j+y_l),

    which is :math:`(x+y_j)\cdot(x+y_l)` for A = 0.  Rows that are coupled (orthogonal, simplex) do better.  None for
    maps of another kind.
    """
    exponent = spec.fit(sample.X, sample.Y, rng=0).features.exponent()
    if exponent is None:
        return None
    total = 0.0
    for X, Y, weights in zip(sample.X, sample.Y, sample.weights, strict=True):
        gram = Y @ Y.T
        for x, a in zip(X, weights, strict=True):
            total += _variance_of_weights(*exponent, x, Y, gram, a)
    error = math.sqrt(total) / float(np.linalg.norm(sample.weights)) if math.isfinite(total) else math.inf
    return error


def squared_errors(spec: Approximation, sample: HeadSample, n_draws: int, rng: RNG) -> np.ndarray:
    """Squared relative Frobenius errors of the attention matrix, one for each of some independent draws."""
    source = as_generator(rng)
    squares = [
        np.sum((estimated_weights(spec.fit(sample.X, sample.Y, rng=source), sample) - sample.weights) ** 2)
        for _ in range(n_draws)
    ]
    relative: np.ndarray = np.array(squares) / np.sum(sample.weights**2)
    return relative


def measured_error(spec: Approximation, sample: HeadSample, n_draws: int, rng: RNG) -> float:
    """Relative Frobenius error of the attention matrix, root mean square over independent draws."""
    return math.sqrt(float(np.mean(squared_errors(spec, sample, n_draws, rng))))


def estimated_weights(phi: FeatureMap, sample: HeadSample) -> np.ndarray:
    """Attention with the features, normalised over the keys that are seen."""
    queries, keys = (log_features(phi.features, Z, key=key) for Z, key in ((sample.X, False), (sample.Y, True)))
    shift = stabiliser(keys)
    products = query_values(queries, shift) @ key_values(keys, shift).swapaxes(-1, -2)
    weights = np.where(sample.seen, products, 0.0)
    total = weights.sum(axis=-1, keepdims=True)
    result: np.ndarray = weights / np.where(total == 0, 1.0, total)
    return result


def _variance_of_weights(A: float, d: int, x: np.ndarray, Y: np.ndarray, gram: np.ndarray, a: np.ndarray) -> float:
    """Sum over keys of the squared first-order error of the weights ``a`` of one query, for one row of W."""
    kappa = (1 - 4 * A) / (2 * (1 - 8 * A))
    constant = d * math.log(1 - 4 * A) - d / 2 * math.log(1 - 8 * A) + (4 * kappa - 1) * float(x @ x)
    each = (kappa - 0.5) * np.diagonal(gram) + (4 * kappa - 1) * (Y @ x)
    with np.errstate(over="ignore", invalid="ignore"):
        M = np.exp(constant + each[:, None] + each[None, :] + 2 * kappa * gram)
        mean = M @ a
        variances = np.diagonal(M) - 2 * mean + a @ mean
        total = float(np.sum(a**2 * np.maximum(variances, 0)))
    return total if math.isfinite(total) else math.inf


@dataclass(frozen=True)
class MechanismRow:
    """One mechanism on one head.

    Attributes
    ----------
    predicted : float or None
        Relative error of the attention matrix with independent rows; None where there is no closed form.
    measured : float
        The same, measured with the rows of the mechanism.
    expected : float
        What is measured and one standard error more, raised by what so few draws miss.
    needed, features : float
        Rows of W that reach the tolerance, and the width of the features with them; infinite where no number does.
    """

    predicted: float | None
    measured: float
    expected: float
    needed: float
    features: float


@dataclass(frozen=True)
class HeadRow:
    """One head: where it is, how large its logits can be, and how each mechanism does on it."""

    layer: str
    head: int
    norms: float
    mechanisms: dict[str, MechanismRow]

    @property
    def best(self) -> str:
        """The mechanism that needs the fewest features."""
        return cheapest(self.mechanisms)


def cost(row: MechanismRow) -> tuple[float, float]:
    """Features, and where these are equal the error."""
    return row.features, row.expected


def cheapest(rows: Mapping[str, MechanismRow]) -> str:
    """The name of the mechanism with the least cost."""
    return min(rows, key=lambda name: cost(rows[name]))


def head_row(
    layer: str,
    head: int,
    sample: HeadSample,
    specs: Mapping[str, Approximation],
    tolerance: float,
    n_draws: int,
    rng: np.random.Generator,
) -> HeadRow:
    """All mechanisms on one head."""
    missed: dict[tuple[Map | None, int], float] = {}  # one for all mechanisms with the same map
    rows = {}
    for name, asked in specs.items():
        spec = asked.plan(sample.X, sample.Y, rng=0)  # its constants belong to the head
        of_one_row, squares = predicted_row_error(spec, sample), squared_errors(spec, sample, n_draws, rng)
        predicted = None if of_one_row is None else of_one_row / math.sqrt(spec.n_projections)
        key = (spec.map, spec.n_projections)
        if key not in missed:
            missed[key] = 1.0 if predicted is None else _missed(spec, sample, predicted, n_draws, rng)
        rows[name] = _row(spec, sample.X.shape[-1], predicted, squares, missed[key], tolerance)
    return HeadRow(layer, head, sample.norms, rows)


def _missed(spec: Approximation, sample: HeadSample, predicted: float, n_draws: int, rng: np.random.Generator) -> float:
    """How much too small so few draws are, since rare ones carry the error: seen at independent rows."""
    seen = measured_error(replace(spec, projection=IID()), sample, n_draws, rng)
    return max(predicted / seen, 1.0) if seen > 0 else 1.0


def _standard_error(squares: np.ndarray) -> float:
    return float(squares.std(ddof=1) / math.sqrt(len(squares))) if len(squares) > 1 else 0.0


def _row(
    spec: Approximation, d: int, predicted: float | None, squares: np.ndarray, missed: float, tolerance: float
) -> MechanismRow:
    measured, upper = math.sqrt(float(squares.mean())), math.sqrt(float(squares.mean() + _standard_error(squares)))
    expected = upper * missed if upper > 0 else 0.0
    needed = spec.n_projections * (expected / tolerance) ** 2
    if not math.isfinite(needed):
        return MechanismRow(predicted, measured, expected, math.inf, math.inf)
    # couplings do less in a part of a block, so errors are not carried over to fewer rows than that
    least = 1 if spec.projection.coupling == "iid" else min(d, spec.n_projections)
    rows = max(math.ceil(needed), least)
    return MechanismRow(predicted, measured, expected, rows, spec.layout.width(rows))
