"""How a Gaussian process learns from rows: its hyperparameters, its sums over rows, and its posterior."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .. import catalogue
from .._validation import check_flag, check_option, check_positive
from ..approximation import FeatureMap
from ..maps import Landmarks
from ._changed_rows import in_coordinates
from ._chooser import is_auto
from ._feature_parameters import FeatureParameters, as_generator, draw_features
from ._hyperparameters import GaussianEstimator, lengthscales, stretched
from ._iterated_process import iterated_posterior
from ._kernel_ridge import as_columns
from ._lengthscale_search import ProcessSample, best_lengthscales, evidence_of, regression_objective
from ._linear.conditional import best_ratio, leaves_out, reweighted, sum_of_log_weights
from ._linear.evidence import Hyperparameters, SpectralEvidence
from ._linear.feature_moments import collect_moments
from ._linear.moments import Moments
from ._linear.posterior import Posterior, left_out, posterior
from ._linear.spectrum import NormalEquations, Scaling
from ._linear.stochastic_evidence import stochastic_evidence
from ._process_choice import CANDIDATES, SEARCH_ROWS, ProcessCandidate, choose_process, widening
from ._row_source import RowSource

SOLVERS = ("direct", "cg")
_SEARCHED = 1024
"""Most features for the search over lengthscales, which belong to the kernel and hardly depend on the width."""
_SAMPLE_NUMBERS, _SAMPLE_ROWS = 1 << 25, 2048
"""Features of the sample that helps to estimate a marginal likelihood, 256 MB, and most rows of it."""
EXACT_ROWS, _WIDTH = 3000, 1024
"""Most rows that are all landmarks, so that the process is exact, and the width of the features of more."""
_LEFT_OUT, _WIDEST, _MULTIPLICATIONS = 0.02, 4096, 2.5e11
"""Share of the prior variance from which on more landmarks are taken, and how many at most: kin40k has a root mean squared
error of 0.235 with 1024 landmarks and 0.140 with 3072.  Three passes of n D^2 multiplications take about a minute."""
_RATIO_ROWS, _GLANCED = 4000, 256
"""Rows on which the noise beside landmarks is chosen, and on which it is seen whether they leave anything out."""


class GaussianRegression(GaussianEstimator):
    """Base class of `GaussianProcess`: its fit, and the marginal likelihood of its hyperparameters."""

    known = ("lengthscale", "noise", "amplitude")
    noise: Any
    fit_intercept: Any
    normalize_y: Any
    solver: Any = "direct"
    verbose: Any
    scaling_: Scaling
    posterior_: Posterior
    widening_: float = 1.0

    @property
    def statistics_(self) -> Moments:
        """Sums over all rows seen."""
        check_is_fitted(self)
        kept: Moments | None = vars(self).get("statistics_")
        if kept is None:
            raise NotFittedError(
                "GaussianProcess: a fit by conjugate gradients keeps no statistics to which rows could be added, and "
                "compact() drops them; call fit, with solver='direct' if rows are to be added."
            )
        return kept

    def compact(self, *, std: bool = True) -> Self:
        """Drop the statistics, which only further fitting needs, and keep what prediction needs.

        As `KernelRidge.compact`: the estimator is changed itself, and `partial_fit`, ``statistics_`` and the marginal
        likelihood of other hyperparameters raise an error from then on.

        Parameters
        ----------
        std : bool
            Whether to keep the covariance of the weights, n_components^2 numbers, which standard deviations, covariances
            and samples need.

        Returns
        -------
        self
        """
        check_flag("GaussianProcess.compact", "std", std)
        super().compact()
        if not std:
            self.posterior_ = self.posterior_._replace(root=None)
        return self

    def _drop_statistics(self) -> None:
        self.__dict__["statistics_"] = None

    def log_marginal_likelihood(
        self, theta: Any = None, X: Any = None, y: Any = None, sample_weight: Any = None, *, eval_gradient: bool = False
    ) -> Any:
        """Return the log marginal likelihood of the targets, without their mean and unit, and its gradient.

        Parameters
        ----------
        theta : array (2,), (3,) or (2 + d,), optional
            Logarithms of noise, amplitude and, if given, the lengthscale or lengthscales; None means the fitted ones.
        X, y : arrays, optional
            Rows to evaluate on.  By default the value is that of all rows seen, at the lengthscales of the fit.
        sample_weight : array (n,), optional
            Weights of these rows.
        eval_gradient : bool
            Whether to return the gradient in ``theta`` as well.

        Returns
        -------
        value : float
            Log marginal likelihood.
        gradient : array
            Its gradient, if requested.
        """
        check_is_fitted(self)
        if theta is None and X is None and not eval_gradient:
            return self.log_marginal_likelihood_value_
        theta = self._theta(theta, X)
        with self._computing():
            if X is None:
                equations = NormalEquations.of(self.statistics_, about_mean=False, scaling=self.scaling_)
                evidence, (noise, amplitude) = SpectralEvidence.of(equations.spectrum()), np.exp(theta)
                found = evidence.value(noise, amplitude), evidence.gradient(noise, amplitude)
            else:
                found = self._value_on(self._rows(X, y, sample_weight), theta)
        return found if eval_gradient else found[0]

    def _theta(self, theta: Any, X: Any) -> np.ndarray:
        """Checked logarithms."""
        if theta is None:
            return np.log([self.noise_, self.amplitude_])
        given = np.asarray(theta, dtype=np.float64)
        allowed = (2,) if X is None else (2, 3, 2 + self._n_columns)
        if given.shape not in [(k,) for k in allowed]:
            hint = "; lengthscales need X and y, since they change the features" if X is None else ""
            raise ValueError(
                f"GaussianProcess.log_marginal_likelihood: theta must have {' or '.join(map(str, allowed))} entries, "
                f"logarithms of noise, amplitude and lengthscales, got shape {given.shape}{hint}."
            )
        return given

    def _value_on(self, rows: RowSource, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Log marginal likelihood on other rows, whose objective has the lengthscales first."""
        n_scales, (X, y, weights) = len(theta) - 2, rows.gathered()
        sample = ProcessSample(X, self.scaling_.apply(as_columns(y, None)[0]), weights)
        value, gradient = regression_objective(self.features_, sample, n_scales)(np.roll(theta, n_scales))
        return value, np.roll(gradient, -n_scales)

    def _start(self, rows: RowSource, *, stream: bool = False) -> Self:
        """Choose what is left open, draw features, choose their lengthscales, and fit."""
        self._check_parameters()
        rng = as_generator(self.random_state)
        with self._computing():
            rows = self._observations(rows)
            self.coordinates_ = self._column_coordinates(rows)
            rows = in_coordinates(self.coordinates_, rows)
            parameters, found = self._chosen(rows, rng, stream=stream)
            self.candidates_ = [one._asdict() | {"kernel": repr(one.kernel)} for one in found]
            phi = draw_features(parameters, rows, rng, symmetric=True)
            phi = self._widened(phi, parameters, rows, rng) if found else self._tuned(phi, rows, rng)
            self._single_target, self._ratio, self._log_weights = not rows.target_shape, None, 0.0
            below = phi.spec.map.from_below and leaves_out(phi, rows.sample(_GLANCED, rng))
            if self.solver == "cg":
                if below:
                    raise ValueError(
                        "GaussianProcess: solver='cg' is for wide random features; landmarks are narrow, use "
                        "solver='direct'."
                    )
                return self._iterated(phi, rows, rng)
            if below:
                self._ratio = self._best_ratio(phi, rows, rng)
            few = self._of_few_rows(phi, rows)
            return self._finish(phi, self._moments(phi, rows), few)

    def _chosen(
        self, rows: RowSource, rng: np.random.Generator, *, stream: bool
    ) -> tuple[FeatureParameters, list[ProcessCandidate]]:
        """Parameters of the features with nothing left open, and the candidates if the kernel was searched for."""
        parameters, candidates = self._settled(rows, stream=stream), []
        self.widening_ = 1.0
        if self._searches():
            sample = rows.sample_weighted(min(SEARCH_ROWS, self.optimize_rows), rng)
            order = rng.permutation(len(sample.X))
            X, y, weights = sample.taken(order)
            Y = self._scaled(as_columns(y, None)[0].astype(np.float64), weights)
            kernels = [catalogue.kernel(name) for name in CANDIDATES] if is_auto(self.kernel) else [self._named()]
            candidates = choose_process(
                kernels,
                np.asarray(X, dtype=np.float64),
                Y,
                weights,
                ard=self.ard,
                given=self._given(),
                n_restarts=self.n_restarts,
                rng=rng,
                verbose=self.verbose,
            )
            parameters = parameters._replace(kernel=candidates[0].kernel, gamma=None)
            if (
                not stream and rows.shape[0] <= SEARCH_ROWS and self._given() == (None, None)
            ):  # more rows hardly overfit
                self.widening_ = widening(candidates[0], np.asarray(X, dtype=np.float64), Y, weights)
        return parameters, candidates

    def _observations(self, rows: RowSource) -> RowSource:
        """Rows without copies of them, where lengthscales are searched for."""
        return _without_copies(rows) if self._bandwidth_is_free() and rows.in_memory else rows

    def _settled(self, rows: RowSource, *, stream: bool) -> FeatureParameters:
        """Parameters of the features, with the map and the width that "auto" stands for."""
        parameters = self._parameters()
        if is_auto(self.map):
            random = (
                not self._searches()
                or self.projection is not None
                or self.solver == "cg"
                or not rows.in_memory
                or stream
            )
            parameters = parameters._replace(map=None if random else Landmarks("rpcholesky"))
        if is_auto(self.n_components):
            n = rows.shape[0]
            exact = parameters.map is not None and not stream and rows.in_memory and n <= EXACT_ROWS
            if exact and is_auto(self.map):
                parameters = parameters._replace(map=Landmarks("uniform"))
            parameters = parameters._replace(n_components=int(n) if exact else _WIDTH)
        return parameters

    def _widened(
        self, phi: FeatureMap, parameters: FeatureParameters, rows: RowSource, rng: np.random.Generator
    ) -> FeatureMap:
        """More landmarks, if the width is open and too few of them leave out a part of the prior that counts."""
        if not is_auto(self.n_components) or not phi.spec.map.from_below or rows.shape[0] <= EXACT_ROWS:
            return phi
        X = rows.sample(_GLANCED, rng)
        if np.mean(left_out(phi, X, np.asarray(phi.queries(X)))) < _LEFT_OUT:
            return phi
        width = int(np.clip(np.sqrt(_MULTIPLICATIONS / rows.shape[0]) // 256 * 256, _WIDTH, _WIDEST))
        return draw_features(parameters._replace(n_components=width), rows, rng, symmetric=True)

    def _best_ratio(self, phi: FeatureMap, rows: RowSource, rng: np.random.Generator) -> float:
        given = self._given()
        if given.noise is not None and given.amplitude is not None:
            return given.noise / given.amplitude
        X, y, weights = rows.sample_weighted(_RATIO_ROWS, rng)
        return best_ratio(phi, (X, self._scaled(as_columns(y, None)[0].astype(np.float64), weights), weights), given)

    def _moments(self, phi: FeatureMap, rows: RowSource) -> Moments:
        columns = rows.relabelled(as_columns, rows.n_targets, weighted=rows.weighted)
        if self._ratio is not None:
            self._log_weights += sum_of_log_weights(phi, columns, self._ratio)
            columns = reweighted(phi, columns, self._ratio)
        return collect_moments(phi, columns, verbose=self.verbose)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("GaussianProcess", "noise", self.noise)
        check_flag("GaussianProcess", "fit_intercept", self.fit_intercept)
        check_flag("GaussianProcess", "normalize_y", self.normalize_y)
        check_option("GaussianProcess", "solver", self.solver, SOLVERS)

    def _given(self) -> Hyperparameters:
        free = self._free()
        return Hyperparameters(
            None if "noise" in free else float(self.noise), None if "amplitude" in free else float(self.amplitude)
        )

    def _tuned(self, phi: FeatureMap, rows: RowSource, rng: np.random.Generator) -> FeatureMap:
        """Return the draw, with the best lengthscales on some of the rows, if they are free."""
        n_scales = self._n_free_scales(phi, rows.shape[1])
        if not n_scales:
            return phi
        if phi.n_features_out > _SEARCHED:
            found = self._tuned(phi.spec.with_width(_SEARCHED).draw(phi.n_features_in, rng), rows, rng)
            return stretched(phi, lengthscales(found.spec.kernel))
        X, y, weights = rows.sample_weighted(self.optimize_rows, rng)
        rows.check_weight(float(len(X)))
        Y = self._scaled(as_columns(y, None)[0].astype(np.float64), weights)
        sample = ProcessSample(X.astype(np.float64, copy=False), Y, weights)
        return best_lengthscales(phi, sample, self._given(), n_scales, self.n_restarts, rng, verbose=self.verbose)

    def _scaled(self, Y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Targets (n, t) without their own mean and unit."""
        scaling = Scaling.of_rows(Y, weights, center=self.fit_intercept, normalize=self.normalize_y)
        return scaling.apply(Y)

    def _of_few_rows(self, phi: FeatureMap, rows: RowSource) -> Hyperparameters:
        """Noise and amplitude of rows fewer than features, for which their decomposition is the cheaper one."""
        given = self._given()
        if None not in given or not rows.in_memory or rows.shape[0] >= phi.n_features_out or self._ratio is not None:
            return given
        X, y, weights = rows.gathered()
        Y = self._scaled(as_columns(y, None)[0].astype(np.float64), weights)
        return Hyperparameters(*evidence_of(phi.queries(X), ProcessSample(X, Y, weights)).best(given))

    def _finish(self, phi: FeatureMap, moments: Moments, given: Hyperparameters | None = None) -> Self:
        """The posterior of the moments, with the best noise and amplitude where they are not given."""
        scaling = Scaling.of(
            moments.target_mean,
            moments.target_scatter / moments.weight,
            center=self.fit_intercept,
            normalize=self.normalize_y,
        )
        equations = NormalEquations.of(moments, about_mean=False, scaling=scaling)
        noise, amplitude = self._given() if given is None else given
        if self._ratio is not None:
            noise, amplitude = self._at_ratio(equations, noise, amplitude)
        if noise is None or amplitude is None:
            noise, amplitude = SpectralEvidence.of(equations.spectrum()).best(Hyperparameters(noise, amplitude))
        noise, amplitude = noise * self.widening_**2, amplitude * self.widening_**2  # the mean stays what it is
        fitted = posterior(equations, noise, amplitude)
        if fitted.lost and "noise" not in self._free():
            warnings.warn(
                f"GaussianProcess: noise={noise} is below the rounding of the features, which leave {fitted.lost} "
                f"directions undetermined; nothing is fitted there. Raise noise, or lower n_components.",
                LinAlgWarning,
                stacklevel=4,
            )
        value = fitted.log_marginal_likelihood + 0.5 * len(moments.target_mean) * self._log_weights
        return self._keep(phi, scaling, fitted._replace(log_marginal_likelihood=value), moments)

    def _at_ratio(
        self, equations: NormalEquations, noise: float | None, amplitude: float | None
    ) -> tuple[float, float]:
        """Noise and amplitude of the ratio that has made the weights of the rows; the amplitude has a closed form."""
        assert self._ratio is not None
        if noise is not None:
            return noise, noise / self._ratio
        if amplitude is not None:
            return self._ratio * amplitude, amplitude
        noise = posterior(equations, self._ratio, 1.0).residual / (equations.units * len(equations.total))
        return noise, noise / self._ratio

    def _iterated(self, phi: FeatureMap, rows: RowSource, rng: np.random.Generator) -> Self:
        """The posterior by conjugate gradients, with noise and amplitude by an estimate of the marginal likelihood."""
        if not rows.in_memory:
            raise ValueError("GaussianProcess: solver='cg' needs all rows in one place; use solver='direct'.")
        columns = rows.relabelled(as_columns, rows.n_targets, weighted=rows.weighted)
        Y, weights = columns.reduce_targets(lambda targets, weights: (targets.astype(np.float64), weights))
        scaling = Scaling.of_rows(Y, weights, center=self.fit_intercept, normalize=self.normalize_y)
        scaled = columns.relabelled(lambda Y, w: (scaling.apply(Y), w), rows.n_targets, weighted=rows.weighted)
        noise, amplitude = given = self._given()
        size = int(np.clip(_SAMPLE_NUMBERS // phi.n_features_out, 256, _SAMPLE_ROWS))
        sample = scaled.sample_weighted(size, rng)
        if rows.count() <= size:
            evidence = evidence_of(phi.queries(sample.X), ProcessSample(*sample))
        else:
            evidence = stochastic_evidence(phi, scaled, sample, given, rng, verbose=self.verbose)
        if noise is None or amplitude is None:
            noise, amplitude = evidence.best(given)
        value = evidence.value(noise, amplitude)
        fitted = iterated_posterior(phi, columns, scaling, noise, amplitude, value, rng, verbose=self.verbose)
        return self._keep(phi, scaling, fitted, None)

    def _keep(self, phi: FeatureMap, scaling: Scaling, fitted: Posterior, moments: Moments | None) -> Self:
        self.features_, self.scaling_, self.posterior_ = phi, scaling, fitted
        self.__dict__["statistics_"] = moments
        self.noise_, self.amplitude_ = fitted.noise, fitted.amplitude
        self.log_marginal_likelihood_value_ = fitted.log_marginal_likelihood
        return self


def _without_copies(rows: Any) -> Any:
    """Rows of which no two are equal, if equal ones have equal targets everywhere; the same rows otherwise.

    A copy is no second observation: the marginal likelihood would take it for one, and find that there is no noise.  Equal
    rows with different targets are observations, and weights say how much rows count.
    """
    merged = rows if rows.weighted else rows.merged()
    if merged is rows or not np.allclose(rows.targets, merged.targets_of(rows.X)[0], rtol=1e-9, atol=0):
        return rows
    return merged.relabelled(lambda targets, _: (targets, None), rows.n_targets, weighted=False)
