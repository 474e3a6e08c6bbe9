"""How much worse a model becomes when some of its attention is converted, measured on batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .._validation import shown
from ._conversion import replace_attention
from ._recording import exact_copy, first_tensor, run

Loss = Callable[[nn.Module, Any], Any]
"""A function of a model and a batch that returns the loss, a number or a tensor of one."""


class ModelChange:
    r"""The relative change of a model's loss when it is converted.

    Parameters
    ----------
    owner : str
        Who asks, for messages.
    model : torch.nn.Module
        The model, which is run in evaluation with exact attention, converted or not.
    batches : iterable
        Data to measure on.
    loss : callable or None
        ``loss(model, batch)``; without it the ``loss`` of the model's output, or where it has none the output itself.

    Notes
    -----
    With the losses :math:`\ell` of the model and :math:`\ell'` of the converted one, the change is
    :math:`\sum\ell'/\sum\ell - 1`.  Of outputs z without a loss it is :math:`|z' - z|/|z|`.
    """

    def __init__(self, owner: str, model: nn.Module, batches: Iterable[Any], loss: Loss | None) -> None:
        if loss is not None and not callable(loss):
            raise TypeError(f"{owner}: loss must be a function of a model and a batch, got {shown(loss)}.")
        self.owner, self.loss, self.batches = owner, loss, list(batches)
        self.model = exact_copy(model)
        self.exact = [self._value(self.model, batch) for batch in self.batches]
        self.total = float(sum(value.double().square().sum() if self._are_outputs else value for value in self.exact))
        if not self.total > 0 or not math.isfinite(self.total):
            raise ValueError(
                f"{owner}: the loss of the model with exact attention must be positive and finite, got {self.total:g}."
            )

    @property
    def _are_outputs(self) -> bool:
        return bool(self.exact[0].ndim)

    @property
    def power(self) -> int:
        """The power of the change that is proportional to 1/m with m rows."""
        return 2 if self._are_outputs else 1

    def of(self, specs: Mapping[str, Any], generator: torch.Generator | None = None) -> float:
        """The change when these modules are converted, with one draw."""
        converted = replace_attention(exact_copy(self.model), specs, generator=generator)
        found = [self._value(converted, batch) for batch in self.batches]
        if not self._are_outputs:
            return float(sum(found)) / self.total - 1
        squares = sum((one - other).double().square().sum() for one, other in zip(found, self.exact, strict=True))
        return math.sqrt(float(squares) / self.total)

    @torch.no_grad()
    def _value(self, model: nn.Module, batch: Any) -> Tensor:
        """The loss as a tensor without axes, or else the output."""
        if self.loss is not None:
            value = torch.as_tensor(self.loss(model, batch)).detach()
            if value.numel() != 1:
                raise ValueError(f"{self.owner}: loss must return one number, got {shown(value)}.")
            return value.double().reshape(())
        out = run(model, batch, self.owner)
        loss = getattr(out, "loss", None)
        if loss is not None:
            return torch.as_tensor(loss).double().reshape(())
        first = first_tensor(out)
        if first is None:
            raise TypeError(
                f"{self.owner}: the output {shown(out)} of the model has neither a loss nor a tensor; pass loss=."
            )
        return first
