"""The plan of attention with a state of fixed size: which keys each head of a layer holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._validation import check_count, shown


@dataclass(frozen=True)
class BoundedHead:
    """What one head holds beside the first keys.

    Parameters
    ----------
    window : int
        Last keys, which are always held.
    kept : int
        Earlier keys that stay because they were attended to most; 0 for the window alone.
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
        Factor of the accumulated weight of a key after each block: how fast it is forgotten that a key was used.
    means : int
        Means of keys that were dropped, in heads that keep keys; 0 forgets what is dropped.

    Notes
    -----
    Kept are the keys whose weights, summed over the queries so far and multiplied by the norm of their value, are largest
    per block that has seen them.  A dropped key joins the nearest of a few means: n keys with mean y and mean value
    v count as :math:`n e^{x\cdot y}` with value v, which is where broad attention finds them.  A single key does not come
    back: where a model looks up what nobody asked for before, use a `CodedPlan`, whose memory grows.

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

    def cost(self, *, causal: bool) -> float:
        """Mean number of keys that a query meets in a long sequence, over the heads."""
        if not causal:
            return sum(2 * head.window - 1 for head in self.heads) / len(self.heads) + self.anchors
        return self.size - (self.block - 1) / 2

    def __repr__(self) -> str:
        windows, kept = ([getattr(head, name) for head in self.heads] for name in ("window", "kept"))
        return (
            f"<BoundedPlan of {len(self)} heads: windows {min(windows)} to {max(windows)}, {self.anchors} anchors, kept "
            f"keys {min(kept)} to {max(kept)}>"
        )
