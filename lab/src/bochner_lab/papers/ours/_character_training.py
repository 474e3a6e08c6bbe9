"""Fast training of character models: weights to start from, steps along orthogonal matrices, and short rows first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from .._transformers import LanguageModel, Words
from ._characters import CharacterModel

_MOMENTUM = 0.95
_RATE_OF_MATRICES, _RATE_OF_OTHERS = 0.02, 3e-3
_WARM_UP = 50
_ROUNDS = 5


class Rows(Protocol):
    """What is trained on."""

    def loss(self, model: CharacterModel, step: int) -> Tensor:
        """The loss on the rows of a step."""


class ShortFirst:
    """Rows of a task that are short in the first steps, at random places of its context, with as many characters in all."""

    def __init__(self, task: Words, short: Words, steps: int) -> None:
        self.task, self.short, self.steps = task, short, steps

    def loss(self, model: CharacterModel, step: int) -> Tensor:
        """The loss on short rows, or on those of the task after so many steps."""
        if step >= self.steps:
            return self.task.loss(model, step)
        rng = np.random.default_rng([self.task.seed, step, 1])
        model.place = int(rng.integers(self.task.length - self.short.length + 1))
        try:
            return self.short.loss(model, step)
        finally:
            model.place = 0


def start(model: LanguageModel) -> None:
    """Give each layer random weights of its own, of which the last ones are small."""
    layers = model.encoder.layers
    for layer in layers:
        for weight in layer.parameters():
            if weight.ndim == 2:
                nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
        for last in (layer.self_attn.out_proj.weight, layer.linear2.weight):
            last.mul_((2 * len(layers)) ** -0.5)


class OrthogonalMomentum(torch.optim.Optimizer):
    """Steps along the nearest orthogonal matrix to the momentum of each matrix, which Newton's iteration finds (Muon)."""

    def __init__(self, matrices: Sequence[Tensor]) -> None:
        super().__init__(matrices, {"lr": _RATE_OF_MATRICES})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override] # a step that computes no loss takes none
        """Change all matrices."""
        for group in self.param_groups:
            for matrix in group["params"]:
                state = self.state[matrix]
                mean = state.setdefault("mean", torch.zeros_like(matrix)).lerp_(matrix.grad, 1 - _MOMENTUM)
                rows, columns = matrix.shape
                step = _orthogonal(matrix.grad.lerp(mean, _MOMENTUM))
                matrix.sub_(step, alpha=group["lr"] * max(1.0, rows / columns) ** 0.5)


def _orthogonal(G: Tensor) -> Tensor:
    """A matrix with the singular vectors of G and singular values near 1."""
    X: Tensor = (G if G.shape[0] <= G.shape[1] else G.mT) / G.norm().clamp(min=1e-7)
    for _ in range(_ROUNDS):
        square = X @ X.mT
        X = 3.4445 * X + (-4.775 * square + 2.0315 * square @ square) @ X
    return X if G.shape[0] <= G.shape[1] else X.mT


def train_characters(model: CharacterModel, task: Rows, steps: int) -> None:
    """Train matrices by `OrthogonalMomentum` and all else by Adam; rates fall to 0 in the last two thirds of the steps."""
    matrices = [weight for weight in model.encoder.parameters() if weight.ndim == 2]
    others = [weight for weight in model.parameters() if all(weight is not matrix for matrix in matrices)]
    optimizers = OrthogonalMomentum(matrices), torch.optim.Adam(others, lr=_RATE_OF_OTHERS, betas=(0.9, 0.99))

    def factor(step: int) -> float:
        return min(1.0, (step + 1) / _WARM_UP, 1.5 * (1 - step / steps))

    schedules = [torch.optim.lr_scheduler.LambdaLR(optimizer, factor) for optimizer in optimizers]
    model.train()
    for step in range(steps):
        model.zero_grad()
        task.loss(model, step).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, schedule in zip(optimizers, schedules, strict=True):
            optimizer.step()
            schedule.step()
