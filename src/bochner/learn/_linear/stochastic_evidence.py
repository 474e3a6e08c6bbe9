r"""The marginal likelihood of wide features from passes over all rows: Lanczos quadrature, and no matrix of the features.

Noise and amplitude enter the likelihood through functions of :math:`S = \Phi^T\Phi` alone, which a Krylov space of S gives
for all of them at once: the passes are made once, and the search over the hyperparameters costs nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import linalg

from ..._progress import note, progress
from ...approximation import FeatureMap
from .._row_source import Chunk, RowSource
from .conjugate_gradients import cross_sums, normal_sums
from .evidence import Hyperparameters, SpectralEvidence, SpectralNodes
from .moments import units_of

PROBES = 16  # random vectors of the log-determinant
MOST_STEPS, _CHECKED = 96, 8  # passes at most, and after how many of them the value is looked at
_SETTLED = 1e-4  # change of the value per observation at which the passes end
_KEPT_NUMBERS = 1 << 27  # numbers of the Krylov spaces, 1 GB: fewer steps where there are many features
_BREAKDOWN = 1e-12  # share of the first coefficient: below it, a Krylov space is complete


def stochastic_evidence(
    phi: FeatureMap,
    rows: RowSource,
    sample: Chunk,
    given: Hyperparameters,
    rng: np.random.Generator,
    *,
    n_probes: int = PROBES,
    verbose: Any = 0,
) -> SpectralEvidence:
    r"""The log marginal likelihood of all rows in noise and amplitude, with an estimated log-determinant.

    Parameters
    ----------
    phi : FeatureMap
    rows : RowSource
        With scaled targets (n, t).
    sample : Chunk
        Some of the rows, which make the estimate more accurate.
    given : Hyperparameters
        Those that are fixed: the passes end where the value at the best others has settled.
    rng : numpy.random.Generator
        Draws the probes.
    n_probes : int
        Number of probes.
    verbose : int
        If positive, a progress bar shows the value.

    Notes
    -----
    The Lanczos process for S, started at :math:`\Phi^Ty`, gives nodes and weights of the Gauss quadrature for
    :math:`y^T\Phi(S+\lambda)^{-1}\Phi^Ty`, a lower bound for every :math:`\lambda`.  Started at random signs g it gives
    :math:`g^T\log(I+S/\lambda)g`, whose mean is the log-determinant (ubaru2017).  The sample has an
    approximation :math:`\tilde S` of S as the preconditioner of conjugate gradients has, of known eigenvalues
    :math:`\theta_i` and eigenvectors :math:`u_i`, and

    .. math:: \log|I+S/\lambda| = \log|I+\tilde S/\lambda| + E\big[g^T\log(I+S/\lambda)g - g^T\log(I+\tilde S/\lambda)g\big],

    a difference that varies less: the sample is a control variate.  The signs are the same for all hyperparameters, so the
    likelihood is a smooth function of them.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels
    >>> from bochner.learn._row_source import ArrayRows, Chunk
    >>> X = np.random.default_rng(0).standard_normal((500, 2))
    >>> y = np.sin(X[:, :1]) + 0.1 * np.random.default_rng(1).standard_normal((500, 1))
    >>> phi = Approximation(kernels.Gaussian(), n_projections=100).draw(2, rng=0)
    >>> free, rng = Hyperparameters(None, None), np.random.default_rng(0)
    >>> evidence = stochastic_evidence(phi, ArrayRows("example", X, y), Chunk(X[:100], y[:100], None), free, rng)
    >>> bool(0.008 < evidence.best(free)[0] < 0.012)
    True
    """
    D, t = phi.n_features_out, rows.n_targets
    units, *squares = rows.reduce_targets(_target_squares)
    total = rows.reduce(partial(cross_sums, phi=phi, target_mean=np.zeros(t)), width=t)
    signs = rng.choice([-1.0, 1.0], (D, n_probes))
    space = Krylov(np.hstack([total[:-1, 1:], signs]))
    known = _control(phi, sample, signs, float(total[-1, 0]))
    steps = int(np.clip(_KEPT_NUMBERS // (D * (t + n_probes)), _CHECKED, MOST_STEPS))
    bar, last = progress(range(steps), label="Lanczos", shown=bool(verbose)), np.inf
    for step in bar:
        work = partial(normal_sums, phi=phi, directions=space.directions, centre=np.zeros(D), exact=True)
        space.extend(rows.reduce(work, width=t + n_probes)[:-1])
        if (step + 1) % _CHECKED and step + 1 < steps:
            continue
        found = _evidence(space, known, t, float(np.sum(squares)), float(units))
        value = found.value(*(found.best(given) if None in given else given))
        note(bar, f"log marginal likelihood {value:.6g}")
        if abs(value - last) < _SETTLED * units:
            break
        last = value
    return found


class Krylov:
    """Lanczos processes of several vectors (D, c) that share their products with S; bases are kept orthogonal.

    Examples
    --------
    >>> import numpy as np
    >>> S = np.diag([1.0, 2.0, 5.0])
    >>> space = Krylov(np.ones((3, 1)))
    >>> for _ in range(3):
    ...     space.extend(S @ space.directions)
    >>> values, weights = space.quadrature(0)
    >>> bool(np.allclose(values, [1, 2, 5])), bool(np.allclose(weights, 1))
    (True, True)
    """

    def __init__(self, starts: np.ndarray) -> None:
        self.squares = (starts**2).sum(axis=0)
        self.basis = [starts / np.sqrt(np.where(self.squares > 0, self.squares, 1.0))]
        self.diagonal: list[np.ndarray] = []
        self.beside: list[np.ndarray] = []

    @property
    def directions(self) -> np.ndarray:
        """What is to be multiplied by S next, (D, c); zero where a space is complete."""
        return self.basis[-1]

    def extend(self, product: np.ndarray) -> None:
        """One more step, from the products of the directions with S."""
        self.diagonal.append((self.directions * product).sum(axis=0))
        rest = product.copy()
        for _ in range(2):  # once leaves what rounding made of a long product
            for q in self.basis:
                rest -= (q * rest).sum(axis=0) * q
        size = np.linalg.norm(rest, axis=0)
        size[size <= _BREAKDOWN * np.maximum(self.diagonal[0], np.finfo(float).tiny)] = 0.0
        self.beside.append(size)
        self.basis.append(np.where(size > 0, rest / np.where(size > 0, size, 1.0), 0.0))

    def quadrature(self, column: int) -> SpectralNodes:
        """Nodes and weights of a spectral sum for one of the vectors; the weights add up to its square."""
        diagonal = np.array(self.diagonal)[:, column]
        values, vectors = linalg.eigh_tridiagonal(diagonal, np.array(self.beside)[:-1, column])
        return SpectralNodes(np.maximum(values, 0.0), self.squares[column] * vectors[0] ** 2)


def _evidence(space: Krylov, known: SpectralNodes, n_targets: int, total: float, units: float) -> SpectralEvidence:
    nodes = [space.quadrature(c) for c in range(len(space.squares))]
    probes = nodes[n_targets:]
    values, weights = (np.concatenate(part) for part in zip(*probes, strict=True))
    determinant = _joined(SpectralNodes(values, weights / len(probes)), known)
    return SpectralEvidence(_joined(*nodes[:n_targets]), determinant, total, units, n_targets)


def _joined(*parts: SpectralNodes) -> SpectralNodes:
    return SpectralNodes(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _control(phi: FeatureMap, sample: Chunk, signs: np.ndarray, weight: float) -> SpectralNodes:
    """Eigenvalues of the sample's approximation of S, with what the probes miss of each: one less their mean square."""
    w = np.ones(len(sample.X)) if sample.weights is None else sample.weights
    F = phi.queries(sample.X).astype(np.float64, copy=False) * np.sqrt(w * (weight / w.sum()))[:, None]
    values, vectors = linalg.eigh(F @ F.T, check_finite=False)
    kept = values > np.finfo(float).eps * len(values) * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    seen: np.ndarray = (vectors.T @ (F @ signs)) ** 2 / values[:, None]
    return SpectralNodes(values, 1 - seen.mean(axis=1))


def _target_squares(targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Observations that the rows count as, and weighted squares of the targets (1 + t,)."""
    w = np.ones(len(targets)) if weights is None else weights
    return np.concatenate([[units_of(w)], w @ targets.astype(np.float64) ** 2])
