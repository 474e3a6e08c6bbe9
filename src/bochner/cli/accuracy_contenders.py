"""Kernel machines and their rivals on one split of data: each chooses its parameters on training rows, then fits."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import linalg

from ..learn import KernelClassifier, KernelRidge
from ..selection._rivals import (
    ExactKernelRidge,
    boosting,
    gaussian_of,
    nystroem,
    random_fourier,
    support_vectors,
)

ALPHAS = np.logspace(-6, 1, 15)
BANDWIDTHS = 2.0 ** np.arange(-6, 4)
"""Gamma times the median of squared distances."""
PENALTIES = 10.0 ** np.arange(-1, 3)
_TRIAL_ROWS = 6000
_TRIAL_WIDTH = 1024
_TRIAL_VECTORS = 2000
_TRIAL_EXACT = 4000
_MOST_EXACT = 10_000

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

    def error(self, found: np.ndarray) -> float:
        """Share of wrong classes, or the root of the mean squared error."""
        if self.classes:
            return float(np.mean(found != self.y_test))
        return float(np.sqrt(np.mean((found - self.y_test) ** 2)))

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


@dataclass(frozen=True)
class Contender:
    """A method: how it chooses its parameters on a split at a width, and how it then fits with a seed.

    ``fit`` returns a function that predicts, and how many seconds of the fit a method spent that chooses by itself.
    ``widths`` says whether the number of features matters, ``random`` whether the seed does, and ``serves`` which splits
    the method can be tried on.
    """

    name: str
    fit: Callable[[Split, int, Any, int], tuple[Predict, float]]
    search: Callable[[Split, int], Any] = lambda split, width: None
    widths: bool = True
    random: bool = True
    serves: Callable[[Split], bool] = lambda split: True


def contenders() -> Iterator[Contender]:
    """All of them; those whose package is not installed are left out."""
    for name, options in (
        ("KernelRidge, KernelClassifier", {}),
        ("the same, random features", {"map": None}),
        ("the same, landmarks", {"map": "landmarks"}),
    ):
        yield Contender(name, partial(_ours, options=options))
    yield Contender(
        "RBFSampler + Ridge", partial(_linear, features=random_fourier), partial(_strength, features=random_fourier)
    )
    yield Contender("Nystroem + Ridge", partial(_linear, features=nystroem), partial(_strength, features=nystroem))
    yield Contender("exact kernel ridge", _exact, _exact_strength, widths=False, random=False, serves=_small)
    yield Contender("SVC, SVR", _vectors, _penalty, widths=False, random=False)
    yield Contender("HistGradientBoosting", _boosting, widths=False)
    if find_spec("xGPR"):
        yield Contender("xGPR", _xgpr, _xgpr_evidence, serves=lambda split: not split.classes)


def _small(split: Split) -> bool:
    return len(split.X) <= _MOST_EXACT


def _ours(split: Split, width: int, found: Any, seed: int, *, options: dict[str, Any]) -> tuple[Predict, float]:
    kind: Any = KernelClassifier if split.classes else KernelRidge
    model = kind(n_components=width, standardize=split.scaled, random_state=seed, **options).fit(split.X, split.y)
    return model.predict, model.selection_.seconds


def _strength(split: Split, width: int, *, features: Callable[..., Any]) -> tuple[float, float]:
    """Gamma and alpha of the least error on held-out training rows; above a width, those found there."""
    trial = split.trial()
    width = min(width, _TRIAL_WIDTH, len(trial.X))

    def decomposed(gamma: float) -> tuple[np.ndarray, ...]:
        phi, Y = features(gamma, width, 0).fit(trial.X), trial.targets
        F = phi.transform(trial.X)
        mean = F.mean(axis=0)
        values, vectors = linalg.eigh((F - mean).T @ (F - mean), check_finite=False)
        z = vectors.T @ ((F - mean).T @ (Y - Y.mean(axis=0)))
        return values, z, (phi.transform(trial.X_test) - mean) @ vectors

    return _best_ridge(trial, decomposed)


def _best_ridge(trial: Split, decomposed: Callable[[float], tuple[np.ndarray, ...]]) -> tuple[float, float]:
    """Gamma and alpha of the least error; a decomposition has eigenvalues, and targets and test rows in their basis."""
    found, mean = [], trial.targets.mean(axis=0)
    for gamma in trial.gammas:
        values, z, P = decomposed(gamma)
        for alpha in ALPHAS:
            scores = P @ (z / (np.maximum(values, 0) + alpha)[:, None]) + mean
            found.append((trial.error(_decided(trial, scores)), float(gamma), float(alpha)))
    return min(found)[1:]


def _decided(split: Split, scores: np.ndarray) -> np.ndarray:
    return np.asarray(np.unique(split.y)[scores.argmax(axis=1)] if split.classes else scores[:, 0])


def _linear(
    split: Split, width: int, found: tuple[float, float], seed: int, *, features: Callable[..., Any]
) -> tuple[Predict, float]:
    from sklearn.linear_model import Ridge, RidgeClassifier
    from sklearn.pipeline import make_pipeline

    gamma, alpha = found
    phi = features(gamma, min(width, len(split.X)), seed)
    last = (RidgeClassifier if split.classes else Ridge)(alpha, solver="cholesky")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", linalg.LinAlgWarning)
        return make_pipeline(phi, last).fit(split.X, split.y).predict, 0.0


def _exact_strength(split: Split, width: int) -> tuple[float, float]:
    trial = split.trial(_TRIAL_EXACT)

    def decomposed(gamma: float) -> tuple[np.ndarray, ...]:
        kernel, Y = gaussian_of(gamma), trial.targets
        values, vectors = linalg.eigh(kernel(trial.X), check_finite=False)
        return values, vectors.T @ (Y - Y.mean(axis=0)), kernel(trial.X_test, trial.X) @ vectors

    return _best_ridge(trial, decomposed)


def _exact(split: Split, width: int, found: tuple[float, float], seed: int) -> tuple[Predict, float]:
    gamma, alpha = found
    model = ExactKernelRidge(gaussian_of(gamma), alpha, split.X, split.targets)
    return lambda X: _decided(split, model.scores(X)), 0.0


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


def _vectors(split: Split, width: int, found: tuple[float, float], seed: int) -> tuple[Predict, float]:
    return _vector_machine(split, *found).predict, 0.0


def _boosting(split: Split, width: int, found: Any, seed: int) -> tuple[Predict, float]:
    return boosting(seed, classes=split.classes).fit(split.X, split.y).predict, 0.0


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


def _xgpr(split: Split, width: int, found: np.ndarray, seed: int) -> tuple[Predict, float]:
    model, data = _xgpr_model(width, seed), _xgpr_data(split)
    model.set_hyperparams(found, data)
    model.fit(data, mode="exact" if width <= 2048 else "cg", suppress_var=True)
    return lambda X: model.predict(X.astype(np.float64), get_var=False), 0.0
