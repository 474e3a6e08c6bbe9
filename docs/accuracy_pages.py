"""The page on accuracy and the picture of error against time, from a saved run of ``bochner-lab bench learn --json``."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from reproduction_pages import table

import bochner
from bochner_lab.benchmarks._accuracy import CASES, TOLERANCE
from bochner_lab.benchmarks._contenders import AUTOMATIC as OURS
from bochner_lab.benchmarks._contenders import BOOSTING, METRICS, NYSTROEM, SAMPLER, WIDE

Numbers = Mapping[str, Any]
DRAWN = (OURS, SAMPLER, NYSTROEM, "SVC, SVR", BOOSTING)
RIVAL_KINDS = {
    BOOSTING: "Boosted trees",
    "SVC, SVR": "Support vector machines",
    "exact kernel ridge": "Exact kernel machines",
}


def points_of(measured: Mapping[str, Any]) -> dict[str, list[Numbers]]:
    """The measured points of each data set."""
    found: dict[str, list[Numbers]] = {}
    for result in measured["results"]:
        if (numbers := result["numbers"]) and "method" in numbers:
            found.setdefault(numbers["data"], []).append(numbers)
    return found


def duration(time: float) -> str:
    """A time in a table."""
    return f"{1000 * time:.0f} ms" if time < 1 else f"{time:.1f} s" if time < 10 else f"{time:.0f} s"


def data_table(points: Sequence[Numbers]) -> str:
    """One data set: a row for each method, a column for each width."""
    widths = sorted({point["width"] for point in points if point["width"]})
    methods = dict.fromkeys(point["method"] for point in points)
    rows = []
    for method in methods:
        cells = {point["width"]: point for point in points if point["method"] == method}
        whole = cells.get(None)
        shown = (
            [_cell(cells.get(width)) for width in widths]
            if whole is None
            else [_cell(whole)] + [""] * (len(widths) - 1)
        )
        rows.append([method, *shown, duration(max(point["search"] for point in cells.values()))])
    return table(" | ".join(["method", *map(str, widths), "search"]), rows)


def _cell(point: Numbers | None) -> str:
    return "" if point is None else f"{np.mean(point['errors']):.4g} ({duration(point['fit'])})"


SLOWER = "no width of the automatic mode is as fast; the second row of its table has random features alone"
"""Why there is no error at the time of another method."""


def least(points: Sequence[Numbers], method: str) -> float:
    """The least error of a method over its widths."""
    return min(float(np.mean(point["errors"])) for point in points if point["method"] == method)


def verdict(data: Mapping[str, Sequence[Numbers]]) -> str:
    """Which of the other methods is better than kernel machines on which data sets, in sentences."""
    sentences = []
    for method, name in RIVAL_KINDS.items():
        tried = {name: points for name, points in data.items() if any(point["method"] == method for point in points)}
        better = [name for name, points in tried.items() if least(points, method) < least(points, OURS)]
        where = f"had a lower error than all widths of our automatic mode on {', '.join(better)}"
        sentences.append(f"{name} {where if better else 'were never better than our automatic mode'}.")
    return " ".join(sentences)


def losses(goals: Sequence[Mapping[str, Any]]) -> str:
    """How many of the comparisons at equal time are kept, tied and lost, and which are lost, in sentences."""
    pairs = [
        (f"{r['numbers']['data']} against {r['numbers']['rival']} at its width {width}", percent, tie)
        for r in goals
        for width, percent, tie in zip(*(r["numbers"][key] for key in ("widths", "percent", "ties")), strict=True)
    ]
    pairs = [
        (case, np.inf if percent is None else percent, tie) for case, percent, tie in pairs
    ]  # none of ours as fast
    above = [(case, percent, tie) for case, percent, tie in pairs if percent > TOLERANCE]
    lost = [
        f"{case} ({SLOWER if np.isinf(percent) else f'+{percent:.3g} %'})" for case, percent, tie in above if not tie
    ]
    kept = (
        f"Of {len(pairs)} comparisons at equal fit time, our error is lower in {sum(p < 0 for _, p, _ in pairs)}, and at "
        f"most {TOLERANCE:g} % higher in {len(pairs) - len(above)}. Of the other {len(above)}, {len(above) - len(lost)} are "
        f"ties: differences within two standard errors, over test rows and draws."
    )
    return f"{kept} We lose on {'; '.join(lost)}." if lost else f"{kept} We lose in none."


def metric_table(measured: Mapping[str, Any]) -> str:
    """Test errors with a learned metric and with a bandwidth per column, for the guide."""
    rows = []
    for name, points in points_of(measured).items():
        known = {(point["method"], point["width"]): float(np.mean(point["errors"])) for point in points}
        width = next((width for method, width in known if method in METRICS), None)
        if width is not None:
            rows.append([name, *(f"{known[method, width]:.4g}" for method in (OURS, *METRICS))])
    return table("data set | no metric | learned metric | bandwidth per column", rows)


def accuracy_page(measured: Mapping[str, Any]) -> str:
    """The whole page."""
    data = points_of(measured)
    speed = [r for r in measured["results"] if not r["numbers"]]
    goals = [r for r in measured["results"] if "rival" in r["numbers"]]
    parts = [
        "# Accuracy and scale",
        "How low is the error of kernel machines with a given number of features, and how long does a fit take, next to "
        "scikit-learn's? Measured by `bochner-lab bench learn` with the [data sets](data.md) in `BOCHNER_DATA`, on: "
        f"{_places(measured)}.",
        *_of_another_version(measured),
        f"## Error and time on {len(data)} data sets",
        f"Errors of test rows (RMSE, or share of wrong classes), means of {_draws(data)}, with the time of a fit in "
        "brackets. All methods see the same scaled columns and choose their parameters on training rows only; the time of "
        "that search is in the "
        "last column. The time in brackets is "
        "that of a fit with the chosen parameters, for our automatic mode as for the others.",
        f"Methods without features stand in the first column of errors. Width {WIDE} is measured on data with at least "
        f"{3 * WIDE // 2} rows, and "
        "not for `Nystroem`, whose singular value decomposition takes minutes there; the exact kernel on at most 10000. "
        "Conjugate gradients (cg) are made for far more features: see the cases of speed below.",
        "![Error against fit time of kernel machines, RBFSampler, Nystroem, support vectors and boosting](accuracy.svg)",
        losses(goals),
        verdict(data),
        _left_out(data),
        *(f"### {name}, {points[0]['rows']} training rows\n\n{data_table(points)}" for name, points in data.items()),
        "## Goals",
        "At the fit time of each width of a rival, our automatic mode should have an error at most "
        f"{TOLERANCE:g} % above it. Between the widths that were measured, the logarithm of our error is taken as linear in "
        "that of the time. The standard error after +- adds up that of the test rows, which all methods share, and that of "
        "the draws.",
        _goal_table(goals),
        "## Speed and scale",
        _goal_table(speed),
    ]
    return "\n\n".join(parts) + "\n"


def place(measured: Mapping[str, Any], name: str) -> dict[str, str]:
    """Versions and processor on which a data set, or "speed", was measured."""
    found: dict[str, str] = measured.get("environments", {}).get(name, measured["environment"])
    return found


def _places(measured: Mapping[str, Any]) -> str:
    """Versions and processor of the run, and of what was measured again since."""
    said = [", ".join(f"{key} {value}" for key, value in measured["environment"].items())]
    for name, found in measured.get("environments", {}).items():
        changed = [f"{key} {value}" for key, value in found.items() if value != measured["environment"].get(key)]
        if changed:
            said.append(f"{name} on {', '.join(changed)}")
    return "; ".join(said)


def _of_another_version(measured: Mapping[str, Any]) -> list[str]:
    """What to keep in mind about numbers of an older version."""
    names = ("speed", *points_of(measured))
    older = {where["bochner"] for where in (place(measured, name) for name in names) if "bochner" in where}
    if older <= {bochner.__version__}:
        return []
    return [
        f"**These are not numbers of version {bochner.__version__}.** Since they were measured the default also learns a "
        "metric and tries more kernels and ways to scale columns: see "
        "[which kernel, and where trees win](learn.md#which-kernel-and-where-trees-win) for errors of the present search."
    ]


def _draws(data: Mapping[str, Sequence[Numbers]]) -> str:
    """How many draws of the features were made, with the widths that have fewer."""
    counts: dict[int, int] = {}
    for point in (point for points in data.values() for point in points if point["width"]):
        counts[point["width"]] = max(counts.get(point["width"], 0), len(point["errors"]))
    most = max(counts.values())
    fewer = ", ".join(f"{n} at width {width}" for width, n in sorted(counts.items()) if n < most)
    return f"{most} draws of the features" + (f" ({fewer})" if fewer else "")


def merged_accuracy(saved: Mapping[str, Any], found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The saved run with new results of a data set, or of "speed", in place of the old ones; data sets in their order."""
    order = ["speed", *(case.name for case in CASES)]
    kept = [r for r in saved["results"] if result_of(r) != name] if found["results"] else saved["results"]
    results = sorted([*kept, *found["results"]], key=lambda r: order.index(result_of(r)))
    if not found["results"]:
        return {**saved, "results": results}
    # each part keeps the versions that it was measured with
    return {
        "environment": saved["environment"],
        "environments": {**saved.get("environments", {}), name: found["environment"]},
        "results": results,
    }


def result_of(result: Mapping[str, Any]) -> str:
    """The data set of a saved line, or "speed"."""
    return str(result["numbers"].get("data", "speed"))


def _left_out(data: Mapping[str, Sequence[Numbers]]) -> str:
    """Which data sets of the benchmark the saved run lacks."""
    missing = [case.name for case in CASES if case.name not in data]
    return (
        f"Not measured in this run: {', '.join(missing)}."
        if missing
        else "All data sets of the benchmark were measured."
    )


def _goal_table(results: Sequence[Mapping[str, Any]]) -> str:
    rows = [[r["case"], _measured(r), r["goal"], "yes" if r["met"] else "no", r["details"]] for r in results]
    return table("case | measured | goal | met | details", rows)


def _measured(result: Mapping[str, Any]) -> str:
    """Three digits with the unit; JSON has null where no fit of ours is as fast."""
    return "no fit as fast" if result["value"] is None else f"{result['value']:.3g} {result['unit']}"


def accuracy_picture(measured: Mapping[str, Any]) -> str:
    """Error against fit time, one panel for each data set, as SVG."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "bochner"
    data = points_of(measured)
    columns = min(3, len(data))
    figure = Figure(figsize=(7, 2.1 * -(-len(data) // columns)), layout="constrained")
    axes = figure.subplots(-(-len(data) // columns), columns, squeeze=False).ravel()
    for ax, (name, points) in zip(axes, data.items(), strict=False):
        for k, method in enumerate(DRAWN):
            mine = sorted(
                (point["fit"], float(np.mean(point["errors"]))) for point in points if point["method"] == method
            )
            if mine:
                style = {"marker": "os^Dv"[k], "color": f"C{k}", "linewidth": 1 if k else 2, "markersize": 5}
                ax.plot(*zip(*mine, strict=True), label=method, **style)
        ax.set(xscale="log", yscale="log", title=name)
        ax.minorticks_off()
        ticks = np.geomspace(*ax.get_ylim(), 5)[1:-1]
        ax.set_yticks(ticks, labels=[f"{tick:.3g}" for tick in ticks])
    for ax in axes[len(data) :]:
        ax.axis("off")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    figure.supxlabel("seconds of the fit")
    figure.supylabel("test error")
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()
