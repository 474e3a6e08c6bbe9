"""Functions drawn from the posterior of a Gaussian process, which can be evaluated anywhere."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_array

from ..approximation import Approximation, FeatureMap
from ._changed_rows import in_coordinates
from ._coordinates import Coordinates
from ._linear.posterior import Posterior
from ._linear.spectrum import Scaling
from ._row_source import rows_in_memory

_OWNER = "GaussianProcess.sample_functions"
_PATH_WIDTH = 512  # width of the random features of a function of the prior


class PriorFunction(NamedTuple):
    """A function of the prior, on rows at unit scale: random features of its own, and their weights (D, t)."""

    features: FeatureMap
    weights: np.ndarray

    @classmethod
    def draw(cls, phi: FeatureMap, amplitude: float, n_targets: int, rng: np.random.Generator) -> PriorFunction:
        """Draw a function of these features; over all draws its covariance is exactly that of the kernel."""
        landmarks: Any = phi.features
        spec = Approximation(landmarks.unit).plan(landmarks.points, rng=rng).with_width(_PATH_WIDTH)
        own = spec.draw(phi.n_features_in, rng)
        return cls(own, np.sqrt(amplitude) * rng.standard_normal((own.n_features_out, n_targets)))

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Values at rows, (n, t)."""
        return np.asarray(self.features.queries(x) @ self.weights)


class PosteriorFunctions:
    r"""Functions :math:`f_s(x) = \phi(x)\cdot w_s` with weights drawn from the posterior once, for all points.

    Returned by `GaussianProcess.sample_functions`.  Values at different points belong to the same functions, whether
    they are computed in one call or in many.

    Parameters
    ----------
    phi : FeatureMap
    weights : float64 array (D, t, s)
        Weights of s functions for each of t targets.
    scaling : Scaling
        Mean and unit of the targets.
    single : bool
        Whether targets are one-dimensional.
    paths : sequence of PriorFunction
        What is added to each function, if the features leave out a part of the prior.
    coordinates : Coordinates or None
        Change of coordinates between points and features.

    Notes
    -----
    Drawing the weights takes O(D^2 s), and evaluation at n points O(n D (log d + s)), without a matrix of all points:
    this is sampling in weight space, or pathwise sampling.

    Landmarks S leave out the process of covariance :math:`k - k_S^TK_{SS}^{-1}k_S`.  A function of it is
    :math:`g(x) - k_S(x)^TK_{SS}^{-1}g(S)` with g from the prior: a function of the prior without what its values at the
    landmarks say, which is Matheron's rule.  Each g has random features of its own, so that over all draws the
    covariance is that of the kernel.

    References
    ----------
    wilson2020.
    """

    def __init__(
        self,
        phi: FeatureMap,
        weights: np.ndarray,
        scaling: Scaling,
        *,
        single: bool,
        paths: Any = (),
        coordinates: Coordinates | None = None,
    ) -> None:
        self.features, self.weights, self.scaling, self._single, self.paths = phi, weights, scaling, single, paths
        self.coordinates = coordinates

    @classmethod
    def draw(
        cls,
        phi: FeatureMap,
        fitted: Posterior,
        scaling: Scaling,
        n_samples: int,
        rng: np.random.Generator,
        *,
        single: bool,
        coordinates: Coordinates | None = None,
    ) -> PosteriorFunctions:
        """Draw so many functions."""
        weights = fitted.sample(n_samples, rng)
        if not phi.spec.map.from_below:
            return cls(phi, weights, scaling, single=single, coordinates=coordinates)
        landmarks: Any = phi.features
        paths = [PriorFunction.draw(phi, fitted.amplitude, weights.shape[1], rng) for _ in range(n_samples)]
        for s, path in enumerate(paths):
            weights[:, :, s] -= landmarks.transform.T @ path(landmarks.points)
        return cls(phi, weights, scaling, single=single, paths=paths, coordinates=coordinates)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values at one point: (s,), or (t, s)."""
        return self.weights.shape[2:] if self._single else self.weights.shape[1:]

    def __call__(self, X: Any) -> np.ndarray:
        """Return the values at rows X.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Points.

        Returns
        -------
        array (n, s) or (n, t, s)
        """
        X = check_array(X, dtype=np.float64, accept_sparse="csr", input_name="X")
        d = self.features.n_features_in
        if X.shape[1] != d:
            raise ValueError(f"{_OWNER}: X must have {d} columns, as in the fit, got {X.shape[1]}.")
        rows = in_coordinates(self.coordinates, rows_in_memory(_OWNER, X))
        values: np.ndarray = rows.map(self.at, self.shape, np.float64, width=self.width)
        return values

    @property
    def width(self) -> int:
        """Numbers per point that evaluation holds."""
        return self.features.n_features_out + (_PATH_WIDTH if self.paths else 0)

    def at(self, X: np.ndarray) -> np.ndarray:
        """Values at a chunk of checked rows."""
        values = np.tensordot(self.features.queries(X), self.weights, axes=1)
        for s, path in enumerate(self.paths):
            values[:, :, s] += path(self.features.spec.at_unit_scale(X))
        values *= self.scaling.scale[:, None]
        values += self.scaling.shift[:, None]
        return values[:, 0] if self._single else values

    def __repr__(self) -> str:
        return f"<{self.shape[-1]} functions of {self.features.n_features_in} columns>"
