"""Training of the constants of features, layer by layer, so that attention matches that of a teacher."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._progress import progress
from .._validation import check_count, check_flag, check_positive, shown
from ..maps import DenseExponential, Frame
from ..maps._dense_exponential import DenseFeatures
from ..projections._operator import DenseOperator
from ._attention_checks import check_generator
from ._conversion import attention_modules, check_model
from ._drawn import DrawnFeatures
from ._hugging_face import ATTRIBUTE
from ._recording import Recorded, record

_OWNER = "distill"
_LARGEST_A = 0.12  # constants A stay below 1/8, where the variance of the features becomes infinite


def distill(
    model: nn.Module,
    teacher: nn.Module,
    batches: Iterable[Any],
    *,
    steps: int = 100,
    rate: float = 0.02,
    linear_map: bool = True,
    max_queries: int = 128,
    generator: torch.Generator | None = None,
    verbose: bool = True,
) -> nn.Module:
    r"""Train the constants of a converted model's features to match the softmax attention of its teacher.

    Use it after `calibrate` and `replace_attention`, if the converted model is not accurate enough yet.  No weight of
    the model is changed, nothing is propagated through its layers, and no labels are needed, so that it takes a
    fraction of the time of fine-tuning.

    Parameters
    ----------
    model : torch.nn.Module
        A model converted with the plans of `calibrate`, whose features are changed in place.
    teacher : torch.nn.Module
        The model with exact attention, before or after its conversion; it is not changed.
    batches : iterable
        Typical data, each batch as in `calibrate`; repeated from the start if there are fewer than ``steps``.
    steps : int
        Number of steps, with one batch each.
    rate : float
        Largest learning rate of Adam, for constants relative to their size.
    linear_map : bool
        Whether keys learn a linear map of their own in place of the one that makes estimates unbiased.
    max_queries : int
        Queries of each sequence that a step compares, chosen at random.
    generator : torch.Generator, optional
        Source of that choice; by default torch's global generator.
    verbose : bool
        Whether to show a progress bar, if it takes more than a few seconds.

    Returns
    -------
    torch.nn.Module
        ``model``.

    See Also
    --------
    calibrate : The constants to start from, without training.

    Notes
    -----
    The attention of each layer is computed from the queries, keys and values of the teacher.  With its outputs
    :math:`o_h` of head h and those of the features, :math:`\hat o_h`, a step reduces

    .. math:: \sum_{\text{layers}} \frac1H \sum_h \frac{|\hat o_h - o_h|^2}{|o_h|^2}.

    Trained are the frame (a, b, M), the constants A, the rows of W where they are stored as a matrix, and with
    ``linear_map`` the matrix of the keys, which includes a scale; see `maps.Frame` and `maps.DenseExponential`.  A `redraw`
    afterwards draws other rows, and loses most of the gain.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import calibrate, distill, replace_attention
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2, batch_first=True), 1).eval()
    >>> batches = [torch.randn(4, 12, 16) for _ in range(4)]
    >>> converted = replace_attention(model, calibrate(model, batches, n_projections=8), copy=True)
    >>> distill(converted, model, batches, steps=20) is converted
    True
    """
    check_model(_OWNER, model)
    check_model(f"{_OWNER}: teacher", teacher)
    check_count(_OWNER, "steps", steps)
    check_positive(_OWNER, "rate", rate)
    check_flag(_OWNER, "linear_map", linear_map)
    check_count(_OWNER, "max_queries", max_queries)
    check_generator(_OWNER, generator)
    check_flag(_OWNER, "verbose", verbose)
    layers = _layers(model, linear_map)
    recorded = _Recordings(teacher, _checked_batches(batches))
    optimizer = torch.optim.Adam(itertools.chain(*(layer.parameters() for layer in layers.values())), rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=max(steps, 2), pct_start=0.1)
    for step in progress(range(steps), label="distill", shown=verbose):
        calls = [call for call in recorded.at(step) if call.name in layers]
        if not calls:
            raise ValueError(
                f"{_OWNER}: teacher has no attention at {', '.join(layers)}, where the model has features; pass the model "
                f"that was converted."
            )
        with torch.enable_grad():
            optimizer.zero_grad()
            loss = sum(layers[call.name].error(call, max_queries, generator) for call in calls)
            assert isinstance(loss, Tensor)
            loss.backward()
            optimizer.step()
            schedule.step()
    for layer in layers.values():
        layer.write()
    return model


_HELD = 16  # batches whose queries, keys and values are held: the teacher runs once for each, and not in each step


class _Recordings:
    """Calls of the teacher's attention, by step; batches are repeated from the start when they end."""

    def __init__(self, teacher: nn.Module, batches: Iterable[Any]) -> None:
        self.teacher, self.batches = teacher, itertools.cycle(batches)
        self.known: dict[int, tuple[Any, list[Recorded]]] = {}

    def at(self, step: int) -> list[Recorded]:
        """Recorded calls on the batch of a step."""
        batch = next(self.batches)
        held = self.known.get(id(batch))
        if held is not None and held[0] is batch:
            return held[1]
        calls = record(self.teacher, batch, _OWNER)
        if len(self.known) < _HELD:
            self.known[id(batch)] = batch, calls
        return calls


class _Layer(nn.Module):
    """The features of the heads of one attention, with their constants and rows as parameters.

    Parameters
    ----------
    features : DrawnFeatures
        Where the constants come from, and where `write` puts them.
    near : pair of int
        Window and anchors.
    linear_map : bool
        Whether the matrix of the keys is a parameter of its own.
    """

    rows: Tensor  # parameters where they are stored as a matrix, as those of slow rotations are
    log_weights: Tensor
    a: nn.Parameter
    b: nn.Parameter
    M: nn.Parameter
    A: nn.Parameter
    N: nn.Parameter | None

    def __init__(self, features: DrawnFeatures, near: tuple[int, int], linear_map: bool) -> None:
        super().__init__()
        self.drawn, self.near = [features], near  # in a list, so that it is no submodule
        inner = [phi.features for phi in features.maps if isinstance(phi.features, DenseFeatures)]
        frames, maps = [one.frame for one in inner], [plan.map for plan in features.plans]
        self.free = all(isinstance(one.nodes.operator, DenseOperator) and not one.nodes.origin for one in inner)
        (self._learn if self.free else self._hold)("rows", [one.nodes.to_dense() for one in inner])
        self._hold("log_weights", [0.5 * np.log(one.nodes.weights)[None] for one in inner])
        self._learn("a", [frame.query_center[None] for frame in frames])
        self._learn("b", [frame.key_center[None] for frame in frames])
        self._learn("M", [frame.matrix for frame in frames])
        self._learn("A", [np.real(np.array(one.A))[None] for one in maps if isinstance(one, DenseExponential)])
        self.N = None
        if linear_map or frames[0].key_matrix is not None:
            self._learn("N", [frame.coordinates(key=True)[1] for frame in frames])

    def _learn(self, name: str, values: list[np.ndarray]) -> None:
        start = torch.tensor(np.stack(values), dtype=torch.float32, device=self.drawn[0].seeds.device)
        setattr(self, name, nn.Parameter(start))

    def _hold(self, name: str, values: list[np.ndarray]) -> None:
        start = torch.tensor(np.stack(values), dtype=torch.float32, device=self.drawn[0].seeds.device)
        self.register_buffer(name, start)

    def error(self, call: Recorded, max_queries: int, generator: torch.Generator | None) -> Tensor:
        """Mean over heads of the squared relative error of outputs, for some queries of the call."""
        device = "cpu" if generator is None else generator.device
        order = torch.randperm(call.q.shape[-2], generator=generator, device=device)[:max_queries].to(call.q.device)
        exact, seen, near = call.logits(order).float(), call.visible(), call.near(*self.near)
        estimated = self._logits(call, order)
        if near is not None:
            estimated = torch.where(_rows(near, order), exact, estimated)
        if seen is not None:
            exact, estimated = (x.masked_fill(~_rows(seen, order), -1e30) for x in (exact, estimated))
        assert call.v is not None
        v = call.v.float()
        expected = exact.softmax(-1) @ v
        errors = (estimated.softmax(-1) @ v - expected).square()
        if call.key_mask is not None and call.q.shape[-2] == call.k.shape[-2]:  # not for queries in the padding
            there = call.key_mask.expand(len(call.q), -1)[:, None, order, None]
            errors, expected = errors * there, expected * there
        return (errors.sum((0, 2, 3)) / expected.square().sum((0, 2, 3)).clamp(min=1e-30)).mean()

    def _logits(self, call: Recorded, order: Tensor) -> Tensor:
        """Logarithms of the estimated kernel, (batch, heads, queries, Lk), with the bias of the keys."""
        root = torch.as_tensor(call.scale, device=call.q.device).sqrt()
        queries, keys = (
            self._log((call.q[..., order, :] * root).float(), False),
            self._log((call.k * root).float(), True),
        )
        shift = keys.detach().amax(dim=-2, keepdim=True)  # cancels
        queries, keys = queries + shift, keys - shift
        largest = queries.detach().amax(dim=-1, keepdim=True)
        product = (queries - largest).exp() @ keys.exp().mT
        logits = product.clamp(min=torch.finfo(product.dtype).tiny).log() + largest
        return logits if call.bias is None else logits + call.bias[:, :, None, :].float()

    def _log(self, X: Tensor, key: bool) -> Tensor:
        """Logarithms of features of X (batch, heads, n, d), as in `maps.DenseExponential`."""
        A = self.A.clamp(max=_LARGEST_A)
        constants = (self.rows.square() @ A.mT).mT + (1 - 4 * A).log().sum(-1, keepdim=True) / 4 + self.log_weights
        centre, slope = (self.b, self.a) if key else (self.a, self.b)
        T = self.M if not key else torch.linalg.inv(self.M).mT if self.N is None else self.N
        Z = (X - centre) @ T
        linear = (X * slope).sum(-1, keepdim=True) - (self.a * self.b).sum(-1, keepdim=True) / 2
        return (Z * (1 - 4 * A).sqrt()) @ self.rows.mT + constants + linear - Z.square().sum(-1, keepdim=True) / 2

    def write(self) -> None:
        """Put the constants into the plans of the features, and the rows into their buffers."""
        features = self.drawn[0]
        a, b, M = (part.detach().double().cpu().numpy() for part in (self.a, self.b, self.M))
        A = self.A.detach().clamp(max=_LARGEST_A).double().cpu().numpy()
        N = None if self.N is None else self.N.detach().double().cpu().numpy()
        plans = []
        for h, plan in enumerate(features.plans):
            assert isinstance(plan.map, DenseExponential)
            frame = Frame(a[h, 0], b[h, 0], M[h], key_matrix=None if N is None else N[h])
            plans.append(replace(plan, map=replace(plan.map, frame=frame, A=tuple(A[h, 0].tolist()))))
        features.replan(plans, self.rows.detach().double().cpu().numpy() if self.free else None)


def _rows(mask: Tensor, order: Tensor) -> Tensor:
    """The rows of a mask that broadcasts over queries."""
    return mask if mask.ndim < 2 or mask.shape[-2] == 1 else mask[..., order, :]


def _layers(model: nn.Module, linear_map: bool) -> dict[str, _Layer]:
    """What is trained, by the names of the attention."""
    found = {}
    for name, module in attention_modules(model).items():
        computed_by: Any = getattr(module, ATTRIBUTE, module)
        features = getattr(computed_by, "features", None)
        if not isinstance(features, DrawnFeatures):
            continue
        fit = all(isinstance(phi.features, DenseFeatures) and phi.features.real for phi in features.maps)
        if features.waits or features.n_draws != features.heads or not fit:
            raise ValueError(
                f"{_OWNER}: {name or 'the model'} must have planned features of maps.DenseExponential for each head, "
                f"as calibrate finds them, got {features.extra_repr()}."
            )
        found[name] = _Layer(features, (computed_by.window, computed_by.anchors), linear_map)
    if not found:
        raise ValueError(
            f"{_OWNER}: model has no converted attention; convert it with calibrate and replace_attention."
        )
    return found


def _checked_batches(batches: Any) -> list[Any]:
    if isinstance(batches, Tensor | Mapping | str) or not isinstance(batches, Iterable):
        raise TypeError(
            f"{_OWNER}: batches must be a list or an iterator of batches, such as [batch], got {shown(batches)}."
        )
    found = list(batches)
    if not found:
        raise ValueError(f"{_OWNER}: batches must hold at least one batch, got none.")
    return found
