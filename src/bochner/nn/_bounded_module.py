"""Attention with a state of fixed size inside models of ``transformers``: its plan, and the module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from .._validation import check_count, shown
from ._bounded_attention import BoundedState, windowed
from ._coded_module import as_bias
from ._families import family_of, sizes
from ._hugging_face import HeadAttention


@dataclass(frozen=True)
class BoundedHead:
    """Keys that one head holds in addition to the first ones.

    Parameters
    ----------
    window : int
        Last keys, which are always held.
    kept : int
        Earlier keys that are kept because they received the most attention; 0 for the window alone.
    """

    window: int = 64
    kept: int = 0

    def __post_init__(self) -> None:
        owner = "BoundedHead"
        check_count(owner, "window", self.window)
        check_count(owner, "kept", self.kept, 0)


@dataclass(frozen=True)
class BoundedPlan:
    r"""The plan of one attention layer with a state of fixed size: a window, the first keys, and the most used others.

    `calibrate` with ``state`` chooses it, and `replace_attention` converts attention of ``transformers`` by it.  Without
    kept keys it is attention to a window and the first keys, which encoders can have as well.

    Parameters
    ----------
    heads : sequence of BoundedHead
        Window and kept keys of each head of queries.  Heads that share keys share a state, of the largest of them.
    anchors : int
        Keys at the start of the sequence that are always held.
    block : int
        Tokens after which keys are dropped.  A query sees what was held when its block began, and its own block.
    decay : float
        Factor of the accumulated weight of a key after each block: how fast the use of a key is forgotten.
    means : int
        Number of means of dropped keys, in heads that keep keys; 0 discards dropped keys.

    Notes
    -----
    Kept are the keys whose weights, summed over the queries so far and multiplied by the norm of their value, are largest
    per block that has seen them.  A dropped key joins the nearest of a few means: n keys with mean y and mean value
    v count as :math:`n e^{x\cdot y}` with value v, which is where broad attention finds them.  A single dropped key
    cannot be recovered: where a model looks up keys that no earlier query used, use a `CodedPlan`, whose memory grows.

    Examples
    --------
    >>> from bochner.nn import BoundedHead, BoundedPlan
    >>> plan = BoundedPlan([BoundedHead(window=43, kept=64)] * 4)
    >>> plan.size
    128.0
    >>> BoundedPlan([BoundedHead(window=64)] * 4).kept      # a window alone
    0
    """

    heads: Sequence[BoundedHead]
    anchors: int = 1
    block: int = 16
    decay: float = 0.9  # .8 to .95 are alike on validation text of SmolLM2, 1 is worse
    means: int = 4  # there, one loses more and eight hardly less

    def __post_init__(self) -> None:
        owner = "BoundedPlan"
        if isinstance(self.heads, BoundedHead) or not all(isinstance(head, BoundedHead) for head in self.heads):
            raise TypeError(f"{owner}: heads must be a sequence of BoundedHead, got {shown(self.heads)}.")
        object.__setattr__(self, "heads", tuple(self.heads))
        if not self.heads:
            raise ValueError(f"{owner}: heads must hold at least one head, got none.")
        check_count(owner, "anchors", self.anchors, 0)
        check_count(owner, "block", self.block)
        check_count(owner, "means", self.means, 0)
        if not 0 < self.decay <= 1:
            raise ValueError(f"{owner}: decay must lie in (0, 1], got {shown(self.decay)}.")

    def __len__(self) -> int:
        return len(self.heads)

    @property
    def kept(self) -> int:
        """Largest number of kept keys of a head."""
        return max(head.kept for head in self.heads)

    @property
    def size(self) -> float:
        """Keys and means that a head holds at most, on the mean over the heads, with the keys of the current block."""
        own = sum(head.window + head.kept + self.means * bool(head.kept) for head in self.heads) / len(self.heads)
        return own + self.anchors + self.block

    def pools(self, key_heads: int) -> list[tuple[int, int, list[int]]]:
        """Window, kept keys, and the heads of keys that hold as many: those of the largest head of queries of each."""
        group = len(self) // key_heads
        shared = [self.heads[h * group : (h + 1) * group] for h in range(key_heads)]
        sizes = [(max(head.window for head in own), max(head.kept for head in own)) for own in shared]
        return [(*size, [h for h, own in enumerate(sizes) if own == size]) for size in dict.fromkeys(sizes)]

    def cost(self, *, causal: bool) -> float:
        """Mean number of keys that a query attends to in a long sequence, over the heads."""
        if not causal:
            return sum(2 * head.window - 1 for head in self.heads) / len(self.heads) + self.anchors
        return self.size - (self.block - 1) / 2

    def __repr__(self) -> str:
        windows, kept = ([getattr(head, name) for head in self.heads] for name in ("window", "kept"))
        return (
            f"<BoundedPlan of {len(self)} heads: windows {min(windows)} to {max(windows)}, {self.anchors} anchors, kept "
            f"keys {min(kept)} to {max(kept)}>"
        )


_OWNER = "replace_attention"
_OF_ALL_HEADS = ("anchors", "block", "decay", "means")


class BoundedAttention(HeadAttention):
    """Attention to a window, the first keys and the most used others, of heads that another module has projected.

    Parameters
    ----------
    plan : BoundedPlan
        Keys of each head.
    module : torch.nn.Module
        Attention of a known family of ``transformers``, whose heads are taken.
    """

    def __init__(self, plan: BoundedPlan, module: nn.Module) -> None:
        nn.Module.__init__(self)
        if family_of(module) is None:
            raise ValueError(
                f"{_OWNER}: a BoundedPlan converts attention of transformers, got {type(module).__name__}; use features "
                f"with a window for this one."
            )
        self.heads, self.d = sizes(module)
        if len(plan) != self.heads:
            raise ValueError(f"{_OWNER}: the plan has {len(plan)} heads, and the attention has {self.heads}.")
        if plan.kept and not getattr(module, "is_causal", False):
            raise ValueError(
                f"{_OWNER}: kept keys are those that earlier queries used, and {type(module).__name__} is not causal; use a "
                f"plan with kept=0, or a CodedPlan."
            )
        self._take(plan)

    def _take(self, plan: BoundedPlan) -> None:
        self.plan, self.window, self.anchors = plan, max(head.window for head in plan.heads), plan.anchors

    def record(self) -> dict[str, Any]:
        """JSON values that say what it is, for `from_record`."""
        bounds = {name: getattr(self.plan, name) for name in _OF_ALL_HEADS}
        bounds["windows"], bounds["kept"] = ([getattr(h, name) for h in self.plan.heads] for name in ("window", "kept"))
        return {"heads": self.heads, "d": self.d, "bounds": bounds}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> BoundedAttention:
        """The attention that a record describes."""
        attention = cls.__new__(cls)
        nn.Module.__init__(attention)
        attention.heads, attention.d = record["heads"], record["d"]
        bounds = record["bounds"]
        heads = [BoundedHead(*sizes) for sizes in zip(bounds["windows"], bounds["kept"], strict=True)]
        attention._take(BoundedPlan(heads, **{name: bounds[name] for name in _OF_ALL_HEADS}))
        return attention

    def restore(self) -> None:
        """Nothing is loaded: there are no numbers but those of the record."""

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        causal: bool,
        prefixes: Tensor | None,
        key_mask: Tensor | None,
        scale: float,
        state: Any = None,
        borders: Tensor | None = None,
    ) -> Tensor:
        """Attention of tensors (batch, heads, length, d), called as `HeadAttention` is; the state is a `BoundedState`."""
        if borders is not None:  # packed sequences do not see each other
            options: dict[str, Any] = {"causal": causal, "prefixes": None, "key_mask": None, "scale": scale}
            cuts = [slice(*pair) for pair in pairwise(borders.tolist())]
            return torch.cat([self(*(z[..., cut, :] for z in (q, k, v)), **options) for cut in cuts], dim=-2)
        if prefixes is not None or q.shape[-2] != k.shape[-2]:
            raise ValueError(
                "bochner: attention with a window and kept keys needs as many queries as keys, of one sequence; keep "
                "cross-attention exact (select=)."
            )
        mask = None if key_mask is None else key_mask if key_mask.ndim == 3 else key_mask.expand(len(k), -1)[:, None]
        work = torch.float64 if q.dtype == torch.float64 else torch.float32
        x, y, values = q.to(work) * scale**0.5, k.to(work) * scale**0.5, v.to(work)
        bias = None if mask is None else as_bias(mask, y)
        if bias is not None:
            bias = (
                bias.expand(*k.shape[:3]) if bias.shape[1] in (1, k.shape[1]) else bias[:, :: q.shape[1] // k.shape[1]]
            )
        out: Tensor
        if state is not None:
            out = state.attend(x, y, values, bias, self.plan)
        elif not causal or not self.plan.kept:
            out = windowed(x, y, values, bias, self.plan, causal)
        else:
            out = BoundedState().attend(x, y, values, bias, self.plan)
        return out.to(q.dtype)
