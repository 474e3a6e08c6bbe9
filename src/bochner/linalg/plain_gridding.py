"""The loops of `bochner.linalg.compiled.gridding` in NumPy; see there for what each does and its arguments."""

from __future__ import annotations

import numpy as np

_POINTS = 4096
"""Points whose cells are held at a time: 12 x 12 cells of 4096 points are 5 MB of places."""


def _corners(
    cells: np.ndarray, widths: np.ndarray, beta: float, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Places in the flat grid (n, k) and weights (n, k) of all cells that points touch."""
    places, weights = np.zeros((len(cells), 1), dtype=np.int64), np.ones((len(cells), 1))
    for axis, width in enumerate(widths):
        first = np.ceil(cells[:, axis] - 0.5 * width) if width > 1 or axis == 2 else np.zeros(len(cells))
        at = first[:, None] + np.arange(width)
        z = (at - cells[:, axis, None]) * 2.0 / width
        window = (
            np.exp(beta * (np.sqrt(np.maximum(1.0 - z * z, 0.0)) - 1.0))
            if width > 1 or axis == 2
            else np.ones(at.shape)
        )
        places = (places[:, :, None] * shape[axis] + at.astype(np.int64)[:, None, :]).reshape(len(cells), -1)
        weights = (weights[:, :, None] * window[:, None, :]).reshape(len(cells), -1)
    return places, weights


def spread(cells: np.ndarray, values: np.ndarray, widths: np.ndarray, beta: float, grid: np.ndarray) -> None:
    """Add values of points to the grid."""
    flat = grid.reshape(-1, grid.shape[-1])
    for start in range(0, len(cells), _POINTS):
        part = slice(start, start + _POINTS)
        places, weights = _corners(cells[part], widths, beta, grid.shape)
        for j in range(flat.shape[1]):
            amounts = (weights * values[part, j, None]).ravel()
            flat[:, j] += np.bincount(places.ravel(), amounts, minlength=len(flat))


def interpolate(cells: np.ndarray, grid: np.ndarray, widths: np.ndarray, beta: float, out: np.ndarray) -> None:
    """Write sums of the grid around points."""
    flat = grid.reshape(-1, grid.shape[-1])
    for start in range(0, len(cells), _POINTS):
        part = slice(start, start + _POINTS)
        places, weights = _corners(cells[part], widths, beta, grid.shape)
        out[part] = np.einsum("nk,nkc->nc", weights, flat[places])
