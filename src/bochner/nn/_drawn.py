"""Drawn features of a module: their numbers in buffers, so that a checkpoint keeps the draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .._arrays import in_working_precision
from .._validation import shown
from ..approximation import Approximation, FeatureMap
from ..approximation.files import plan_from_json
from ..catalogue import mechanism
from ..kernels import Kernel, Softmax
from ._checkpoint import FORMAT, ArrayTree, FixedPrecision, Header, Numbers, read, stored_plans
from ._process_groups import from_first_replica
from ._tensor_features import (
    HeadFeatures,
    MapFeatures,
    QuadraticFeatures,
    QuadraticForm,
    Side,
    TensorFeatures,
    quadratic_form,
)

_FITTED_ROWS = 1024
"""Rows of queries and of keys of each head from which constants are chosen."""


HeadSpec = Approximation | tuple[Approximation, ...]
"""What heads draw: one specification for all of them, or a plan for each."""


def as_spec(owner: str, spec: Approximation | str | None, kernel: Kernel) -> Approximation:
    """Return the given specification, that of a named mechanism, or the default for the kernel."""
    if spec is None:
        return Approximation(kernel)
    if isinstance(spec, str):
        return mechanism(spec)
    if not isinstance(spec, Approximation):
        raise TypeError(
            f"{owner}: spec must be an Approximation such as Approximation({kernel!r}), or the name of a mechanism such as "
            f"'favor++', which is drawn here, got {shown(spec)}."
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


def head_spec(owner: str, spec: Any, *, softmax_only: bool = False) -> HeadSpec:
    """The same for attention of several heads, which may be given a plan each."""
    if isinstance(spec, Sequence) and not isinstance(spec, str | bytes):
        return tuple(attention_spec(owner, member, softmax_only=softmax_only) for member in spec)
    return attention_spec(owner, spec, softmax_only=softmax_only)


def check_heads(owner: str, spec: HeadSpec, heads: int) -> None:
    """Refuse a sequence that is not one of plans for each head."""
    if isinstance(spec, Approximation):
        return
    if len(spec) != heads:
        raise ValueError(f"{owner}: spec must have one plan for each of the {heads} heads, got {len(spec)}.")
    for h, member in enumerate(spec):
        if not member.planned:
            raise ValueError(
                f"{owner}: spec[{h}] must be planned, since a sequence holds the plans of the heads, got {member!r}; "
                f"use spec.plan(X, Y), or nn.calibrate for all heads of a model."
            )


class DrawnFeatures(FixedPrecision):
    """Features for the heads of an attention, drawn from one specification or from a plan for each head.

    What is drawn is kept in buffers, with the plan that it was drawn from: one matrix for maps with quadratic
    logarithms, the arrays of the drawn map for others.  Buffers keep their precision when the module is cast.

    Parameters
    ----------
    spec : Approximation or tuple of planned ones
        One for all heads, or one for each.
    d : int
        Width of a head.
    heads : int
        Number of heads; features of data (..., heads, n, d).
    per_head : bool
        Whether each head has its own rows.  Constants chosen from data belong to a head in any case.
    dtype : torch.dtype
        float32 or float64.
    generator : torch.Generator, optional
        Source of the draw; by default torch's global generator.
    """

    format_version: Tensor
    plan: Tensor
    seeds: Tensor
    fitted: Tensor

    def __init__(
        self,
        spec: HeadSpec,
        d: int,
        heads: int = 1,
        per_head: bool = False,
        *,
        dtype: torch.dtype = torch.float32,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self._describe(spec, d, heads, per_head, dtype)
        self.register_buffer("format_version", torch.tensor(FORMAT))
        self.register_buffer("seeds", torch.zeros(heads if per_head else 1, dtype=torch.int64))
        self.register_buffer("fitted", torch.tensor(not self.adaptive))
        # before the first data: normalised activations, at the usual scale
        rows = torch.randn(heads, 2, _FITTED_ROWS, d, generator=torch.Generator().manual_seed(0)) * d**-0.25
        plans = self._planned(rows)
        self._plan_size = 2 * self._header().encode(plans).numel() + 1024
        self._hold_plans(plans)
        self.redraw(generator)

    def _describe(self, spec: HeadSpec, d: int, heads: int, per_head: bool, dtype: torch.dtype) -> None:
        """Everything but buffers."""
        self.spec, self.d, self.heads, self.per_head, self.dtype = spec, d, heads, per_head, dtype
        self.adaptive = isinstance(spec, Approximation) and not spec.planned
        self._n_draws = heads if self.adaptive or per_head or isinstance(spec, tuple) else 1
        self._waits = self.adaptive
        self._maps: list[FeatureMap] = []
        self._stamp: tuple[Any, ...] = ()
        self._plans: list[Approximation] = []
        self._plan_stamp: tuple[int, int] = (0, 0)
        self.record: dict[str, Any] = {}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> DrawnFeatures:
        """Features whose buffers have the shapes of stored ones, and no numbers yet; `restore` follows their loading.

        Parameters
        ----------
        record : mapping
            The `record` of the features that were stored: JSON values, which always say how they are now.
        """
        features = cls.__new__(cls)
        nn.Module.__init__(features)
        spec = () if record["spec"] is None else plan_from_json(record["spec"])
        dtype = getattr(torch, record["dtype"])
        features._describe(spec, record["d"], record["heads"], record["per_head"], dtype)
        features.record.update(record)
        for name, described in record["buffers"].items():
            kind, *shape = described.split()
            *path, last = name.split(".")
            node: nn.Module = features
            for part in path:
                if part not in node._modules:
                    node.add_module(part, nn.ModuleList() if part == "arrays" else ArrayTree({}))
                node = node.get_submodule(part)
            node.register_buffer(last, torch.empty([*map(int, shape)], dtype=getattr(torch, kind)))
        return features

    def restore(self) -> None:
        """Check the numbers that were put into the buffers, and make all that follows from them."""
        own, wanted = dict(self.state_dict()), self.record["buffers"]
        for name, described in self._described_buffers().items():
            if described != wanted[name]:
                raise ValueError(f"{name} must be {wanted[name]} (type and shape), got {described}")
        if isinstance(self.spec, tuple):
            self.spec = stored_plans(own["plan"])
        self._plan_size = own["plan"].numel() if "plan" in own else 0
        self._take(read(own, self._header(), self._n_draws), own["plan"])
        self._waits = not bool(self.fitted)

    @property
    def waits(self) -> bool:
        """Whether constants are still to be chosen from data."""
        return self._waits

    @property
    def plans(self) -> list[Approximation]:
        """The plan of each draw, with the constants that were chosen: one for each head, or one for all."""
        if self._plan_stamp != _version(self.plan):  # changed from outside, as data-parallel training does
            self._plans, self._plan_stamp = self._header().decode(self.plan), _version(self.plan)
        return self._plans

    @property
    def current(self) -> TensorFeatures:
        """The features as the buffers are now, for tensors (..., heads, n, d)."""
        form = self._held_form()
        if form is not None:
            return QuadraticFeatures(*(form if self._n_draws > 1 else form.only()))
        members = [MapFeatures(phi) for phi in self._current_maps()]
        return members[0] if len(members) == 1 else HeadFeatures(members)

    def redraw(self, generator: torch.Generator | None = None) -> None:
        """Draw all rows anew, with the constants of the plans; by default from torch's global generator."""
        device = "cpu" if generator is None else generator.device
        self.seeds.copy_(torch.randint(2**63 - 1, self.seeds.shape, generator=generator, device=device))
        self._draw()

    def fit(self, q: Tensor, k: Tensor) -> None:
        """Choose the constants of each head from queries and keys, and draw with the same seeds.

        Parameters
        ----------
        q, k : Tensor (heads, n, d)
            Queries and keys times the root of the scale; some random rows of them are used.
        """
        rows = None
        if q.shape[-2] and k.shape[-2]:
            rows = torch.stack([_some_rows(x.detach().to(self.seeds.device, self.dtype)) for x in (q, k)], dim=1)
        rows = from_first_replica(rows, (self.heads, 2, _FITTED_ROWS, self.d), self.dtype, self.seeds)
        if rows is None:
            return  # nothing to choose from yet
        if self.adaptive:
            self._hold_plans(self._planned(rows))
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

    @property
    def n_draws(self) -> int:
        """Number of draws: one for each head, or one for all."""
        return self._n_draws

    def replan(self, plans: list[Approximation]) -> None:
        """Take other constants for each draw, and keep its rows."""
        self._hold_plans(plans)
        self._draw()

    def drawn(self) -> list[FeatureMap]:
        """The feature map of each draw, drawn from its plan and seed."""
        seeds = self.seeds.tolist()
        return [plan.draw(self.d, rng=seeds[i % len(seeds)]) for i, plan in enumerate(self.plans)]

    def _planned(self, rows: Tensor) -> list[Approximation]:
        """The plan of each draw, from rows (heads, 2, n, d) of queries and keys."""
        if isinstance(self.spec, tuple):
            return list(self.spec)
        if not self.adaptive:
            return [self.spec] * self._n_draws
        return [self.spec.plan(q, k, rng=0) for q, k in rows.double().cpu().numpy()]

    def _draw(self) -> None:
        maps = self.drawn()
        form = self._form(maps)
        if form is None or form.framed:
            self._hold_maps(maps, form)
        else:
            self._hold_matrix(form.queries.matrix, form.signs)

    def _form(self, maps: list[FeatureMap]) -> QuadraticForm | None:
        """The quadratic forms of all draws together; None if one has no such form or another kind of it."""
        forms = [quadratic_form(phi) for phi in maps]
        found = [form for form in forms if form is not None]
        if len(found) < len(forms) or len({form.kind for form in found}) > 1:
            return None
        return QuadraticForm.stacked(found).to(torch.empty(0, dtype=self.dtype))

    def _header(self) -> Header:
        return Header(self.spec, self.d, self.heads, self.per_head)

    def _hold_plans(self, plans: list[Approximation]) -> None:
        self._hold("plan", self._header().encode(plans, self._plan_size))
        self._plans, self._plan_stamp = plans, _version(self.plan)

    def _hold_matrix(self, matrix: Tensor, signs: Tensor | None) -> None:
        self._modules.pop("arrays", None)
        self._hold_form(None)
        self._hold("matrix", matrix)
        self._hold("signs", signs)
        self._write_record()

    def _hold_maps(self, maps: list[FeatureMap], form: QuadraticForm | None) -> None:
        """Put the arrays of maps into buffers: new ones, since their number and shapes may depend on the plan.

        Where the maps have a form in frames, it is held beside them: made again at each draw, and not saved.
        """
        self._hold("matrix", None)
        self._hold("signs", None)
        trees = nn.ModuleList([ArrayTree(phi.to_arrays()) for phi in maps])
        self.arrays = trees.to(self.seeds.device)
        self._maps, self._stamp = maps, self._versions()
        self._hold_form(form)
        self._write_record()

    def _write_record(self) -> None:
        """Say what the features are and which buffers hold them, in an object that a configuration may share."""
        first = self.plans[0]
        rows = sorted({plan.n_projections for plan in self.plans})
        self.record.update(self._header().described())
        self.record["dtype"] = _name(self.dtype)
        self.record["mechanism"] = (
            f"{type(first.map).__name__} and {type(first.projection).__name__}, {' or '.join(map(str, rows))} rows per head"
        )
        self.record["buffers"] = self._described_buffers()

    def _described_buffers(self) -> dict[str, str]:
        return {name: " ".join(map(str, (_name(x.dtype), *x.shape))) for name, x in self.state_dict().items()}

    def _hold_form(self, form: QuadraticForm | None) -> None:
        for side in ("queries", "keys"):
            for part in Side._fields:
                values = None if form is None else getattr(getattr(form, side), part)
                self._hold(f"{side}_{part}", values, persistent=False)
        self._hold("keys_signs", None if form is None else form.signs, persistent=False)

    def _held_form(self) -> QuadraticForm | None:
        """The quadratic form as the buffers are now; None if there is none."""
        held = self._buffers.get
        matrix, signs = held("matrix"), held("signs")
        if matrix is not None:
            return QuadraticForm(Side(matrix), Side(matrix), -0.5, signs)
        queries, keys = held("queries_matrix"), held("keys_matrix")
        if queries is None or keys is None:
            return None
        return QuadraticForm(
            Side(queries, held("queries_centre"), held("queries_turn")),
            Side(keys, held("keys_centre"), held("keys_turn")),
            -0.5,
            held("keys_signs"),
        )

    def _hold(self, name: str, values: Tensor | None, persistent: bool = True) -> None:
        """Put numbers into a buffer: in place where they fit, so that references to it stay good."""
        held = self._buffers.get(name)
        if values is None:
            self._buffers.pop(name, None)
        elif held is not None and held.shape == values.shape:
            held.copy_(values)
        else:
            self.register_buffer(name, values.to(self.seeds.device, copy=True), persistent=persistent)

    def _current_maps(self) -> list[FeatureMap]:
        """The maps of the arrays, made again where these were changed from outside, as data-parallel training does."""
        if self._stamp != self._versions():
            trees = [tree.arrays() for tree in self.arrays]
            self._maps = [FeatureMap.from_arrays(p, self.d, a) for p, a in zip(self.plans, trees, strict=True)]
            self._stamp = self._versions()
        return self._maps

    def _versions(self) -> tuple[Any, ...]:
        return tuple(_version(buffer) for buffer in (self.plan, *self.arrays.buffers()))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_maps": [], "_stamp": ()}  # made again from the arrays

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        """Load a draw of the same specification; anything else is refused, and changes nothing."""
        own = {name.removeprefix(prefix): values for name, values in state_dict.items() if name.startswith(prefix)}
        if own:
            try:
                numbers = read(own, self._header(), self._n_draws)
            except ValueError as error:
                where = prefix.rstrip(".") or type(self).__name__
                raise ValueError(f"load_state_dict: {where}: the checkpoint was not loaded: {error}.") from None
            self._take(numbers, own["plan"])
        super()._load_from_state_dict(state_dict, prefix, *arguments)
        self._waits = not bool(self.fitted)

    def _take(self, numbers: Numbers, plan: Tensor) -> None:
        """Hold the numbers of a checkpoint."""
        self._hold("plan", plan)
        self._plans, self._plan_stamp = numbers.plans, _version(self.plan)
        if numbers.matrix is not None:
            signs = None if numbers.signs is None else numbers.signs.to(self.dtype)
            self._hold_matrix(numbers.matrix.to(self.dtype), signs)
        else:
            self._hold_maps(numbers.maps, self._form(numbers.maps))

    def extra_repr(self) -> str:
        """What it was drawn from."""
        spec = "a plan for each head" if isinstance(self.spec, tuple) else repr(self.spec)
        return f"{spec}, d={self.d}, heads={self.heads}, per_head={self.per_head}"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _version(buffer: Tensor) -> tuple[int, int]:
    """What changes when numbers are written into a buffer, or another takes its place."""
    return buffer.data_ptr(), 0 if buffer.is_inference() else buffer._version


def _some_rows(x: Tensor) -> Tensor:
    """Random rows of (heads, n, d), the same each time; of fewer, each about as often.

    Equally spaced ones would meet the same few places of every sequence where its length divides the step.
    """
    n = x.shape[-2]
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    return x[:, order[torch.arange(_FITTED_ROWS) % n].to(x.device)]
