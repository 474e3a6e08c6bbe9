"""Means with standard errors, how two of them are compared, and fitted exponents."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

BEYOND = 2.0
"""Standard errors beyond which a difference counts."""


@dataclass(frozen=True)
class Estimate:
    """Means and their standard errors, element by element.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner_lab import Estimate
    >>> a, b = Estimate.of(np.array([1.0, 1.1, 0.9])), Estimate.of(np.array([2.0, 2.1, 1.9]))
    >>> bool(a.below(b)), bool(b.below(a))
    (True, False)
    """

    mean: np.ndarray
    error: np.ndarray
    samples: int | np.ndarray | None = None
    """How many independent samples there were, for all points or for each, if it is known; few make wide intervals."""

    @classmethod
    def of(cls, samples: Any) -> Estimate:
        """The mean over the first axis of independent samples."""
        samples = np.asarray(samples, dtype=np.float64)
        return cls(samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(len(samples)), len(samples))

    @classmethod
    def read(cls, numbers: Mapping[str, Any], samples: int | None = None) -> Estimate:
        """The one that `as_numbers` wrote."""
        mean, error = (np.asarray(numbers[key], dtype=np.float64) for key in ("mean", "error"))
        return cls(mean, error, samples)

    @classmethod
    def stack(cls, estimates: Iterable[Estimate]) -> Estimate:
        """Several estimates as one array of points."""
        found = list(estimates)
        counts = [  # many are as good as infinitely many
            np.ravel(np.broadcast_to(np.inf if one.samples is None else one.samples, np.shape(one.mean)))
            for one in found
        ]
        return cls(
            np.concatenate([np.ravel(one.mean) for one in found]),
            np.concatenate([np.ravel(one.error) for one in found]),
            None if all(one.samples is None for one in found) else np.concatenate(counts),
        )

    def over(self, other: Estimate) -> Estimate:
        """How much larger this is than an independent estimate."""
        counts = [n for n in (self.samples, other.samples) if n is not None]
        return Estimate(
            np.asarray(self.mean - other.mean),
            np.asarray(np.hypot(self.error, other.error)),
            functools.reduce(np.minimum, counts) if counts else None,
        )

    def log(self) -> Estimate:
        """The logarithm, to first order."""
        return Estimate(np.log(self.mean), np.asarray(self.error / self.mean), self.samples)

    def as_numbers(self) -> dict[str, Any]:
        """For a file."""
        return {"mean": self.mean.tolist(), "error": self.error.tolist()}

    def below(self, other: Estimate) -> np.ndarray:
        """Where this is smaller by more than two standard errors of the difference."""
        return np.asarray(other.mean - self.mean > BEYOND * np.hypot(self.error, other.error))

    def agrees(self, value: Any, errors: float = 4.0) -> np.ndarray:
        """Where an exact value lies within so many standard errors."""
        return np.asarray(np.abs(self.mean - np.asarray(value)) <= errors * self.error + 1e-12)

    def root(self) -> Estimate:
        """Estimate of the square root, to first order."""
        root = np.sqrt(self.mean)
        return Estimate(root, self.error / (2 * np.where(root > 0, root, 1.0)), self.samples)

    def __getitem__(self, key: Any) -> Estimate:
        samples = self.samples[key] if isinstance(self.samples, np.ndarray) else self.samples
        return Estimate(self.mean[key], self.error[key], samples)


def share(true: Any) -> str:
    """How often something is true, as in ``17 of 20``.

    Examples
    --------
    >>> share([True, False, True])
    '2 of 3'
    """
    true = np.asarray(true)
    return f"{int(true.sum())} of {true.size}"


def power_law(x: Any, y: Any) -> Estimate:
    """The exponent b of y ~ x^b by least squares in logarithms, with its standard error.

    Examples
    --------
    >>> from bochner_lab import power_law
    >>> round(float(power_law([1, 2, 4, 8], [3, 12, 48, 192]).mean), 6)
    2.0
    """
    u, v = np.log(np.asarray(x, dtype=np.float64)), np.log(np.asarray(y, dtype=np.float64))
    centred = u - u.mean()
    spread = (centred**2).sum()
    slope = (centred * v).sum() / spread
    residual = v - v.mean() - slope * centred
    error = np.sqrt((residual**2).sum() / max(len(u) - 2, 1) / spread)
    return Estimate(np.asarray(slope), np.asarray(error))
