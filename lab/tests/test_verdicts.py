"""Verdicts: what an interval decides, and that noise decides nothing."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest

import bochner_lab as lab
from bochner_lab import (
    Estimate,
    Finding,
    PowerCheck,
    equal,
    mostly_equal,
    mostly_superior,
    not_worse,
    superior,
    superior_somewhere,
)
from bochner_lab._runner import plain
from bochner_lab._verdicts import interval, smallest_effect, together, verdict_of
from bochner_lab.papers._image_power import power_of_images

TRIES = 2000


def estimate(mean, error, samples=None):
    return Estimate(np.asarray(mean, float), np.asarray(error, float), samples)


@pytest.mark.parametrize(
    "truths, verdict",
    [
        ([True, True], lab.HOLDS),
        ([True, False], lab.IN_PART),
        ([True, False, None], lab.IN_PART),
        ([False, False], lab.FAILS),
        ([False, None], lab.FAILS),
        ([True, None], lab.UNDECIDED),
        ([None], lab.UNDECIDED),
        ([], lab.UNDECIDED),
    ],
)
def test_verdicts_follow_from_the_statements(truths, verdict):
    assert verdict_of([Finding(true, "") for true in truths]) == verdict


def test_superiority_needs_the_interval():
    assert [superior(estimate(m, 1), "").holds for m in (2.1, 1.9, -1.9, -2.1)] == [True, None, None, False]
    assert superior(estimate([3, 3], [1, 1]), "").holds is True
    assert superior(estimate([3, -1], [1, 1]), "").holds is None
    assert superior(estimate([3, -9], [1, 1]), "").holds is False
    assert superior(estimate(5, 1), "", least=4.0).holds is None
    assert superior_somewhere(estimate([3, -9], [1, 1]), "").holds is True
    assert superior_somewhere(estimate([1, -9], [1, 1]), "").holds is None


def test_majorities_leave_undecided_points_to_neither_side():
    assert mostly_superior(estimate([5, 5, 0], [1, 1, 1]), "").holds is True
    assert mostly_superior(estimate([5, 0, 0], [1, 1, 1]), "").holds is None
    assert mostly_superior(estimate([5, -5, -5], [1, 1, 1]), "").holds is False


def test_equality_needs_the_interval_within_the_margin():
    assert [equal(estimate(m, 1), 3, "").holds for m in (0.5, -0.5, 2.0, 6.0, -6.0)] == [True, True, None, False, False]
    assert equal(estimate(0, 10), 3, "").holds is None  # no difference is seen, since none could be
    assert [not_worse(estimate(m, 1), 1, "").holds for m in (5.0, 0.0, -9.0)] == [True, None, False]


def test_few_samples_make_wide_intervals():
    few, many = (interval(estimate(0, 1, n))[1] for n in (3, None))
    assert few > 4 and many < 2
    assert smallest_effect(estimate(0, 1, 3)) > smallest_effect(estimate(0, 1)) > 2.7


def test_each_point_has_the_interval_of_its_own_samples():
    both = Estimate.stack([estimate([0, 0], [1, 1], 3), estimate(0, 1, 40), estimate(0, 1)])
    alone = [float(interval(estimate(0, 1, n))[1]) for n in (3, 3, 40, None)]
    np.testing.assert_allclose(interval(both)[1], alone)
    np.testing.assert_allclose(interval(both[1:])[1], alone[1:])
    assert interval(both.over(estimate(np.zeros(4), np.zeros(4), 3)))[1][-1] == alone[0]  # the fewest of two
    assert Estimate.stack([estimate(0, 1), estimate(0, 1)]).samples is None


def test_undecided_statements_know_how_many_samples_would_decide_them():
    """So many samples of the same mean decide four of five times."""
    rng, n, mean = np.random.default_rng(0), 400, 0.05
    needed = superior(Estimate(np.array([mean]), np.array([n**-0.5])), "").needed
    assert needed == pytest.approx((1.959964 + 0.841621) ** 2 / mean**2 / n)
    means = mean + rng.standard_normal(TRIES) / np.sqrt(needed * n)
    decided = sum(superior(Estimate(np.array([m]), np.array([(needed * n) ** -0.5])), "").holds is True for m in means)
    assert abs(decided - 0.8 * TRIES) < 5 * np.sqrt(0.16 * TRIES)


@pytest.mark.parametrize(
    ("judge", "means", "point"),
    [
        (superior, (0.5, 0.2), 1),  # true only if both are
        (superior, (0.5, -0.2), 1),  # false if one is
        (superior_somewhere, (0.5, 0.2), 0),
        (superior_somewhere, (-0.5, -0.2), 1),
        (mostly_superior, (0.5, 0.3, -0.1), 1),
        (mostly_superior, (0.5, -0.3, -0.1), 2),
        (lambda gap, _: equal(gap, 0.6, ""), (0.1, -0.5), 1),
    ],
)
def test_the_point_that_decides_sets_the_number_of_samples(judge, means, point):
    gap = 0.6 - abs(means[point]) if judge not in (superior, superior_somewhere, mostly_superior) else means[point]
    found = judge(Estimate(np.array(means), np.ones(len(means))), "")
    assert found.holds is None and found.needed == pytest.approx((1.959964 + 0.841621) ** 2 / gap**2)


def test_conjunctions():
    found = [Finding(truth, "", 1.0) for truth in (True, None)]
    assert together(found, "").holds is None and together([*found, Finding(False, "")], "").holds is False


@pytest.mark.parametrize("samples", [3, 5, 20])
@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_as_good_as_cannot_be_reached_by_noise(samples, spread):
    """Means that really differ by the margin: at most one in twenty may look equal; means that are equal: none looks better.

    The bounds are five standard errors above the levels of the tests, 0.025 for one side.
    """
    rng = np.random.default_rng(0)
    bound = 0.025 + 5 * np.sqrt(0.025 * 0.975 / TRIES)
    margin = 0.5
    for judge, shift in ((lambda e: equal(e, margin, ""), margin), (lambda e: not_worse(e, margin, ""), -margin)):
        held = [judge(Estimate.of(shift + spread * rng.standard_normal(samples))).holds for _ in range(TRIES)]
        assert np.mean([one is True for one in held]) < bound
    null = [superior(Estimate.of(spread * rng.standard_normal(samples)), "").holds for _ in range(TRIES)]
    assert np.mean([one is True for one in null]) < bound and np.mean([one is False for one in null]) < bound


def shuffled(experiment, result, rng):
    """The numbers of a result with the values of the methods exchanged at random, seed by seed."""
    parts = {name: json.loads(json.dumps(part["numbers"])) for name, part in result["parts"].items()}
    names = [name for name in parts if name not in ("counts of words", "gradients")]
    if experiment.name == "hrf-fig4-cloning":
        table = np.array([parts[name]["rates"] for name in names])
        for column in table.T:
            rng.shuffle(column)
        for name, row in zip(names, table, strict=True):
            parts[name]["rates"] = row.tolist()
        return parts
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.replace(",", "").split()[-1], []).append(name)
    for group in groups.values():
        for name, other in zip(group, rng.permutation(group), strict=True):
            parts[name] = result["parts"][str(other)]["numbers"]
    return parts


@pytest.mark.parametrize(
    "name, words",
    [
        ("omc-quadruped", ("not below", "other approximate")),
        ("omc-fig6", ("not below", "below that of ORF")),
        ("hrf-fig4-policy", ("not below",)),
        ("hrf-fig4-cloning", ("not below",)),
    ],
)
def test_equality_does_not_hold_on_shuffled_data(name, words, request):
    """The committed numbers with methods exchanged at random say nothing of any method, so nothing may hold."""
    result = lab.read_result(lab.result_path(request.config.rootpath / "lab" / "results", name, "full"))
    one, rng, held, asked = lab.experiment(name), np.random.default_rng(0), 0, 0
    tests = {s: t for s, t in one.statements().items() if any(word in s for word in words)}
    assert tests
    for _ in range(40):
        results = lab.Results(result["parameters"], plain(shuffled(one, result, rng)))
        for test in tests.values():
            held, asked = held + (test(results).holds is True), asked + 1
    assert held <= 0.05 * asked + 5 * np.sqrt(0.05 * 0.95 * asked)


class Powerless(lab.Experiment):
    """An experiment whose models learn nothing."""

    name = ""
    paper, item, claim = "ours", "A toy", "One is better."
    profiles = lab.by_profile(smoke={}, full={})
    seconds = lab.by_profile(smoke=0, full=0)

    @lab.statement("The difference is positive.")
    def positive(self, results):
        return superior(estimate(9, 1), "9 +- 1.")

    @lab.statement("Three is more than two.")
    def counted(self, results):
        return Finding(True, "3 > 2.")

    def power(self, results):
        return PowerCheck(results.parameters["learnt"], "A constant is better.", (("constant", 0.5),))


def test_a_set_up_without_power_decides_nothing_by_estimates():
    for learnt, expected in ((True, [True, True]), (False, [None, True])):
        found = Powerless().judge(lab.Results({"learnt": learnt}, {}))
        assert [one.holds for one in found.values()] == expected
    assert "A constant is better." in found["The difference is positive."].evidence


@pytest.mark.parametrize("iid, learns, passed", [(0.0, True, True), (20.0, True, False), (0.0, False, False)])
def test_policies_need_to_learn_and_a_control_that_is_worse(iid, learns, passed):
    """Independent directions that are as good as exact ones, and policies that stay where they were, decide nothing."""
    one, rng, seeds = lab.experiment("omc-quadruped"), np.random.default_rng(0), tuple(range(10))
    height = {method: iid if method == "IID" else 20.0 for method in one.methods}
    slope = np.linspace(0, 1, 5) if learns else np.zeros(5)
    parts = {
        f"{method} {seed}": {"curve": (height[method] * slope + 5 + 0.01 * rng.standard_normal(5)).tolist()}
        for method in one.methods
        for seed in seeds
    }
    check = one.power(lab.Results({"seeds": seeds}, parts))
    assert check.passed is passed and len(check.rows) == len(one.methods) + 1


def test_models_of_images_are_next_to_a_linear_classifier():
    rivals = {"one class for all": 0.1, "linear classifier of pixels": 0.8}
    assert power_of_images(rivals, {"a": 0.9, "b": 0.85}).passed
    assert not power_of_images(rivals, {"a": 0.9, "b": 0.75}).passed


def test_our_statements_do_not_count():
    result = lab.read_result(lab.result_path(Path(__file__).parents[1] / "results", "hrf-fig6", "full"))
    counted = [Finding(s["holds"], "") for s in result["statements"] if not s["ours"]]
    assert verdict_of(counted) == result["verdict"] and any(s["ours"] for s in result["statements"])


@pytest.mark.parametrize(
    "means, holds",
    [([0.0] * 10, True), ([0.0] * 9 + [9.0], True), ([0.0] * 7 + [9.0] * 3, False), ([0.0] * 8 + [2.9] * 2, None)],
)
def test_mostly_equal_counts_points(means, holds):
    """Within 3 at nine tenths of the points; 2.9 with an error of one is undecided."""
    assert mostly_equal(estimate(means, [1.0] * 10), 3.0, "", share=0.9).holds is holds


def test_noise_is_not_mostly_equal():
    """Differences of pure noise that is as large as the margin, again and again: never called equal."""
    rng = np.random.default_rng(0)
    found = [mostly_equal(Estimate.of(rng.standard_normal((4, 10))), 0.5, "", share=0.9).holds for _ in range(200)]
    assert not any(found)


@pytest.mark.parametrize(
    ("mean", "error", "holds"),
    [([1.02, 0.99, 1.01], 0.01, True), ([1.02, 0.99, 1.2], 0.01, False), ([1.0, 1.0, 1.0], 0.3, None)],
)
def test_simulations_confirm_a_formula_if_they_are_precise(mean, error, holds):
    assert lab.agreement(Estimate(np.array(mean), np.full(3, error)), 1.0).holds is holds


def test_a_formula_may_have_values_of_zero():
    simulated = Estimate(np.array([0.0, 1.0]), np.array([0.0, 0.01]))
    assert lab.agreement(simulated, [0.0, 1.0]).holds
    assert lab.agreement(simulated, [0.1, 1.0]).holds is False


@pytest.mark.parametrize("name", ["crt-theorem3.2", "crt-theorem3.4", "hrf-lemma3.4"])
def test_simulations_do_not_confirm_values_of_other_points(name):
    result = json.loads((Path(__file__).parents[1] / "results" / name / "full" / "result.json").read_text("utf-8"))
    parts = {key: copy.deepcopy(part["numbers"]) for key, part in result["parts"].items()}
    one = lab.experiment(name)
    confirm = next(test for sentence, test in one.statements().items() if "four standard errors" in sentence)
    assert confirm(lab.Results(result["parameters"], parts)).holds
    key = "Eq. 7" if name == "hrf-lemma3.4" else "exact"
    holders = [part for part in parts.values() if key in part]
    values = [part[key] for part in holders]
    for part, value in zip(holders, values[1:] + values[:1], strict=True):
        part[key] = value
    assert confirm(lab.Results(result["parameters"], parts)).holds is False
