r"""Normal equations of Fourier features on a regular grid of frequencies, which no number of rows makes larger.

For features :math:`\sqrt{w_j}\,e^{ij\cdot\theta}` the sums :math:`\Phi^*\Phi` are :math:`D T D` with
:math:`D = \mathrm{diag}\sqrt w` and :math:`T_{jk} = \hat t_{j-k}`, :math:`\hat t_j = \sum_n e^{-ij\cdot\theta_n}`: a
Toeplitz matrix, multiplied by in :math:`O(M\log M)` with Fourier transforms on a grid (greengard2022).
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
from scipy import fft
from sklearn.exceptions import ConvergenceWarning

from ...linalg.engine import available_threads
from ...linalg.nonuniform import NonuniformTransform

MAX_STEPS, _DELAY = 2000, 8
"""Steps of conjugate gradients at most, and by how many of them, at least, the estimate of the error lags behind."""


class ToeplitzEquations:
    """The sums over rows of Fourier features and targets, and the solution of ridge regression on them.

    Parameters
    ----------
    weights : array (2 M + 1, ..., M + 1)
        Weights of the frequencies, in the order of `NonuniformTransform`.
    density : complex array (4 M + 1, ..., 2 M + 1)
        Sums over rows of the exponentials of all frequencies up to 2 M.
    cross : complex array (t, 2 M + 1, ..., M + 1)
        Sums over rows of exponentials and targets.
    """

    def __init__(self, weights: np.ndarray, density: np.ndarray, cross: np.ndarray) -> None:
        self.steps, self.root, self.total = 0, np.sqrt(weights), float(density[(0,) * density.ndim].real)
        self.cross = cross * self.root
        self._axes = tuple(range(1, weights.ndim + 1))
        largest = (*(s // 2 for s in weights.shape[:-1]), weights.shape[-1] - 1)
        self.cells = tuple(fft.next_fast_len(4 * M + 1, real=True) for M in largest)
        self._kept = _slices(largest)
        spectrum = np.zeros(self._half, np.complex128)
        spectrum[self._within(NonuniformTransform(tuple(2 * M for M in largest)).frequencies())] = density
        self._density = fft.irfftn(spectrum, s=self.cells, workers=available_threads())
        self._twice = np.where(np.arange(weights.shape[-1]) > 0, 2.0, 1.0)  # conjugates are left out

    @property
    def _half(self) -> tuple[int, ...]:
        return (*self.cells[:-1], self.cells[-1] // 2 + 1)

    def _within(self, frequencies: list[np.ndarray]) -> Any:
        return np.ix_(*(np.mod(j, N) for j, N in zip(frequencies, self.cells, strict=True)))

    def multiply(self, B: np.ndarray) -> np.ndarray:
        """Return the products of the sums of squares with coefficients (t, ...): on a grid, T multiplies by a function."""
        spectrum = np.zeros((len(B), *self._half), np.complex128)
        scaled = self.root * B
        for part in self._kept:
            spectrum[part] = scaled[part]
        options: dict[str, Any] = {"axes": self._axes, "workers": available_threads()}
        values = fft.irfftn(spectrum, s=self.cells, norm="forward", overwrite_x=True, **options)
        values *= self._density
        product = fft.rfftn(values, overwrite_x=True, **options)
        found = np.empty_like(scaled)
        for part in self._kept:
            found[part] = product[part]
        found *= self.root
        return np.asarray(found)

    def dot(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Inner products of the real features' coefficients, (t,)."""
        return np.asarray(((A.real * B.real + A.imag * B.imag) * self._twice).sum(axis=self._axes))

    def solve(self, ridge: float, tolerance: float, *, accepted: float | None = None, cross: Any = None) -> np.ndarray:
        r"""Coefficients of ridge regression, (t, ...), by conjugate gradients.

        Parameters
        ----------
        ridge : float
            The number :math:`\lambda` in :math:`(DTD + \lambda)b = D r`.
        tolerance : float
            Error of the fit at which it ends, relative to the fit, in the norm of the matrix.
        accepted : float, optional
            Error up to which the last step is no reason for a warning; the tolerance if None.
        cross : complex array, optional
            Other right-hand sides than those of the targets, already times :math:`D`.

        Returns
        -------
        complex128 array
            The coefficients b; those of the function are :math:`D b`.
        """
        R = self.cross if cross is None else cross
        inverse = 1 / (self.total * self.root**2 + ridge)  # the diagonal of the matrix
        B, Z = np.zeros_like(R), inverse * R
        P, rz = Z.copy(), self.dot(R, Z)
        energy, lowered = np.zeros(len(R)), [np.full(len(R), np.inf)] * _DELAY
        shape = (-1,) + (1,) * len(self._axes)
        for self.steps in range(1, MAX_STEPS + 1):
            Q = self.multiply(P) + ridge * P
            curvature = self.dot(P, Q)
            a = np.where(curvature > 0, rz / np.where(curvature > 0, curvature, 1.0), 0.0)
            B += a.reshape(shape) * P
            R = R - a.reshape(shape) * Q
            lowered.append(a * rz)
            energy += a * rz
            last = sum(
                lowered[-max(_DELAY, self.steps // 3) :]
            )  # where convergence is slow, few steps show little of it
            error = np.sqrt(last / np.maximum(energy, np.finfo(float).tiny))
            if not (error > tolerance).any():
                break
            Z = inverse * R
            new = self.dot(R, Z)
            P = Z + (new / np.maximum(rz, np.finfo(float).tiny)).reshape(shape) * P
            rz = new
        else:
            accepted = tolerance if accepted is None else accepted
            if (error > accepted).any():
                warnings.warn(
                    f"FourierProcess: conjugate gradients stopped after {MAX_STEPS} steps at a relative error of about "
                    f"{error.max():.1e}, above {accepted:.0e}; raise noise or tolerance.",
                    ConvergenceWarning,
                    stacklevel=3,
                )
        return np.asarray(B)


def _slices(largest: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """Frequencies up to the largest in a larger spectrum, part by part: the same slices in both."""
    axes = [(slice(0, M + 1), slice(-M, None)) for M in largest[:-1]]
    return [(slice(None), *signs, slice(0, largest[-1] + 1)) for signs in itertools.product(*axes)]
