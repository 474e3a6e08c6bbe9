"""The model of cost, by its limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bochner.distributed import Cluster, Work, fit_time

WORK = Work(n_rows=100_000_000, n_columns=100, n_features=1024)


def test_one_worker_sends_nothing():
    assert fit_time(WORK, Cluster(1)).tree == 0


def test_one_worker_computes_all_rows():
    expected = WORK.n_rows * WORK.flops_per_row / Cluster(1).flops
    assert fit_time(WORK, Cluster(1)).rows == pytest.approx(expected)


@pytest.mark.parametrize("p", [2, 10, 100, 1000])
def test_workers_never_gain_more_than_their_number(p):
    one, many = fit_time(WORK, Cluster(1)).total, fit_time(WORK, Cluster(p)).total
    assert one / p <= many < one


def test_more_workers_than_blocks_gain_nothing():
    assert fit_time(WORK, Cluster(1000)) == fit_time(WORK, Cluster(100_000))


def test_time_of_rows_is_linear_in_rows_and_the_tree_does_not_see_them():
    twice = replace(WORK, n_rows=2 * WORK.n_rows)
    a, b = fit_time(WORK, Cluster(10)), fit_time(twice, Cluster(10))
    assert b.rows == pytest.approx(2 * a.rows)
    assert (b.tree, b.solve) == (a.tree, a.solve)


@pytest.mark.parametrize("p, levels", [(2, 1), (8, 1), (9, 2), (64, 2), (65, 3), (1000, 4)])
def test_depth_of_the_tree(p, levels):
    slow = Cluster(p, latency=1.0, bandwidth=1e30)
    assert fit_time(WORK, slow).tree == pytest.approx(levels)


def test_infinitely_fast_workers_leave_the_tree_and_the_scheduler():
    parts = fit_time(WORK, Cluster(100, flops=1e30))
    assert parts.total == pytest.approx(parts.tree + parts.tasks)


def test_bytes_of_statistics_are_those_that_are_sent():
    import numpy as np

    from bochner.learn._linear.moments import Moments

    statistics = Moments.of(np.zeros((1, 64)), np.zeros((1, 2)))
    sent = sum(value.nbytes for value in vars(statistics).values() if isinstance(value, np.ndarray))
    assert sent == pytest.approx(Work(10, 5, 64, n_targets=2).statistics_bytes, abs=8 * (2 * 2))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Work(0, 1, 1), "Work: n_rows must be an integer of at least 1, got 0"),
        (lambda: Cluster(0), "Cluster: n_workers must be an integer of at least 1, got 0"),
        (lambda: Cluster(1, bandwidth=0), "Cluster: bandwidth must be a positive number, got 0"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
