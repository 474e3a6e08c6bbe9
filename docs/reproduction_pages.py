"""Generated parts of the pages on the papers: mechanisms, errata, and every experiment with its verdict and figure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import bochner_lab as experiments
from bochner import catalogue, theory
from bochner.reporting import label

ROOT = Path(__file__).parent.parent
PAGES = {
    "hrf": "hybrid_random_features.md",
    "crt": "chefs_random_tables.md",
    "qbf": "quadrature_features.md",
    "simrf": "simplex_random_features.md",
    "omc": "orthogonal_monte_carlo.md",
    "ours": "our_questions.md",
}
VERDICTS = experiments.VERDICTS
TRUTHS = {True: "yes", False: "**no**", None: "undecided"}
MOST_ROWS = 24
"""Longer comparisons stay in the HTML report and in the result files."""


def table(header: str, rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown; ``header`` has bars between its cells, and those of the cells are escaped."""
    lines = [[re.sub(r"(?<!\\)\|", r"\|", cell) for cell in row] for row in rows]
    width = header.count("|") + 1
    return "\n".join([f"| {header} |", "|---" * width + "|", *("| " + " | ".join(row) + " |" for row in lines)])


@cache
def results() -> dict[str, dict[str, Any]]:
    """Committed results of the full profile, by experiment."""
    found = experiments.read_results(ROOT / "lab" / "results")
    return {name: result for name, result in found.items() if result["profile"] == "full"}


def verdict(name: str, found: Mapping[str, dict[str, Any]]) -> str:
    """The verdict of an experiment; "not run yet" where there is no result."""
    return str(found[name]["verdict"]) if name in found else "not run yet"


def between(page: str, marker: str, text: str) -> str:
    """The page with ``text`` between the two comments of the marker."""
    pattern = re.compile(rf"(<!-- {marker} -->\n).*?(<!-- end of {marker} -->)", re.DOTALL)
    return pattern.sub(lambda match: f"{match[1]}\n{text}\n\n{match[2]}", page)


def paper_page(paper: str, page: str) -> str:
    """The page of a paper with its generated parts renewed."""
    page = between(page, "mechanisms", mechanisms(paper))
    page = between(page, "errata", errata_table(paper))
    return between(page, "experiments", sections(paper))


def mechanisms(paper: str) -> str:
    """The names of the catalogue that stand for mechanisms of a paper."""
    rows = []
    for name, found in catalogue.mechanisms().items():
        if found.paper == paper:
            spec = catalogue.mechanism(name)
            rows.append([f"`{part}`" for part in (name, label(spec.kernel), label(spec.map), label(spec.projection))])
    return table("name | kernel | map | projection", rows)


def errata_table(paper: str | None = None) -> str:
    """Errors in the published formulas of one paper, or of all, with the two numbers that show them."""
    rows = []
    for e in theory.errata():
        if paper in (None, e.paper):
            numbers = apart(e.printed_value, e.right_value)
            where = [e.equation] if paper else [e.paper.upper(), e.equation]
            rows.append([*where, e.printed, e.right, e.example, *numbers])
    head = "where | printed | right | example | printed value | true value"
    return table(head if paper else f"paper | {head}", rows)


def apart(*values: float) -> list[str]:
    """Numbers to four digits, or to as many as tell them apart; zero up to rounding is zero, and no line ends at a minus."""
    values = tuple(0.0 if abs(value) < 1e-15 else value for value in values)
    digits = next(n for n in range(4, 18) if len({f"{value:.{n}g}" for value in values}) == len(values) or n == 17)
    return [f"{value:.{digits}g}".replace("-", "\N{NON-BREAKING HYPHEN}") for value in values]


def sections(paper: str) -> str:
    """All experiments of a paper, one section each, and what cannot be run."""
    found = results()
    mine = [one for one in experiments.experiments().values() if one.paper == paper]
    pieces = [section(one, found.get(one.name)) for one in mine]
    return "\n\n".join(pieces + [lacking(one) for one in experiments.absent().values() if one.paper == paper])


def section(one: experiments.Experiment, result: Mapping[str, Any] | None) -> str:
    """One experiment: claim, verdict, statements with their numbers, figure, and printed numbers beside ours."""
    return f"### {one.item}\n\n*Claim.* {escape(one.claim)}\n\n{conclusion(one, result)}"


def conclusion(one: experiments.Experiment, result: Mapping[str, Any] | None) -> str:
    """What a section says after the claim."""
    if result is None:
        return f"*Verdict.* Not run yet: `bochner-lab run {one.name}`."
    printed = " as printed" if result["verdict"] != experiments.HOLDS and _corrected(result) else ""
    pieces = [f"*Verdict.* **{result['verdict'].capitalize()}{printed}.**{needed(result)}"]
    for mine in (False, True):
        rows = [
            [escape(s["sentence"]), TRUTHS[s["holds"]], escape(s["evidence"]), smallest(s["smallest"])]
            for s in result["statements"]
            if s["ours"] == mine
        ]
        if rows:
            pieces += ["*Ours, which do not count for the verdict:*"] * mine
            pieces.append(table("statement | true | numbers | smallest effect", rows))
    if result["power"]:
        rivals = ", ".join(f"{name} {value:.3g}" for name, value in result["power"]["rows"])
        passed = "passed" if result["power"]["passed"] else "not passed"
        pieces.append(f"*Power check, {passed}.* {escape(result['power']['sentence'])} Values: {escape(rivals)}.")
    if result["deviations"]:
        pieces.append(f"*Deviations.* {escape(result['deviations'])}")
    pieces.append(f"![{one.item}: see the statements above](figures/{one.name}.png)")
    pieces += comparison(result["comparison"])
    pieces.append(f"Command: `{result['command']}`.")
    return "\n\n".join(pieces)


def smallest(effect: float | None) -> str:
    """The smallest effect that would have been seen with probability 0.8; nothing for what is counted or computed."""
    return "" if effect is None else f"{effect:.2g}"


def needed(result: Mapping[str, Any]) -> str:
    """How many times as many samples, and hours, would decide an undecided verdict, from the differences that were seen."""
    open_ones = [s["needed"] for s in result["statements"] if s["holds"] is None and not s["ours"]]
    if result["verdict"] != experiments.UNDECIDED or None in open_ones:
        return ""
    times = float(f"{max(open_ones):.1g}")
    one = experiments.experiment(result["experiment"])
    hours = times * experiments.recorded_seconds(one, result) / 3600
    time = f"{hours:.1g} hours" if hours < 100 else f"{hours / 24:.0f} days"
    return (
        f" If the true differences are those that were seen, about {times:,.0f} times as many samples would decide it, "
        f"which take {time} in one process."
    )


def _corrected(result: Mapping[str, Any]) -> bool:
    """Whether a theorem is false as printed, and we have a statement of it that is true."""
    return "Theorem" in result["item"] and any(s["ours"] and s["holds"] for s in result["statements"])


def outcome(name: str) -> str:
    """What is known of an experiment, for a guide that has introduced it."""
    return conclusion(experiments.experiment(name), results().get(name))


def comparison(rows: list[Mapping[str, Any]]) -> list[str]:
    """Printed numbers next to ours, if there are not too many to read."""
    if not rows or len(rows) > MOST_ROWS:
        return [f"The {len(rows)} printed numbers next to ours are in the result file."] if rows else []
    return [table("  | paper | here", ([escape(row["label"]), row["printed"] or "-", ours(row)] for row in rows))]


def ours(row: Mapping[str, Any]) -> str:
    """Our number with its standard error."""
    spread = "" if row["standard_error"] is None else f" ± {row['standard_error']:.1g}"
    return "-" if row["ours"] is None else f"{row['ours']:.4g}{spread}"


def lacking(one: experiments.Absent) -> str:
    """What cannot be run, and what stands in for it."""
    stand_in = f" In its place: {one.stand_in}" if one.stand_in else ""
    return f"### {one.item}\n\n*Claim.* {escape(one.claim)}\n\n*Not run.* {one.missing}{stand_in}"


def escape(text: str) -> str:
    """Text without signs that Markdown reads as emphasis, a formula or a tag."""
    return re.sub(r"([*_$<>])", r"\\\1", text)


def summary() -> str:
    """Claims tested, holding, holding in part and failing, by paper."""
    found, rows = results(), []
    for paper, page in PAGES.items():
        outcomes = [verdict(one.name, found) for one in experiments.experiments().values() if one.paper == paper]
        outcomes += ["cannot be run here" for one in experiments.absent().values() if one.paper == paper]
        tested = sum(outcome in VERDICTS[:4] for outcome in outcomes)
        counts = [outcomes.count(kind) for kind in (*VERDICTS, "not run yet")]
        rows.append([f"[{experiments.PAPERS[paper]}]({page})", *map(str, (tested, *counts))])
    total = [str(sum(int(row[k]) for row in rows)) for k in range(1, len(rows[0]))]
    return table(" | ".join(["paper", "tested", *VERDICTS, "not run yet"]), [*rows, ["all", *total]])


def experiment_table() -> str:
    """Every experiment, with its verdict and the page that shows it."""
    found = results()
    rows = [
        [f"`{name}`", f"{one.paper.upper()} {one.item}", escape(one.claim),
         f"{one.seconds['smoke']:g} s", f"{experiments.recorded_seconds(one, found.get(name)):,.0f} s",
         experiments.needs(one), verdict(name, found)]
        for name, one in experiments.experiments().items()
    ]  # fmt: skip
    total = sum(experiments.recorded_seconds(one, found.get(name)) for name, one in experiments.experiments().items())
    rows.append(["all", "", "", f"{sum(one.seconds['smoke'] for one in experiments.experiments().values()):.0f} s",
                 f"{total / 3600:.1f} h", "", ""])  # fmt: skip
    return table("name | item | claim | smoke | full | needs | verdict", rows)


def version_table() -> str:
    """Which version made the numbers, and what they take in one process and in two."""
    found = results()
    rows = []
    for version in sorted({result["environment"]["bochner"] for result in found.values()}):
        times = [
            experiments.recorded_seconds(experiments.experiment(name), result)
            for name, result in found.items()
            if result["environment"]["bochner"] == version
        ]
        rows.append([version, str(len(times)), f"{sum(times) / 3600:.1f} h", f"{sum(times) / 7200:.1f} h"])
    return table("version | results | in one process | in two (`--jobs 2`)", rows)


def absent_table() -> str:
    """What cannot be run here."""
    rows = [[f"`{one.name}`", f"{one.paper.upper()} {one.item}", escape(one.claim), one.missing, one.stand_in or "none"]
            for one in experiments.absent().values()]  # fmt: skip
    return table("name | item | claim | what is missing | stand-in", rows)


def numbers(name: str) -> list[dict[str, Any]]:
    """Numbers of the parts of an experiment; none where there is no result."""
    found = results()
    return [part["numbers"] for part in found[name]["parts"].values()] if name in found else []


def spread(values: Any, digits: int) -> str:
    """A mean with its standard error."""
    found = experiments.Estimate.of(values)
    return f"{found.mean:.{digits}f} ± {found.error:.{digits}f}"


def training_table(name: str, digits: int) -> str:
    """Ends of training of an experiment that trains from scratch and after conversion, over its seeds."""
    parts, rows = [part for part in numbers(name) if "softmax" in part], [["not run yet", "", "", ""]]
    if parts:
        rows = [["softmax", spread([part["softmax"][-1] for part in parts], digits), "", ""]]
    for method in ("favor+", "favor++") if parts else ():
        ends = ((method, -1), (f"{method}, converted", 0), (f"{method}, converted", -1))
        rows.append([method.upper(), *(spread([part[run][k] for part in parts], digits) for run, k in ends)])
    return table("attention | from scratch | softmax model, converted | and trained further", rows)


def conversion_table() -> str:
    """Errors and accuracies of a trained vision transformer, converted without training."""
    models = [part for part in numbers("ours-attention-conversion") if "softmax" in part]
    rows = [["softmax", "", spread([part["softmax"] for part in models], 3)]] if models else [["not run yet", "", ""]]
    for method in models[0]["error"] if models else ():
        means = (
            [sum(part[kind][method]) / len(part[kind][method]) for part in models] for kind in ("error", "accuracy")
        )
        rows.append([method, *(spread(values, 3) for values in means)])
    return table("features | relative error of attention matrices | accuracy", rows)


def trained_models_table() -> str:
    """Increases of the perplexity of a language model and cosines of embeddings, by method and number of keys."""
    found = results().get("ours-trained-models", {"parts": {}})["parts"]
    parts = {name: part["numbers"] for name, part in sorted(found.items(), key=lambda one: _length(one[0]))}
    columns = [(name, part, str(cost)) for name, part in parts.items() for cost in part["costs"]]

    def cell(part: Mapping[str, Any], method: str, cost: str) -> str:
        drawn = part["values"].get(method, {}).get(cost)
        if drawn is None:
            return ""
        means = [sum(values) / len(values) for values in zip(*drawn, strict=True)]
        if not part["exact"]:
            return spread(means, 4)
        return _increase([math.expm1(mean - exact) for mean, exact in zip(means, part["exact"], strict=False)])

    methods = list(dict.fromkeys(method for part in parts.values() for method in part["values"]))
    lines = [[method, *(cell(part, method, cost) for _, part, cost in columns)] for method in methods]
    counts = [[len(drawn[0]) for own in part["values"].values() for drawn in own.values()] for _, part, _ in columns]
    lines.append(["*sequences: codes, others*", *(f"{max(count)}, {min(count)}" for count in counts)])
    heads = [f"{name.replace(' tokens', '')}: {cost} keys" for name, _, cost in columns]
    return table(" | ".join(["keys", *heads]), lines) if columns else table("keys", [["not run yet"]])


def fixed_state_table() -> str:
    """Increases of the perplexity of a language model with a state of fixed size, by length and method."""
    parts = {name: part["numbers"] for name, part in results().get("ours-fixed-state", {"parts": {}})["parts"].items()}
    lines = [
        [
            f"{name} ({len(values[0])} sequences, calibrated {len(values[-1])})",
            *(_increase([math.expm1(a - b) for a, b in zip(own, part["exact"], strict=False)]) for own in values),
        ]
        for name, part in parts.items()
        for values in [[part["values"][method] for method in experiments.experiment("ours-fixed-state").methods]]
    ]
    heads = ["length", *experiments.experiment("ours-fixed-state").methods]
    return table(" | ".join(heads), lines or [["not run yet", *[""] * (len(heads) - 1)]])


def _length(name: str) -> tuple[str, int]:
    """What a part of trained models is sorted by: the model, then the number of tokens."""
    model, tokens = name.split(", ")
    return model, int(tokens.split()[0])


def long_context_table() -> str:
    """Increases of the bits per character of two models at a long context, by window and what is added to it."""
    found = _character_models()
    keys = {tuple(int(k) for k in key.split()) for part in found.values() for key in part["table"]}
    windows, rows = (sorted({key[k] for key in keys}) for k in (0, 2))

    def cell(part: Mapping[str, Any], window: int, anchors: int, m: int) -> str:
        return _increase(part["table"].get(f"{window} {anchors} {m}", ()))

    lines = [
        [name, str(window), cell(part, window, 0, 0), *(cell(part, window, int(window > 0), m) for m in rows)]
        for name, part in found.items()
        for window in windows
    ]
    heads = ["model | window | alone", *("and first token" if m == 0 else f"and {m} rows" for m in rows)]
    return table(" | ".join(heads), lines or [["not run yet", "", ""]])


def long_context_models() -> str:
    """What the character models attend to, and what else was done with them."""
    found = _character_models()
    facts: dict[str, Callable[[Any], str]] = {
        "bits per character with softmax": lambda part: f"{part['softmax']:.3f}",
        "largest |q||k|": lambda part: f"{part['attended']['largest |q||k|']:.0f}",
        "attention to the first token: mean / largest of the heads": lambda part: _shares(part, "first token"),
        "attention beyond it and a window of 16": lambda part: _shares(part, "beyond the window"),
        "FAVOR++, 64 rows": lambda part: _increase([part["favor++"]]),
        "window 16, 64 rows, but not the first token": lambda part: _increase(part["table"]["16 0 64"]),
        "window 64, first token, 128 rows, after 100 steps of `distill`": lambda part: _increase(part["distilled"], 2),
        "window 16, first token, 64 rows, one layer exact": lambda part: _increase(part["kept"]["features"], 2),
        "the same without rows": lambda part: _increase([part["kept"]["alone"]], 2),
    }
    rows = [[name, *(fact(part) for part in found.values())] for name, fact in facts.items()]
    return table(" | ".join(["", *(f"{name} model" for name in found)]), rows)


def _character_models() -> dict[str, Any]:
    """Numbers of the models of `ours-long-context` that were run, by name."""
    found = results().get("ours-long-context", {"parts": {}})
    return {name: found["parts"][name]["numbers"] for name in ("plain", "look-up") if name in found["parts"]}


def _increase(values: Sequence[float], digits: int = 1) -> str:
    """An increase in percent, with its standard error where there are draws."""
    if len(values) > 1:
        return f"{spread([100 * value for value in values], digits)} %"
    return f"{100 * values[0]:.{digits}f} %" if values else ""


def _shares(part: Mapping[str, Any], name: str) -> str:
    heads = [100 * share for layer in part["attended"][name] for share in layer]
    return f"{sum(heads) / len(heads):.1f} % / {max(heads):.1f} %"


def dense_table() -> str:
    """Errors of dense exponential features over those of optimal positive ones, by data set and regime."""
    found = results().get("ours-grid")
    if found is None:
        return table("data | regime", [["not run yet", ""]])
    parts = {tuple(name.split(", ")): part["numbers"]["entries"] for name, part in found["parts"].items()}
    regimes = list(dict.fromkeys(regime for _, regime in parts))
    rows = [
        [data, *(ratios(parts[data, regime]) for regime in regimes)]
        for data in dict.fromkeys(data for data, _ in parts)
    ]
    return table(" | ".join(["data", *regimes]), rows)


def ratios(entries: Mapping[str, Any]) -> str:
    """Ratios in the median and in the root mean square; bold where dense features are worse beyond two standard errors."""
    cells = []
    for found in entries.values():
        gap = found["difference"]
        ratio = f"{found['dense'] / found['optimal-positive']:.2f}"
        cells.append(f"**{ratio}**" if gap["mean"] > 2 * gap["error"] else ratio)
    return " / ".join(cells)
