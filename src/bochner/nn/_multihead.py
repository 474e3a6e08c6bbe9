"""Multi-head attention as a module."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from .._validation import check_count, check_flag, check_option, check_positive, shown
from ..approximation import Approximation
from ._attention_checks import check_generator, check_place, check_state_type
from ._attention_state import AttentionState
from ._checkpoint import LoadsWhole
from ._drawn import DrawnFeatures
from ._head_spec import check_heads, head_spec, near
from ._multihead_call import (
    OWNER,
    HeadCall,
    check_inputs,
    check_options,
    is_causal_mask,
    key_bias,
    key_mask,
    warn_of_dropout,
)


class RandomFeatureAttention(LoadsWhole):
    r"""Multi-head attention in linear time, with the interface of ``torch.nn.MultiheadAttention``.

    Use it in place of exact attention in models for long sequences.  Parameters have the names and shapes of
    ``nn.MultiheadAttention``, whose ``state_dict`` it loads while keeping its own draw; heads are computed by
    `linear_attention`.  Pass ``need_weights=False`` for linear time: with ``need_weights=True``, the default as in
    ``nn.MultiheadAttention``, attention weights are formed in quadratic time and memory.

    Parameters
    ----------
    embed_dim, num_heads, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first, device, dtype
        As in ``nn.MultiheadAttention``.
    dropout : float
        Not applied, since no attention weights are formed; a warning says so once, in training.  Apply ``nn.Dropout`` to
        the output instead.
    spec : Approximation, str, or sequence of planned Approximation, optional
        What to draw, for `kernels.Softmax` with scale 1, or the name of a mechanism such as "favor++"; by default 256
        rows of the best map and projection for softmax.  A sequence has one plan for each head; a `LayerPlan`, as
        `calibrate` finds it, also has the window and the anchors.
    window, anchors : int, optional
        Number of keys next to each query, and at the start of the sequence, that are computed exactly, as in
        `linear_attention`; by default those of ``spec``.
    per_head : bool
        Whether each head draws its own rows.
    scale : float, optional
        Factor of the dot products, by default :math:`d^{-1/2}` with d the width of a head.
    learned_scale : bool
        Whether each head learns its scale, starting from ``scale``.
    normalize : bool
        Whether queries and keys are divided by their lengths first, as in `linear_attention`.
    constants : {"first", "input"}
        Whether constants that a map chooses from data are those of the first batch, or are chosen again from the queries and
        keys of every call, as FAVOR++ does (CRT Section 4); the latter supports neither causal masks nor states, which
        would see the future, or other constants, through them.
    rotary : callable, optional
        Position embedding such as `Rotary`: ``rotary(x, start)`` rotates queries and keys x (batch, heads, length, d)
        at positions from ``start`` on, without changing their lengths.
    generator : torch.Generator, optional
        Source of the draw; by default torch's global generator.

    Notes
    -----
    The draw is stored in buffers: checkpoints contain it, and only `redraw` changes it.  Maps with constants chosen
    from data (`OptimalPositive`: A, one per head) choose them from the first batch, or when `fit_statistics` is called,
    and keep them afterwards, so causal attention never sees the future through them.  Under ``DistributedDataParallel``
    all processes use the constants of the first one.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import RandomFeatureAttention
    >>> attention = RandomFeatureAttention(32, 4, batch_first=True)
    >>> x = torch.randn(2, 10, 32)
    >>> out, weights = attention(x, x, x)
    >>> out.shape, weights.shape, torch.allclose(weights.sum(-1), torch.ones(2, 10), atol=1e-5)
    (torch.Size([2, 10, 32]), torch.Size([2, 10, 10]), True)
    """

    in_proj_weight: nn.Parameter | None
    q_proj_weight: nn.Parameter | None
    k_proj_weight: nn.Parameter | None
    v_proj_weight: nn.Parameter | None
    bias_k: nn.Parameter | None
    bias_v: nn.Parameter | None

    # TransformerEncoderLayer computes exact attention by itself from in_proj_weight, unless this says that it cannot
    _qkv_same_embed_dim = False

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        spec: Approximation | str | Sequence[Approximation] | None = None,
        window: int | None = None,
        anchors: int | None = None,
        per_head: bool = False,
        scale: float | None = None,
        learned_scale: bool = False,
        normalize: bool = False,
        constants: str = "first",
        rotary: Callable[[Tensor, int], Tensor] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        flags = {"bias": bias, "batch_first": batch_first, "per_head": per_head, "learned_scale": learned_scale}
        flags |= {"add_bias_kv": add_bias_kv, "add_zero_attn": add_zero_attn, "normalize": normalize}
        check_options(embed_dim, num_heads, dropout, kdim, vdim, **flags)
        if rotary is not None and not callable(rotary):
            raise TypeError(
                f"{OWNER}: rotary must be callable, such as Rotary({embed_dim // num_heads}), got {shown(rotary)}."
            )
        check_option(OWNER, "constants", constants, ("first", "input"))
        self.normalize, self.constants = normalize, constants
        check_generator(OWNER, generator)
        check_place(OWNER, device, dtype)
        drawn = head_spec(OWNER, spec)
        check_heads(OWNER, drawn, num_heads)
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.dropout, self.batch_first, self.rotary = float(dropout), batch_first, rotary
        self.window, self.anchors = (
            of_plan if given is None else check_count(OWNER, name, given, 0)
            for name, given, of_plan in zip(("window", "anchors"), (window, anchors), near(spec), strict=True)
        )
        self.scale = self.head_dim**-0.5 if scale is None else check_positive(OWNER, "scale", scale)
        options = {"device": device, "dtype": dtype}
        self._make_projections(bias, options)
        self._make_extra_keys(add_bias_kv, add_zero_attn, options)
        self.log_scale = None
        if learned_scale:
            self.log_scale = nn.Parameter(torch.full((num_heads, 1, 1), math.log(self.scale), **options))
        kept = torch.float64 if dtype == torch.float64 else torch.float32
        self.features = DrawnFeatures(drawn, self.head_dim, num_heads, per_head, dtype=kept, generator=generator)
        self.features.to(device)

    def _make_projections(self, bias: bool, options: dict[str, Any]) -> None:
        """Parameters under the names of nn.MultiheadAttention, with its law of initial values."""
        E, widths = self.embed_dim, {"q": self.embed_dim, "k": self.kdim, "v": self.vdim}
        together = len(set(widths.values())) == 1
        self.in_proj_weight = nn.Parameter(torch.empty(3 * E, E, **options)) if together else None
        for name, width in widths.items():
            weight = None if together else nn.Parameter(torch.empty(E, width, **options))
            self.register_parameter(f"{name}_proj_weight", weight)
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * E, **options)) if bias else None
        self.out_proj = nn.Linear(E, E, bias=bias, **options)
        if bias:
            nn.init.zeros_(self.out_proj.bias)
        for start in self._weights() if self.in_proj_weight is None else [self.in_proj_weight]:
            nn.init.xavier_uniform_(start)

    def _make_extra_keys(self, add_bias_kv: bool, add_zero_attn: bool, options: dict[str, Any]) -> None:
        """Keys and values that all queries see beside those of the inputs."""
        self.add_zero_attn = add_zero_attn
        for name in ("bias_k", "bias_v"):
            extra = nn.Parameter(torch.empty(1, 1, self.embed_dim, **options)) if add_bias_kv else None
            self.register_parameter(name, extra)
            if extra is not None:
                nn.init.xavier_normal_(extra)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        """Keep the draw where the parameters are those of a ``nn.MultiheadAttention``, which has none."""
        own = f"{prefix}features."
        if not any(name.startswith(own) for name in state_dict):
            state_dict.update({own + name: values for name, values in self.features.state_dict().items()})
        self.features.readable(state_dict, own)  # before any parameter changes
        super()._load_from_state_dict(state_dict, prefix, *arguments)

    def _weights(self) -> list[Tensor]:
        if self.in_proj_weight is not None:
            return list(self.in_proj_weight.chunk(3))
        return cast("list[Tensor]", [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight])  # not None here

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Draw new rows into the buffers; constants chosen from data are kept.

        Parameters
        ----------
        generator : torch.Generator, optional
            Source of the draw; by default torch's global generator.
        """
        check_generator(f"{OWNER}.redraw", generator)
        self.features.redraw(generator)

    @torch.no_grad()
    def fit_statistics(self, query: Tensor, key: Tensor | None = None, key_padding_mask: Tensor | None = None) -> None:
        """Choose the constants of each head from data.

        Parameters
        ----------
        query, key : Tensor
            Inputs as in `forward`; ``key`` defaults to ``query``.
        key_padding_mask : Tensor (batch, length), optional
            True, or minus infinity, for padding.
        """
        key = query if key is None else key
        check_inputs(self, query, key, None, key_padding_mask, None)
        q, k = (self._heads(self._batched(x), part, 0) for part, x in enumerate((query, key)))
        self.features.fit_call(q, k, key_mask(key_padding_mask), self.current_scale(), again=True)

    def current_scale(self) -> float | Tensor:
        """Current factor of the dot products: a number, or one for each head, (heads, 1, 1)."""
        return self.scale if self.log_scale is None else self.log_scale.exp()

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        *,
        state: AttentionState | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Compute attention, with the interface of ``nn.MultiheadAttention``.

        Parameters
        ----------
        query, key, value : Tensor (length, batch, width), or batch first, or without a batch
            Inputs.
        key_padding_mask : Tensor (batch, length), optional
            True, or minus infinity, for padding; other numbers are added to the logits of the key.
        need_weights : bool
            Whether to form and return the approximate weights, in quadratic time.
        attn_mask : Tensor, optional
            The causal mask or an empty one; ``is_causal`` alone does the same.
        average_attn_weights : bool
            Whether weights are averaged over heads.
        is_causal : bool
            Whether a position attends only to itself and earlier positions.
        state : AttentionState, optional
            Keys of earlier calls, for decoding; the keys of this one are added.

        Returns
        -------
        output : Tensor
            Output of the attention, in the layout of ``query``.
        weights : Tensor or None
            Attention weights, if requested.
        """
        check_inputs(self, query, key, value, key_padding_mask, attn_mask)
        check_state_type(OWNER, state)
        flags = {"need_weights": need_weights, "average_attn_weights": average_attn_weights, "is_causal": is_causal}
        for name, flag in flags.items():
            check_flag(OWNER, name, flag)
        causal = is_causal_mask(attn_mask, is_causal)
        if self.constants == "input" and (causal or state is not None):
            raise ValueError(
                f'{OWNER}: constants="input" are chosen from all keys of a call, which causal attention and a state must '
                f'not see; use constants="first".'
            )
        if need_weights and state is not None:
            raise ValueError(f"{OWNER}: weights of keys in a state are not known; pass need_weights=False.")
        warn_of_dropout(self.dropout, self.training)
        mask = key_mask(key_padding_mask)
        extra = self._extra_keys()
        start = 0 if state is None else max(state.length - (0 if extra is None else extra[0].shape[-2]), 0)
        q, k, v = (self._heads(self._batched(x), part, start) for part, x in enumerate((query, key, value)))
        each = self.constants == "input"
        if each or self.features.is_new(alone=not self.window):
            self.features.fit_call(q, k, mask, self.current_scale(), alone=not self.window, again=each)
        bias = key_bias(key_padding_mask)
        call = HeadCall(self, q, k, extra, causal, mask if bias is None else bias, state)
        out = self.out_proj(call.of(v).transpose(1, 2).flatten(2))
        weights = call.weights(average_attn_weights) if need_weights else None
        return self._as_given(out, weights, query.ndim == 3)

    def _extra_keys(self) -> tuple[Tensor, Tensor] | None:
        """Keys and values (1, heads, n, d) beside those of the inputs; None where there are none."""
        found: list[tuple[Tensor, Tensor]] = []
        if self.bias_k is not None and self.bias_v is not None:
            found.append((self.bias_k, self.bias_v))
        if self.add_zero_attn:
            zero = self.out_proj.weight.new_zeros(1, 1, self.embed_dim)
            found.append((zero, zero))
        if not found:
            return None
        keys, values = (torch.cat(parts, dim=1) for parts in zip(*found, strict=True))
        return self._normalized(self._split(keys)), self._split(values)

    def _batched(self, x: Tensor) -> Tensor:
        """An input with a batch axis, and it first."""
        if x.ndim == 2:
            return x[None]
        return x if self.batch_first else x.transpose(0, 1)

    def _as_given(self, out: Tensor, weights: Tensor | None, batched: bool) -> tuple[Tensor, Tensor | None]:
        if not batched:
            return out[0], None if weights is None else weights[0]
        return (out if self.batch_first else out.transpose(0, 1)), weights

    def _heads(self, x: Tensor, part: int, start: int) -> Tensor:
        """Projection of query (0), key (1) or value (2), (batch, heads, length, d); turned where it has a position."""
        bias = None if self.in_proj_bias is None else self.in_proj_bias.chunk(3)[part]
        heads = self._split(functional.linear(x, self._weights()[part], bias))
        if part == 2:
            return heads
        heads = self._normalized(heads)
        return heads if self.rotary is None else self.rotary(heads, start)

    def _normalized(self, heads: Tensor) -> Tensor:
        """Queries or keys, divided by their lengths if ``normalize``."""
        return functional.normalize(heads, dim=-1) if self.normalize else heads

    def _split(self, x: Tensor) -> Tensor:
        heads: Tensor = x.unflatten(-1, (self.num_heads, self.head_dim))
        return heads.transpose(1, 2)
