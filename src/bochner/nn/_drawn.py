"""Drawn features of a module: their numbers in buffers, so that a checkpoint keeps the draw."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .._arrays import in_working_precision
from ..approximation import Approximation, FeatureMap
from ..catalogue import mechanism
from ..kernels import Kernel, Softmax
from ._tensor_features import HeadFeatures, MapFeatures, QuadraticFeatures, TensorFeatures, quadratic_form

_KEPT_ROWS = 256
"""Rows of queries and of keys kept for each head: what constants are chosen from again at a redraw."""

_FORMAT = 1
"""Version of what a checkpoint holds."""


def as_spec(owner: str, spec: Approximation | str | None, kernel: Kernel) -> Approximation:
    """A specification as given, that of the mechanism of a name, or the best one for the kernel where there is none."""
    if spec is None:
        return Approximation(kernel)
    if isinstance(spec, str):
        return mechanism(spec)
    if not isinstance(spec, Approximation):
        raise TypeError(
            f"{owner}: spec must be an Approximation such as Approximation({kernel!r}), or the name of a mechanism such as "
            f"'favor++', which is drawn here, got {spec!r}."
        )
    return spec


def attention_spec(owner: str, spec: Approximation | str | None, *, softmax_only: bool = False) -> Approximation:
    """A specification for attention: the scale of softmax is given elsewhere."""
    spec = as_spec(owner, spec, Softmax())
    if isinstance(spec.kernel, Softmax) and spec.kernel.scale != 1:
        raise ValueError(
            f"{owner}: spec must be of kernels.Softmax() with scale 1, since the scale is that of the attention, got "
            f"scale {spec.kernel.scale:g}."
        )
    if softmax_only and spec.kernel != Softmax():
        raise ValueError(f"{owner}: spec must be of kernels.Softmax(), which the model was trained with, got {spec!r}.")
    return spec


class DrawnFeatures(nn.Module):
    """Features for the heads of an attention, drawn from one specification.

    What is drawn is kept in buffers: the seeds, the rows of data from which constants were chosen, and the matrix of a map
    with quadratic logarithms; other maps are drawn from their seeds and rows.  Buffers keep their precision when the
    module is cast, since a draw is not a parameter.  A checkpoint holds numbers only, with a description of what they
    belong to: code and constants come from this module's own specification, and a checkpoint of another specification
    is refused.

    Parameters
    ----------
    spec : Approximation
    d : int
        Width of a head.
    heads : int
        Number of heads; features of data (..., heads, n, d).
    per_head : bool
        Whether each head has rows of its own.  Constants chosen from data are those of a head in any case.
    dtype : torch.dtype
        float32 or float64.
    generator : torch.Generator, optional
    """

    format_version: Tensor
    description: Tensor
    seeds: Tensor
    rows_kept: Tensor
    fitted: Tensor

    def __init__(
        self,
        spec: Approximation,
        d: int,
        heads: int = 1,
        per_head: bool = False,
        *,
        dtype: torch.dtype = torch.float32,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        assert spec.map is not None
        self.spec, self.d, self.heads, self.per_head, self.dtype = spec, d, heads, per_head, dtype
        self.adaptive = not spec.planned
        self._members: list[MapFeatures] = []
        self._waits = self.adaptive
        self.register_buffer("format_version", torch.tensor(_FORMAT))
        self.register_buffer("description", self._description())
        self.register_buffer("fitted", torch.tensor(not self.adaptive))
        self.register_buffer("seeds", torch.zeros(heads if per_head else 1, dtype=torch.int64))
        if self.adaptive:  # until data comes: normalised activations, at the usual scale
            rows = torch.randn(heads, 2, _KEPT_ROWS, d, generator=torch.Generator().manual_seed(0)) * d**-0.25
            self.register_buffer("rows_kept", rows.to(dtype))
        self.redraw(generator)

    @property
    def waits(self) -> bool:
        """Whether constants are still to be chosen from data."""
        return self._waits

    @property
    def current(self) -> TensorFeatures:
        """The features as they are now, for tensors (..., heads, n, d)."""
        if self._members:
            return self._members[0] if len(self._members) == 1 else HeadFeatures(self._members)
        matrix, signs = self.get_buffer("matrix"), self._buffers.get("signs")
        if len(matrix) == 1:
            matrix, signs = matrix[0], None if signs is None else signs[0]
        return QuadraticFeatures(matrix, -0.5, signs)

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Draw all rows anew, with constants chosen as before; torch's own generator without one."""
        shape = self.seeds.shape
        device = "cpu" if generator is None else generator.device
        self.seeds.copy_(torch.randint(2**63 - 1, shape, generator=generator, device=device))
        self._draw()

    def fit(self, q: Tensor, k: Tensor) -> None:
        """Choose the constants of each head from queries and keys (heads, n, d), and draw with the same seeds.

        Parameters
        ----------
        q, k : Tensor (heads, n, d)
            Times the root of the scale; equally spaced rows are kept.
        """
        if not (q.shape[-2] and k.shape[-2]):
            return  # nothing to choose from: they still wait
        if self.adaptive:
            kept = [_spaced(x.detach().to(self.rows_kept), _KEPT_ROWS) for x in (q, k)]
            self.rows_kept.copy_(torch.stack(kept, dim=1))
            self._draw()
        self.fitted.fill_(True)
        self._waits = False

    @torch.no_grad()
    def fit_call(self, q: Tensor, k: Tensor, key_mask: Tensor | None, scale: float | Tensor) -> None:
        """Choose the constants from one call of an attention, without its padding.

        Parameters
        ----------
        q, k : Tensor (batch, heads, length, d)
            Queries and keys as they are.
        key_mask : Tensor (batch, Lk) of bool or None
            Which keys there are; queries in as many places are padded as keys are.
        scale : float or Tensor
            Factor of the dot products.
        """
        root = torch.as_tensor(scale, device=q.device).sqrt()
        q, k = ((in_working_precision(x) * root).transpose(0, 1) for x in (q, k))  # (heads, batch, length, d)
        there = torch.ones_like(k[0, ..., 0], dtype=torch.bool) if key_mask is None else key_mask.expand(k.shape[1:3])
        self.fit(q[:, there] if q.shape == k.shape else q.flatten(1, 2), k[:, there])

    def _draw(self) -> None:
        drawn = [self._drawn(h) for h in range(self.heads if self.adaptive or self.per_head else 1)]
        forms = [quadratic_form(phi) for phi in drawn]
        found = [form for form in forms if form is not None]
        if len(found) < len(drawn):
            self._members = [MapFeatures(phi) for phi in drawn]
            return
        self._hold("matrix", torch.stack([form[0] for form in found]).to(self.dtype))
        if found[0][2] is not None:
            self._hold("signs", torch.stack([_present(form[2]) for form in found])[:, None].to(self.dtype))

    def _drawn(self, head: int) -> FeatureMap:
        seed = int(self.seeds[head if self.per_head else 0])
        if not self.adaptive:
            return self.spec.draw(self.d, rng=seed)
        q, k = self.rows_kept[head].double().cpu().numpy()
        return self.spec.fit(q, k, rng=seed)

    def _hold(self, name: str, values: Tensor) -> None:
        """Put numbers into a buffer: in place where there is one, so that references to it stay good."""
        held = self._buffers.get(name)
        if held is None:
            self.register_buffer(name, values.to(self.seeds.device))
        else:
            held.copy_(values)

    def _description(self) -> Tensor:
        """What the numbers belong to, as JSON in bytes: only ever compared."""
        spec = re.sub(r" at 0x[0-9a-f]+", "", repr(self.spec))  # functions may show where they lie in memory
        text = json.dumps({"spec": spec, "d": self.d, "heads": self.heads, "per_head": self.per_head})
        return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Take the numbers of a draw from the same specification; say what is wrong with others, and take nothing."""
        own = {name.removeprefix(prefix): values for name, values in state_dict.items() if name.startswith(prefix)}
        refusal = self._refusal(own) if own else None
        if refusal is not None:
            error_msgs.append(f"{prefix.rstrip('.') or 'the features'}: {refusal}")
            return
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
        self._waits = not bool(self.fitted)
        if self._members and own:
            self._draw()

    def _refusal(self, own: dict[str, Any]) -> str | None:
        """Why these numbers cannot be taken; None where they can."""
        if "format_version" not in own or "description" not in own:
            return "the checkpoint has no format version or description, so it is of an earlier format; save it again."
        version, stated = own["format_version"], own["description"]
        if version.numel() != 1 or int(version) != _FORMAT:
            return f"the checkpoint has format {version.tolist()}, this version of bochner reads format {_FORMAT}."
        if not torch.equal(stated.cpu(), self.description.cpu()):
            return f"the checkpoint holds features of {_text(stated)}, this module has {_text(self.description)}."
        for name in self._buffers.keys() & own.keys():
            held, values = self.get_buffer(name), own[name]
            kinds = {values.is_floating_point(), held.is_floating_point()}
            if held.shape != values.shape or len(kinds) > 1:
                return (
                    f"{name} must be {held.dtype} of shape {tuple(held.shape)}, "
                    f"got {values.dtype} of shape {tuple(values.shape)}."
                )
            if values.is_floating_point() and not bool(values.isfinite().all()):
                return f"{name} holds numbers that are not finite."
        return None

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> DrawnFeatures:
        """Go to another device, but not to another precision."""
        before = dict(self._buffers)
        super()._apply(fn, recurse)
        for name, values in before.items():
            moved = self._buffers[name]
            if values is not None and moved is not None and moved.dtype != values.dtype:
                self._buffers[name] = values.to(moved.device)
        return self

    def extra_repr(self) -> str:
        """What it was drawn from."""
        return f"{self.spec!r}, d={self.d}, heads={self.heads}, per_head={self.per_head}"


def _spaced(x: Tensor, count: int) -> Tensor:
    """``count`` equally spaced rows of (heads, n, d); of fewer, each about as often."""
    return x[:, torch.arange(count, device=x.device) * x.shape[-2] // count]


def _text(description: Tensor) -> str:
    """A description in words, of whatever bytes a checkpoint has."""
    return bytes(description.to(torch.uint8).flatten()[:2000].cpu().tolist()).decode(errors="replace")


def _present(signs: Tensor | None) -> Tensor:
    assert signs is not None
    return signs
