"""Records the queries and keys of every attention of a model while a copy of it computes exact attention.

The copy shares all tensors with the model but has its own attention, so the model is not changed and can be trained in
another thread at the same time.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from itertools import chain
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ._conversion import attention_modules, check_model, leave_fast_path, no_attention
from ._families import family_of
from ._hugging_face import ATTRIBUTE, attach, make_masks_linear
from ._multihead import RandomFeatureAttention
from ._multihead_call import is_causal_mask, key_bias, key_mask

_Multihead: TypeAlias = nn.MultiheadAttention | RandomFeatureAttention


@dataclass(frozen=True, eq=False)
class Recorded:
    """One call of an attention: queries and keys (batch, heads, length, d), and what each query sees."""

    name: str  # where the attention is in the model
    q: Tensor  # (batch, heads, length, d)
    k: Tensor
    scale: float | Tensor  # (heads, 1, 1): factor of the dot products
    causal: bool  # whether query i sees the keys up to i
    key_mask: Tensor | None  # (batch, Lk): which keys there are
    prefixes: Tensor | None = None  # (Lq,): how many keys each query sees
    v: Tensor | None = None  # (batch, heads, Lk, e): values
    # (batch, heads or 1, Lk): what is added to the logits of each key; any numbers for those that are masked
    bias: Tensor | None = None
    # (Lq,): which key is that of the same token as each query, so that others can be near; None in cross-attention
    places: Tensor | None = None
    # (batch, heads, Lq, e): gradient of a random function of the model's output with respect to this attention's: see
    # `record`
    pull: Tensor | None = None

    def visible(self) -> Tensor | None:
        """Which keys each query sees, broadcasting to (batch, heads, Lq, Lk); None where all do."""
        n, p, device = self.q.shape[-2], self.k.shape[-2], self.q.device
        seen = None
        prefixes = torch.arange(1, n + 1, device=device) if self.causal else self.prefixes
        if prefixes is not None:
            seen = torch.arange(p, device=device) < prefixes[:, None]
        if self.key_mask is not None:
            there = self.key_mask[:, None, None, :]
            seen = there if seen is None else seen & there
        return seen

    def near(self, window: int, anchors: int) -> Tensor | None:
        """Which pairs are computed exactly beside features, broadcasting as `visible` does; None where none are.

        These are the keys at less than ``window`` places from that of the query, and the first ``anchors`` keys there are.
        """
        window = window if self.places is not None else 0
        if not window and not anchors:
            return None
        keys = torch.arange(self.k.shape[-2], device=self.k.device)
        first = keys < anchors
        if self.key_mask is not None:
            first = (self.key_mask.cumsum(-1) <= anchors)[:, None, None, :]
        if self.places is None:
            return first
        return ((self.places[:, None] - keys).abs() < window) | first

    def weights(self) -> Tensor:
        """Exact attention weights."""
        return softmax_of(self.logits(), self.visible())

    def logits(self, some: Tensor | None = None) -> Tensor:
        """Scaled dot products of all queries, or of some by their places, with what is added to them."""
        q = self.q if some is None else self.q[..., some, :]
        logits = self.scale * (q @ self.k.mT)
        return logits if self.bias is None else logits + self.bias[:, :, None, :]


def softmax_of(logits: Tensor, seen: Tensor | None) -> Tensor:
    """Softmax over the keys that are seen; zero for a query that sees none."""
    if seen is None:
        return logits.softmax(-1)
    weights = logits.masked_fill(~seen, -torch.inf).softmax(-1)
    return weights.masked_fill(~seen.any(-1, keepdim=True), 0.0)


@torch.no_grad()
def record(model: nn.Module, batch: Any, owner: str = "attention_report", *, pulls: bool = False) -> list[Recorded]:
    r"""Run a copy of the model on the batch with exact attention, converted or not, and catch its queries and keys.

    With ``pulls`` the gradient g of a random function of the output is caught as well: for logits, the log-likelihood of
    tokens that are drawn from them, so that :math:`E(g\cdot\delta)^2/2` is how much the expected loss rises to second order
    when the output of an attention changes by :math:`\delta`; for other outputs a random linear function, so that
    :math:`E(g\cdot\delta)^2` is the squared change of the output to first order.
    """
    check_model(owner, model)
    if not attention_modules(model):
        raise no_attention(owner, model)
    calls: list[Recorded] = []
    twin = _with_recorders(model, calls)
    with torch.set_grad_enabled(pulls):
        out = run(twin, batch, owner)
        if not calls:
            raise ValueError(f"{owner}: the model ran without calling any of its attention.")
        return _pulled(calls, out) if pulls else calls


def _pulled(calls: list[Recorded], out: Any) -> list[Recorded]:
    """The calls with gradients at their outputs, and without a graph."""
    logits = getattr(out, "logits", None)
    seeded = torch.Generator(device="cpu").manual_seed(0)
    if logits is not None and logits.ndim == 3:
        chances = logits.detach().float().softmax(-1).flatten(0, -2).cpu()
        drawn = torch.multinomial(chances, 1, generator=seeded).to(logits.device).view(*logits.shape[:-1], 1)
        objective = logits.float().log_softmax(-1).gather(-1, drawn).sum()
    else:
        first = first_tensor(out)
        if first is None or not first.requires_grad:
            return [_without_graph(call, None) for call in calls]
        objective = (first * torch.randn(first.shape, generator=seeded).to(first)).sum()
    ends = cast("list[Tensor]", [call.pull for call in calls])  # outputs, which were kept with gradients on
    pulls = torch.autograd.grad(objective, ends, allow_unused=True)
    return [_without_graph(call, pull) for call, pull in zip(calls, pulls, strict=True)]


def _without_graph(call: Recorded, pull: Tensor | None) -> Recorded:
    v, bias = (None if x is None else x.detach() for x in (call.v, call.bias))
    return replace(call, q=call.q.detach(), k=call.k.detach(), v=v, bias=bias, pull=pull)


def first_tensor(out: Any) -> Tensor | None:
    """The main output of a model: itself, or the first of several."""
    if isinstance(out, Tensor):
        return out if out.is_floating_point() and out.ndim else None
    members = out.values() if isinstance(out, Mapping) else out if isinstance(out, tuple | list) else ()
    return next((found for member in members if (found := first_tensor(member)) is not None), None)


def exact_copy(model: nn.Module) -> nn.Module:
    """A copy of the model in evaluation that shares its tensors, in which attention converted before is exact again."""
    twin = _twin(model)
    converted = {name: m for name, m in attention_modules(twin).items() if not _is_original(m)}
    if converted:
        _record_into(twin, converted, _Forgotten())
    return twin


def _is_original(module: nn.Module) -> bool:
    return isinstance(module, nn.MultiheadAttention) or not (
        isinstance(module, RandomFeatureAttention) or hasattr(module, ATTRIBUTE)
    )


def _twin(model: nn.Module) -> nn.Module:
    shared = {id(tensor): tensor for tensor in chain(model.parameters(), model.buffers())}
    return copy.deepcopy(model, shared).eval()


def _with_recorders(model: nn.Module, calls: list[Recorded]) -> nn.Module:
    """A copy of the model in evaluation, whose attention is exact and adds each call to the list."""
    twin = _twin(model)
    _record_into(twin, attention_modules(twin), calls)
    return twin


def _record_into(twin: nn.Module, modules: Mapping[str, nn.Module], calls: list[Recorded]) -> None:
    for name, module in modules.items():
        if family_of(module) is not None:
            attach(module, _Recorder(name, calls))
        else:
            multihead: Any = module  # torch's or ours
            multihead.forward = partial(_exact_multihead, multihead, name, calls)
            multihead._qkv_same_embed_dim = False  # has torch's encoders call the attention in evaluation too
    make_masks_linear(twin)
    leave_fast_path(twin, {id(module) for module in modules.values()})


class _Forgotten(list[Recorded]):
    """A list that keeps nothing."""

    def append(self, item: Recorded) -> None:
        """Forget the call."""


def run(model: nn.Module, batch: Any, owner: str) -> Any:
    """The output of the model for a batch: one argument, positional arguments, or keyword arguments."""
    try:
        if isinstance(batch, Mapping):
            return model(**batch)
        return model(*batch) if isinstance(batch, tuple | list) else model(batch)
    except Exception as error:
        words = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        raise ValueError(f"{owner}: the model cannot be run on the batch: {words}") from error


class _Recorder(nn.Module):
    """Exact attention of heads that are projected already, in place of that of random features."""

    def __init__(self, name: str, calls: list[Recorded]) -> None:
        super().__init__()
        self.name, self.calls = name, calls

    def forward(self, q: Tensor, k: Tensor, v: Tensor, **call: Any) -> Tensor:
        """Attention of tensors (batch, heads, length, d), called as that of random features is."""
        prefixes = call.get("prefixes")
        places = None if prefixes is None else prefixes - 1
        if places is None and q.shape[-2] == k.shape[-2]:
            places = torch.arange(q.shape[-2], device=q.device)
        mask = call["key_mask"]
        if mask is not None and mask.is_floating_point():
            call |= {"key_mask": (mask > -torch.inf).any(dim=1), "bias": mask}
        call.pop("state", None)
        found = Recorded(self.name, q, k, v=v, places=places, **call)
        plain = found.key_mask is None and found.bias is None and found.prefixes is None
        if plain and (not found.causal or q.shape[-2] == k.shape[-2]):  # without forming, and keeping, all weights
            scale = float(found.scale)
            return _kept(
                self.calls, found, F.scaled_dot_product_attention(q, k, v, is_causal=found.causal, scale=scale)
            )
        return _kept(self.calls, found, found.weights() @ v)


def _exact_multihead(
    module: _Multihead,
    name: str,
    calls: list[Recorded],
    *arguments: Any,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """Exact attention of torch's module or of ours, in place of its own forward."""
    given = signature(type(module).forward).bind(module, *arguments, **options).arguments
    rows = [given[part] for part in ("query", "key", "value")]
    batched = rows[0].ndim == 3
    rows = [x[None] if not batched else x if module.batch_first else x.transpose(0, 1) for x in rows]
    q, k, v = (_heads(module, x, part) for part, x in enumerate(rows))
    call = _call(module, name, q, k, v, given)
    weights = call.weights()
    assert call.v is not None
    out = module.out_proj(_kept(calls, call, weights @ call.v).transpose(1, 2).flatten(2))
    weights = weights.roll(k.shape[-2] - call.k.shape[-2], dims=-1)  # torch has extra keys last
    weights = weights.mean(dim=1) if given.get("average_attn_weights", True) else weights
    out = out if not batched or module.batch_first else out.transpose(0, 1)
    found = (out, weights) if batched else (out[0], weights[0])
    return found if given.get("need_weights", True) else (found[0], None)


def _kept(calls: list[Recorded], call: Recorded, out: Tensor) -> Tensor:
    """Keep a call and return its output; where gradients are asked for, the call holds the output too."""
    if torch.is_grad_enabled() and not isinstance(calls, _Forgotten):
        out = out if out.requires_grad else out.requires_grad_()
        call = replace(call, pull=out)
    calls.append(call)
    return out


def _call(module: _Multihead, name: str, q: Tensor, k: Tensor, v: Tensor, given: Mapping[str, Any]) -> Recorded:
    """The call of a multi-head module, with the keys that it adds to those of its inputs before them."""
    causal = is_causal_mask(given.get("attn_mask"), given.get("is_causal", False))
    padding, prefixes = given.get("key_padding_mask"), None
    mask, bias = key_mask(padding), key_bias(padding)
    own = torch.arange(q.shape[-2], device=q.device)
    places = own if causal or given["query"] is given["key"] else None
    extra = [(module.bias_k, module.bias_v)] if module.bias_k is not None else []
    if module.add_zero_attn:
        extra.append((torch.zeros(1, 1, module.embed_dim).to(q),) * 2)
    if extra:
        count = len(extra)
        before = (torch.cat(parts, dim=1).expand(len(k), -1, -1) for parts in zip(*extra, strict=True))
        k, v = (torch.cat([_split(module, x), held], dim=2) for x, held in zip(before, (k, v), strict=True))
        mask = None if mask is None else F.pad(mask.expand(len(k), -1), (count, 0), value=True)
        bias = None if bias is None else F.pad(bias.expand(len(k), -1), (count, 0))
        places = None if places is None else own + count
        if causal:
            prefixes, causal = own + 1 + count, False
    bias = None if bias is None else bias[:, None]
    return Recorded(name, q, k, _scale(module), causal, mask, prefixes, v, bias, places)


def _heads(module: _Multihead, x: Tensor, part: int) -> Tensor:
    """Projection of query (0), key (1) or value (2), (batch, heads, length, d)."""
    if module.in_proj_weight is not None:
        weight = module.in_proj_weight.chunk(3)[part]
    else:
        separate = module.q_proj_weight, module.k_proj_weight, module.v_proj_weight
        weight = cast("Tensor", separate[part])  # not None here
    bias = None if module.in_proj_bias is None else module.in_proj_bias.chunk(3)[part]
    heads = _split(module, F.linear(x, weight, bias))
    rotary = getattr(module, "rotary", None)
    return heads if rotary is None or part == 2 else rotary(heads, 0)


def _split(module: _Multihead, x: Tensor) -> Tensor:
    heads: Tensor = x.unflatten(-1, (module.num_heads, module.head_dim))
    return heads.transpose(1, 2)


def _scale(module: _Multihead) -> float | Tensor:
    """Factor of the dot products: a number, or one for each head, (heads, 1, 1)."""
    return module.current_scale() if isinstance(module, RandomFeatureAttention) else float(module.head_dim) ** -0.5
