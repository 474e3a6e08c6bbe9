"""`compare`: judge estimators on the same folds, within a budget of seconds."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, cross_validate, train_test_split
from threadpoolctl import threadpool_limits

from .._progress import progress
from .._random import RNG, as_generator
from .._validation import check_count, check_positive
from ..linalg import threads
from ._candidates import CONSTANT, DEFAULTS, EstimatorCandidate, standard_candidates
from ._comparison import SLOW, Comparison, Result, verdict
from ._inputs import checked

BUDGET = 60.0  # seconds
_FOLDS, _LEAST_FOLDS = 5, 3  # scikit-learn's default; with two the standard error would have one degree of freedom
_ENOUGH, _FEW, _LEAST_ROWS = 2000, 500, 200  # rows down to which all, quick and needed candidates stay; see `_planned`
_SHARE = 0.3  # share of the time that one candidate may take where there is no time for all
_TIMED_ROWS = 1000  # rows of the prediction that is timed
_FIRST_TRIAL, _STEP = 100, 3  # rows of the first trial fit, and the factor to the next: two fits tell how time grows
_TRIAL = 0.03  # share of the budget for one trial fit, beyond the two smallest sizes
_LONG_TRIAL = 0.25  # seconds from which the first fit is repeated
_SPENT = 0.8  # share of the remaining time that is planned, since predictions of times err by some tens of percent
_ONE_FIT = 0.1
"""Share of the budget for one fit: what is predicted wrong by a factor of three then costs a fifth of the budget."""

clock = time.perf_counter


def compare(
    X: Any,
    y: Any,
    *,
    task: str | None = None,
    candidates: Mapping[str, Any] | None = None,
    budget: float = BUDGET,
    n_folds: int = _FOLDS,
    rng: RNG = 0,
    verbose: bool = False,
) -> Comparison:
    """Cross-validate kernel machines and common baselines on a table, and recommend one of them.

    The kernel machines are `bochner.learn.KernelRidge` or `KernelClassifier` with default parameters, a narrower one,
    and a Gaussian process.  The baselines are a constant, a linear model, boosted trees, extra trees, ridge regression
    on the features of scikit-learn's RBFSampler and Nystroem, and support vector machines, each with its main settings
    tuned on the training rows.  All are evaluated by the same cross-validation, with scikit-learn's splitters.

    Parameters
    ----------
    X : array or data frame (n, d)
        Numbers, and NaN where one is missing: estimators that do not take gaps get the median of the column in their
        training rows, and a column that tells where it stands.  Encode categories first, for example with
        ``pandas.get_dummies``.
    y : array (n,)
        Targets: numbers, or labels of classes.
    task : {"regression", "classification"}, optional
        By default, text, truth values and at most 20 different whole numbers are classes.
    candidates : dict of str to estimator, optional
        Further estimators, by the names that the table shows.
    budget : float
        Time budget in seconds.  Fit times are predicted from trials on few rows; if all fits would take longer, fewer
        rows are used, down to 2000, then the slowest estimators are left out, then fewer rows again; those that were
        left out follow if there is time after all.  ``notes`` and ``left_out`` record it.
    n_folds : int
        Number of folds, at least 3.
    rng : int, numpy.random.Generator or None
        Source of randomness for the folds and the sample of rows; estimators have ``random_state=0``, as in ``.code``.
    verbose : bool
        Whether to show a progress bar.

    Returns
    -------
    Comparison
        ``print`` it for a table with one sentence for each estimator; ``.best`` is the one to use, ``.code`` builds it.

    See Also
    --------
    bochner.recommend : Ranks mechanisms by the error of the kernel, without targets.

    Notes
    -----
    The verdict on two estimators is "undecided" if the mean difference of their errors, paired over the folds, is
    within the two-sided t interval of 95 %, with the variance corrected for overlapping training rows (Nadeau and Bengio,
    2003).

    Examples
    --------
    >>> import numpy as np
    >>> import bochner
    >>> X = np.random.default_rng(0).uniform(-3, 3, (150, 2))
    >>> found = bochner.compare(X, np.sin(2 * X[:, 0]) + X[:, 1], budget=20)
    >>> found.verdict(found["constant"]), found.verdict(found["linear model"]), found.best.score > 0.9
    ('worse', 'worse', True)
    """
    start = clock()
    budget = check_positive("compare", "budget", budget)
    if (n_folds := check_count("compare", "n_folds", n_folds)) < _LEAST_FOLDS:
        raise ValueError(
            f"compare: n_folds must be at least {_LEAST_FOLDS}, got {n_folds}; fewer cannot distinguish estimators."
        )
    X, y, classifies = checked(X, y, task, n_folds)
    seed = int(as_generator(rng).integers(2**31))
    judged = _all_candidates(classifies, X, candidates)
    run = Run(X, y, classifies, seed, budget, start, n_folds)
    free = _free_cores()
    with threadpool_limits(limits=free), threads(free):
        return run.comparison(judged, shown=verbose)


def _free_cores() -> int:
    """Cores without work: threads that wait for each other beside a busy neighbour take many times as long as one."""
    cores = os.cpu_count() or 1
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0  # not on Windows
    return max(1, cores - round(busy))


def _all_candidates(classifies: bool, X: np.ndarray, further: Mapping[str, Any] | None) -> list[EstimatorCandidate]:
    found = standard_candidates(classifies, X.shape[1], gaps=bool(np.isnan(X).any()))
    for name, estimator in (further or {}).items():
        if name in {candidate.name for candidate in found}:
            raise ValueError(f"compare: the name {name!r} belongs to another estimator; choose a different one.")
        if not (hasattr(estimator, "fit") and hasattr(estimator, "predict") and hasattr(estimator, "get_params")):
            raise TypeError(
                f"compare: candidate {name!r} must be an estimator with fit and predict, got {estimator!r}."
            )
        found.append(EstimatorCandidate(name, estimator, growth=1.5, needed=True))
    return found


class Run:
    """One comparison under way: the rows, the clock, and what fits took so far."""

    def __init__(
        self, X: np.ndarray, y: np.ndarray, classifies: bool, seed: int, budget: float, start: float, n_folds: int
    ) -> None:
        self.X, self.y, self.classifies, self.seed = X, y, classifies, seed
        self.budget, self.start, self.n_folds = budget, start, n_folds
        self.trials: dict[str, list[tuple[int, float]]] = {}
        self.left_out: dict[str, str] = {}

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return clock() - self.start

    def comparison(self, judged: list[EstimatorCandidate], shown: bool) -> Comparison:
        """Try on few rows, plan, judge fold by fold, and collect the results."""
        tried = self._tried(judged, shown)
        failed = dict(self.left_out)
        kept, n_used, slow = self._planned(tried)
        self.left_out |= slow
        results = self._judged(kept, n_used, shown)
        while n_used < len(self.X):
            # the folds tell times better than trials on few rows did: twice the rows, if there is time for them after all
            kept, n_more, slow = self._planned([c for c in tried if c.name not in failed])
            if n_more < 2 * n_used or len(kept) < len(results):
                break
            before, self.left_out = self.left_out, failed | slow
            again = self._judged(kept, n_more, shown)
            if len(again) < len(results) or len(again[0].errors) < len(results[0].errors):
                self.left_out = before  # out of time: more folds tell more than more rows
                break
            results, n_used = again, n_more
        self._judge_left_out(tried, results, n_used, shown)
        if not any(result.name != CONSTANT for result in results):
            raise ValueError(f"compare: no estimator could be fitted: {self.left_out}.")
        results = _ranked(results)
        n_folds = len(results[0].errors)
        kind = "classification" if self.classifies else "regression"
        notes = self._notes(n_used, n_folds)
        return Comparison(
            tuple(results), kind, len(self.X), n_used, n_folds, dict(self.left_out), notes, round(self.elapsed, 3)
        )

    def _judge_left_out(self, tried: list[EstimatorCandidate], results: list[Result], n_used: int, shown: bool) -> None:
        """Add candidates that were left out as slow, and for which time is left: twice the rows would have taken more."""
        n_folds = len(results[0].errors) if results else 0
        for candidate in [c for c in tried if self.left_out.get(c.name, "").startswith(SLOW)]:
            if n_folds * self._of_fold(candidate, n_used) > _SPENT * (self.budget - self.elapsed):
                continue
            reason = self.left_out.pop(candidate.name)
            found = self._judged([candidate], n_used, shown)
            if found and len(found[0].errors) == n_folds:  # errors are compared fold by fold
                results.extend(found)
            else:
                self.left_out.setdefault(candidate.name, reason)

    def _judged(self, judged: list[EstimatorCandidate], n_used: int, shown: bool) -> list[Result]:
        """Results on the folds of a sample of rows, and the times of the fits among the trials."""
        start, rows = self.elapsed, self._sample(n_used)
        folds = _folds(self.y[rows], self.classifies, self.n_folds, self.seed)
        found: dict[str, list[dict[str, Any]]] = {candidate.name: [] for candidate in judged}
        for k, fold in enumerate(progress(folds, label=f"compare on {n_used} rows", shown=shown, delay=0.0)):
            # a fold takes as long as those before it
            if k >= _LEAST_FOLDS and start + (self.elapsed - start) * (k + 1) / k > self.budget:
                break
            for candidate in [c for c in judged if c.name not in self.left_out]:
                self._judge(candidate, fold, rows, found)
        for name, scores in found.items():
            self.trials[name] += [(len(folds[0][0]), s["seconds"]) for s in scores]
        return [_result(c, found[c.name], self.classifies) for c in judged if c.name not in self.left_out]

    def seconds_of(self, candidate: EstimatorCandidate, n: int) -> float:
        """Predicted time of a fit on n rows: the least of the trials on the most rows, as a busy machine adds to times.

        Trials on fewer rows predict too little: times grow faster there, while landmarks are as many as rows.
        """
        trials = self.trials[candidate.name]
        most = max(size for size, _ in trials)
        return min(took for size, took in trials if size == most) * math.pow(n / most, candidate.growth)

    def _tried(self, judged: list[EstimatorCandidate], shown: bool) -> list[EstimatorCandidate]:
        """Fit all on few rows, and on more rows what is fast enough."""
        size, tried = min(_FIRST_TRIAL, len(self.X)), list(judged)
        while tried and size <= len(self.X) and self.elapsed < self.budget / 4:
            rows = self._sample(size)
            split = _halves(self.y[rows], self.classifies, self.seed)
            for candidate in progress(tried, label=f"trial on {size} rows", shown=shown, delay=0.0):
                if not candidate.needed and self.elapsed > self.budget / 2:
                    self.left_out.setdefault(candidate.name, "since there was no time to try it")
                    continue
                self._try(candidate, split, rows)
            judged = [candidate for candidate in judged if candidate.name not in self.left_out]
            size *= _STEP
            quick = _TRIAL * self.budget if size > _STEP * _FIRST_TRIAL else math.inf
            tried = [c for c in judged if self.seconds_of(c, size // 2) <= quick]
        return judged

    def _try(self, candidate: EstimatorCandidate, split: Any, rows: np.ndarray) -> None:
        """Fit once, and again if that took long and there is time: the first fit may also compile and import."""
        for _ in range(2):
            before = clock()
            if self._fit(candidate, split, rows) is None:
                return
            took = clock() - before
            first = candidate.name not in self.trials
            self.trials.setdefault(candidate.name, []).append((len(split[0]), took))
            if not first or took < _LONG_TRIAL or self.elapsed + took > self.budget / 2:
                return

    def _planned(self, judged: list[EstimatorCandidate]) -> tuple[list[EstimatorCandidate], int, dict[str, str]]:
        """The candidates and the number of rows for which there is time, and why others are left out.

        All candidates are kept down to 2000 rows, then those that take no more than a share of the time down to 500 rows;
        then the slowest are left out, and at last only the needed ones are judged, on at least 200 rows.
        """
        n = len(self.X)
        enough, few, least = (min(n, size) for size in (_ENOUGH, _FEW, _LEAST_ROWS))
        sizes = sorted({enough, few, *(int(n / 1.25**k) for k in range(200))}, reverse=True)
        if (size := self._largest(judged, sizes, enough)) is not None:
            return judged, size, {}
        share = _SHARE * _SPENT * (self.budget - self.elapsed) / self.n_folds
        kept = [c for c in judged if c.needed or self._of_fold(c, few) <= share]
        size = self._largest(kept, sizes, few)
        while size is None and any(not candidate.needed for candidate in kept):
            kept.remove(max((c for c in kept if not c.needed), key=lambda c: self._of_fold(c, few)))
            size = self._largest(kept, sizes, few)
        slow = {c.name: self._of_fold(c, few) for c in judged if c not in kept}
        reasons = {name: f"{SLOW} {few} rows would take about {took:.2g} s" for name, took in slow.items()}
        return kept, size or self._largest(kept, sizes, least) or least, reasons

    def _largest(self, judged: Sequence[EstimatorCandidate], sizes: list[int], least: int) -> int | None:
        """The largest number of rows for which there is time, if any that is large enough."""
        return next((size for size in sizes if size >= least and self._fits(judged, size)), None)

    def _of_fold(self, candidate: EstimatorCandidate, n: int) -> float:
        """Predicted time of one fold of n rows."""
        return self.seconds_of(candidate, n * (self.n_folds - 1) // self.n_folds)

    def _fits(self, judged: Sequence[EstimatorCandidate], n: int) -> bool:
        """Whether there is time for the candidates on n rows, and no single fit takes much of it."""
        times = [self._of_fold(candidate, n) for candidate in judged]
        left = self.budget - self.elapsed
        return self.n_folds * sum(times) <= _SPENT * left and max(times) <= _ONE_FIT * self.budget

    def _sample(self, n: int) -> np.ndarray:
        """Numbers of n rows at random; classes keep their shares where they have enough rows."""
        if n >= len(self.X):
            return np.arange(len(self.X))
        return np.sort(_part(np.arange(len(self.X)), self.y, n, self.classifies, self.seed))

    def _judge(self, candidate: EstimatorCandidate, fold: Any, rows: np.ndarray, found: dict[str, list[Any]]) -> None:
        """Judge one candidate on one fold, unless there is no time left for it."""
        known = found[candidate.name]
        expected = known[-1]["seconds"] if known else self.seconds_of(candidate, len(fold[0]))
        if not candidate.needed and self.elapsed + expected > self.budget:
            self.left_out[candidate.name] = "out of time"
            return
        before = clock()
        scores = self._fit(candidate, fold, rows)
        if scores is not None:
            predicting = self._predicting(scores, fold, rows)
            known.append(scores | {"seconds": clock() - before, "predict_seconds": predicting})

    def _predicting(self, scores: dict[str, Any], split: Any, rows: np.ndarray) -> float:
        """Time of one call for 1000 rows: the time per row of a small fold is mostly that of the call."""
        timed = self.X[rows[np.resize(split[1], _TIMED_ROWS)]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            before = clock()
            scores["estimator"][0].predict(timed)
        return clock() - before

    def _fit(self, candidate: EstimatorCandidate, split: Any, rows: np.ndarray) -> dict[str, Any] | None:
        """Fit and test on one split; None, and a reason in ``left_out``, if the estimator fails."""
        scoring = ["accuracy"] if self.classifies else ["neg_root_mean_squared_error", "r2"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of convergence, of rare classes, of edges of a search: once for each fold
            try:
                scores: dict[str, Any] = cross_validate(
                    candidate.estimator, self.X[rows], self.y[rows], cv=[split], scoring=scoring,
                    return_estimator=True, error_score="raise",
                )  # fmt: skip
            except (ValueError, ArithmeticError, np.linalg.LinAlgError, MemoryError) as error:
                reason = " ".join(str(error).split())[:200]
                self.left_out[candidate.name] = f"since its fit failed ({type(error).__name__}: {reason})"
                return None
        return scores

    def _notes(self, n_used: int, n_folds: int) -> tuple[str, ...]:
        said = []
        if gaps := int(np.isnan(self.X).any(axis=1).sum()):
            said.append(
                f"{gaps} of {len(self.X)} rows have missing numbers, in place of which all but boosted trees are given the "
                f"medians of the training rows."
            )
        if n_used < len(self.X):
            said.append(
                f"{n_used} of {len(self.X)} rows were used, for which there was time in {self.budget:g} seconds; with more "
                f"rows flexible estimators gain more."
            )
        if n_folds < self.n_folds:
            said.append(f"{n_folds} of {self.n_folds} folds were evaluated in {self.budget:g} seconds.")
        return tuple(said)


def _ranked(results: list[Result]) -> list[Result]:
    """Sort results by mean error, but the default first unless the lowest, which is partly luck, is clearly better."""
    ranked = sorted(results, key=lambda result: result.error)
    default = next((result for result in ranked if result.name in DEFAULTS), None)
    if default is None or verdict(default, ranked[0]) != "undecided":
        return ranked
    return [default, *(result for result in ranked if result is not default)]


def _folds(y: np.ndarray, classifies: bool, n_folds: int, seed: int) -> list[Any]:
    kind: Any = StratifiedKFold if classifies else KFold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes with fewer rows than folds, which are wrong where they are new
        return list(kind(n_folds, shuffle=True, random_state=seed).split(y, y))


def _part(numbers: np.ndarray, y: np.ndarray, n: int, classifies: bool, seed: int) -> np.ndarray:
    """A part of n rows, with the shares of the classes if each of them has two rows or more on both sides."""
    counts = np.unique(y, return_counts=True)[1] if classifies else np.array([len(y)])
    enough = classifies and counts.min() >= 2 and min(n, len(y) - n) >= len(counts)
    part = train_test_split(numbers, train_size=n, stratify=y if enough else None, random_state=seed)[0]
    return np.asarray(part)


def _halves(y: np.ndarray, classifies: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.arange(len(y))
    train = _part(numbers, y, len(y) // 2, classifies, seed)
    return train, np.setdiff1d(numbers, train)


def _result(candidate: EstimatorCandidate, scores: list[dict[str, Any]], classifies: bool) -> Result:
    """Collect the scores of the folds."""
    first = "test_accuracy" if classifies else "test_neg_root_mean_squared_error"
    errors = tuple(float(1 - s[first][0] if classifies else -s[first][0]) for s in scores)
    score = float(np.mean([s["test_accuracy" if classifies else "test_r2"][0] for s in scores]))
    fitted = scores[-1]["estimator"][0]
    last = fitted[-1] if hasattr(fitted, "steps") else fitted
    chosen = getattr(getattr(last, "selection_", None), "reason", "")
    fit_seconds = float(np.median([s["fit_time"][0] for s in scores]))
    return Result(
        candidate.name, candidate.estimator, candidate.ours, errors, score, fit_seconds,
        float(np.median([s["predict_seconds"] for s in scores])), str(chosen),
    )  # fmt: skip
