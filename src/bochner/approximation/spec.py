"""The specification of random features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import as_numpy, common_namespace, in_working_precision
from .._random import RNG
from .._validation import check_count, check_instance, check_points, check_rows
from ..kernels import Kernel
from ..maps import Map
from ..maps.draws import Draws
from ..maps.statistics import Data
from ..projections import Projection
from .compatibility import check_map, check_projection
from .defaults import default_map, default_projection
from .error import SimulatedError, mean_squared_error, simulate
from .feature_map import FeatureMap


@dataclass(frozen=True)
class Approximation:
    r"""Random features of a kernel: which kernel, which nonlinearity, which rows, and how many.

    Notes
    -----
    A plain value: ``repr`` rebuilds it, ``==`` compares it, and nothing in it is random.  `fit` and `draw` give a
    `FeatureMap` with :math:`k(x, y) \approx \phi_q(x)\cdot\phi_k(y)`.  Parts that do not work together are refused here,
    with the reason and what would work.

    Parameters
    ----------
    kernel : Kernel, optional
        The kernel; left out for `maps.Pointwise`, whose function induces its own.
    map : Map, optional
        The nonlinearity; what is best for the kernel without it.
    projection : Projection, optional
        The law of the rows; what is best for the map without it.
    n_projections : int
        Number of rows m.  The width of the features depends on the map: ``n_features_out`` of the drawn map.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels
    >>> spec = Approximation(kernels.Gaussian(lengthscale=2.0), n_projections=64)
    >>> spec.map, spec.projection
    (Trigonometric(), Orthogonal(rotation=Haar(), radii='kernel'))
    >>> X = np.random.default_rng(0).standard_normal((10, 3))
    >>> phi = spec.fit(X, rng=0)
    >>> phi.queries(X).shape
    (10, 128)
    >>> bool(np.abs(phi.gram(X) - spec.kernel(X)).max() < 0.3)
    True
    """

    kernel: Kernel | None = None
    map: Map | None = None
    projection: Projection | None = None
    n_projections: int = 256

    def __post_init__(self) -> None:
        if self.kernel is not None:
            check_instance("Approximation", "kernel", self.kernel, Kernel, "kernels.Gaussian()")
        if self.map is None:
            if self.kernel is None:
                raise ValueError("Approximation: give a kernel, or a map that induces one (maps.Pointwise).")
            object.__setattr__(self, "map", default_map(self.kernel))
        check_instance("Approximation", "map", self.map, Map, "maps.Trigonometric()")
        assert self.map is not None
        check_map(self.kernel, self.map)
        if self.projection is None:
            object.__setattr__(self, "projection", default_projection(self.kernel, self.map))
        check_instance("Approximation", "projection", self.projection, Projection, "projections.Orthogonal()")
        assert self.projection is not None
        check_projection(self.kernel, self.map, self.projection)
        object.__setattr__(self, "n_projections", check_count("Approximation", "n_projections", self.n_projections))

    @property
    def unbiased(self) -> bool:
        """Whether the mean of the estimate is exactly the kernel (that of ``f``, for `maps.Pointwise`)."""
        assert self.map is not None and self.projection is not None
        if self.map.discrete:
            return True
        return self.projection.uniform_directions if self.map.degree is not None else self.projection.unbiased

    def fit(self, X: Any, Y: Any = None, rng: RNG = None) -> FeatureMap:
        """Draw the features, adapting the map's constants to data.

        Parameters
        ----------
        X : array (..., n, d)
            Queries.
        Y : array (..., p, d), optional
            Keys; None means X.
        rng : int, numpy.random.Generator or None
            Source of randomness.
        """
        assert self.map is not None
        X = check_points("Approximation.fit", X)
        Y = X if Y is None else check_rows("Approximation.fit", Y, X.shape[-1], remedy="Y must have X's columns.")
        if not all(size for Z in (X, Y) for size in Z.shape):
            raise ValueError("Approximation.fit: X and Y must have at least one row.")
        common_namespace("Approximation.fit", X, Y)
        data = Data(self.at_unit_scale(X), self.at_unit_scale(Y)) if self.map.needs_data else None
        return self._draw(X.shape[-1], rng, data)

    def draw(self, d: int, rng: RNG = None) -> FeatureMap:
        """Draw the features for data of dimension ``d``, for maps that need no data.

        Parameters
        ----------
        d : int
            Dimension of the data.
        rng : int, numpy.random.Generator or None
            Source of randomness.
        """
        check_count("Approximation.draw", "d", d)
        assert self.map is not None
        if self.map.needs_data:
            raise ValueError(
                f"Approximation.draw: {self.map!r} has constants to choose; {self.map.remedy_without_data}."
            )
        return self._draw(int(d), rng, None)

    def mse(self, X: Any, Y: Any = None) -> np.ndarray:
        r"""Mean squared error of each entry of the estimated Gram matrix, in closed form.

        Parameters
        ----------
        X : array (n, d)
            Queries.
        Y : array (p, d), optional
            Keys; None means X.  Constants that the map would choose from data are chosen from X and Y.

        Returns
        -------
        float64 array (n, p)

        Raises
        ------
        NoClosedForm
            Where no closed form is known; the message names the nearest that has one, and `simulate_mse` estimates.

        Examples
        --------
        >>> import numpy as np
        >>> from bochner import Approximation, kernels
        >>> X = np.random.default_rng(0).standard_normal((4, 3))
        >>> error = Approximation(kernels.Gaussian(), n_projections=32).mse(X)
        >>> error.shape, bool(np.allclose(np.diag(error), 0))      # cosines are exact at x = y
        ((4, 4), True)
        """
        X, Y = self._matrices("mse", X, Y)
        return mean_squared_error(self, X, Y)

    def simulate_mse(self, X: Any, Y: Any = None, n_draws: int = 100, rng: RNG = None) -> SimulatedError:
        """Mean squared error of each entry of the estimated Gram matrix over redraws, with its standard error.

        Parameters
        ----------
        X : array (n, d)
            Queries.
        Y : array (p, d), optional
            Keys; None means X.
        n_draws : int
            Number of redraws.
        rng : int, numpy.random.Generator or None
            Source of randomness.
        """
        if self.kernel is None:
            raise ValueError(f"Approximation.simulate_mse: {self.map!r} induces a kernel that has no exact value here.")
        X, Y = self._matrices("simulate_mse", X, Y)
        return simulate(self, X, Y, check_count("Approximation.simulate_mse", "n_draws", n_draws, 2), rng)

    def _matrices(self, method: str, X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray]:
        X = as_numpy(check_points(f"Approximation.{method}", X))
        Y = X if Y is None else as_numpy(check_rows(f"Approximation.{method}", Y, X.shape[-1]))
        if X.ndim != 2 or Y.ndim != 2:
            raise ValueError(
                f"Approximation.{method}: expected matrices of points as rows, got {X.shape} and {Y.shape}."
            )
        return X.astype(np.float64), Y.astype(np.float64)

    def at_unit_scale(self, X: Any) -> Any:
        """Checked data in working precision, divided by the kernel's lengthscale: what the features act on."""
        X = in_working_precision(X)
        if self.kernel is None or 0 in X.shape:
            return X
        return self.kernel.scaled(X) if X.ndim > 1 else self.kernel.scaled(X[None, :])[0]

    def _draw(self, d: int, rng: RNG, data: Data | None) -> FeatureMap:
        assert self.map is not None and self.projection is not None
        self.at_unit_scale(np.zeros((1, d)))  # a lengthscale for other columns is refused here
        draws = Draws(self.projection, d, self.n_projections, self.kernel, rng)
        return FeatureMap(self, d, self.map.draw(draws, self.kernel, data))
