"""How long attention takes: exact and converted, for whole sequences and for single steps of decoding."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ._bounded_module import BoundedAttention
from ._coded_module import CodedAttention, exact
from ._recording import Recorded
from ._report_candidates import output, shared

_REPEATS = 3
"""The shortest of so many times counts: other work on the machine makes times longer, and never shorter."""
_STEPS = 8
"""Steps of decoding that are timed together."""
_LONGEST = 1.0
"""Seconds of exact attention beyond which no longer sequence is tried."""
LENGTHS = tuple(1 << k for k in range(7, 15))
"""Lengths at which times are compared: 128 to 16384."""


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
        """The least length from which this attention takes less time than exact attention; None if there is none."""
        for n in LENGTHS:
            if of(computed_by, n) < of(self.exact, n):
                return n
            if of == self.whole and of(self.exact, n) > _LONGEST:
                return None
        return None

    def _timed(self, kind: int, computed_by: Any, n: int, run: Callable[..., float]) -> float:
        place = (2 * id(computed_by) + kind, n)
        if place not in self._known:
            self._known[place] = run(computed_by, self._of_length(n))
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
    found = []
    for _ in range(_REPEATS):
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
