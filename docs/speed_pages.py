"""The page on speed: users' questions, a chart, and answers, from the committed runs of ``bochner-lab bench``.

``docs/speed.json`` has the suites "projections" and "attention", which ``python docs/generate.py --speed`` measures again,
and ``docs/accuracy.json`` the suite "learn".  All cases with their goals are in ``lab/BENCHMARKS.md``.
"""

from __future__ import annotations

import io
import json
import textwrap
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.style
from accuracy_pages import place
from matplotlib.figure import Figure

DOCS = Path(__file__).parent
FASTER = {
    "RBFSampler / RandomFeatures, 20000 x 64 -> 1024 float32, default rows": "features against RBFSampler, 64 columns",
    "RBFSampler / RandomFeatures, 4000 x 3072 -> 8192 float32, Hadamard(3) rows": "the same, 3072 columns",
    "dense product / Orthogonal(Hadamard(3)), 4000 x 3072 -> 8192 float32": "fast rotation against a product, 3072 columns",
    "fit and transform of Landmarks('uniform') / Nystroem, 10000 x 64 -> 1024 float32": (
        "landmarks against Nystroem, width 1024"
    ),
    "the same in time, at no larger error": "fit of a million rows against RBFSampler and NumPy, at no larger error",
    "scaled_dot_product_attention / linear_attention, L = 16384, 8 heads, d = 64, m = 256, float32": (
        "linear attention without a window against exact, 16384 tokens"
    ),
    "scaled_dot_product_attention / linear_attention, causal L = 16384, 8 heads, d = 64, m = 256, float32": (
        "the same, causal"
    ),
    "performer-pytorch / linear_attention, L = 16384, 8 heads, d = 64, m = 256, float32": (
        "linear attention without a window against performer-pytorch, 16384 tokens"
    ),
}
"""Cases of the chart, in our words."""


def saved(name: str) -> dict[str, Any]:
    """A committed run."""
    found: dict[str, Any] = json.loads((DOCS / f"{name}.json").read_text())
    return found


def cases() -> dict[str, dict[str, Any]]:
    """Every single number of the committed runs, by case."""
    speed = saved("speed")
    rows = [*speed["projections"], *speed["attention"], *(r for r in saved("accuracy")["results"] if not r["numbers"])]
    return {row["case"]: row for row in rows}


def times_faster() -> dict[str, float]:
    """How many times faster we are in the cases of the chart."""
    found = {title: cases()[case] for case, title in FASTER.items()}
    return {title: 1 / row["value"] if "Landmarks" in row["case"] else row["value"] for title, row in found.items()}


def speed_picture() -> str:
    """Bars of the cases, as SVG."""
    found = times_faster()
    out = io.StringIO()
    # whatever a program that drew before has set, the file is the same
    with matplotlib.style.context(["default", {"svg.hashsalt": "bochner", "svg.fonttype": "none"}]):
        figure = Figure(figsize=(7, 3.9), layout="constrained")
        axes = figure.subplots()
        bars = axes.barh(list(found), list(found.values()), color="#1f77b4")
        axes.bar_label(bars, [f"{value:.1f} x" for value in found.values()], padding=4)
        axes.set(xscale="log", xlabel="times faster, two threads of a CPU", xlim=(0.8, 3 * max(found.values())))
        axes.set_xticks(ticks := (1, 2, 5, 10, 20), ticks)
        axes.minorticks_off()
        axes.set_yticks(range(len(found)), [textwrap.fill(title, 46) for title in found])
        axes.axvline(1, color="black", linewidth=0.8)
        axes.invert_yaxis()
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def speed_page() -> str:
    """Questions with their answers."""
    found = cases()
    where, fits = saved("speed")["environment"], place(saved("accuracy"), "speed")["bochner"]

    def value(case: str) -> str:
        return f"{found[case]['value']:,.3g}"

    both, causal = (
        int(found[f"shortest sequence for which {name}linear_attention is faster than exact attention"]["value"])
        for name in ("", "causal ")
    )
    blocks = value("memory of Orthogonal(Hadamard(3)), d = 65536, m = 262144")
    memory = value("peak memory of a fit, 1000000 x 64 float32 -> 2048")
    table = "\n".join(f"| {title} | {ratio:.1f} x |" for title, ratio in times_faster().items())
    return f"""# Speed

Measured on a CPU with two threads ({where}), best of several within one
run; features against RBFSampler, landmarks and fits on bochner {fits}.
There was no GPU. All cases with their goals, also those that are missed, are in
`lab/BENCHMARKS.md`; `bochner-lab bench` measures them on your machine.

![Bars: how many times faster features, landmarks, fits and attention are than other libraries](speed.svg)

| against | times faster |
|---|---|
{table}

## When does a fast rotation pay?

From some hundred columns on. At 65536 columns and four times as many rows, three Hadamard blocks need {blocks} MB, where the
matrix would take 137 GB. The library takes the product where that is faster, by a measured rule.
[Example](gallery/features/plot_fast_projection.rst).

## From how many tokens is linear attention faster?

From {both:,} tokens on without a mask and from {causal:,} on for causal attention (8 heads of width 64, 256 rows, no
window; of 256, 512, 1024, ... 8192). **A window moves this further up**, and
[trained models need one](wrong_tool.md#trained-models-a-window-first): `attention_report` measures it on your model.
[Example](gallery/attention/plot_constant_time_decoding.rst).

## How many rows fit in memory?

All: rows are read once, in pieces. A fit of 1,000,000 x 64 with 2048 features took {memory} GB, where the features would
take 8.2 GB.

## How fast are the estimators?

The time of a fit with its search is on the page on [accuracy](accuracy.md), next to the error.
"""


SAVED = ("features", "hashing", "beyond", "graphs", "low_dimensions", "without_numba")
"""Suites whose run is in the file of their name."""


def benchmark_page(number: Any, others: dict[str, str]) -> str:
    """All cases with their goals, for the laboratory; the tables of other suites are given."""
    speed, parts = saved("speed"), []
    suites = {
        "projections": speed["projections"],
        "attention": speed["attention"],
        "learn": [r for r in saved("accuracy")["results"] if not r["numbers"]],
        **{name: saved(name)["results"] for name in SAVED},
    }
    for suite, rows in suites.items():
        cells = [
            [r["case"], f"{number(r['value'])} {r['unit']}", r["goal"], "yes" if r["met"] else "no", r["details"]]
            for r in rows
        ]
        lines = [f"| {' | '.join(row)} |" for row in cells]
        table = "\n".join(["| case | measured | goal | met | details |", "|---|---|---|---|---|", *lines])
        where = saved(suite)["environment"] if suite in SAVED else None
        place = f"On: {', '.join(f'{key} {value}' for key, value in where.items())}.\n\n" if where else ""
        parts.append(f"## {suite}\n\n{place}{table}")
    body = "\n\n".join([*parts, *(f"## {suite}\n\n{text}" for suite, text in others.items())])
    return (
        "# Benchmarks and their goals\n\nGenerated by `python docs/generate.py` from the committed runs of "
        "`bochner-lab bench`. "
        f"Projections and attention on: {speed['environment']}.\n\n{body}\n"
    )
