"""Standard functions of black-box optimisation: shifted, and rotated if asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_CONDITION = 1000.0
_ROTATED_BLOCK = 40
"""Coordinates that are rotated together after a permutation, as in the large-scale suite of BBOB: a matrix of d x d would
take longer than the functions."""
_SCHWEFEL, _SCHWEFEL_SCALE = 4.209687462275036, 100.0


def sphere(z: np.ndarray) -> np.ndarray:
    """Squared norm."""
    return np.asarray((z**2).sum(axis=-1))


def ellipsoid(z: np.ndarray) -> np.ndarray:
    """Squares with weights from 1 to 1000."""
    weights = _CONDITION ** (np.arange(z.shape[-1]) / max(z.shape[-1] - 1, 1))
    return np.asarray(z**2 @ weights)


def rosenbrock(z: np.ndarray) -> np.ndarray:
    """The curved valley; z = 0 is the minimum here."""
    z = z + 1
    return np.asarray((100 * (z[..., 1:] - z[..., :-1] ** 2) ** 2 + (1 - z[..., :-1]) ** 2).sum(axis=-1))


def rastrigin(z: np.ndarray) -> np.ndarray:
    """A bowl with a cosine of period one in each coordinate."""
    return np.asarray((z**2 + 10 - 10 * np.cos(2 * np.pi * z)).sum(axis=-1))


def ackley(z: np.ndarray) -> np.ndarray:
    """A funnel in a plain of shallow minima."""
    root, wave = np.sqrt((z**2).mean(axis=-1)), np.cos(2 * np.pi * z).mean(axis=-1)
    return np.asarray(20 - 20 * np.exp(-0.2 * root) + np.e - np.exp(wave))


def schwefel(z: np.ndarray) -> np.ndarray:
    """Minima that are better the farther they are from the middle; quadratic outside of the box, z = 0 the best of them."""
    x = _SCHWEFEL_SCALE * (z + _SCHWEFEL)
    inside = np.clip(x, -500, 500)
    waves = 418.9828872724338 - inside * np.sin(np.sqrt(np.abs(inside)))
    return np.asarray((waves + (x - inside) ** 2 / 100).sum(axis=-1))


FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    f.__name__: f for f in (sphere, ellipsoid, rosenbrock, rastrigin, ackley, schwefel)
}


class Problem:
    """One instance: :math:`f(Q(x - x^*))` over its value at the origin, where the searches start.

    Parameters
    ----------
    name : str
        A key of `FUNCTIONS`.
    d : int
        Dimension.
    rotated : bool
        Whether Q is random: a permutation, then blocks of rotations.
    rng : Generator
        Draws :math:`x^*`, uniform in :math:`[-4, 4]^d`, and Q.
    """

    def __init__(self, name: str, d: int, rotated: bool, rng: np.random.Generator) -> None:
        self._f, self.d = FUNCTIONS[name], d
        self._shift = rng.uniform(-4, 4, d)
        self._order = rng.permutation(d)
        sizes = np.full(-(-d // _ROTATED_BLOCK), _ROTATED_BLOCK)
        sizes[-1] = d - sizes[:-1].sum()
        self._blocks = [np.linalg.qr(rng.standard_normal((k, k)))[0] for k in sizes] if rotated else []
        self._start = 1.0
        self._start = float(self(np.zeros((1, d)))[0])

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Values of rows, relative to the start."""
        z = np.asarray(X, np.float64) - self._shift
        if self._blocks:
            z = z[:, self._order]
            ends = np.cumsum([len(Q) for Q in self._blocks])[:-1]
            z = np.concatenate([part @ Q for part, Q in zip(np.split(z, ends, axis=1), self._blocks, strict=True)], 1)
        return self._f(z) / self._start
