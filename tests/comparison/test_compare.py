"""Estimators are judged on the same folds, the best is recommended with code that runs, and a budget is kept."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_score

import bochner
from bochner.comparison import Comparison, Result, _run
from bochner.comparison._candidates import DEFAULTS, EstimatorCandidate, standard_candidates
from bochner.comparison._source import source
from support.checks import PART, THOROUGH

RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, (150, 3))
Y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * RNG.standard_normal(150)
PLENTY = 1e6  # seconds that no machine needs


@pytest.fixture
def few(monkeypatch):
    """Only the fastest of the standard candidates."""
    quick = ("constant", "linear model")
    chosen = lambda *args, **options: [c for c in standard_candidates(*args, **options) if c.name in quick]  # noqa: E731
    monkeypatch.setattr(_run, "standard_candidates", chosen)


@pytest.fixture(scope="module")
def found():
    return bochner.compare(X, Y, budget=PLENTY)


def test_everything_is_judged_on_the_same_folds(found):
    names = {result.name for result in found.results}
    assert names >= {"KernelRidge()", "GaussianProcess()", "constant", "linear model", "boosted trees", "extra trees"}
    assert names >= {"RBFSampler + ridge", "Nystroem + ridge", "support vectors"} and not found.left_out
    assert (
        all(len(result.errors) == found.n_folds == 5 for result in found.results)
        and found.n_used == found.n_rows == 150
    )
    errors = [result.error for result in found.results]
    assert errors[1:] == sorted(errors[1:]) and found.best is found.results[0]
    assert found.default.name == "KernelRidge()"
    seed = int(np.random.default_rng(0).integers(2**31))
    folds = KFold(5, shuffle=True, random_state=seed)
    linear = found["linear model"]
    expected = -cross_val_score(linear.estimator, X, Y, cv=folds, scoring="neg_root_mean_squared_error")
    np.testing.assert_allclose(linear.errors, expected)


def test_it_says_what_won_by_how_much_and_why(found):
    text = str(found)
    assert text == repr(found) and found.headline.startswith(f"Use {found.best.name}: RMSE ")
    assert "% below a constant" in found.headline and "% below the linear model" in found.headline
    assert all(f" {name}" in found.headline for name in ("RBFSampler + ridge", "Nystroem + ridge", "boosted trees"))
    assert found.reasons[0].startswith("A fit takes ")
    assert any(reason.startswith("The relation is not linear: a linear model has") for reason in found.reasons)
    assert len(found.sentences) == len(found.results)
    mean, error = found.difference(found["constant"])
    sentence = next(s for s in found.sentences if s.startswith("Constant: worse by "))
    assert f"{mean:.2f}"[:3] in sentence and "paired over 5 folds" in sentence and error > 0
    json.dumps(found.as_dict())


@pytest.mark.filterwarnings("ignore:n_components > n_samples")
def test_every_code_runs_and_is_the_estimator_that_was_judged(found):
    for result in found.results:
        names = {"X": X, "y": Y}
        exec(result.code, names)
        assert repr(names["model"]) == repr(result.estimator), result.name
        assert names["model"].predict(X).shape == Y.shape
    assert found.code == found.best.code


def result(name, errors, ours=False, fit_seconds=1.0):
    return Result(name, LinearRegression(), ours, tuple(errors), 0.5, fit_seconds, 0.001)


def comparison(*results):
    return Comparison(tuple(results), "regression", 100, 100, len(results[0].errors), {}, (), 1.0)


def test_verdicts_have_the_level_that_they_claim():
    """Errors of two equal estimators, correlated over folds as overlapping training rows make them, differ in 5 %."""
    rng = np.random.default_rng(0)
    n, wrong, k = 4000, 0, 5
    for _ in range(n):
        # a part that all folds share, with the variance by which Nadeau and Bengio correct: rho = 1/k of all of it
        shared, own = rng.standard_normal() * np.sqrt(1 / k), rng.standard_normal(k) * np.sqrt(1 - 1 / k)
        judged = comparison(result("a", np.zeros(k)), result("b", shared + own))
        wrong += judged.verdict(judged["b"]) != "undecided"
    assert abs(wrong / n - 0.05) < 5 * np.sqrt(0.05 * 0.95 / n)


def test_verdicts_of_clear_cases():
    judged = comparison(result("a", [1.0, 1.1, 0.9]), result("b", [2.0, 2.1, 1.9]), result("c", [1.0, 1.1, 0.9]))
    assert judged.verdict(judged["b"]) == "worse" and judged.verdict(judged["a"], judged["b"]) == "better"
    assert judged.verdict(judged["c"]) == "undecided" and judged.undecided == (judged["c"],)
    with pytest.raises(KeyError, match="there is no estimator 'd'; there are a, b, c"):
        judged["d"]


def test_the_default_is_recommended_unless_another_is_better_beyond_noise():
    default, other = result("KernelRidge()", [1.0, 1.2, 0.9], ours=True), result("trees", [0.9, 1.25, 0.8])
    assert [r.name for r in _run._ranked([other, default])] == ["KernelRidge()", "trees"]
    better = result("trees", [0.5, 0.7, 0.4])
    assert [r.name for r in _run._ranked([default, better, other])] == ["trees", "trees", "KernelRidge()"]


def test_the_recommended_one_is_called_best_only_if_it_is():
    default, other = result("KernelRidge()", [1.0, 1.2, 0.9], ours=True), result("trees", [0.9, 1.25, 0.8])
    behind, ahead = comparison(default, other), comparison(default, result("trees", [2.0, 2.1, 1.9]))
    assert behind.row(default)[4] == "default" and ahead.row(default)[4] == "best"
    assert "the default, which no other beats by more than noise" in behind.sentences[0]
    assert "the best" in ahead.sentences[0]


def test_a_target_that_nothing_predicts_is_said():
    judged = comparison(result("KernelRidge()", [1.0, 1.2, 0.9], ours=True), result("constant", [0.9, 1.25, 0.8]))
    assert judged.reasons[1] == "A constant is not clearly worse: no estimator is shown to predict the target."


def test_headline_names_what_the_folds_cannot_tell_from_the_best():
    others = [
        result(name, [error - 3, error, error + 3]) for name, error in (("linear model", 1.2), ("boosted trees", 1.1))
    ]
    judged = comparison(result("KernelRidge()", [1.0, 1.1, 0.9], ours=True), *others)
    assert judged.headline.endswith(
        "; not significantly different from the linear model (1.2) and boosted trees (1.1)."
    )


@pytest.mark.parametrize("error, named", [(1.1, True), (4.0, False)])
def test_a_faster_estimator_is_named_only_if_its_error_is_close(error, named):
    quick = result("trees", [error - 3, error, error + 3], fit_seconds=0.1)  # undecided in both cases
    judged = comparison(result("KernelRidge()", [1.0, 1.1, 0.9], ours=True), quick)
    assert judged.undecided == (quick,)
    assert any("a fit is 10 times faster" in reason for reason in judged.reasons) is named


def test_classes_are_told_from_numbers():
    rows = X[:80]
    labels = np.where(rows[:, 0] > 0, "high", "low")
    found = bochner.compare(rows, labels, budget=PLENTY)
    assert found.task == "classification" and found.measure == "error rate"
    assert found["constant"].error > 0.3 > found.best.error
    names = {"X": rows, "y": labels}
    exec(found.code, names)
    assert set(names["model"].predict(X)) <= {"high", "low"}


def test_whole_numbers_may_be_a_regression(few):
    assert bochner.compare(X, np.round(Y), budget=PLENTY).task == "classification"
    assert bochner.compare(X, np.round(Y), task="regression", budget=PLENTY).task == "regression"


def test_missing_numbers_are_read(few):
    gaps = X.copy()
    gaps[::7, 2] = np.nan
    found = bochner.compare(gaps, Y, budget=PLENTY)
    assert "add_indicator=True" in found["linear model"].code and found.n_folds == 5
    assert found.notes[0].startswith("22 of 150 rows have missing numbers")
    names = {"X": gaps, "y": Y}
    exec(found.code, names)


def test_estimators_of_the_user_are_judged_too(few):
    found = bochner.compare(X, Y, candidates={"plain": LinearRegression()}, budget=PLENTY)
    assert found["plain"].error == pytest.approx(found["linear model"].error, rel=0.05)
    with pytest.raises(ValueError, match="the name 'constant' belongs to another estimator"):
        bochner.compare(X, Y, candidates={"constant": LinearRegression()})
    with pytest.raises(TypeError, match="candidate 'mine' must be an estimator with fit and predict, got 3"):
        bochner.compare(X, Y, candidates={"mine": 3})


def test_an_estimator_that_fails_is_left_out_with_its_reason(few):
    class Failing(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            raise ValueError("it cannot")

        def predict(self, X):
            return np.zeros(len(X))

    found = bochner.compare(X, Y, candidates={"broken": Failing()}, budget=PLENTY)
    assert found.left_out == {"broken": "since its fit failed (ValueError: it cannot)"}
    assert "Not evaluated: broken, since its fit failed" in str(found)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ((X, Y[:-1]), ValueError, "X has 150 rows and y 149 targets; each row needs one"),
        ((X[:10], Y[:10]), ValueError, "10 rows are too few for 5 folds; at least 20 are needed"),
        ((X, np.ones(150)), ValueError, "y holds one class"),
        (
            (X, [f"n{k // 2}" for k in range(150)]),
            ValueError,
            "no class of y has 5 rows, .* it names rows, not classes",
        ),
        ((X, Y * 1e300), ValueError, r"^compare: y has numbers of at most .*, whose squares would overflow"),
        ((X, Y * 1e-300), ValueError, r"^compare: y has numbers of at most .*, whose squares would vanish"),
        ((X, np.full(150, 0.5)), ValueError, "every target is 0.5; there is nothing to predict"),
        ((X, [None, *Y[1:]]), ValueError, "y is missing in 1 rows, the first of them row 1"),
        ((X, np.column_stack([Y, Y])), ValueError, r"y must have one target per row, got shape \(150, 2\)"),
        ((X * np.inf, Y), ValueError, "X holds infinite numbers"),
        ((X[:, 0], Y), ValueError, r"X must be a table of rows and columns, got shape \(150,\)"),
        ((np.full((150, 2), "a"), Y), ValueError, "X must hold numbers. Encode categories with pandas.get_dummies"),
    ],
)
def test_bad_input_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        bochner.compare(*arguments)


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="task must be one of 'regression', 'classification', got 'ranking'"):
        bochner.compare(X, Y, task="ranking")
    with pytest.raises(ValueError, match="n_folds must be at least 3, got 2"):
        bochner.compare(X, Y, n_folds=2)
    with pytest.raises(ValueError, match="budget must be a positive number"):
        bochner.compare(X, Y, budget=0)
    with pytest.raises(ValueError, match="y holds text such as 'a'; regression needs numbers"):
        bochner.compare(X, ["a", "b"] * 75, task="regression")


def test_data_frames_with_text_are_refused_with_the_name_of_the_column():
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["colour"] = "red"
    with pytest.raises(ValueError, match="X must hold numbers; columns colour do not"):
        bochner.compare(frame, Y)


class Clock:
    """Stands for the clock, so that what a budget allows does not depend on the machine."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Slow(RegressorMixin, BaseEstimator):
    """Predicts the mean after a time that grows with the rows, on the clock of the test."""

    clock = None
    neighbour = staticmethod(lambda now: 1.0)

    def __init__(self, scale=1.0, power=1.0, call=0.0):
        self.scale, self.power, self.call = scale, power, call

    def fit(self, X, y):
        Slow.clock.now += self.scale * len(X) ** self.power * Slow.neighbour(Slow.clock.now)
        self.mean_ = np.mean(y)
        return self

    def predict(self, X):
        Slow.clock.now += self.call + 1e-6 * len(X)
        return np.full(len(X), self.mean_)


def run_with(monkeypatch, candidates, n, budget, neighbour=lambda now: 1.0):
    clock = Clock()
    monkeypatch.setattr(_run, "clock", clock)
    monkeypatch.setattr(_run, "standard_candidates", lambda *args, **options: candidates)
    monkeypatch.setattr(Slow, "clock", clock)
    monkeypatch.setattr(Slow, "neighbour", staticmethod(neighbour))
    rng = np.random.default_rng(0)
    return _run.compare(rng.standard_normal((n, 2)), rng.standard_normal(n), budget=budget), clock.now


BUSY = {
    "idle": lambda now: 1.0,
    "busy from the start": lambda now: 3.0,
    "busy from the middle on": lambda now: 1.0 if now < 30 else 3.0,
}


@pytest.mark.parametrize("neighbour", BUSY)
@pytest.mark.parametrize("n", [300, 3000, 100_000])
@pytest.mark.parametrize("power", [1.0, 1.7])
def test_a_budget_is_kept_or_fewer_rows_are_taken_and_said(monkeypatch, neighbour, n, power):
    slow = [EstimatorCandidate(f"slow {k}", Slow(2e-4 * k, power), growth=power) for k in range(1, 6)]
    needed = [
        EstimatorCandidate("constant", Slow(1e-6), needed=True),
        EstimatorCandidate("linear model", Slow(1e-4), needed=True),
    ]
    found, took = run_with(monkeypatch, [*needed, *slow], n, 60.0, BUSY[neighbour])
    assert took <= 1.3 * 60
    assert (
        len(found.results) >= 2
        and found.n_folds >= 3
        and {"constant", "linear model"} <= {r.name for r in found.results}
    )
    assert found.n_used == n or f"{found.n_used} of {n} rows were used" in found.notes[0]
    assert found.n_folds == 5 or f"{found.n_folds} of 5 folds" in found.notes[-1]
    assert {c.name for c in slow} == {r.name for r in found.results[:]} & {c.name for c in slow} | set(found.left_out)


def test_the_time_of_1000_predictions_is_that_of_one_call(monkeypatch):
    candidates = [EstimatorCandidate(f"slow {k}", Slow(1e-6, call=0.01 * k), needed=True) for k in range(1, 3)]
    found, _ = run_with(monkeypatch, candidates, 200, 60.0)
    assert [found[f"slow {k}"].predict_seconds for k in range(1, 3)] == pytest.approx([0.011, 0.021])


def test_more_rows_are_used_if_the_folds_are_faster_than_the_trials_predicted(monkeypatch):
    first_fits = {"n": 0}

    def compiling(now):
        first_fits["n"] += 1
        return 300.0 if first_fits["n"] <= 12 else 1.0  # all fits of the trials

    quick = [EstimatorCandidate(f"quick {k}", Slow(1e-4), needed=True) for k in range(3)]
    found, took = run_with(monkeypatch, quick, 20_000, 120.0, compiling)
    assert found.n_used > 10_000 and took < 120 and not found.left_out


def test_first_fits_that_compile_and_import_leave_nothing_out(monkeypatch):
    """On a fresh machine the first fit of each takes seconds, and any other milliseconds."""
    begun = set()

    class Cold(Slow):
        def fit(self, X, y):
            Slow.clock.now += 0 if self.scale in begun else 3.0
            begun.add(self.scale)
            return super().fit(X, y)

    cold = [EstimatorCandidate(f"cold {k}", Cold(1e-5 * (k + 1)), needed=k < 2) for k in range(6)]
    found, took = run_with(monkeypatch, cold, 2000, 45.0)
    assert found.n_used == 2000 and found.n_folds == 5 and not found.left_out and took < 45


def test_what_takes_far_longer_than_the_rest_is_left_out_and_not_the_rows(monkeypatch):
    quick = [EstimatorCandidate(f"quick {k}", Slow(1e-6), needed=k < 2) for k in range(4)]
    found, took = run_with(monkeypatch, [*quick, EstimatorCandidate("cubic", Slow(1e-6, 3.0), growth=3.0)], 2000, 60.0)
    assert found.n_used == 2000 and set(found.left_out) == {"cubic"} and took < 60
    assert "since a fit of 500 rows would take about 64 s" in found.left_out["cubic"]
    assert found.not_judged == ("Not evaluated for lack of time: cubic.",)


def test_quick_estimators_are_judged_beside_a_slow_one_that_needs_fewer_rows(monkeypatch):
    """On a busy machine one fit of the default on 500 rows took too long, and whatever was not needed was left out."""
    machine = EstimatorCandidate("machine", Slow(0.02), needed=True)
    quick = [EstimatorCandidate(f"quick {k}", Slow(0.002 * k)) for k in range(1, 3)]
    found, took = run_with(monkeypatch, [machine, *quick], 1797, 60.0)
    assert 200 <= found.n_used < 500 and {r.name for r in found.results} == {"machine", "quick 1", "quick 2"}
    assert {len(result.errors) for result in found.results} == {5} and not found.left_out and took < 60


def test_source_of_estimators_with_long_and_nested_arguments():
    for candidate in [*standard_candidates(True, 7), *standard_candidates(False, 7, gaps=True)]:
        imports, expression = source(candidate.estimator)
        names = {}
        exec("\n".join(imports), names)
        assert repr(eval(expression, names)) == repr(candidate.estimator)
        assert max(map(len, expression.splitlines())) <= 110


PROBLEMS = {
    "smooth": lambda X: np.sin(X[:, 0]) * X[:, 1],
    "linear": lambda X: X @ [1.0, -2.0, 0.5],
    "steps": lambda X: np.floor(X[:, 0]) + (X[:, 1] > 0),
}


@pytest.mark.parametrize("problem", PROBLEMS if THOROUGH else [list(PROBLEMS)[PART % len(PROBLEMS)]])
def test_what_is_recommended_is_not_worse_than_the_default_on_new_rows(problem):
    """On 2000 new rows, by more than five standard errors of the paired squared errors."""
    rng = np.random.default_rng(2)
    rows = rng.uniform(-3, 3, (2200, 3))
    y = PROBLEMS[problem](rows) + 0.2 * rng.standard_normal(2200)
    found = bochner.compare(rows[:200], y[:200], budget=PLENTY)
    recommended, default = (
        (r.estimator.fit(rows[:200], y[:200]).predict(rows[200:]) - y[200:]) ** 2 for r in (found.best, found.default)
    )
    differences = recommended - default
    assert differences.mean() <= 5 * differences.std() / np.sqrt(2000)


def test_times_are_predicted_from_the_trials_on_the_most_rows():
    run = _run.Run(np.zeros((1000, 2)), np.zeros(1000), False, seed=0, budget=10.0, start=0.0, n_folds=5)
    candidate = EstimatorCandidate("machine", None)
    run.trials["machine"] = [(50, 0.1), (150, 0.2), (450, 1.6), (450, 1.5)]  # times of few rows grow faster than rows
    assert run.seconds_of(candidate, 900) == pytest.approx(3.0)


@pytest.mark.parametrize("classifies", [False, True])
def test_what_the_headline_names_is_judged_before_what_it_does_not(classifies):
    names = [candidate.name for candidate in standard_candidates(classifies, 4)]
    named = {"constant", "linear model", "boosted trees", "RBFSampler + ridge", "Nystroem + ridge"}
    assert names[0] in DEFAULTS
    assert set(names[1:6]) == named
