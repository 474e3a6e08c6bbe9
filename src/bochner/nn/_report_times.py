"""What a report measures of an attention: how well each mechanism approximates its heads, and how long it takes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._random import RNG, as_generator
from ..approximation import Approximation, FeatureMap
from ..approximation.log_features import key_values, log_features, query_values, stabiliser
from ._bounded_module import BoundedAttention
from ._coded_module import CodedAttention, exact
from ._recording import Recorded, softmax_of
from ._report_candidates import output, shared

_TOO_LARGE = 2.0  # predictions that are so many times the median of draws are dominated by draws that are rarely seen


@dataclass(frozen=True, eq=False)
class HeadSample:
    """Queries X (batch, n, d) and keys Y (batch, p, d) times the root of the scale, and what they have to do."""

    X: np.ndarray
    Y: np.ndarray
    seen: np.ndarray  # (batch, n, p): which keys each query sees
    weights: np.ndarray  # (batch, n, p): exact attention

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
    if not spec.planned:
        spec = spec.plan(sample.X, sample.Y, rng=0)
    exponent = spec.draw(sample.X.shape[-1], rng=0).features.exponent()
    if exponent is None:
        return None
    total = 0.0
    for X, Y, weights in zip(sample.X, sample.Y, sample.weights, strict=True):
        gram = Y @ Y.T
        for x, a in zip(X, weights, strict=True):
            total += _variance_of_weights(*exponent, x, Y, gram, a)
    error = math.sqrt(total) / float(np.linalg.norm(sample.weights)) if math.isfinite(total) else math.inf
    return error


def median_error(plan: Approximation, sample: HeadSample, n_draws: int, rng: RNG) -> float:
    """Relative Frobenius error of the attention matrix, the median over independent draws of a plan."""
    source = as_generator(rng)
    norm = float(np.linalg.norm(sample.weights))
    maps = (plan.draw(sample.X.shape[-1], rng=source) for _ in range(n_draws))
    return float(np.median([np.linalg.norm(estimated_weights(phi, sample) - sample.weights) / norm for phi in maps]))


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
    median : float
        Relative error of the attention matrix, the median over draws.
    predicted : float or None
        Root of its mean square over draws of independent rows, by theory; None where there is no closed form.
    """

    median: float
    predicted: float | None

    @property
    def rare(self) -> bool:
        """Whether rare draws dominate the prediction, so that it says nothing about a single draw."""
        return self.predicted is not None and self.predicted > _TOO_LARGE * self.median

    def __str__(self) -> str:
        if self.predicted is None:
            return f"{self.median:.3g}"
        return f"{self.median:.3g} ({'*' if self.rare else f'{self.predicted:.3g}'})"


@dataclass(frozen=True)
class HeadRow:
    """One head: where it is, how large its logits can be, and how each mechanism does on it."""

    layer: str
    head: int
    norms: float
    mechanisms: dict[str, MechanismRow]

    @property
    def best(self) -> str:
        """The mechanism with the lowest error."""
        return min(self.mechanisms, key=lambda name: self.mechanisms[name].median)


def head_row(
    layer: str,
    head: int,
    fitted: HeadSample,
    held_out: HeadSample,
    specs: Mapping[str, Approximation],
    n_draws: int,
    rng: np.random.Generator,
) -> HeadRow:
    """Errors of all mechanisms on one head, with constants from one sample and errors on another."""
    rows = {}
    for name, spec in specs.items():
        plan = spec if spec.planned else spec.plan(fitted.X, fitted.Y, rng=0)
        of_one_row = predicted_row_error(plan, held_out)
        predicted = None if of_one_row is None else of_one_row / math.sqrt(plan.n_projections)
        rows[name] = MechanismRow(median_error(plan, held_out, n_draws, rng), predicted)
    return HeadRow(layer, head, held_out.norms, rows)


_REPEATS, _MOST_REPEATS, _ENOUGH = 3, 20, 0.2
"""The shortest of so many times counts, of more where all of them take less than so many seconds: other work on the machine
makes times longer, and never shorter."""
FASTER = 0.9  # part of the time of exact attention below which something is faster: less is noise of the clock
_STEPS = 8  # steps of decoding that are timed together
_LONGEST = 1.0  # seconds of exact attention beyond which no longer sequence is tried
LENGTHS = tuple(1 << k for k in range(7, 15))  # lengths at which times are compared: 128 to 16384


class Clock:
    """Times of one attention, exact and converted, by length.

    Parameters
    ----------
    call : Recorded
        A recorded call, whose shapes are taken; other lengths have random numbers.
    """

    def __init__(self, call: Recorded) -> None:
        self.call, self.length = call, call.q.shape[-2]
        self.steps = call.causal and call.key_mask is None
        self._known: dict[tuple[int, int], float] = {}
        self.exact = _Exact()

    def whole(self, computed_by: Any, n: int | None = None) -> float:
        """Seconds for a whole sequence of n tokens."""
        return self._timed(0, computed_by, self.length if n is None else n, _whole)

    def step(self, computed_by: Any, n: int | None = None) -> float:
        """Seconds for one more token after n of them."""
        held = isinstance(computed_by, CodedAttention | _Exact)
        n = self.length if n is None else n
        return self._timed(1, computed_by, n if held else min(n, self.length), _step)  # constant for a bounded state

    def faster_from(self, of: Callable[..., float], computed_by: Any) -> int | None:
        """The least length from which this attention is faster than exact attention; None if there is none."""
        for n in LENGTHS:
            if of(computed_by, n) < FASTER * of(self.exact, n):
                return n
            if of == self.whole and of(self.exact, n) > _LONGEST:
                return None
        return None

    def _timed(self, kind: int, computed_by: Any, n: int, run: Callable[..., float]) -> float:
        place = (2 * id(computed_by) + kind, n)
        if place not in self._known:
            self._known[place] = run(computed_by, self._of_length(n))
            if n == self.length and computed_by is not self.exact:  # once more beside it, where one of them is chosen
                again, there = run(self.exact, self.call), (2 * id(self.exact) + kind, n)
                self._known[there] = min(again, self._known.get(there, again))
        return self._known[place]

    def _of_length(self, n: int) -> Recorded:
        if n == self.length:
            return self.call
        call, g = self.call, torch.Generator().manual_seed(0)
        group = call.k.shape[1] // shared(call)[0].shape[1]
        q = torch.randn(*call.q.shape[:2], n, call.q.shape[-1], generator=g).to(call.q)
        k, v = (torch.randn(*x.shape[:2], n, x.shape[-1], generator=g).to(x) for x in shared(call))
        k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
        places = torch.arange(n, device=q.device)
        return replace(call, q=q, k=k, v=v, places=places, key_mask=None, bias=None, pull=None, prefixes=None)


class _Exact(nn.Module):
    """Softmax attention by torch's own operator, which most models use."""

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool, prefixes: Any, key_mask: Any, scale: float
    ) -> Tensor:
        """Call as that of converted attention."""
        return exact(q, k, v, causal, prefixes, key_mask, scale)


def _shortest(run: Callable[[], Any], per: int = 1) -> float:
    run()  # whatever is compiled or allocated once
    found: list[float] = []
    while len(found) < _REPEATS or (len(found) < _MOST_REPEATS and sum(found) < _ENOUGH):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found) / per


def _whole(computed_by: Any, call: Recorded) -> float:
    return _shortest(lambda: output(computed_by, call))


@torch.no_grad()
def _step(computed_by: Any, call: Recorded) -> float:
    """Seconds of one step with the cache that ``generate`` would use."""
    from transformers.cache_utils import DynamicLayer

    from ._coded_cache import CodedLayer
    from ._linear_layer import BoundedLayer, LinearLayer

    layer: Any
    if isinstance(computed_by, _Exact):
        layer = DynamicLayer()
    elif isinstance(computed_by, CodedAttention):
        layer = CodedLayer()
    else:
        layer = BoundedLayer() if isinstance(computed_by, BoundedAttention) else LinearLayer()
    scale, (k, v) = float(call.scale), shared(call)
    keys, values = layer.update(k, v)
    if not isinstance(layer, DynamicLayer):
        options = {"causal": True, "prefixes": None, "key_mask": None, "scale": scale}
        layer.attend(computed_by, call.q, keys, values, **options)
    q1, k1, v1 = (x[..., -1:, :] for x in (call.q, k, v))

    def one() -> None:
        keys, values = layer.update(k1, v1)
        if isinstance(computed_by, _Exact):
            exact(q1, keys, values, False, None, None, scale)
        elif layer.single_step(computed_by, q1, keys, values, None, scale) is None:
            layer.attend(computed_by, q1, keys, values, **options)

    def several() -> None:
        for _ in range(_STEPS):
            one()

    return _shortest(several, _STEPS)
