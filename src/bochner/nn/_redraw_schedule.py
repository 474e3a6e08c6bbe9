"""New rows of W at regular steps of training."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from .._validation import check_count
from ._attention_checks import check_generator
from ._conversion import check_model
from ._drawn import DrawnFeatures
from ._hugging_face import HeadAttention
from ._multihead import RandomFeatureAttention

_OWNER = "RedrawSchedule"


class RedrawSchedule:
    r"""Redraw the features of a model's attention at regular training steps.

    A model that is trained with one draw learns to rely on it; occasional redraws make it learn attention instead.
    Call `step` after each step of the optimizer.  Constants that were chosen from data are kept.

    Parameters
    ----------
    model : torch.nn.Module
        A model with converted attention, or with `RandomFeatureAttention`.
    every : int
        Steps between redraws.
    until : int, optional
        Last step at which features may be redrawn, so that training ends with the rows that the model keeps.
    generator : torch.Generator, optional
        Source of the draws; by default torch's global generator.

    Notes
    -----
    Processes of ``DistributedDataParallel`` take the buffers of the first one at the next step, so that all have its
    rows.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import RandomFeatureAttention, RedrawSchedule
    >>> model = RandomFeatureAttention(8, 2)
    >>> schedule = RedrawSchedule(model, every=2, until=5)
    >>> [schedule.step() for _ in range(6)]
    [False, True, False, True, False, False]
    """

    def __init__(
        self, model: nn.Module, every: int = 100, until: int | None = None, *, generator: torch.Generator | None = None
    ) -> None:
        check_model(_OWNER, model)
        self.every = check_count(_OWNER, "every", every)
        self.until = None if until is None else check_count(_OWNER, "until", until, 0)
        check_generator(_OWNER, generator)
        self.generator, self.n_steps = generator, 0
        self._features: list[DrawnFeatures] = [
            module.features for module in model.modules() if isinstance(module, RandomFeatureAttention | HeadAttention)
        ]
        if not self._features:
            raise ValueError(f"{_OWNER}: model has no attention with random features; convert it first.")

    def step(self) -> bool:
        """Count a step of training, and redraw if its time has come.

        Returns
        -------
        bool
            Whether the features were redrawn.
        """
        self.n_steps += 1
        due = self.n_steps % self.every == 0 and (self.until is None or self.n_steps <= self.until)
        if due:
            for features in self._features:
                features.redraw(self.generator)
        return due

    def state_dict(self) -> dict[str, int]:
        """The number of steps, for a checkpoint."""
        return {"n_steps": self.n_steps}

    def load_state_dict(self, state_dict: Any) -> None:
        """Continue from a checkpoint.

        Parameters
        ----------
        state_dict : dict
            Result of `state_dict`.
        """
        if not isinstance(state_dict, dict) or set(state_dict) != {"n_steps"}:
            raise ValueError(
                f"{_OWNER}: state_dict must be that of a RedrawSchedule, with n_steps, got {state_dict!r}."
            )
        self.n_steps = check_count(_OWNER, "n_steps", state_dict["n_steps"], 0)
