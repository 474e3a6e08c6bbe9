"""Specifications of random features, and how they are planned (constants chosen from data) and drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._arrays import as_numpy, common_namespace, in_working_precision
from .._random import RNG, as_generator, streams
from .._validation import as_real, check_count, check_flag, check_instance, check_memory, check_points, check_rows
from ..kernels import Kernel
from ..maps import Data, Draws, ErrorCase, Layout, Map
from ..projections import Projection
from . import _names
from ._feature_map import FeatureMap
from ._names import check_map, check_projection, default_map, default_projection
from ._simulation import SimulatedError, simulate

_CASE_NUMBERS = 1 << 22  # size of the pairs whose closed-form errors are computed at a time


@dataclass(frozen=True)
class Approximation:
    r"""Specification of random features: the kernel, the map, the projection and the number of rows.

    An `Approximation` is an immutable value: ``repr`` rebuilds it, ``==`` compares it, and nothing in it is random.
    Parts that do not work together are refused at construction, with an explanation.  Random features are made in three
    steps: the specification; the plan, `plan(X, Y)`, which is again an `Approximation`, with every constant that
    depends on data filled in; and the draw, a `FeatureMap` with :math:`k(x, y) \approx \phi_q(x)\cdot\phi_k(y)`.  A
    specification without such constants is already a plan.  `fit` plans and draws in one call.

    Parameters
    ----------
    kernel : Kernel or str, optional
        The kernel; omitted for `maps.Pointwise`, whose function induces its own.  Here and below, a name of
        `bochner.catalogue` stands for the part of that name.
    map : Map or str, optional
        The nonlinearity; by default the one recommended for the kernel.
    projection : Projection or str, optional
        The law of the rows of W; by default the one recommended for the map.
    n_projections : int
        Number m of rows.  The width of the features, `n_features_out`, depends on the map.

    Attributes
    ----------
    planned : bool
        Whether every constant has a value.
    n_features_out : int
        Width of the features.
    symmetric : bool
        Whether queries and keys have the same features.
    positive : bool
        Whether all features are positive; for shifted discrete maps, on data that do not fall below the planned shift.
    unbiased : bool
        Whether the mean of the estimate is exactly the kernel.

    See Also
    --------
    bochner.recommend : Choose the map, the projection and the width from data.
    bochner.mechanism : A specification by its name in the literature.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels
    >>> spec = Approximation(kernels.Gaussian(lengthscale=2.0), n_projections=64)
    >>> spec.map, spec.projection, spec.n_features_out
    (Trigonometric(single_last=False), Orthogonal(rotation=Haar(), radii='kernel'), 128)
    >>> X = np.random.default_rng(0).standard_normal((10, 3))
    >>> phi = spec.fit(X, rng=0)
    >>> phi.queries(X).shape
    (10, 128)
    >>> bool(np.abs(phi.gram(X) - spec.kernel(X)).max() < 0.3)
    True
    >>> Approximation("gaussian", "trigonometric", "orthogonal", 64).map == spec.map      # by the names of the catalogue
    True
    """

    kernel: Kernel | None = None  # a name is looked up below: never a str afterwards
    map: Map = None  # type: ignore[assignment]  # filled in below: never None afterwards
    projection: Projection = None  # type: ignore[assignment]
    n_projections: int = 256

    def __post_init__(self) -> None:
        for part, find in (("kernel", _names.kernel), ("map", _names.map), ("projection", _names.projection)):
            if isinstance(getattr(self, part), str):
                object.__setattr__(self, part, find(getattr(self, part)))
        if self.kernel is not None:
            check_instance("Approximation", "kernel", self.kernel, Kernel, "kernels.Gaussian()")
        given: Any = self.map
        if given is None:
            if self.kernel is None:
                raise ValueError("Approximation: give a kernel, or a map that induces one (maps.Pointwise).")
            object.__setattr__(self, "map", default_map(self.kernel))
        check_instance("Approximation", "map", self.map, Map, "maps.Trigonometric()")
        check_map(self.kernel, self.map)
        given = self.projection
        if given is None:
            object.__setattr__(self, "projection", default_projection(self.kernel, self.map))
        check_instance("Approximation", "projection", self.projection, Projection, "projections.Orthogonal()")
        check_projection(self.kernel, self.map, self.projection)
        object.__setattr__(self, "n_projections", check_count("Approximation", "n_projections", self.n_projections))

    @property
    def planned(self) -> bool:
        """Whether every constant has a value."""
        return self.map.planned

    @property
    def layout(self) -> Layout:
        """Features per row, symmetry and sign; raises a ValueError if they depend on constants that are not planned yet."""
        try:
            return self.map.layout(self.projection)
        except ValueError as error:
            raise ValueError(f"Approximation: {error}") from None

    @property
    def n_features_out(self) -> int:
        """Width of the features."""
        return self.layout.width(self.n_projections)

    @property
    def symmetric(self) -> bool:
        """Whether queries and keys have the same features."""
        return self.layout.symmetric

    @property
    def positive(self) -> bool:
        """Whether all features are positive."""
        return self.layout.positive

    @property
    def unbiased(self) -> bool:
        """Whether the mean of the estimate is exactly the kernel (that of ``f``, for `maps.Pointwise`)."""
        return self.map.unbiased(self.projection)

    def with_width(self, width: int, *, exactly: bool = False, d: int | None = None) -> Approximation:
        """Return the same specification with as many rows as fit in a given width of the features.

        Parameters
        ----------
        width : int
            Largest number of features.
        exactly : bool
            Whether an odd width is filled by a single last feature if the map has two features per row and supports it.
        d : int, optional
            Dimension of the data.  If it is given and one rule fits, a quadrature has whole rules: a cut rule loses the
            exactness of degree three, and its error can be above that of fewer rows.

        Returns
        -------
        Approximation
            Its ``n_features_out`` is at most ``width``; with ``exactly`` it is equal to ``width`` for cosines and for
            maps of one feature per row.

        Examples
        --------
        >>> from bochner import Approximation, kernels
        >>> spec = Approximation(kernels.Gaussian())
        >>> spec.with_width(101).n_features_out, spec.with_width(101, exactly=True).n_features_out
        (100, 101)
        >>> from bochner import mechanism
        >>> mechanism("qbf-h").with_width(101, d=8).n_projections       # five rules of nine vertices
        45
        """
        check_count("Approximation.with_width", "width", width)
        check_flag("Approximation.with_width", "exactly", exactly)
        layout = self.layout
        rows = layout.rows_within(width)
        rule = 1 if d is None else self.projection.rows_per_rule(check_count("Approximation.with_width", "d", d))
        if rule > 1 and rows >= rule:
            return replace(self, n_projections=rows - rows % rule)
        narrowed = self.map.narrowed() if exactly and layout.width(rows) < width else None
        if narrowed is not None and narrowed.layout(self.projection).width(rows + 1) == width:
            return replace(self, map=narrowed, n_projections=rows + 1)
        if not rows:
            raise ValueError(
                f"Approximation.with_width: one row of {self.map!r} with {self.projection!r} already makes "
                f"{layout.width(1)} features, more than the width {width}."
            )
        return replace(self, n_projections=rows)

    def plan(self, X: Any, Y: Any = None, rng: RNG = None, *, weights: Any = None) -> Approximation:
        """Return the same specification with every constant that depends on data filled in.

        Parameters
        ----------
        X : array (..., n, d)
            Queries.
        Y : array (..., p, d), optional
            Keys; None means X.
        rng : int, numpy.random.Generator or None
            Source of randomness, for maps that use a random subset of the data.
        weights : array (n,), optional
            Weights of the rows of X, if there are no keys, equivalent to repeating row i ``weights[i]`` times.  Rows
            of weight zero are left out.  Points that a map keeps, such as landmarks, do not depend on other weights.

        Returns
        -------
        Approximation
            The plan; print it to see the chosen constants.

        Examples
        --------
        >>> import numpy as np
        >>> from bochner import Approximation, kernels, maps
        >>> X = np.random.default_rng(0).standard_normal((50, 3))
        >>> spec = Approximation(kernels.Softmax(), maps.GeneralizedExponential("optimal"))
        >>> spec.planned, spec.plan(X).map.s
        (False, 1)
        """
        X, Y = self._data("plan", X, Y)
        seed = int(as_generator(rng).integers(2**63))
        if weights is None:
            return self._plan(X, Y, seed)
        if Y is not X:
            raise ValueError("Approximation.plan: weights are those of rows that are queries and keys; leave Y out.")
        weights = np.asarray(as_numpy(as_real("Approximation.plan", weights)), dtype=np.float64)
        if weights.shape != X.shape[:-1] or not (np.isfinite(weights).all() and weights.min() >= 0 and weights.any()):
            raise ValueError(
                f"Approximation.plan: weights must be {X.shape[0]} numbers that are not negative, one per row of X, and not "
                f"all zero."
            )
        X = X[weights > 0]
        return self._plan(X, X, seed, weights[weights > 0])

    def fit(self, X: Any, Y: Any = None, rng: RNG = None) -> FeatureMap:
        """Plan on the data, then draw the features.

        Parameters
        ----------
        X : array (..., n, d)
            Queries.
        Y : array (..., p, d), optional
            Keys; None means X.
        rng : int, numpy.random.Generator or None
            Source of randomness.

        Returns
        -------
        FeatureMap
            Its ``spec`` is the plan.
        """
        X, Y = self._data("fit", X, Y)
        seed = int(as_generator(rng).integers(2**63))
        return self._plan(X, Y, seed)._draw(int(X.shape[-1]), seed)

    def draw(self, d: int, rng: RNG = None) -> FeatureMap:
        """Draw the features of a plan for data of dimension ``d``.

        Parameters
        ----------
        d : int
            Dimension of the data.
        rng : int, numpy.random.Generator or None
            Source of randomness.

        Returns
        -------
        FeatureMap
        """
        d = check_count("Approximation.draw", "d", d)
        if not self.planned:
            raise ValueError(
                f"Approximation.draw: {self.map!r} has constants to choose; {self.map.remedy_without_data}."
            )
        return self._draw(d, int(as_generator(rng).integers(2**63)))

    def mse(self, X: Any, Y: Any = None, *, quick: bool = False) -> np.ndarray:
        r"""Mean squared error of each entry of the estimated Gram matrix, in closed form.

        Parameters
        ----------
        X : array (n, d)
            Queries.
        Y : array (p, d), optional
            Keys; None means X.  Constants that are not planned yet are planned on X and Y.
        quick : bool
            Whether formulas that are numerical integrals for each pair, about a millisecond each, count as none.

        Returns
        -------
        float64 array (n, p)

        Raises
        ------
        NoClosedForm
            If no closed form is known.  The message names the nearest case that has one; `simulate_mse` always works.

        Examples
        --------
        >>> import numpy as np
        >>> from bochner import Approximation, kernels
        >>> X = np.random.default_rng(0).standard_normal((4, 3))
        >>> error = Approximation(kernels.Gaussian(), n_projections=32).mse(X)
        >>> error.shape, bool(np.allclose(np.diag(error), 0))      # cosines are exact at x = y
        ((4, 4), True)
        """
        check_flag("Approximation.mse", "quick", quick)
        X, Y = self._matrices("mse", X, Y)
        plan = self._plan(X, Y, 0)
        x, y = (np.asarray(self.at_unit_scale(Z), dtype=np.float64) for Z in (X, Y))
        step = max(1, _CASE_NUMBERS // y.size)
        parts = [plan._error(x[i : i + step], y, quick) for i in range(0, len(x), step)]
        return np.concatenate(parts)

    def simulate_mse(self, X: Any, Y: Any = None, n_draws: int = 100, rng: RNG = None) -> SimulatedError:
        """Mean squared error of each entry of the estimated Gram matrix, estimated over redraws.

        Parameters
        ----------
        X : array (n, d)
            Queries.
        Y : array (p, d), optional
            Keys; None means X.  Constants that are not planned yet are planned once, on X and Y.
        n_draws : int
            Number of redraws.
        rng : int, numpy.random.Generator or None
            Source of randomness.

        Returns
        -------
        SimulatedError
            Named tuple of ``mse`` and ``standard_error``.
        """
        if self.kernel is None:
            raise ValueError(f"Approximation.simulate_mse: {self.map!r} induces a kernel that has no exact value here.")
        X, Y = self._matrices("simulate_mse", X, Y)
        n_draws = check_count("Approximation.simulate_mse", "n_draws", n_draws, 2)
        return simulate(self._plan(X, Y, 0), X, Y, n_draws, rng)

    def at_unit_scale(self, X: Any) -> Any:
        """Return checked data in working precision, divided by the lengthscale of the kernel, on which the features act."""
        X = in_working_precision(X)
        return X if self.kernel is None else self.kernel.at_unit_scale(X)

    def _plan(self, X: Any, Y: Any, seed: int, weights: np.ndarray | None = None) -> Approximation:
        """Plan on checked data."""
        if self.planned:
            return self
        x = in_working_precision(X)
        data = Data(x, x if Y is X else in_working_precision(Y), self._finite_at_unit_scale, weights)
        return replace(
            self, map=self.map.plan(data, self.projection, self.kernel, streams(seed, "plan")[0], self.n_projections)
        )

    def _finite_at_unit_scale(self, X: np.ndarray) -> np.ndarray:
        """Rows divided by the lengthscale, from which constants are chosen; an error if that overflows."""
        if self.kernel is None:
            return X
        with np.errstate(over="ignore"):
            found = self.kernel.at_unit_scale(X)
        if not np.isfinite(found).all() and np.isfinite(X).all():  # others are refused where they are read
            raise ValueError(
                f"Approximation.plan: rows divided by the lengthscale of {self.kernel!r} leave the range of {found.dtype}; "
                f"rescale the data or choose a larger bandwidth."
            )
        return np.asarray(found)

    def _draw(self, d: int, seed: int) -> FeatureMap:
        """Draw a plan, after checking that the lengthscales fit d columns."""
        if self.kernel is not None:
            self.kernel.check_columns(d)
        draws = Draws(self.projection, d, self.n_projections, self.kernel, seed)
        return FeatureMap(self, draws)

    def _error(self, X: np.ndarray, Y: np.ndarray, quick: bool) -> np.ndarray:
        return self.map.mse(ErrorCase(self.kernel, self.projection, self.n_projections, X, Y, quick))

    def _data(self, method: str, X: Any, Y: Any) -> tuple[Any, Any]:
        """Queries and keys, checked."""
        owner = f"Approximation.{method}"
        X = check_points(owner, X)
        if Y is not None:
            Y = check_rows(owner, check_points(owner, Y), X.shape[-1], remedy="Y must have X's columns.")
            common_namespace(owner, X, Y)
        if self.kernel is not None:
            self.kernel.check_columns(int(X.shape[-1]))
        return X, X if Y is None else Y

    def _matrices(self, method: str, X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray]:
        X, Y = self._data(method, X, Y)
        if X.ndim != 2 or Y.ndim != 2:
            raise ValueError(
                f"Approximation.{method}: expected matrices of points as rows, got {tuple(X.shape)} and {tuple(Y.shape)}."
            )
        check_memory(f"Approximation.{method}", 8.0 * len(X) * len(Y), "take fewer rows at a time")
        same, X = Y is X, as_numpy(X).astype(np.float64)
        return X, X if same else as_numpy(Y).astype(np.float64)
