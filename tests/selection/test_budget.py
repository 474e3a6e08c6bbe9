"""The budget of a comparison: what is tried, shortened, left out or interrupted, by a clock that is not the machine's."""

from __future__ import annotations

import numpy as np
import pytest

import bochner
from bochner import Approximation, kernels
from bochner.selection import _budget, _cross_validation, _trial
from bochner.selection._budget import Budget, OutOfTime, Shared
from bochner.selection._contenders import Bandwidths
from bochner.selection._cross_validation import run_race
from bochner.selection._judge import _mechanisms, _notes
from bochner.selection._task import Task
from support.contenders import Clock, Guess, Slow

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (2000, 2))
Y = np.sin(3 * X[:, 0]) + 0.1 * RNG.standard_normal(2000)
TASK = Task.of(X, Y, None, 0, owner="test")
DEFAULT, SPEC = Approximation(kernels.Gaussian()), bochner.mechanism("rff")


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for module in (_budget, _cross_validation):
        monkeypatch.setattr(module, "time", clock)
    return clock


def field(clock, speed, n=30):
    """A default mechanism, two rivals of different growth, and further mechanisms, on a machine of some speed."""
    needed = [
        Slow(clock, 1e-4 / speed, "default", 0.2, DEFAULT),
        Slow(clock, 2e-4 / speed, "rival", 0.1),
        Slow(clock, 1e-7 / speed, "quadratic", 0.1, power=2.0),
    ]
    return [*needed, *(Slow(clock, 1e-4 / speed, str(k), 0.2, SPEC, fits=1) for k in range(n))], len(needed)


@pytest.mark.parametrize("speed", (1e-3, 0.1, 0.3, 1.0, 3.0, 100.0))
@pytest.mark.parametrize("budget", (3.0, 15.0, 100.0))
def test_a_race_ends_within_its_budget_on_a_machine_of_any_speed(clock, budget, speed):
    contenders, n_needed = field(clock, speed)
    race = run_race(TASK, contenders, 0, Budget(budget), shown=False, n_needed=n_needed)
    one = 5e-4 / speed * _trial.ROWS  # seconds of the first mechanism with the fewest rows, which is judged in any case
    assert race.seconds == clock.now <= 1.1 * budget + 4 * one
    assert race.records[0].settings
    if speed * budget >= 15:
        assert len(race.task.y) > _trial.ROWS and {len(record.settings) for record in race.records[:3]} == {5}
    if speed * budget >= 300:
        assert len(race.task.y) == 2000 and race.n_cut == 0 and not race.left_out


def test_rows_are_halved_until_all_folds_fit(clock):
    counts = []
    for speed in (20.0, 1.0, 0.3, 0.01):
        contenders, n_needed = field(clock, speed, n=0)
        counts.append(len(run_race(TASK, contenders, 0, Budget(15.0), shown=False, n_needed=n_needed).task.y))
    assert counts == [2000, 1000, 250, 250]


def test_what_does_not_fit_is_named_with_its_reason(clock):
    contenders, n_needed = field(clock, 1.0)
    slow = Slow(clock, 0.0035, "boosting", 0.1)  # 3.5 s for the rows of a trial alone
    race = run_race(TASK, [*contenders[:2], slow, *contenders[3:]], 0, Budget(15.0), shown=False, n_needed=n_needed)
    assert "boosting" in race.left_out and "one fold of 250 rows takes" in race.left_out["boosting"]
    (_, said) = _notes(TASK, race, 15.0, True, complete=False)
    assert said.startswith("To keep the budget of 15 s, ") and said.endswith(
        "and other mechanisms were not considered; a larger budget decides more."
    )
    assert f"{len(race.task.y)} rows were used in place of 2000" in said
    assert f"boosting was left out ({race.left_out['boosting']})" in said


def test_a_contender_that_is_slower_than_its_trial_is_interrupted(clock):
    class Stuck(Slow):
        def work(self, n, d, t):
            return 1.0  # as if rows cost nothing

    contenders, _ = field(clock, 1.0, n=0)
    stuck = Stuck(clock, 2e-7, "stuck", 0.1, fits=50, power=2.0)
    race = run_race(TASK, [*contenders, stuck], 0, Budget(15.0), shown=False, n_needed=4)
    assert race.left_out.keys() <= {"stuck"} and race.seconds <= 1.1 * 15
    assert {len(record.settings) for record in race.records[:3]} == {5}


def test_a_search_asks_before_each_fit_whether_there_is_time(clock):
    shared = Shared()
    shared.begin(10.0)
    for _ in range(3):
        shared.check()
        clock.now += 3.0
    with pytest.raises(OutOfTime):
        shared.check()
    shared.begin(1.0)
    shared.check()


def test_little_time_goes_to_the_plain_mechanism_and_to_rivals_first(clock):
    contenders, n_needed = field(clock, 1.0)
    race = run_race(TASK, contenders, 0, Budget(4.5), shown=False, n_needed=n_needed)
    folds = [len(record.settings) for record in race.records]
    assert folds[:3] == [5, 5, 5] and min(folds[3:]) < 5


def test_better_mechanisms_run_on_more_folds(clock):
    task = Task.of(X[:160], Y[:160], None, 0, owner="test")
    contenders = [Slow(clock, 1e-4, str(k), 0.5 - 0.02 * k, SPEC, fits=1) for k in range(20)]
    race = run_race(task, [*contenders, Slow(clock, 1e-4, "rival", 0.1, fits=1)], 0, Budget(0.75), shown=False)
    folds = [len(record.settings) for record in race.records]
    assert folds[-1] == folds[19] == 5 and folds[0] < 5 and race.n_cut > 0 and race.seconds <= 0.8


def test_a_fold_that_ends_too_late_is_forgotten(monkeypatch, clock):
    task = Task.of(X[:160], Y[:160], None, 0, owner="test")
    contenders = [Slow(clock, 1e-4, str(k), 0.1, SPEC, fits=1) for k in range(4)]
    monkeypatch.setattr(_cross_validation, "_LATE", 0.0)
    race = run_race(task, contenders, 0, Budget(5.0), shown=False)
    assert {len(record.settings) for record in race.records} == {1} and race.n_cut == 4
    assert all(record.judged.sum() == 32 for record in race.records)


def test_mechanisms_are_planned_as_long_as_there_is_time(clock):
    def planned(seconds):
        budget = Budget(seconds)
        clock.now += 1.0
        return _mechanisms(TASK.first(100), Bandwidths(kernels.Laplacian(), True), 16, 0, False, budget)

    (few, complete), (every, all_of_them) = planned(0.5), planned(100.0)
    assert not complete and all_of_them and few == every[:1] and len(every) > 2
    assert few[0].projection == Approximation(kernels.Laplacian()).projection


def test_time_spent_on_reading_counts(clock):
    budget = Budget(20.0, spent=5.0)
    clock.now += 4.0
    assert (budget.spent, budget.left) == (9.0, 11.0)


def test_fewer_rows_keep_all_classes_and_their_shares():
    y = np.where(np.arange(2000) < 1980, RNG.choice(["a", "b"], 2000, p=[0.75, 0.25]), "rare")
    few = Task.of(X, y, None, 0, owner="test").first(250)
    values, counts = np.unique(few.y, return_counts=True)
    assert list(values) == ["a", "b", "rare"] and counts[2] == 10 and abs(counts[0] / counts.sum() - 0.75) < 0.06
    assert few.T.shape == (len(few.y), 3) and few.n_given == 2000
    for k in range(5):
        assert set(few.y[few.fold == k]) == {"a", "b", "rare"}
    np.testing.assert_array_equal(few.X, Task.of(X, y, None, 0, owner="test").first(250).X)
    assert TASK.first(5000) is TASK and len(TASK.first(300).y) == 300


def test_a_failing_mechanism_is_told_and_does_not_stop_the_trial(clock):
    class Broken(Guess):
        def judge(self, part, task, seed, shared):
            raise FloatingPointError("its features overflow")

    contenders, _ = field(clock, 10.0, n=0)
    race = run_race(TASK, [*contenders, Broken("broken", 0.1, SPEC)], 0, Budget(15.0), shown=False, n_needed=4)
    assert race.records[-1].failure == "its features overflow" and not race.left_out
