"""Randomness: turns seeds into named independent streams.

Every draw in the library is a pure function of its parameters and of streams made here.  Each ingredient (directions,
lengths, ...) has its own stream, so that adding an ingredient does not change the others.
"""

from __future__ import annotations

import numbers
import zlib
from typing import Any, TypeAlias

import numpy as np

from ._validation import shown

RNG: TypeAlias = int | np.random.Generator | None


def as_generator(rng: RNG) -> np.random.Generator:
    """Return the Generator that ``rng`` (an int, a Generator or None) stands for."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        return np.random.default_rng()
    return np.random.default_rng(_seed(rng))


def _seed(value: Any) -> int:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if whole and int(value) >= 0:
        return int(value)
    kind = ValueError if whole else TypeError
    raise kind(f"rng must be a non-negative integer, a numpy.random.Generator or None, got {shown(value)}.")


def streams(rng: RNG, *names: str) -> tuple[np.random.Generator, ...]:
    """Return one independent Generator per name.

    A stream depends only on ``rng`` and its own name.  A Generator is advanced by the call, so two calls with the same
    Generator return different streams; an int always returns the same streams.
    """
    entropy = entropy_of(rng)
    return tuple(numbered_stream(entropy, zlib.crc32(name.encode())) for name in names)


def entropy_of(rng: RNG) -> tuple[int, ...]:
    """Four numbers of 32 bits, from which `numbered_stream` makes as many independent streams as are asked for."""
    return tuple(as_generator(rng).integers(2**32, size=4, dtype=np.uint32).tolist())


def numbered_stream(entropy: tuple[int, ...], number: int) -> np.random.Generator:
    """Stream ``number`` of this entropy: a pure function of both, so that a loop can resume at any of its steps."""
    words = np.array([*entropy, number], np.uint32)  # the same as with spawn_key=(number,), which is read more slowly
    return np.random.default_rng(np.random.SeedSequence(words))


def opposite_gamma(shape: float, values: np.ndarray) -> np.ndarray:
    """Gamma variates of the opposite ranks, F^-1(1 - F(values)): of the same law, small where the values are large.

    Examples
    --------
    >>> np.exp(-opposite_gamma(1.0, np.log([2.0, 4.0]))).round(12).tolist()     # exponential variates: ranks 1/2 and 3/4
    [0.5, 0.75]
    """
    from scipy.special import gammainc, gammaincc, gammainccinv, gammaincinv

    below, above = gammainc(shape, values), gammaincc(shape, values)  # the smaller one has all its digits
    return np.asarray(np.where(below < above, gammainccinv(shape, below), gammaincinv(shape, above)))
