"""Cosines and sines of many phases at once."""

from __future__ import annotations

import numpy as np


def waves_reference(phases: np.ndarray, frequency: float, amplitudes: np.ndarray, out: np.ndarray, sines: int) -> None:
    """Fill ``out``: amplitude times cosine in its first columns, times sine from column ``sines`` on.

    Parameters
    ----------
    phases : array (n, m)
        Phases, still to be multiplied by ``frequency``.
    frequency : float
    amplitudes : array (m,)
        One for each column, of the type of ``phases``.
    out : array (n, at least sines + m)
        Of that type; its last axis is contiguous.
    sines : int
        Column of the first sine, at least m.
    """
    m = phases.shape[1]
    phases = phases * phases.dtype.type(frequency)
    np.multiply(np.cos(phases), amplitudes, out=out[:, :m])
    np.multiply(np.sin(phases), amplitudes, out=out[:, sines : sines + m])


def waves(phases: np.ndarray, frequency: float, amplitudes: np.ndarray, out: np.ndarray, sines: int) -> None:
    """As `waves_reference`, compiled: both functions at once by polynomials, within two units in the last place of one.

    Phases beyond a bound that the reduction to a quarter turn can serve (8000 in float32, a million in float64) go to
    the library's functions, row by row.
    """
    from .compiled.waves import waves32, waves64

    fill = waves32 if phases.dtype == np.float32 else waves64
    fill(phases, phases.dtype.type(frequency), amplitudes, out, sines)
