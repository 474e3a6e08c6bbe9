"""`recommend` with targets: an honest protocol, ties by paired differences, and code that runs."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import bochner
from bochner import kernels, maps
from bochner.selection import _peers, _rivals
from bochner.selection._budget import Budget
from bochner.selection._contenders import Bandwidths, lowest
from bochner.selection._cross_validation import critical, difference, run_race
from bochner.selection._judge import _notes
from bochner.selection._leave_one_out import ALPHAS, ridge_by_leave_one_out
from bochner.selection._peers import peers
from bochner.selection._task import Task
from bochner.selection._verdicts import verdicts
from support.contenders import Guess

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (160, 2))
Y = np.sin(3 * X[:, 0]) + 0.1 * RNG.standard_normal(160)

LABELS = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
PLENTY = 1e6
"""Seconds that no machine needs, so that a budget changes nothing."""


@pytest.fixture(scope="module", autouse=True)
def quick_rivals():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_peers, "_RATES", (0.1, 0.2))
        patch.setattr(_rivals, "MOST_TREES", 20)
        patch.setattr(_peers, "_COSTS", (1.0, 10.0))
        yield


@pytest.fixture(scope="module")
def decision():
    return bochner.recommend(X, kernel="matern-3/2", y=Y, n_features=24, rng=0, budget=PLENTY)


@pytest.fixture(scope="module")
def classes():
    return bochner.recommend(X, kernel="laplacian", y=LABELS, n_features=24, rng=0, budget=PLENTY)


def squares(scores, T):
    return ((scores - T) ** 2)[:, 0]


def left_out(Z, T, alpha, i):
    """Squared error of row i under a ridge on the other rows."""
    z, t = np.delete(Z, i, 0), np.delete(T[:, 0], i)
    centred = z - z.mean(0)
    B = np.linalg.solve(centred.T @ centred + alpha * np.eye(Z.shape[1]), centred.T @ (t - t.mean()))
    return (t.mean() + (Z[i] - z.mean(0)) @ B - T[i, 0]) ** 2


@pytest.mark.parametrize("m", (5, 40), ids=("more rows", "more features"))
@pytest.mark.parametrize("tails", ("normal", "heavy"))
def test_leave_one_out_is_that_of_leaving_out_each_row(m, tails):
    """Heavy tails: Cauchy noise in features and targets, and one target that is a million times the others."""
    rng = np.random.default_rng(1)
    Z, noise = rng.standard_normal((30, m)), rng.standard_normal((30, 1))
    if tails == "heavy":
        Z, noise = Z + 0.1 * rng.standard_cauchy((30, m)), rng.standard_cauchy((30, 1))
        noise[7] = 1e6
    T = Z[:, :1] + noise
    fit = ridge_by_leave_one_out(Z, T, squares)
    brute = [np.mean([left_out(Z, T, alpha, i) for i in range(30)]) for alpha in ALPHAS]
    assert fit.alpha == ALPHAS[int(np.argmin(brute))]
    assert fit.loss == pytest.approx(1.001 * min(brute), rel=1e-5)
    np.testing.assert_allclose(fit(Z)[:, 0], Ridge(fit.alpha).fit(Z, T[:, 0]).predict(Z), rtol=1e-5, atol=1e-6)


def test_the_search_for_a_bandwidth_goes_as_far_as_it_must():
    for optimum in (0.1, 0.3, 1.0, 6.0, 15.0):
        assert abs(np.log2(lowest(lambda f, at=optimum: abs(np.log(f / at))) / optimum)) <= 0.26


def test_no_contender_sees_the_targets_of_its_test_rows_and_folds_cover_all_rows():
    task = Task.of(X, Y, None, 0, owner="test")
    guess = Guess("a", 0.1)
    race = run_race(task, [guess], 0, Budget(PLENTY), shown=False)
    assert race.n_cut == 0 and not race.left_out and race.records[0].judged.all()
    for (rows, part), seen in zip(task.parts(), guess.seen, strict=True):
        assert not set(map(tuple, seen.X)) & set(map(tuple, seen.X_test)) and len(seen.X) == len(seen.y) == len(
            X
        ) - len(rows)
        np.testing.assert_array_equal(part.y, seen.y)


def test_columns_are_standardised_by_their_training_rows():
    task = Task.of(X * [1, 100] + [0, 5], Y, None, 0, scaled=1, owner="test")
    for rows, part in task.parts():
        np.testing.assert_allclose([part.X[:, 0].mean(), part.X[:, 0].std()], [0, 1], atol=1e-12)
        assert abs(part.X_test[:, 0].mean()) > 1e-6
        np.testing.assert_array_equal(part.X_test[:, 1], task.X[rows, 1])


def test_what_is_equal_is_decided_by_paired_differences():
    task = Task.of(X, Y, None, 0, owner="test")
    good, same, bad = Guess("good", 0.1), Guess("same", 0.1), Guess("bad", 0.5)
    records = run_race(task, [good, same, bad], 0, Budget(PLENTY), shown=False).records
    equal, worse = (difference(task, record, records[0]) for record in records[1:])
    assert abs(equal.difference) < critical(2) * equal.standard_error
    assert worse.difference > 5 * worse.standard_error
    assert worse.difference == pytest.approx(task.error(records[2].losses) - task.error(records[0].losses))


class Timed(Guess):
    """A guess with the time of its fit."""

    def __init__(self, label, noise, seconds, ours=False):
        super().__init__(label, noise)
        self.fit_seconds, self.ours = seconds, ours

    def judge(self, part, task, seed, shared):
        return super().judge(part, task, seed, shared)._replace(fit_seconds=self.fit_seconds)


def test_each_rival_is_met_by_the_best_of_ours_that_takes_no_more_time():
    task = Task.of(X, Y, None, 0, owner="test")
    ours = [Timed("quick", 0.5, 0.01, ours=True), Timed("good", 0.1, 1.0, ours=True)]
    rivals = [Timed("slow equal", 0.1, 2.0), Timed("slow bad", 0.5, 2.0), Timed("fast good", 0.1, 0.9)]
    rivals += [Timed("faster", 0.1, 0.001), Timed("exact", 1e-3, 1.0)]
    records = run_race(task, [*ours, *rivals], 0, Budget(PLENTY), shown=False).records
    found = verdicts(task, records, records[1], critical(6))
    assert [(v.rival, v.ours, v.result, v.in_time) for v in found] == [
        ("slow equal", "good", "tied", True),
        ("slow bad", "good", "better", True),
        ("fast good", "quick", "worse", True),
        ("faster", "good", "tied", False),
        ("exact", "good", "worse", True),
    ]
    assert re.fullmatch(
        r"Against slow bad \(2 s\): good \(1 s\) is better, RMSE lower by 0\.\d+ \+- 0\.\d+, at no more time\.",
        found[1].sentence,
    )
    twin = Timed("twin", 0.1, 0.95, ours=True)
    again = run_race(task, [twin, *ours, *rivals], 0, Budget(PLENTY), shown=False).records
    assert {v.ours for v in verdicts(task, again, again[0], critical(6)) if v.rival != "fast good"} == {"twin"}
    assert found[3].sentence == "Against faster (1 ms): nothing of ours fits as fast; good (1 s) is tied with it."
    records[2].forget(next(iter(task.parts()))[0])
    assert verdicts(task, records, records[1], critical(6))[0].sentence.endswith("at no more time (on 4 of 5 folds).")


def test_every_mechanism_and_its_rivals_are_judged(decision):
    labels = [line.label for line in decision.lines]
    assert {"exact kernel ridge", "Nystroem + Ridge (scikit-learn)", "SVR (scikit-learn)"} < set(labels)
    assert "HistGradientBoostingRegressor (scikit-learn)" in labels
    assert any(isinstance(line.spec.map, maps.Landmarks) for line in decision.ranking)
    assert all(line.width == 24 and line.fit_seconds > 0 and line.seconds_per_row > 0 for line in decision.ranking)
    assert decision.lines[0].error == min(line.error for line in decision.lines if line.n_folds == 5)
    exact = next(line for line in decision.lines if line.label == "exact kernel ridge")
    assert exact.error < 0.5 * Y.std()


def test_the_recommended_mechanism_is_one_of_the_equal_ones_and_goes_into_an_estimator(decision):
    from bochner.learn import KernelRidge

    assert decision.recommended in decision.equal_mechanisms
    assert isinstance(decision.best.kernel, kernels.Matern) and decision.best.kernel.lengthscale != 1.0
    model = KernelRidge.from_spec(decision.best, alpha=decision.alpha, random_state=0).fit(X[:120], Y[:120])
    assert model.score(X[120:], Y[120:]) > 0.5


def test_every_code_to_paste_runs(decision, classes):
    for found, y in ((decision, Y), (classes, LABELS)):
        for line in found.lines:
            names = {"X": X, "y": y}
            exec(found.code_of(line), names)
            assert line.snippet is None or names["model"].score(X, y) > 0.2, line.label
        assert found.code in str(found)


def test_it_says_in_words_what_is_equal(decision, classes):
    for found in (decision, classes):
        equal = [line for line in found.lines if line.equal]
        assert f"These {len(equal)} are equal" in found.sentences[0] or len(equal) == 1
        assert found.sentences[-1].startswith(f"Recommended: {found.recommended.label}")
        assert found.table().splitlines()[0].startswith("estimator")
        assert [v.rival for v in found.verdicts] == [r.label for r in peers(found.task, Bandwidths(None, True), 24)]
        assert {v.sentence for v in found.verdicts} < set(found.sentences)
        json.dumps(found.as_dict())
    assert classes.task.measure == "error rate" and "KernelClassifier" in classes.code


def test_fewer_folds_are_undecided_and_not_worse(decision):
    """What the budget left with fewer folds, and within the critical difference, is not called worse than the lowest."""
    lowest, *others = decision.lines
    few = [replace(line, equal=False, undecided=line.equal, n_folds=1) for line in others]
    found = replace(decision, lines=(lowest, *few), recommended=lowest, equal_mechanisms=(lowest,))
    n = sum(line.undecided for line in few)
    assert n and f"has the lowest error of those judged on {lowest.n_folds} folds" in found.sentences[0]
    assert found.sentences[1].startswith(f"Judged on fewer folds, {n} more are not told apart: ")
    assert sum("undecided" in row for row in found.table(None).splitlines()) == n
    assert not any("undecided" in row for row in decision.table(None).splitlines())
    assert {line.label for line in found.chosen(14)} == {
        line.label for line in (lowest, *few) if line.spec is None or line is lowest
    }


def test_the_same_seed_gives_the_same_decision(classes):
    again = bochner.recommend(X, kernel="laplacian", y=LABELS, n_features=24, rng=0, budget=PLENTY)
    assert [line.error for line in again.ranking] == [line.error for line in classes.ranking]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"y": Y[:10]}, r"y must have one target for each of 160 rows, got shape \(10,\)"),
        ({"y": np.full(160, np.nan)}, r"y must be finite, got 160 missing or infinite targets"),
        ({"y": np.ones(160)}, r"y is constant"),
        ({"y": Y, "Y": X}, r"Y holds keys and y targets"),
        ({"y": Y, "tolerance": 0.1}, r"tolerance is an error of the Gram matrix"),
        ({"y": Y, "task": "ranking"}, r"task must be one of"),
        ({"y": LABELS, "task": "regression"}, r"regression needs numbers: use task='classification'"),
        ({"y": Y, "task": "classification"}, r"fewer than 5 rows per class"),
        ({"y": Y, "kernel": "matern-3/2", "positive": True}, r"is too small for any positive mechanism"),
        ({"y": Y, "budget": 0.0}, r"budget must be a positive number"),
    ],
)
def test_bad_targets_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        bochner.recommend(X, **options)


def test_the_task_follows_from_the_targets():
    kinds = [Task.of(X, y, None, 0, owner="test").kind for y in (Y, np.arange(160) % 4, Y > 0, np.arange(160.0))]
    assert kinds == ["regression", "classification", "classification", "regression"]
    letters = np.arange(1000) % 26
    guessed, given = (Task.of(np.ones((1000, 1)), letters, kind, 0, owner="test") for kind in (None, "regression"))
    assert guessed.kind == "regression" and guessed.doubtful and not given.doubtful
    assert not Task.of(X, np.arange(160.0), None, 0, owner="test").doubtful
    race = run_race(guessed, [Guess("a", 0.1)], 0, Budget(PLENTY), shown=False)
    assert (
        "was taken for a number; give the task if it is a class." in _notes(guessed, race, 1.0, True, complete=True)[1]
    )
