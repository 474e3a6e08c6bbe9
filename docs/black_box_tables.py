"""Tables of the experiment ``ours-black-box`` for the guide to optimisation; `generate.py` writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reproduction_pages import table

import bochner_lab as experiments
from bochner_lab.papers.ours import black_box

MARKERS = ("black-box couplings", "black-box values", "black-box evaluations")


def black_box_tables(folder: Path) -> dict[str, str]:
    """The tables by the markers of the page; they say so if the results lack the full profile."""
    found = experiments.read_results(folder).get("ours-black-box")
    if found is None or found["profile"] != "full" or not found["parts"]:
        return dict.fromkeys(MARKERS, table("problem", [["not run yet"]]))
    results = experiments.Results(found["parameters"], {name: part["numbers"] for name, part in found["parts"].items()})
    tables = (coupling_gaps(results), search_table(results, final_value), search_table(results, evaluations))
    return dict(zip(MARKERS, tables, strict=True))


def coupling_gaps(results: experiments.Results) -> str:
    """Each coupling against independent directions: the mean difference, and on how many problems it wins."""
    rows, dims = [], list(results.parameters["dimensions"])
    for name in [m for m in results.parameters["methods"] if m in black_box.COUPLINGS and m != "iid"]:
        cells = []
        for d in dims:
            if name in black_box.methods_of(results, d):
                gap, count = black_box.mean_gap(results, name, "iid", d), black_box.standings(results, name, "iid", d)
                cells += [f"{gap.mean:+.3f} ± {gap.error:.3f}", " / ".join(str(count[how]) for how in count)]
            else:
                cells += ["not run", ""]
        rows.append([f"`{name}`", *cells])
    header = " | ".join(f"d = {d} | wins / ties / losses" for d in dims)
    return table(f"directions | {header}", rows)


def search_table(results: experiments.Results, cell: Callable[..., str]) -> str:
    """One line per problem; the main methods in columns."""
    shown = ["iid", black_box.DEFAULT, "orthoplex", "evosax", "cma", "nevergrad"]
    problems = black_box.problems(results, *results.parameters["dimensions"])
    rows = [
        [f"{f}, {kind}, d = {d}", *(cell(results, method, f, d, kind) for method in shown)] for f, d, kind in problems
    ]
    return table("problem | " + " | ".join(shown), rows)


def final_value(results: experiments.Results, method: str, function: str, d: str, kind: str) -> str:
    """Logarithm of the final value, and how it stands to that of our default."""
    found = black_box.final(results, method, function, d, kind)
    text = f"{found.mean:.2f} ± {found.error:.2f}"
    if method == black_box.DEFAULT:
        return text
    how = black_box.standing(black_box.gap_of(results, method, black_box.DEFAULT, function, d, kind))
    return f"{text} {({'win': '(lower)', 'loss': '(higher)', 'tie': ''})[how]}".strip()


def evaluations(results: experiments.Results, method: str, function: str, d: str, kind: str) -> str:
    """Mean number of evaluations to the target, if all instances reached it."""
    counts = results.parts[f"{function} {d} {method}"][kind]["evaluations"]
    reached = [count for count in counts if count is not None]
    if len(reached) < len(counts):
        return f"{len(reached)} of {len(counts)}" if reached else "-"
    found = experiments.Estimate.of(counts)
    return f"{found.mean:,.0f} ± {found.error:,.0f}"
