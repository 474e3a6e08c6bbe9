"""The site of all results: HTML pages without scripts or links to elsewhere, with their figures inside."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from bochner.reporting import printable, seconds

from ._experiment import PAPERS, Absent, absent, experiments
from ._runner import read_results, result_path, write_atomically
from ._verdicts import CANNOT_RUN, VERDICTS

NOT_RUN = "not run yet"
SHOWN = {True: "yes", False: "no", None: "undecided"}


def write_site(out: Path, site: Path) -> Path:
    """Write one page per paper and a summary; return the path of the summary.

    Parameters
    ----------
    out : Path
        Folder of the results, as given to `run`.
    site : Path
        Folder of the pages.
    """
    results = read_results(out)
    site.mkdir(parents=True, exist_ok=True)
    for paper, title in PAPERS.items():
        write_atomically(site / f"{paper}.html", _page(title, _paper(paper, results, out)))
    index = site / "index.html"
    write_atomically(index, _page("Reproduction of five papers", _summary(results)))
    return index


def _page(title: str, body: str) -> str:
    template = Template(resources.files(__package__).joinpath("site.html").read_text(encoding="utf-8"))
    links = " ".join(f'<a href="{paper}.html">{paper.upper()}</a>' for paper in PAPERS)
    return template.substitute(title=safe(title), links=links, body=body)


def safe(value: Any) -> str:
    """Text that HTML shows and does not obey."""
    return escape(printable(str(value)))


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells that are HTML already."""
    head = "".join(f"<th>{safe(cell)}</th>" for cell in header)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def _verdict(verdict: str) -> str:
    return f'<span class="verdict v{(*VERDICTS, NOT_RUN).index(verdict)}">{safe(verdict)}</span>'


def verdict_of_result(result: Mapping[str, Any] | None) -> str:
    """The verdict of a result; "not run yet" where there is none."""
    return NOT_RUN if result is None else str(result["verdict"])


def _claimed(name: str, results: Mapping[str, dict[str, Any]]) -> str:
    """The verdict as a cell, with a mark where it is that of the smoke profile."""
    result = results.get(name)
    return _verdict(verdict_of_result(result)) + (" (smoke)" if result and result["profile"] == "smoke" else "")


def _summary(results: Mapping[str, dict[str, Any]]) -> str:
    lines = []
    for paper, title in PAPERS.items():
        verdicts = [verdict_of_result(results.get(name)) for name, one in experiments().items() if one.paper == paper]
        verdicts += [CANNOT_RUN for one in absent().values() if one.paper == paper]
        counts = [str(verdicts.count(verdict)) for verdict in (*VERDICTS, NOT_RUN)]
        lines.append([f'<a href="{paper}.html">{safe(title)}</a>', str(len(verdicts)), *counts])
    claims = [
        [f'<a href="{one.paper}.html#{name}">{name}</a>', safe(one.item), safe(one.claim),
         _claimed(name, results)]
        for name, one in experiments().items()
    ]  # fmt: skip
    rule = "A difference counts only beyond two standard errors. Every verdict follows from statements that are fixed "
    return (
        f"<p>{rule}in code before the full profile is run; the pages of the papers show them.</p>"
        + _table(["paper", "claims", *VERDICTS, NOT_RUN], lines)
        + "<h2>Claims</h2>"
        + _table(["experiment", "item", "claim", "verdict"], claims)
    )


def _paper(paper: str, results: Mapping[str, dict[str, Any]], out: Path) -> str:
    sections = [
        _section(results[name], out)
        if name in results
        else f'<h2 id="{name}">{safe(one.item)}</h2>{_claim(one.claim, NOT_RUN)}'
        f"<p>Run it by <code>bochner-lab run {name}</code>.</p>"
        for name, one in experiments().items()
        if one.paper == paper
    ]
    return "\n".join(sections + [_absent(one) for one in absent().values() if one.paper == paper])


def _claim(claim: str, verdict: str) -> str:
    return f"<p>{_verdict(verdict)} <strong>Claim.</strong> {safe(claim)}</p>"


def _absent(one: Absent) -> str:
    stand_in = f" In its place: {safe(one.stand_in)}" if one.stand_in else ""
    return (
        f'<h2 id="{one.name}">{safe(one.item)}</h2>{_claim(one.claim, CANNOT_RUN)}<p>{safe(one.missing)}{stand_in}</p>'
    )


def _section(result: Mapping[str, Any], out: Path) -> str:
    name = result["experiment"]
    pieces = [f'<h2 id="{safe(name)}">{safe(result["item"])}</h2>', _claim(result["claim"], result["verdict"])]
    if result["verdict"] == CANNOT_RUN:
        return "".join([*pieces, f"<p>{safe(result['missing'])}</p>"])
    if result["profile"] == "smoke":
        pieces.append(
            "<p><strong>Smoke profile.</strong> It is too small to judge the paper: run the full profile.</p>"
        )
    if result["deviations"]:
        pieces.append(f"<p><strong>Deviations.</strong> {safe(result['deviations'])}</p>")
    pieces.append(f"<p><strong>Rule.</strong> {safe(result['rule'])}</p>")
    rows = [
        [safe(s["sentence"]), SHOWN[s["holds"]] + (" (ours)" if s["ours"] else ""), safe(s["evidence"])]
        for s in result["statements"]
    ]
    pieces.append(_table(["statement", "true", "numbers"], rows))
    figure = result_path(out, name, result["profile"]).with_name("figure.png")
    if figure.exists():
        data = base64.b64encode(figure.read_bytes()).decode()
        pieces.append(f'<figure><img alt="{safe(result["item"])}" src="data:image/png;base64,{data}"></figure>')
    if result["comparison"]:
        pieces.append(_table(["", "paper", "here"], [_row(row) for row in result["comparison"]]))
    facts = {**result["environment"], **_origin(result), "seed": result["seed"]}
    where = ", ".join(f"{key} {value}" for key, value in facts.items())
    took = seconds(result["wall_seconds"])
    pieces.append(f'<p class="facts"><code>{safe(result["command"])}</code>: {took}. {safe(where)}.</p>')
    return "".join(pieces)


def _origin(result: Mapping[str, Any]) -> dict[str, str]:
    """What tells which code made the numbers: digits of the parts, or for older ones commits, where they are known."""
    found = {
        key: sorted({str(part[key])[:12] for part in (result, *result["parts"].values()) if part.get(key)})
        for key in ("code", "commit")
    }
    return {key: " and ".join(values) for key, values in found.items() if values}


def _row(row: Mapping[str, Any]) -> list[str]:
    ours = "-" if row["ours"] is None else f"{row['ours']:.4g}"
    spread = "" if row["standard_error"] is None else f" &plusmn; {row['standard_error']:.1g}"
    return [safe(row["label"]), safe(row["printed"]) or "-", safe(ours) + spread]
