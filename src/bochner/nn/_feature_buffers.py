"""Numbers of drawn features in the buffers of a module: what a checkpoint keeps, and the features made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, cast

import torch
from torch import Tensor, nn

from ..approximation import Approximation, FeatureMap
from ..approximation.files import plan_from_json
from ._checkpoint import ArrayTree, FixedPrecision, Header, Numbers, read, stored_plans
from ._head_spec import HeadSpec
from ._tensor_features import (
    HeadFeatures,
    QuadraticFeatures,
    QuadraticForm,
    Side,
    TensorFeatures,
    is_plain,
    map_features,
    quadratic_form,
)


class FeatureBuffers(FixedPrecision):
    """Features for the heads of an attention, whose numbers and plans are in buffers.

    These are one matrix for maps with quadratic logarithms, the arrays of the drawn map for others.  Buffers keep their
    precision when the module is cast.
    """

    format_version: Tensor
    plan: Tensor
    seeds: Tensor
    fitted: Tensor
    arrays: nn.ModuleList

    def _describe(self, spec: HeadSpec, d: int, heads: int, per_head: bool, dtype: torch.dtype) -> None:
        """Set the attributes that are not buffers."""
        self.spec, self.d, self.heads, self.per_head, self.dtype = spec, d, heads, per_head, dtype
        self.adaptive = isinstance(spec, Approximation) and not spec.planned
        self._n_draws = heads if self.adaptive or per_head or isinstance(spec, tuple) else 1
        self._waits = self.adaptive
        self._maps: list[FeatureMap] = []
        self._stamp: tuple[Any, ...] = ()
        self._kept: tuple[tuple[Any, ...], QuadraticFeatures] | None = None
        self._plans: list[Approximation] = []
        self._plan_stamp: tuple[int, int] = (0, 0)
        self.record: dict[str, Any] = {}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
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
            return self._quadratic(form)
        members = [map_features(phi) for phi in self._current_maps()]
        return members[0] if len(members) == 1 else HeadFeatures(members)

    def _quadratic(self, form: QuadraticForm) -> QuadraticFeatures:
        """The features of the form, the same object until a number changes: it keeps what calls derive from it."""
        tensors = [x for x in (*form.queries, *form.keys, form.signs) if x is not None]
        if not all(is_plain(x) and not x.is_inference() for x in tensors):
            return QuadraticFeatures(*(form if self._n_draws > 1 else form.only()))
        stamp = tuple(_version(x) for x in tensors)
        if self._kept is None or self._kept[0] != stamp:
            self._kept = stamp, QuadraticFeatures(*(form if self._n_draws > 1 else form.only()))
        return self._kept[1]

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
            trees = [cast("ArrayTree", tree).arrays() for tree in self.arrays]
            self._maps = [FeatureMap.from_arrays(p, self.d, a) for p, a in zip(self.plans, trees, strict=True)]
            self._stamp = self._versions()
        return self._maps

    def _versions(self) -> tuple[Any, ...]:
        return tuple(_version(buffer) for buffer in (self.plan, *self.arrays.buffers()))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_maps": [], "_stamp": (), "_kept": None}  # made again from the arrays

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        """Load a draw of the same specification; anything else is refused, and changes nothing."""
        found = self.readable(state_dict, prefix)
        if found is not None:
            self._take(*found)
        super()._load_from_state_dict(state_dict, prefix, *arguments)
        self._waits = not bool(self.fitted)

    def readable(self, state_dict: Mapping[str, Any], prefix: str) -> tuple[Numbers, Tensor] | None:
        """The numbers and the plan under that name, checked; None where there are none."""
        own = {name.removeprefix(prefix): values for name, values in state_dict.items() if name.startswith(prefix)}
        if not own:
            return None
        try:
            return read(own, self._header(), self._n_draws), own["plan"]
        except ValueError as error:
            where = prefix.rstrip(".") or type(self).__name__
            raise ValueError(f"load_state_dict: {where}: the checkpoint was not loaded: {error}.") from None

    def _take(self, numbers: Numbers, plan: Tensor) -> None:
        """Hold the numbers of a checkpoint."""
        self._hold("plan", plan)
        self._plans, self._plan_stamp = numbers.plans, _version(self.plan)
        if numbers.matrix is not None:
            signs = None if numbers.signs is None else numbers.signs.to(self.dtype)
            self._hold_matrix(numbers.matrix.to(self.dtype), signs)
        else:
            self._hold_maps(numbers.maps, self._form(numbers.maps))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _version(buffer: Tensor) -> tuple[int, int]:
    """What changes when numbers are written into a buffer, or another takes its place."""
    return buffer.data_ptr(), 0 if buffer.is_inference() else buffer._version
