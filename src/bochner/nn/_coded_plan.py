"""The plan of coded attention: which keys get exact weights in each head of a layer, and how they are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from .._validation import check_count, check_instance, shown
from ..approximation import Approximation
from ..maps import Frame
from ..projections import Orthogonal, Projection
from ._families import family_of, refusal, sizes, slides

EXACT_BELOW = 1 << 30
"""Keys below which whole sequences are exact: all of them, by default.

What is much faster than exact attention loses too much.  On the last 256 of 8192 tokens of a validation text (SmolLM2-135M,
a window of 64, earlier keys and values exact, frames of queries from everywhere in the text), predictions diverge from those
of exact attention by .034 nats with 256 keys of each query, and by .010 with 32 keys and 288 draws; by .0036 with codes of
128 bits.  The 128 and 512 largest keys (an oracle, on 160 tokens) diverge by .033 and .012: what is lost are the many small
weights.  Frames matter more still: those of 256 queries from everywhere in the text leave .011, of 256 from the first 512
tokens .135, of 512 from the first 2048 .085, and no frames .069: slow rotary coordinates hardly turn in a short text.

At 16384 tokens (heads of 64, causal, random numbers), 256 keys of each query take .45 of exact attention's CPU time, 600
take .7, and 32 with 288 draws 2.4 times of it: each draw is looked for by itself.  Blocks of 128 that share 512, 1024, 2048
or 3072 keys take .28, .38, .64 or .90.  With an oracle's keys the last 512 of 8192 tokens have a loss that is higher by
.040 +- .013 with 512 shared keys, .021 +- .008 with 1024 and .014 +- .005 with 2048."""


@dataclass(frozen=True)
class CodedHead:
    """Keys that one head uses beyond its window and the first keys.

    Parameters
    ----------
    frame : Frame
        Coordinates in which the codes of keys are drawn.
    kept : int
        Keys that codes find for each query; 0 for window and anchors alone.
    candidates : int, optional
        Keys that codes propose, of which those with the largest scores are kept; by default three times ``kept``.
    sampled : int
        Keys that are drawn from those left out, and weighted by one over their probability.
    features : Approximation, optional
        Planned features of the keys that are left out, in place of draws.
    gate : float
        How far the estimate of the keys left out is trusted, from 0 to 1.
    """

    frame: Frame
    kept: int = 64
    candidates: int | None = None
    sampled: int = 0
    features: Approximation | None = None
    gate: float = 0.0

    def __post_init__(self) -> None:
        owner = "CodedHead"
        check_instance(owner, "frame", self.frame, Frame, "maps.Frame(a, b, M)")
        check_count(owner, "kept", self.kept, 0)
        check_count(owner, "sampled", self.sampled, 0)
        object.__setattr__(self, "candidates", 3 * self.kept if self.candidates is None else self.candidates)
        assert self.candidates is not None
        if check_count(owner, "candidates", self.candidates, 0) < self.kept:
            raise ValueError(f"{owner}: candidates must not be fewer than kept={self.kept}, got {self.candidates}.")
        if not 0 <= self.gate <= 1:
            raise ValueError(f"{owner}: gate must lie between 0 and 1, got {shown(self.gate)}.")
        if self.features is not None and not (isinstance(self.features, Approximation) and self.features.planned):
            raise TypeError(f"{owner}: features must be a planned Approximation, got {shown(self.features)}.")
        if self.gate and self.features is None:
            raise ValueError(f"{owner}: a gate of {self.gate:g} needs features.")
        if self.features is not None and self.sampled:
            raise ValueError(
                f"{owner}: the keys left out are estimated by features or by sampled keys, not by both; got "
                f"sampled={self.sampled} and features."
            )

    @property
    def rows(self) -> int:
        """Rows of features that are used."""
        return self.features.n_projections if self.features is not None and self.gate else 0


def _as_it_is(d: int) -> Frame:
    return Frame(np.zeros(d), np.zeros(d), np.eye(d))


@dataclass(frozen=True)
class CodedPlan:
    r"""The plan of one attention layer for `coded_attention`: window, anchors, and the settings of each head.

    `calibrate` chooses it for a cost or a tolerance, and `replace_attention` converts a model by it.  A plan in which no
    head keeps keys or has features is attention to a window and the first keys.

    Parameters
    ----------
    heads : sequence of CodedHead
        Kept keys, frame and features of each head.
    window, anchors : int
        Keys next to each query, and at the start of the sequence, that are always used.
    bits : int
        Length of the codes.
    projection : Projection
        Law of the rows whose signs make the codes.
    block : int
        Neighbouring queries that share candidates when a whole sequence is computed at once: faster for long ones, and
        less accurate.
    exact_below : int
        Number of keys below which a whole sequence is computed by exact attention, by default all; decoding has a bound
        of its own, 4096, or this one if it is smaller.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.maps import Frame
    >>> from bochner.nn import CodedHead, CodedPlan
    >>> frame = Frame(np.zeros(16), np.zeros(16), np.eye(16))
    >>> plan = CodedPlan([CodedHead(frame, kept=32), CodedHead(frame, kept=0)], window=32)
    >>> plan.cost(causal=True)
    49.0
    """

    heads: Sequence[CodedHead]
    window: int = 64
    anchors: int = 1
    bits: int = 64
    projection: Projection = Orthogonal()
    block: int = 1
    exact_below: int = EXACT_BELOW

    def __post_init__(self) -> None:
        owner = "CodedPlan"
        if isinstance(self.heads, CodedHead) or not all(isinstance(head, CodedHead) for head in self.heads):
            raise TypeError(f"{owner}: heads must be a sequence of CodedHead, got {shown(self.heads)}.")
        object.__setattr__(self, "heads", tuple(self.heads))
        if not self.heads or len({head.frame.d for head in self.heads}) > 1:
            raise ValueError(f"{owner}: heads must be at least one, all of one width, got {len(self.heads)}.")
        for name, least in (("window", 1), ("anchors", 0), ("bits", 1), ("block", 1), ("exact_below", 0)):
            check_count(owner, name, getattr(self, name), least)
        check_instance(owner, "projection", self.projection, Projection, "projections.Orthogonal()")

    @classmethod
    def uncalibrated(cls, model: nn.Module, *, kept: int = 64, **options: Any) -> dict[str, CodedPlan]:
        """A plan for each attention of a model of ``transformers``, with codes of keys as they are.

        `calibrate` finds better coordinates and the number of keys that each head needs; this is for a first look, for
        models that it does not take (with position biases, caps of scores or attention sinks), and for tests: with ``kept``
        as large as the number of keys, a converted model computes what it did.

        Parameters
        ----------
        model : torch.nn.Module
            The model; attention with a sliding window is left out.
        kept : int
            Keys that codes find for each query.
        **options
            As of `CodedPlan`: ``window``, ``anchors``, ``bits`` and so on.

        Returns
        -------
        dict of CodedPlan
            By the names of modules, as `replace_attention` takes it.
        """
        known = {name: m for name, m in model.named_modules() if family_of(m) is not None and not slides(m)}
        found = {name: sizes(m) for name, m in known.items() if refusal(m, coded=True) is None}
        return {name: cls([CodedHead(_as_it_is(d), kept)] * heads, **options) for name, (heads, d) in found.items()}

    def __len__(self) -> int:
        return len(self.heads)

    def cost(self, *, causal: bool) -> float:
        """Mean number of exact keys, drawn ones and rows of features of a query in a long sequence, over the heads."""
        beyond = sum(head.kept + head.sampled + head.rows for head in self.heads) / len(self.heads)
        return (self.window if causal else 2 * self.window - 1) + self.anchors + beyond

    def __repr__(self) -> str:
        kept, drawn, rows = zip(*((head.kept, head.sampled, head.rows) for head in self.heads), strict=True)
        return (
            f"<CodedPlan of {len(self)} heads: window {self.window}, {self.anchors} anchors, {self.bits} bits, kept keys "
            f"{min(kept)} to {max(kept)}, draws {min(drawn)} to {max(drawn)}, features in {sum(map(bool, rows))} heads>"
        )
