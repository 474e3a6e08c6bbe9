"""Predictions from the posterior of the weights, in the units of the targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._validation import check_count
from ...approximation import FeatureMap
from ..specification import as_generator
from ..streaming import features_of
from .base import GaussianEstimator
from .passes import feature_chunks
from .posterior import Posterior
from .targets import Scaling


class PosteriorPredictions(GaussianEstimator):
    """What a fitted regression says of new rows."""

    features_: FeatureMap
    posterior_: Posterior
    scaling_: Scaling
    _single_target: bool

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Mean of the function at rows X, and its standard deviation or covariance; without the noise.

        Returns
        -------
        array (n,) or (n, t), or a pair of it with the standard deviations, (n,) or (n, t), or the covariance, (n, n) or
        (n, n, t)
        """
        if return_std and return_cov:
            raise RuntimeError("GaussianProcess: at most one of return_std or return_cov can be requested.")
        X = self._validated(X)
        with self._computing():
            if return_cov:
                Phi = features_of(self.features_, X)
                return self._means(Phi @ self.posterior_.mean), self._spreads(self.posterior_.covariance(Phi), 2)
            mean, variance = self._moments(X, with_variance=return_std)
        return (self._means(mean), self._spreads(np.sqrt(variance))) if return_std else self._means(mean)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Functions drawn from the posterior, at rows X, without the noise.

        One ``random_state`` is one draw of the weights: the same functions, at whatever rows they are asked for.

        Returns
        -------
        array (n, n_samples) or (n, t, n_samples)
        """
        X = self._validated(X)
        n = check_count("GaussianProcess.sample_y", "n_samples", n_samples)
        with self._computing():
            W = self.posterior_.sample(n, as_generator(random_state))
            parts = [np.tensordot(Phi, W, axes=1) for Phi in feature_chunks(self.features_, X)]
        values: np.ndarray = self.scaling_.shift[:, None] + self.scaling_.scale[:, None] * np.concatenate(parts)
        return values[:, 0] if self._single_target else values

    def _moments(self, X: Any, *, with_variance: bool) -> tuple[np.ndarray, np.ndarray]:
        """Means (n, t) and variances (n,), without units."""
        means, variances = [], []
        for Phi in feature_chunks(self.features_, X):
            means.append(Phi @ self.posterior_.mean)
            if with_variance:
                variances.append(self.posterior_.variance(Phi))
        return np.concatenate(means), np.concatenate(variances) if variances else np.empty(0)

    def _means(self, mean: np.ndarray) -> np.ndarray:
        """Means in the units of the targets."""
        values = self.scaling_.restore(mean)
        return values[:, 0] if self._single_target else values

    def _spreads(self, spread: np.ndarray, power: int = 1) -> np.ndarray:
        """Standard deviations or, with power 2, covariances in the units of the targets."""
        values: np.ndarray = spread[..., None] * self.scaling_.scale**power
        return values[..., 0] if self._single_target else values
