"""The page on accuracy says what its numbers say: where we lose, what is a tie, and which methods are better."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def pages():
    sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
    yield importlib.import_module("accuracy_pages")
    sys.path.pop(0)


def point(pages, data, method, width, error):
    numbers = {"data": data, "rows": 10, "method": method, "width": width, "errors": [error], "fit": 1.0, "search": 0.0}
    return {"case": "", "value": error, "unit": "RMSE", "goal": "-", "met": True, "details": "", "numbers": numbers}


def goal(data, rival, percent, ties):
    numbers = {"data": data, "rival": rival, "percent": percent, "ties": ties, "widths": [128, 512][: len(ties)]}
    line = {"case": f"{data} over {rival}", "value": percent[0], "unit": "%", "goal": "<= 2 %", "met": False}
    return {**line, "details": "", "numbers": numbers}


def test_page_names_what_is_lost_and_what_is_tied(pages):
    goals = [
        goal("letter", "Nystroem", [-1.0, 1.5], [False, True]),
        goal("usps", "Nystroem", [9.0, None], [True, False]),
    ]
    found = pages.losses(goals)
    assert "Of 4 comparisons" in found and "lower in 1, and at most 2 % higher in 2" in found
    assert (
        "Of the other 2, 1 are ties" in found
        and "We lose on usps against Nystroem at its width 512 (no width of the automatic mode is as fast;" in found
    )


def test_page_says_where_boosting_is_better(pages):
    results = [
        point(pages, data, method, width, error)
        for data, errors in {"letter": (0.2, 0.1, 0.3), "usps": (0.2, 0.1, 0.05)}.items()
        for (method, width), error in zip(
            ((pages.OURS, 128), (pages.OURS, 512), (pages.BOOSTING, None)), errors, strict=True
        )
    ]
    found = pages.accuracy_page({"environment": {"threads": "2"}, "results": results})
    assert "Boosted trees had a lower error than all widths of our automatic mode on usps." in found
    assert "Not measured in this run: abalone" in found


def test_new_results_replace_those_of_their_data_set(pages):
    old = [point(pages, "letter", pages.OURS, 128, 0.2), {"case": "fast", "numbers": {}}]
    saved = {"environment": {"threads": "1"}, "results": old}
    new = {"environment": {"threads": "2"}, "results": [point(pages, "ccpp", pages.OURS, 128, 3.0)]}
    merged = pages.merged_accuracy(saved, new, "ccpp")
    assert [pages.result_of(r) for r in merged["results"]] == ["speed", "ccpp", "letter"]
    again = {"environment": {}, "results": [point(pages, "letter", pages.OURS, 128, 0.1)]}
    assert pages.merged_accuracy(merged, again, "letter")["results"][-1]["value"] == 0.1
    assert pages.merged_accuracy(merged, {"environment": {}, "results": []}, "letter")["results"] == merged["results"]


def test_each_part_keeps_the_version_that_it_was_measured_with(pages):
    saved = {"environment": {"bochner": "0.1.0"}, "results": [point(pages, "letter", pages.OURS, 128, 0.2)]}
    new = {"environment": {"bochner": "9.9"}, "results": [point(pages, "ccpp", pages.OURS, 128, 3.0)]}
    merged = pages.merged_accuracy(saved, new, "ccpp")
    assert [pages.place(merged, name)["bochner"] for name in ("letter", "ccpp")] == ["0.1.0", "9.9"]
    found = pages.accuracy_page(merged)
    assert "bochner 0.1.0; ccpp on bochner 9.9." in found and "These are not numbers of version" in found
