"""Frames and constants for every head of a trained model, from what its exact attention attends to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from .._validation import check_count, shown
from ..approximation import Approximation
from ..catalogue import as_specification
from ..maps import DenseExponential
from ._conversion import check_model
from ._drawn import attention_spec
from ._recording import Recorded, record

_OWNER = "calibrate"


def calibrate(
    model: nn.Module,
    batches: Iterable[Any],
    n_projections: int = 64,
    *,
    spec: Approximation | str = "dense",
    select: Callable[[str, nn.Module], bool] | None = None,
) -> dict[str, list[Approximation]]:
    r"""Find the most accurate positive features for each head of a trained model, from a few batches.

    Pass the result to `replace_attention` to convert the model without training.  Use it wherever data are at hand: a
    conversion by name chooses constants from queries and keys of the first batch, and this also knows which pairs of
    them attention gives weight to.

    Parameters
    ----------
    model : torch.nn.Module
        A model as in `replace_attention`, before or after conversion; it is run with exact attention, and not changed.
    batches : iterable
        A few batches of typical data, each as in `attention_report`: one argument of the model, a tuple of positional
        arguments, or a mapping of keyword arguments.
    n_projections : int
        Rows of W, if ``spec`` is a name.
    spec : Approximation or str
        A specification of `maps.DenseExponential` and `kernels.Softmax` with scale 1, or the name of one.
    select : callable, optional
        ``select(name, module)`` says whether to calibrate an attention; by default all are.

    Returns
    -------
    dict
        A list of plans, one for each head, by the name of the attention; ``replace_attention(model, plans)`` draws them.

    See Also
    --------
    replace_attention : Convert the model.
    attention_report : Measure the error of each head.

    Notes
    -----
    The error of a pair of query and key matters in proportion to its attention weight.  With the exact weights
    :math:`p_{ij}` of all queries and the keys they see, without padding, the frame and the constants of
    `maps.DenseExponential` are those of the weighted moments

    .. math:: a = \frac{\sum p_{ij}x_i}{\sum p_{ij}}, \quad b = \frac{\sum p_{ij}y_j}{\sum p_{ij}}, \quad
              C = \frac{\sum p_{ij}(x_i-a)(y_j-b)^T}{\sum p_{ij}}

    and the covariances of x and y, where :math:`x = \sqrt s\,q` and :math:`y = \sqrt s\,k`.  Only constants are chosen:
    estimates of the kernel stay unbiased.  The time is that of exact attention, and the moments are summed batch by
    batch.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import calibrate, replace_attention
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2, batch_first=True), 2).eval()
    >>> plans = calibrate(model, [torch.randn(4, 12, 16) for _ in range(2)], n_projections=32)
    >>> {name: len(heads) for name, heads in plans.items()}
    {'layers.0.self_attn': 2, 'layers.1.self_attn': 2}
    >>> converted = replace_attention(model, plans, copy=True)
    """
    check_model(_OWNER, model)
    asked = _checked_spec(spec, check_count(_OWNER, "n_projections", n_projections))
    if select is not None and not callable(select):
        raise TypeError(f"{_OWNER}: select must be a function of a name and a module, got {shown(select)}.")
    sums: dict[str, Moments] = {}
    for batch in _checked_batches(batches):
        for call in record(model, batch, _OWNER):
            if select is None or select(call.name, model.get_submodule(call.name)):
                found = Moments.of(call)
                sums[call.name] = sums[call.name] + found if call.name in sums else found
    if not sums:
        raise ValueError(
            f"{_OWNER}: there is nothing to calibrate: select chose no attention, or batches has no batch."
        )
    return {name: _plans(name, moments, asked) for name, moments in sums.items()}


class Moments(NamedTuple):
    """Sums over pairs of queries and keys, weighted by exact attention: float64, the heads first.

    Attributes
    ----------
    weight : Tensor (heads,)
        Sum of the weights.
    x, y : Tensor (heads, d)
        Sums of queries and of keys, times the root of the scale.
    xx, yy, xy : Tensor (heads, d, d)
        Sums of their products.
    """

    weight: Tensor
    x: Tensor
    y: Tensor
    xx: Tensor
    yy: Tensor
    xy: Tensor

    @classmethod
    def of(cls, call: Recorded) -> Moments:
        """The sums of one call, without padding."""
        root = torch.as_tensor(call.scale, device=call.q.device).double().sqrt()
        weights, q, k = call.weights(), call.q.double() * root, call.k.double() * root
        if call.key_mask is not None:  # numbers in the padding, even NaN, must not meet a zero
            there = call.key_mask.expand(k.shape[0], k.shape[2])[:, None, :, None]
            k = torch.where(there, k, 0.0)
            if q.shape == k.shape:  # queries in as many places are padded as keys are
                q, weights = torch.where(there, q, 0.0), torch.where(there, weights, 0.0)
        rows, columns = (weights.sum(dim, dtype=torch.float64)[..., None] for dim in (-1, -2))
        attended = (weights @ k.to(weights)).double()
        x, y = rows * q, columns * k
        products = (x.mT @ q, y.mT @ k, q.mT @ attended)
        return cls(rows.sum((0, 2, 3)), x.sum((0, 2)), y.sum((0, 2)), *(product.sum(0) for product in products))

    def __add__(self, other: Moments) -> Moments:  # type: ignore[override]
        """The sums over both."""
        return Moments(*(one + another for one, another in zip(self, other, strict=True)))

    def heads(self) -> list[tuple[np.ndarray, ...]]:
        """Means a and b, covariances of x and of y, and those of x with y, of each head."""
        weight, *sums = self
        a, b, xx, yy, xy = (part / weight.view(-1, *[1] * (part.ndim - 1)) for part in sums)
        covariances = [xx - _outer(a, a), yy - _outer(b, b), xy - _outer(a, b)]
        return list(zip(*(part.cpu().numpy() for part in (a, b, *covariances)), strict=True))


def _outer(a: Tensor, b: Tensor) -> Tensor:
    return a[:, :, None] * b[:, None, :]


def _plans(name: str, moments: Moments, spec: Approximation) -> list[Approximation]:
    """The plan of each head."""
    if not all(bool(part.isfinite().all()) for part in moments) or not bool((moments.weight > 0).all()):
        where = name or "the model"
        raise ValueError(
            f"{_OWNER}: {where} has no finite attention weights on these batches; check that queries and keys are finite, "
            f"and that some tokens are not padding."
        )
    feature_map = spec.map
    assert isinstance(feature_map, DenseExponential)
    return [replace(spec, map=feature_map.plan_moments(*head)) for head in moments.heads()]


def _checked_spec(spec: Any, n_projections: int) -> Approximation:
    asked = attention_spec(_OWNER, as_specification(_OWNER, spec, None, n_projections), softmax_only=True)
    if not isinstance(asked.map, DenseExponential):
        raise ValueError(
            f"{_OWNER}: spec must be of maps.DenseExponential, whose constants follow from weighted moments, got "
            f"{asked.map!r}; replace_attention chooses the constants of other maps from the first batch."
        )
    return asked


def _checked_batches(batches: Any) -> Iterable[Any]:
    if isinstance(batches, Tensor | Mapping | str) or not isinstance(batches, Iterable):
        raise TypeError(
            f"{_OWNER}: batches must be a list or an iterator of batches, such as [batch], got {shown(batches)}."
        )
    return batches
