"""Attention with a state of fixed size inside models of ``transformers``."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from ._bounded_attention import BoundedState, Bounds, windowed
from ._bounded_plan import BoundedPlan
from ._coded_module import as_bias
from ._families import family_of, sizes
from ._hugging_face import HeadAttention

_OWNER = "replace_attention"


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
            raise ValueError(f"{_OWNER}: the plan is of {len(plan)} heads, and the attention has {self.heads}.")
        if plan.kept and not getattr(module, "is_causal", False):
            raise ValueError(
                f"{_OWNER}: kept keys are those that earlier queries used, and {type(module).__name__} is not causal; use a "
                f"plan with kept=0, or a CodedPlan."
            )
        windows, kept = (tuple(getattr(head, name) for head in plan.heads) for name in ("window", "kept"))
        self._take(Bounds(windows, kept, plan.anchors, plan.block, plan.decay, plan.means))

    def _take(self, bounds: Bounds) -> None:
        self.bounds, self.window, self.anchors = bounds, max(bounds.windows), bounds.anchors

    def record(self) -> dict[str, Any]:
        """JSON values that say what it is, for `from_record`."""
        bounds = {name: list(x) if isinstance(x, tuple) else x for name, x in self.bounds._asdict().items()}
        return {"heads": self.heads, "d": self.d, "bounds": bounds}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> BoundedAttention:
        """The attention that a record describes."""
        attention = cls.__new__(cls)
        nn.Module.__init__(attention)
        attention.heads, attention.d = record["heads"], record["d"]
        bounds: dict[str, Any] = {n: tuple(x) if isinstance(x, list) else x for n, x in record["bounds"].items()}
        attention._take(Bounds(**bounds))
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
            out = state.attend(x, y, values, bias, self.bounds)
        elif not causal or not max(self.bounds.kept):
            out = windowed(x, y, values, bias, self.bounds, causal)
        else:
            out = BoundedState().attend(x, y, values, bias, self.bounds)
        return out.to(q.dtype)
