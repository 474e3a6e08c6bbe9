"""Kernel machines and their rivals on one split of data: each chooses its parameters on training rows, then fits."""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from bochner.learn import KernelClassifier, KernelRidge
from bochner.maps import Landmarks

from ._baselines import ExactKernelRidge, boosting, gaussian_of, nystroem, random_fourier, support_vectors

ALPHAS = np.logspace(-6, 1, 15)
BANDWIDTHS = 2.0 ** np.arange(-6, 4)
"""Gamma times the median of squared distances."""
PENALTIES = 10.0 ** np.arange(-1, 3)
WIDTHS = (128, 512, 2048)
OUR_WIDTHS = (128, 512, 1024, 2048, 3072)
"""Ours are measured at two widths more, so that less is left to interpolation, and all of the time of a rival is used."""
WIDE = 8192
"""Width of the methods that need no decomposition, on data with half as many rows again."""
DRAWS = {128: 3, 512: 3, 1024: 3, 2048: 3, 3072: 2, WIDE: 1}
"""Number of draws of the features, by width."""
_TRIAL_ROWS = 6000
_TRIAL_WIDTH = 1024
_TRIAL_VECTORS = 2000
_TRIAL_EXACT = 2500
_MOST_EXACT = 10_000

AT_POINTS = {"landmarks": Landmarks("uniform"), "pivoted landmarks": Landmarks("rpcholesky")}
"""Maps that the automatic mode can choose beside random features, by the names in its `selection_`."""
AUTOMATIC, SAMPLER, NYSTROEM = "KernelRidge, KernelClassifier", "RBFSampler + Ridge", "Nystroem + Ridge"
BOOSTING = "HistGradientBoosting"
METRICS: dict[str, dict[str, Any]] = {
    "the same, learned metric": {"metric": "learned"},
    "the same, bandwidth per column": {"metric": "columns"},
}

Predict = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Split:
    """Training and test rows with columns that are scaled already; classes are numbers 0, 1, 2, ..."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    classes: bool
    scaled: bool
    """Whether columns have unit variance each; otherwise all of them share one scale, as pixels do."""

    @property
    def targets(self) -> np.ndarray:
        """The numbers (n, 1), or one column of signs for each class."""
        return 2.0 * (self.y[:, None] == np.unique(self.y)) - 1 if self.classes else self.y[:, None]

    def losses(self, found: np.ndarray) -> np.ndarray:
        """Loss of each test row: whether its class is wrong, or the squared error."""
        return np.asarray(found != self.y_test if self.classes else (found - self.y_test) ** 2, dtype=np.float64)

    def error(self, found: np.ndarray) -> float:
        """Share of wrong classes, or the root of the mean squared error."""
        mean = float(self.losses(found).mean())
        return mean if self.classes else float(np.sqrt(mean))

    def trial(self, rows: int = _TRIAL_ROWS) -> Split:
        """Some training rows, a quarter of which take the place of the test rows."""
        order = np.random.default_rng(0).permutation(len(self.X))[:rows]
        held, kept = order[: len(order) // 4], order[len(order) // 4 :]
        return Split(self.name, self.X[kept], self.y[kept], self.X[held], self.y[held], self.classes, self.scaled)

    @property
    def gammas(self) -> np.ndarray:
        """Candidates about the median distance."""
        some = self.X[np.random.default_rng(0).permutation(len(self.X))[:500]]
        squares = ((some[:, None] - some[None]) ** 2).sum(axis=-1)
        return np.asarray(BANDWIDTHS / np.median(squares[squares > 0]))


class Searched(NamedTuple):
    """Parameters that were chosen on training rows, and how long that took."""

    parameters: Any
    seconds: float


class Search:
    """A choice of parameters, made once for each split and width; above a width, the one that was made there."""

    def __init__(self, choose: Callable[[Split, int], Any], widest: int | None = None) -> None:
        self.choose, self.widest = choose, widest
        self.known: dict[tuple[str, int], Searched] = {}

    def __call__(self, split: Split, width: int) -> Searched:
        """The parameters, and the time of their choice."""
        width = width if self.widest is None else min(width, self.widest)
        if (split.name, width) not in self.known:
            start = time.perf_counter()
            found = self.choose(split, width)
            seconds = time.perf_counter() - start
            self.known[split.name, width] = found if isinstance(found, Searched) else Searched(found, seconds)
        return self.known[split.name, width]


@dataclass(frozen=True)
class Contender:
    """A method: how it chooses its parameters on a split at a width, and how it then fits with a seed.

    ``fit`` returns a function that predicts, ``serves`` says which splits the method can be tried on, and
    ``search_fits`` whether the search ends with a fit, whose time is not that of the search.
    """

    name: str
    fit: Callable[[Split, int, Any, int], Predict]
    search: Search
    widths: tuple[int, ...] | None = WIDTHS
    draws: int = max(DRAWS.values())
    serves: Callable[[Split], bool] = lambda split: True
    search_fits: bool = False


def contenders() -> Iterator[Contender]:
    """All of them; those whose package is not installed are left out."""
    auto = Search(partial(_chosen, map="auto"))
    random, landmarks = (Search(partial(_own, map=one, auto=auto), OUR_WIDTHS[-1]) for one in (None, "landmarks"))
    wide = (*WIDTHS, WIDE)
    yield Contender(AUTOMATIC, _ours, auto, (*OUR_WIDTHS, WIDE), search_fits=True)
    yield Contender("the same, random features", _ours, random, search_fits=True)
    yield Contender("the same, random features, cg", _iterated, random, draws=1, search_fits=True)
    yield Contender("the same, landmarks", _ours, landmarks, search_fits=True)
    for name, options in METRICS.items():
        search = Search(partial(_chosen, map="auto", **options))
        yield Contender(name, _ours, search, (_TRIAL_WIDTH,), 1, lambda split: not split.classes, True)
    for name, features, widths in ((SAMPLER, random_fourier, wide), (NYSTROEM, nystroem, WIDTHS)):
        search = Search(partial(_strength, features=features), _TRIAL_WIDTH)
        yield Contender(name, partial(_linear, features=features), search, widths)
    yield Contender("exact kernel ridge", _exact, Search(_exact_strength), None, 1, _small)
    yield Contender("SVC, SVR", _vectors, Search(_penalty), None, 1)
    yield Contender(BOOSTING, _boosting, Search(lambda split, width: None), None, 1)
    if find_spec("xGPR"):
        yield Contender("xGPR", _xgpr, Search(_xgpr_evidence), serves=lambda split: not split.classes)


def _small(split: Split) -> bool:
    return len(split.X) <= _MOST_EXACT


def _chosen(split: Split, width: int, *, map: Any, **options: Any) -> dict[str, Any]:
    """What the automatic mode chooses: parameters of a fit without a choice."""
    model = _machine(split)(n_components=width, map=map, standardize=split.scaled, random_state=0, **options)
    name = model.fit(split.X, split.y).selection_.map
    chosen = AT_POINTS["landmarks"] if name == "exact" else AT_POINTS.get(name, None if map == "auto" else map)
    metric = _metric(model)
    return {"map": chosen, "kernel": model.kernel_, "gamma": None, "alpha": model.alpha_, "metric": metric}


def _metric(model: Any) -> np.ndarray | None:
    """The metric that was learned, behind the columns; None if there is none."""
    root = None if model.coordinates_ is None else model.coordinates_.matrix
    return None if root is None else np.asarray(root**2 if root.ndim == 1 else root @ root.T)


def _own(split: Split, width: int, *, map: Any, auto: Search) -> Any:
    """Settings chosen for one map; those of the automatic mode where it has chosen that map."""
    found = auto(split, width)
    return found if found.parameters["map"] == (map and AT_POINTS[map]) else _chosen(split, width, map=map)


def _machine(split: Split) -> Any:
    return KernelClassifier if split.classes else KernelRidge


def _ours(split: Split, width: int, found: dict[str, Any], seed: int, **options: Any) -> Predict:
    parameters = {"n_components": width, "standardize": split.scaled, "random_state": seed, **found, **options}
    predict: Predict = _machine(split)(**parameters).fit(split.X, split.y).predict
    return predict


def _iterated(split: Split, width: int, found: dict[str, Any], seed: int) -> Predict:
    return _ours(split, width, found, seed, solver="cg")


def _strength(split: Split, width: int, *, features: Callable[..., Any]) -> tuple[float, float]:
    """Gamma and alpha of the least error on held-out training rows."""
    trial = split.trial()
    width = min(width, len(trial.X))

    def decomposed(gamma: float) -> tuple[np.ndarray, ...]:
        phi, Y = features(gamma, width, 0).fit(trial.X), trial.targets
        F = phi.transform(trial.X)
        mean = F.mean(axis=0)
        values, vectors = linalg.eigh((F - mean).T @ (F - mean), check_finite=False)
        z = vectors.T @ ((F - mean).T @ (Y - Y.mean(axis=0)))
        return values, z, (phi.transform(trial.X_test) - mean) @ vectors

    return _best_ridge(trial, trial.gammas, decomposed)


def _best_ridge(
    trial: Split, gammas: np.ndarray, decomposed: Callable[[float], tuple[np.ndarray, ...]]
) -> tuple[float, float]:
    """Gamma and alpha of the least error; a decomposition has eigenvalues, and targets and test rows in their basis."""
    found, mean = [], trial.targets.mean(axis=0)
    for gamma in gammas:
        values, z, P = decomposed(gamma)
        for alpha in ALPHAS:
            scores = P @ (z / (np.maximum(values, 0) + alpha)[:, None]) + mean
            found.append((trial.error(_decided(trial, scores)), float(gamma), float(alpha)))
    return min(found)[1:]


def _decided(split: Split, scores: np.ndarray) -> np.ndarray:
    return np.asarray(np.unique(split.y)[scores.argmax(axis=1)] if split.classes else scores[:, 0])


def _linear(
    split: Split, width: int, found: tuple[float, float], seed: int, *, features: Callable[..., Any]
) -> Predict:
    from sklearn.linear_model import Ridge, RidgeClassifier
    from sklearn.pipeline import make_pipeline

    gamma, alpha = found
    phi = features(gamma, min(width, len(split.X)), seed)
    last = (RidgeClassifier if split.classes else Ridge)(alpha, solver="cholesky")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", linalg.LinAlgWarning)
        predict: Predict = make_pipeline(phi, last).fit(split.X, split.y).predict
    return predict


def _exact_strength(split: Split, width: int) -> tuple[float, float]:
    trial = split.trial(_TRIAL_EXACT)

    def decomposed(gamma: float) -> tuple[np.ndarray, ...]:
        kernel, Y = gaussian_of(gamma), trial.targets
        values, vectors = linalg.eigh(kernel(trial.X), check_finite=False)
        return values, vectors.T @ (Y - Y.mean(axis=0)), kernel(trial.X_test, trial.X) @ vectors

    return _best_ridge(trial, trial.gammas[1::2], decomposed)


def _exact(split: Split, width: int, found: tuple[float, float], seed: int) -> Predict:
    gamma, alpha = found
    model = ExactKernelRidge(gaussian_of(gamma), alpha, split.X, split.targets)
    return lambda X: _decided(split, model.scores(X))


def _penalty(split: Split, width: int) -> tuple[float, float]:
    trial = split.trial(_TRIAL_VECTORS)
    found = (
        (trial.error(_vector_machine(trial, gamma, C).predict(trial.X_test)), float(gamma), float(C))
        for gamma in trial.gammas[1::2]
        for C in PENALTIES
    )
    return min(found)[1:]


def _vector_machine(split: Split, gamma: float, C: float) -> Any:
    return support_vectors(gamma, C, classes=split.classes).fit(split.X, split.y)


def _vectors(split: Split, width: int, found: tuple[float, float], seed: int) -> Predict:
    predict: Predict = _vector_machine(split, *found).predict
    return predict


def _boosting(split: Split, width: int, found: Any, seed: int) -> Predict:
    predict: Predict = boosting(seed, classes=split.classes).fit(split.X, split.y).predict
    return predict


def _xgpr_data(split: Split) -> Any:
    from xGPR import build_regression_dataset

    return build_regression_dataset(split.X.astype(np.float64), split.y.astype(np.float64), chunk_size=2000)


def _xgpr_model(width: int, seed: int) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):  # it tells that there is no GPU
        from xGPR import xGPRegression
    return xGPRegression(num_rffs=width, variance_rffs=16, verbose=False, random_seed=seed + 1)


def _xgpr_evidence(split: Split, width: int) -> np.ndarray:
    """Hyperparameters of the largest marginal likelihood, at a width where that takes seconds."""
    model, data = _xgpr_model(min(width, _TRIAL_WIDTH // 2), 0), _xgpr_data(split)
    model.tune_hyperparams_crude(data)
    return np.asarray(model.get_hyperparams())


def _xgpr(split: Split, width: int, found: np.ndarray, seed: int) -> Predict:
    model, data = _xgpr_model(width, seed), _xgpr_data(split)
    model.set_hyperparams(found, data)
    model.fit(data, mode="exact" if width <= 2048 else "cg", suppress_var=True)
    return lambda X: model.predict(X.astype(np.float64), get_var=False)
