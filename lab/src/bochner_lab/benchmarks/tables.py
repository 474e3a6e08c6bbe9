"""The default kernel machine against what one would use instead, on tables that it was and was not designed with.

Each cell, a table and a split, is measured once and kept as one file in a folder, so that a run goes on where it was
stopped.  At fixed hyperparameters, where our exact machine and scikit-learn's must agree, they are compared first.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bochner.kernels import Gaussian, Laplacian
from bochner.learn import KernelRidge
from bochner.reporting import as_json, environment

from ._bench import Result, at_least, at_most, measured
from ._contenders import Split
from ._table_methods import BOOSTING, CANDIDATE, CONSTANT, LINEAR, METHODS, OURS, XRFM, Method, error_of
from ._tables import DESIGN, JUDGING, TABLES, Table

_LEAST = 1e-3
"""Error, in units of a constant's, below which methods count as equal: errors of zero have no ratio."""
WITHIN = 1.02
BEHIND = 1.1


@dataclass(frozen=True)
class Profile:
    """Training rows at most, test rows at most, and splits."""

    rows: int
    test_rows: int
    splits: int
    tables: int | None = None


PROFILES = {"smoke": Profile(150, 300, 1, 3), "quick": Profile(500, 2000, 4), "full": Profile(2000, 3000, 10)}

Cells = Mapping[str, Mapping[str, Sequence[float]]]
"""Errors by table, method and split."""


def run(
    names: Sequence[str] = (), profile: str = "quick", folder: Path | None = None, splits: Sequence[int] = ()
) -> Iterator[Result]:
    """Measure what the folder does not have yet; then tell errors, counts and goals of all that it has.

    Parameters
    ----------
    names : sequence of str
        Tables to measure; all by default.
    profile : str
        "smoke", "quick" or "full".
    folder : Path, optional
        Of the files; without one nothing is kept.
    splits : sequence of int
        Splits to measure; all of the profile by default.
    """
    size = PROFILES[profile]
    known = [table for table in TABLES[: size.tables] if not names or table.name in names]
    unknown = set(names) - {table.name for table in TABLES}
    if unknown:
        raise ValueError(
            f"bochner-lab bench: --data must be one of {', '.join(repr(t.name) for t in TABLES)}, got {unknown.pop()!r}."
        )
    yield from agreement()
    found: list[dict[str, Any]] = []
    for split in splits or range(size.splits):
        for table in known:
            try:
                found.append(_cell(table, split, size, folder))
            except OSError as error:
                print(f"left out {table.name}: {error}", file=sys.stderr)
    kept = found if folder is None or names or splits else saved(folder)
    yield from _lines(kept)
    yield from goals(kept)


def agreement() -> Iterator[Result]:
    """Largest difference between our exact machine and scikit-learn's at the same hyperparameters."""
    from sklearn.kernel_ridge import KernelRidge as Exact

    for table in (t for t in TABLES if t.make is not None and not t.classes):
        split = table.split(0, 300, 300)
        Z, Z_test = ((X - split.X.mean(axis=0)) / split.X.std(axis=0) for X in (split.X, split.X_test))
        y = (split.y - split.y.mean()) / split.y.std()
        d = Z.shape[1]  # bandwidths of about the median distance
        for name, kernel, gamma in (
            ("rbf", Gaussian(math.sqrt(d)), 0.5 / d),
            ("laplacian", Laplacian(float(d)), 1 / d),
        ):
            ours = KernelRidge(
                kernel, gamma=None, map="landmarks", n_components=len(Z), alpha=0.1, fit_intercept=False, metric=None
            )
            theirs = Exact(alpha=0.1, kernel=name, gamma=gamma).fit(Z, y).predict(Z_test)
            gap = float(np.abs(ours.fit(Z, y).predict(Z_test) - theirs).max())
            yield at_most(f"{table.name}: ours and scikit-learn's, {name}, alpha 0.1", gap, 1e-6, "deviations", "")


def _cell(table: Table, number: int, size: Profile, folder: Path | None) -> dict[str, Any]:
    """Errors and times of all methods on one split, from its file where there is one; methods it lacks are added."""
    path = None if folder is None else folder / f"{_file_name(table.name)}-{number}.json"
    cell: dict[str, Any] = {} if path is None or not path.exists() else json.loads(path.read_text())
    split: Split | None = None
    for method in METHODS:
        if method.name in cell.get("methods", {}) or not method.present:
            continue
        if split is None:
            split = table.split(number, size.rows, size.test_rows)
            cell = cell or {
                "table": table.name, "half": table.half, "classes": table.classes, "smooth": table.smooth,
                "split": number, "rows": len(split.X), "columns": split.X.shape[1], "test_rows": len(split.X_test),
                "environment": environment(), "methods": {},
            }  # fmt: skip
        cell["methods"][method.name] = _measured(method, split, number)
        print(f"{table.name} {number} {method.name}: {cell['methods'][method.name]}", file=sys.stderr)
    if path is not None and split is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():  # another run may have measured other methods meanwhile
            cell["methods"] = json.loads(path.read_text())["methods"] | cell["methods"]
        partial = path.with_suffix(".part")
        partial.write_text(as_json(cell) + "\n")
        partial.replace(path)
    return cell


def _measured(method: Method, split: Split, seed: int) -> dict[str, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    error = error_of(method, split, seed)
    return {"error": error, "seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)


def saved(folder: Path) -> list[dict[str, Any]]:
    """Every cell of a folder, in the order of the tables and of the splits."""
    order = [table.name for table in TABLES]
    cells = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    return sorted(cells, key=lambda cell: (order.index(cell["table"]), cell["split"]))


def errors(cells: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, np.ndarray]]:
    """Errors by table and method, one per split, in units of that of a constant; of cells that are complete."""
    found: dict[str, dict[str, list[float]]] = {}
    for cell in cells:
        if not {OURS, CONSTANT, BOOSTING} <= cell["methods"].keys():
            continue
        unit = cell["methods"][CONSTANT]["error"] or 1.0
        for name, numbers in cell["methods"].items():
            found.setdefault(cell["table"], {}).setdefault(name, []).append(numbers["error"] / unit)
    whole = {t: max(map(len, methods.values())) for t, methods in found.items()}
    return {
        t: {name: np.array(values) for name, values in methods.items() if len(values) == whole[t]}
        for t, methods in found.items()
    }


def means(found: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Mean error of each method over splits, at least a thousandth of a constant's."""
    return {name: max(float(values.mean()), _LEAST) for name, values in found.items()}


def rivals(found: Mapping[str, Any]) -> list[str]:
    """Methods that are not ours."""
    return [name for name in found if name != OURS and not name.startswith(CANDIDATE)]


def regret(found: Mapping[str, np.ndarray]) -> float:
    """Ratio of the error of the default to that of the best of its own candidates, by their means over splits."""
    mean = means(found)
    candidates = [error for name, error in mean.items() if name.startswith(CANDIDATE)]
    return mean[OURS] / min(candidates) if candidates else math.nan


def regrets_of(cells: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The `regret` of each table, on the splits on which the candidates were measured."""
    tried = [cell for cell in cells if any(name.startswith(CANDIDATE) for name in cell["methods"])]
    return {table: regret(found) for table, found in errors(tried).items()}


def p_value(tables: Mapping[str, Mapping[str, float]], rival: str) -> float:
    """Level of Wilcoxon's signed-rank test over tables of the logarithms of our error over a rival's; NaN for few tables."""
    from scipy.stats import wilcoxon

    logs = [math.log(mean[OURS] / mean[rival]) for mean in tables.values() if rival in mean]
    return float(wilcoxon(logs).pvalue) if sum(map(bool, logs)) > 5 else math.nan


def t_value(found: Mapping[str, np.ndarray], rival: str) -> float:
    """Paired t statistic over splits of the logarithm of our error over a rival's; NaN for one split."""
    logs = np.log(np.maximum(found[OURS], _LEAST) / np.maximum(found[rival], _LEAST))
    if len(logs) < 2:
        return math.nan
    spread = float(logs.std(ddof=1)) / math.sqrt(len(logs))
    return float(logs.mean()) / spread if spread > 0 else math.copysign(math.inf, logs.mean()) if logs.mean() else 0.0


def halves(cells: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, dict[str, np.ndarray]]]]:
    """Errors of the tables of each half that were measured."""
    for half in (DESIGN, JUDGING):
        part = errors([cell for cell in cells if cell["half"] == half])
        if part:
            yield half, part


def _lines(cells: Sequence[Mapping[str, Any]]) -> Iterator[Result]:
    """One line for each table and method."""
    for table, found in errors(cells).items():
        own = [cell for cell in cells if cell["table"] == table]
        best = min(means({name: found[name] for name in (OURS, *rivals(found))}).values())
        for name, values in found.items():
            times = [cell["methods"][name]["cpu_seconds"] for cell in own if name in cell["methods"]]
            spread = f"+- {values.std(ddof=1) / math.sqrt(len(values)):.2g}; " if len(values) > 1 else ""
            compared = f", t {t_value(found, name):+.1f}" if name != OURS and OURS in found else ""
            details = (
                f"{spread}{np.mean(times):.2g} s of CPU, {max(values.mean(), _LEAST) / best:.2f} of the best{compared}"
            )
            yield measured(f"{table}: {name}", float(values.mean()), "of a constant's error", details)


def goals(cells: Sequence[Mapping[str, Any]]) -> Iterator[Result]:
    """Counts against the goals, for each half, with the tables that are lost."""
    smooth = {cell["table"] for cell in cells if cell["smooth"]}
    for half, part in halves(cells):
        tables = {table: means(found) for table, found in part.items() if OURS in found}
        best = {table: min(mean[name] for name in (OURS, *rivals(mean))) for table, mean in tables.items()}
        ratio = {table: mean[OURS] / best[table] for table, mean in tables.items()}
        lost = {t: f"{t} {r:.2f}" for t, r in sorted(ratio.items(), key=lambda pair: -pair[1]) if r > WITHIN}
        close = float(np.mean([r <= WITHIN for r in ratio.values()]))
        yield at_least(
            f"{half}: within 2 % of the best of all", close, 0.5, "of tables", "not: " + ", ".join(lost.values())
        )
        behind = {t: r for t, r in ratio.items() if t in smooth}
        worst = max(behind, key=lambda t: behind[t], default="")
        if behind:
            yield at_most(f"{half}: behind the best on smooth tables", behind[worst], BEHIND, "x", f"worst: {worst}")
        for rival, goal in ((BOOSTING, 2 / 3), (XRFM, None), (LINEAR, None)):
            pairs = {t: m[OURS] / m[rival] for t, m in tables.items() if rival in m}
            if not pairs:
                continue
            share = float(np.mean([r < 1 for r in pairs.values()]))
            worse = "worse: " + ", ".join(f"{t} {r:.2f}" for t, r in pairs.items() if r > 1)
            if goal is not None:
                yield at_least(f"{half}: better than {rival}", share, goal, "of tables", worse)
            else:
                yield measured(f"{half}: better than {rival}", share, "of tables", worse)
            mean_ratio = float(np.exp(np.mean(np.log(list(pairs.values())))))
            case = f"{half}: geometric mean error over that of {rival}"
            yield (
                at_most(case, mean_ratio, 1.0, "x", f"{len(pairs)} tables")
                if rival == XRFM
                else measured(case, mean_ratio, "x", f"{len(pairs)} tables")
            )
        regrets = regrets_of([cell for cell in cells if cell["half"] == half])
        if regrets:
            value = float(np.exp(np.mean(np.log(list(regrets.values())))))
            most = ", ".join(f"{t} {r:.2f}" for t, r in sorted(regrets.items(), key=lambda p: -p[1])[:5])
            yield at_most(f"{half}: the choice over the best of its candidates", value, 1.03, "x", f"most: {most}")
