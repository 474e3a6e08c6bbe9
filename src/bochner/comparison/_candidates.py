"""The candidates of a comparison: the kernel machines of this library, and what one would use instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from ..learn import GaussianProcess, KernelClassifier, KernelRidge

CONSTANT, LINEAR, BOOSTED = "constant", "linear model", "boosted trees"
SAMPLER, NYSTROEM = "RBFSampler + ridge", "Nystroem + ridge"
DEFAULTS = ("KernelRidge()", "KernelClassifier()")
_ALPHAS = [0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
_WIDTH = 512  # features of scikit-learn's samplers: five times their default, so that they are strong baselines
_NARROW = 256  # features of the narrow machine, for who needs speed


@dataclass(frozen=True)
class EstimatorCandidate:
    """An estimator under a name."""

    name: str  # what the tables call it
    estimator: Any  # unfitted
    growth: float = 1.0  # the time of a fit grows as rows ** growth, from a few hundred to some ten thousand
    needed: bool = False  # whether it is evaluated whatever the budget
    ours: bool = False  # whether it is a kernel machine of this library


def standard_candidates(classifies: bool, n_columns: int, *, gaps: bool = False) -> list[EstimatorCandidate]:
    """Return the candidates for a table; the first is the default machine, and the last are left out first without time.

    Every estimator is set up as its users do: scaled columns where it needs them, and its main settings searched for;
    with ``gaps``, missing numbers are replaced where it does not take them.
    """
    machine: Any = KernelClassifier if classifies else KernelRidge
    name = machine.__name__
    found = [
        EstimatorCandidate(f"{name}()", machine(random_state=0), needed=True, ours=True),
        EstimatorCandidate(CONSTANT, (DummyClassifier if classifies else DummyRegressor)(), needed=True),
        EstimatorCandidate(LINEAR, make_pipeline(StandardScaler(), _linear(classifies)), needed=True),
        EstimatorCandidate(BOOSTED, _boosted(classifies), growth=0.7, needed=True),
        EstimatorCandidate(SAMPLER, _sampled(RBFSampler, classifies, n_columns)),
        EstimatorCandidate(NYSTROEM, _sampled(Nystroem, classifies, n_columns)),
        EstimatorCandidate("support vectors", _support_vectors(classifies, n_columns), growth=1.7),
        EstimatorCandidate(
            "extra trees", (ExtraTreesClassifier if classifies else ExtraTreesRegressor)(random_state=0)
        ),
        EstimatorCandidate(f"{name}(n_components={_NARROW})", machine(n_components=_NARROW, random_state=0), ours=True),
        *([] if classifies else [_process()]),
    ]
    return [_imputing(candidate) for candidate in found] if gaps else found


def _imputing(candidate: EstimatorCandidate) -> EstimatorCandidate:
    """Missing numbers become the median of their column in the training rows, and a further column tells where they were.

    Boosted trees take them as they are.  Our machines do the same by themselves, but refuse gaps in a column that had none
    in the rows of the fit, as may happen in a fold.
    """
    if candidate.name == BOOSTED:
        return candidate
    estimator = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), candidate.estimator)
    return EstimatorCandidate(candidate.name, estimator, candidate.growth, candidate.needed, candidate.ours)


def _linear(classifies: bool) -> Any:
    return LogisticRegression(max_iter=1000) if classifies else RidgeCV(alphas=_ALPHAS)


def _boosted(classifies: bool) -> Any:
    kind: Any = HistGradientBoostingClassifier if classifies else HistGradientBoostingRegressor
    return kind(random_state=0)


def _process() -> EstimatorCandidate:
    """A Gaussian process, which does not scale columns or targets automatically.  That for classes takes far longer."""
    process = make_pipeline(StandardScaler(), GaussianProcess(normalize_y=True, random_state=0))
    return EstimatorCandidate("GaussianProcess()", process, ours=True)


def _sampled(kind: Any, classifies: bool, d: int) -> Any:
    """Features of scikit-learn's approximations of the Gaussian kernel under a ridge, with a search for the bandwidth."""
    ridge = RidgeClassifierCV(alphas=_ALPHAS) if classifies else RidgeCV(alphas=_ALPHAS)
    pipeline = make_pipeline(StandardScaler(), kind(n_components=_WIDTH, random_state=0), ridge)
    grid = {f"{kind.__name__.lower()}__gamma": _gammas(d, 0.03, 0.1, 0.3)}
    return GridSearchCV(pipeline, grid, cv=3)


def _support_vectors(classifies: bool, d: int) -> Any:
    grid = {"C": [1.0, 10.0, 100.0], "gamma": _gammas(d, 0.1, 0.3, 1.0)}
    if classifies:
        pipeline, prefix = make_pipeline(StandardScaler(), SVC(cache_size=500)), "svc"
    else:  # the width of its tube, 0.1, is in units of the target
        regressor = TransformedTargetRegressor(SVR(cache_size=500), transformer=StandardScaler())
        pipeline, prefix = make_pipeline(StandardScaler(), regressor), "transformedtargetregressor__regressor"
    return GridSearchCV(pipeline, {f"{prefix}__{name}": values for name, values in grid.items()}, cv=3)


def _gammas(d: int, *factors: float) -> list[float]:
    """Bandwidths around scikit-learn's "scale" for standardised columns, 1/d."""
    return [float(f"{factor / d:.3g}") for factor in factors]
