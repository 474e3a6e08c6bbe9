"""How gradients become steps, and what is done to values before they become gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._validation import check_fraction, check_option, check_positive


class UpdateRule(ABC):
    """Base class of update rules, which turn a gradient into a step.

    To add your own rule, write a frozen dataclass that names the vectors it keeps in ``memory`` and implements `step`.
    """

    memory: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def step(self, gradient: np.ndarray, memory: dict[str, np.ndarray], t: int) -> np.ndarray:
        """The step to subtract, for a learning rate of one; ``memory`` is updated in place and ``t`` counts from one."""


@dataclass(frozen=True)
class SGD(UpdateRule):
    """Stochastic gradient descent: the step is the gradient."""

    def step(self, gradient: np.ndarray, memory: dict[str, np.ndarray], t: int) -> np.ndarray:
        """Return the gradient unchanged."""
        return gradient


@dataclass(frozen=True)
class Momentum(UpdateRule):
    """Gradient descent with momentum: the step is a geometric sum of past gradients.

    Parameters
    ----------
    decay : float
        Factor of the past, below one.
    """

    decay: float = 0.9
    memory: ClassVar[tuple[str, ...]] = ("velocity",)

    def __post_init__(self) -> None:
        check_fraction("Momentum", "decay", self.decay)

    def step(self, gradient: np.ndarray, memory: dict[str, np.ndarray], t: int) -> np.ndarray:
        """The velocity."""
        memory["velocity"] = self.decay * memory["velocity"] + gradient
        return memory["velocity"]


@dataclass(frozen=True)
class Adam(UpdateRule):
    """The Adam optimiser: averages of the gradient divided by the root of averages of its square, per coordinate.

    Parameters
    ----------
    beta1, beta2 : float
        Factors of the past in both averages.
    epsilon : float
        Added to the root.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    memory: ClassVar[tuple[str, ...]] = ("mean", "square")

    def __post_init__(self) -> None:
        check_fraction("Adam", "beta1", self.beta1)
        check_fraction("Adam", "beta2", self.beta2)
        check_positive("Adam", "epsilon", self.epsilon)

    def step(self, gradient: np.ndarray, memory: dict[str, np.ndarray], t: int) -> np.ndarray:
        """The ratio, with both averages corrected for their start at zero."""
        memory["mean"] = self.beta1 * memory["mean"] + (1 - self.beta1) * gradient
        memory["square"] = self.beta2 * memory["square"] + (1 - self.beta2) * gradient**2
        mean, square = memory["mean"] / (1 - self.beta1**t), memory["square"] / (1 - self.beta2**t)
        return np.asarray(mean / (np.sqrt(square) + self.epsilon))


_RULES: dict[str, type[UpdateRule]] = {"sgd": SGD, "momentum": Momentum, "adam": Adam}


def standardized(values: np.ndarray) -> np.ndarray:
    """Values with mean zero and deviation one; zeros where all are equal."""
    centred, deviation = values - values.mean(), values.std()
    return np.asarray(centred / deviation if deviation > 0 else 0 * centred)


def centred_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from -1/2 (lowest) to 1/2, equal values alike: invariant under increasing functions of the values."""
    from scipy.stats import rankdata

    return np.asarray((rankdata(values) - (len(values) + 1) / 2) / max(len(values) - 1, 1))


SHAPINGS = {"raw": None, "standardized": standardized, "ranks": centred_ranks}


def as_rule(owner: str, optimizer: Any) -> UpdateRule:
    """The rule itself, or the one of that name with its default parameters."""
    if isinstance(optimizer, UpdateRule):
        return optimizer
    check_option(owner, "optimizer", optimizer, _RULES)
    return _RULES[optimizer]()
