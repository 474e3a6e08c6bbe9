r"""Cosine and sine together, without branches, so that LLVM makes vector instructions of them.

A phase x is k quarter turns and a rest r, :math:`|r| \le \pi/4`, by subtracting k times the leading digits of
:math:`\pi/2`, which is exact, and then the following ones.  Polynomials give the cosine and the sine of r; the parity of k
exchanges them and its next bit gives the sign.  All of it in the floating type: integers would be of another width.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .jit import njit

f32 = np.float32

LIMIT32, LIMIT64 = f32(8000.0), 1.0e6  # phases up to which k times the leading digits is exact

_TURNS32, _A32, _B32, _C32 = f32(2 / math.pi), f32(201 / 128), f32(4.837512969970703125e-4), f32(7.549789954891882e-8)
_S32 = (f32(-1.6666654611e-1), f32(8.3321608736e-3), f32(-1.9515295891e-4))
_K32 = (f32(-0.5), f32(4.166664568298827e-2), f32(-1.388731625493765e-3), f32(2.443315711809948e-5))
_QUARTER32, _HALF32, _ONE32, _TWO32, _THREE32, _FOUR32 = (f32(c) for c in (0.25, 0.5, 1, 2, 3, 4))

_TURNS64, _A64, _B64 = 2 / math.pi, 1.57079632673412561417e00, 6.07710050650619224932e-11
# Minimax polynomials of sine and cosine on [-pi/4, pi/4], as in fdlibm (Sun, 1993), without their leading terms.
_S64 = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
_K64 = (  # of the cosine
    -0.5,
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)

_FAST = {"contract"}  # fused multiply-adds: one rounding less


_MAGNITUDE32, _MAGNITUDE64 = np.int32(0x7FFFFFFF), np.int64(0x7FFFFFFFFFFFFFFF)  # all bits but the sign


@njit(cache=True, nogil=True)
def _exceeds(bits: np.ndarray, magnitude: Any, limit: Any) -> bool:
    """Whether a row has an absolute value above the limit, or NaN; all of them as bits.

    Without their sign, numbers are in the order of their bits, and the maximum of integers takes vector instructions.
    """
    largest = magnitude & limit
    for j in range(len(bits)):
        largest = max(largest, magnitude & bits[j])
    return bool(largest > limit)


@njit(cache=True, nogil=True)
def _by_library(
    row: np.ndarray, frequency: float, amplitudes: np.ndarray, cosines: np.ndarray, sines: np.ndarray
) -> None:
    for j in range(len(row)):
        x = float(frequency * row[j])
        cosines[j] = amplitudes[j] * math.cos(x)
        sines[j] = amplitudes[j] * math.sin(x)


@njit(cache=True, nogil=True, fastmath=_FAST)
def waves32(
    phases: np.ndarray,
    bits: np.ndarray,
    limit: np.int32,
    frequency: np.float32,
    amplitudes: np.ndarray,
    out: np.ndarray,
    sines: int,
    start: int,
) -> None:
    """`bochner.linalg.transforms.waves` in float32; ``bits`` are those of the phases, ``limit`` those of the largest one."""
    m = len(amplitudes)
    for i in range(len(phases)):
        row, cosines, tail = phases[i, :m], out[i, start : start + m], out[i, start + sines : start + sines + m]
        if _exceeds(bits[i], _MAGNITUDE32, limit):
            _by_library(row, frequency, amplitudes, cosines, tail)
            continue
        for j in range(m):
            x = frequency * row[j]
            k = np.floor(x * _TURNS32 + _HALF32)
            r = ((x - k * _A32) - k * _B32) - k * _C32
            z = r * r
            s = r + r * z * (_S32[0] + z * (_S32[1] + z * _S32[2]))
            c = _ONE32 + z * (_K32[0] + z * (_K32[1] + z * (_K32[2] + z * _K32[3])))
            q = k - _FOUR32 * np.floor(k * _QUARTER32)
            odd = (q == _ONE32) | (q == _THREE32)
            a = amplitudes[j]
            first, second = (s, c) if odd else (c, s)
            cosines[j] = -a * first if (q == _ONE32) | (q == _TWO32) else a * first
            tail[j] = -a * second if q >= _TWO32 else a * second


@njit(cache=True, nogil=True, fastmath=_FAST)
def waves64(
    phases: np.ndarray,
    bits: np.ndarray,
    limit: np.int64,
    frequency: float,
    amplitudes: np.ndarray,
    out: np.ndarray,
    sines: int,
    start: int,
) -> None:
    """`bochner.linalg.transforms.waves` in float64; ``bits`` are those of the phases, ``limit`` those of the largest one."""
    m = len(amplitudes)
    for i in range(len(phases)):
        row, cosines, tail = phases[i, :m], out[i, start : start + m], out[i, start + sines : start + sines + m]
        if _exceeds(bits[i], _MAGNITUDE64, limit):
            _by_library(row, frequency, amplitudes, cosines, tail)
            continue
        for j in range(m):
            x = frequency * row[j]
            k = np.floor(x * _TURNS64 + 0.5)
            r = (x - k * _A64) - k * _B64
            z = r * r
            s = _S64[3] + z * (_S64[4] + z * _S64[5])
            s = r + r * z * (_S64[0] + z * (_S64[1] + z * (_S64[2] + z * s)))
            c = _K64[4] + z * (_K64[5] + z * _K64[6])
            c = 1.0 + z * (_K64[0] + z * (_K64[1] + z * (_K64[2] + z * (_K64[3] + z * c))))
            q = k - 4.0 * np.floor(k * 0.25)
            odd = (q == 1.0) | (q == 3.0)
            a = amplitudes[j]
            first, second = (s, c) if odd else (c, s)
            cosines[j] = -a * first if (q == 1.0) | (q == 2.0) else a * first
            tail[j] = -a * second if q >= 2.0 else a * second
