"""Functions drawn from the posterior of a Gaussian process, which can be evaluated anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from ..approximation import FeatureMap
from ._linear.posterior import Posterior
from ._linear.spectrum import Scaling
from ._row_source import rows_in_memory

_OWNER = "GaussianProcess.sample_functions"


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

    Notes
    -----
    Drawing the weights takes O(D^2 s), and evaluation at n points O(n D (log d + s)), without a matrix of all points:
    this is sampling in weight space, or pathwise sampling.

    References
    ----------
    wilson2020.
    """

    def __init__(self, phi: FeatureMap, weights: np.ndarray, scaling: Scaling, *, single: bool) -> None:
        self.features, self.weights, self.scaling, self._single = phi, weights, scaling, single

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
    ) -> PosteriorFunctions:
        """Draw so many functions."""
        return cls(phi, fitted.sample(n_samples, rng), scaling, single=single)

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
        values: np.ndarray = rows_in_memory(_OWNER, X).map(self.at, self.shape, np.float64, width=self.width)
        return values

    @property
    def width(self) -> int:
        """Numbers per point that evaluation holds."""
        return self.features.n_features_out

    def at(self, X: np.ndarray) -> np.ndarray:
        """Values at a chunk of checked rows."""
        values = np.tensordot(self.features.queries(X), self.weights, axes=1)
        values *= self.scaling.scale[:, None]
        values += self.scaling.shift[:, None]
        return values[:, 0] if self._single else values

    def __repr__(self) -> str:
        return f"<{self.shape[-1]} functions of {self.features.n_features_in} columns>"
