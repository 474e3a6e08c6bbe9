"""The default kernel machine against what one would use instead, on tables that it was and was not designed with.

Each cell, a table and a split, is measured once and kept as one file in a folder, so that a run goes on where it was
stopped.  At fixed hyperparameters, where our exact machine and scikit-learn's must agree, they are compared first.

Errors are pooled over splits, and two methods are compared on the splits of both.  Of few test rows no wrong class is no
proof of none: a share of wrong classes counts as at least half a row among the test rows of these splits.  Splits of one
table share rows, so that their differences vary together: paired tests over splits have the variance of Nadeau and Bengio
(2003).
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bochner.kernels import Gaussian, Laplacian
from bochner.learn import KernelRidge
from bochner.reporting import as_json, environment

from ._bench import Result, at_least, at_most, file_name, measured
from ._contenders import Split
from ._table_methods import BOOSTING, BY_FOLDS, CANDIDATE, CONSTANT, LINEAR, METHODS, OURS, XRFM, Method, error_of
from ._tables import DESIGN, JUDGING, TABLES, Table

WITHIN = 1.02
BEHIND, REGRET = 1.1, 1.03
LEVEL = 0.05
"""Level of the paired tests over splits of one table."""
TRIED = {table.name for half in (DESIGN, JUDGING) for table in [t for t in TABLES if t.half == half][::3]}
"""Tables on which the candidates of our own search are measured as well: every third one of each half."""


@dataclass(frozen=True)
class Profile:
    """Training rows at most, test rows at most, and splits."""

    rows: int
    test_rows: int
    splits: int
    tables: int | None = None


PROFILES = {"smoke": Profile(150, 300, 1, 3), "quick": Profile(500, 2000, 10), "full": Profile(2000, 3000, 10)}


@dataclass(frozen=True)
class Errors:
    """Errors on one table, in units of that of a constant.

    Attributes
    ----------
    methods : dict of str to array (splits,)
        Of each method; NaN on splits on which it was not measured.
    floor : float
        Half a wrong row among the test rows of all splits; zero for RMSE.
    overlap : float
        Test rows over training rows; zero where test rows are drawn anew for each split.
    """

    methods: Mapping[str, np.ndarray]
    floor: float = 0.0
    overlap: float = 0.0

    @classmethod
    def of(cls, cells: Sequence[Mapping[str, Any]]) -> Errors:
        """Errors of the cells of one table."""
        names = dict.fromkeys(name for cell in cells for name in cell["methods"])
        raw = {n: np.array([cell["methods"].get(n, {}).get("error", math.nan) for cell in cells]) for n in names}
        unit = float(raw[CONSTANT].mean()) or 1.0
        tested = sum(cell["test_rows"] for cell in cells)
        floor = 0.5 / tested / unit if cells[0]["classes"] else 0.0
        overlap = 0.0 if cells[0].get("drawn") else cells[0]["test_rows"] / cells[0]["rows"]
        return cls({n: e / unit for n, e in raw.items()}, floor, overlap)

    @property
    def means(self) -> dict[str, float]:
        """Mean error of each method over its splits, at least `floor`."""
        return {name: max(float(np.nanmean(values)), self.floor) for name, values in self.methods.items()}

    def ratio(self, other: str, *, more: bool = False, own: str = OURS) -> float:
        """Our error over another's on the splits of both, at least half a wrong row each; or with one ``more`` of each."""
        ours, theirs = self.methods[own], self.methods[other]
        both = np.isfinite(ours) & np.isfinite(theirs)
        half = self.floor * len(both) / int(both.sum())
        means = [float(values[both].mean()) for values in (ours, theirs)]
        one, two = (mean + 2 * half if more else max(mean, half) for mean in means)
        return one / two

    def p_value(self, rival: str) -> float:
        """Level of the paired t test over splits that our error and a rival's are the same; NaN for one split."""
        from scipy.stats import t

        gaps = self.methods[OURS] - self.methods[rival]
        gaps = gaps[np.isfinite(gaps)]
        if len(gaps) < 2:
            return math.nan
        spread = float(gaps.std(ddof=1)) * math.sqrt(1 / len(gaps) + self.overlap)
        return float(2 * t.sf(abs(float(gaps.mean())) / spread, len(gaps) - 1)) if spread > 0 else float(not gaps.any())


def run(
    names: Sequence[str] = (),
    profile: str = "quick",
    folder: Path | None = None,
    splits: Sequence[int] = (),
    again: Sequence[str] = (),
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
    again : sequence of str
        Beginnings of names of methods to measure again, after a change of theirs, in the cells that have them; no others are
        then measured.
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
                found.append(_cell(table, split, size, folder, tuple(again)))
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


def _cell(table: Table, number: int, size: Profile, folder: Path | None, again: tuple[str, ...] = ()) -> dict[str, Any]:
    """Errors and times of all methods on one split, from its file where there is one; methods it lacks are added.

    Its environment is the one in which our own machine was measured last; others may have been measured before.
    """
    path = None if folder is None else folder / f"{file_name(table.name.replace('-', '_'))}-{number}.json"
    cell: dict[str, Any] = {} if path is None or not path.exists() else json.loads(path.read_text())
    known = {name for name in cell.get("methods", {}) if not name.startswith(again)}
    split, done = table.split(number, size.rows, size.test_rows), False
    few = len(split.X) < size.rows  # of which all splits together have few test rows
    cell = cell or {
        "table": table.name, "half": table.half, "classes": table.classes, "smooth": table.smooth, "split": number,
        "rows": len(split.X), "columns": split.X.shape[1], "test_rows": len(split.X_test), "drawn": table.draws_tests,
        "environment": environment(), "methods": {},
    }  # fmt: skip
    for method in METHODS:
        if (
            method.name in known
            or (again and method.name not in cell["methods"])
            or not method.present
            or len(split.X) > method.rows
            or (number >= method.splits and not few)
        ):
            continue
        if method.name.startswith((CANDIDATE, BY_FOLDS)) and table.name not in TRIED:
            continue
        done = True
        cell["methods"][method.name] = _measured(method, split, number)
        if method.name == OURS:
            cell["environment"] = environment()
        print(f"{table.name} {number} {method.name}: {cell['methods'][method.name]}", file=sys.stderr)
    if path is not None and done:
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


def saved(folder: Path) -> list[dict[str, Any]]:
    """Every cell of a folder, in the order of the tables and of the splits."""
    order = [table.name for table in TABLES]
    cells = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    return sorted(cells, key=lambda cell: (order.index(cell["table"]), cell["split"]))


def errors(cells: Sequence[Mapping[str, Any]]) -> dict[str, Errors]:
    """Errors by table, of cells that are complete."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for cell in cells:
        if {OURS, CONSTANT, BOOSTING} <= cell["methods"].keys():
            found.setdefault(cell["table"], []).append(cell)
    return {table: Errors.of(own) for table, own in found.items()}


def rivals(found: Iterable[str]) -> list[str]:
    """Methods that are not ours."""
    return [name for name in found if name not in (OURS, BY_FOLDS) and not name.startswith(CANDIDATE)]


def best_rival(found: Errors) -> str:
    """The method of others with the lowest error, in comparison with ours on the same splits."""
    return max(rivals(found.methods), key=found.ratio)


def candidates_of(found: Errors) -> list[str]:
    """The candidates of our own search that were measured."""
    return [name for name in found.methods if name.startswith(CANDIDATE)]


def regret(found: Errors, *, more: bool = False, own: str = OURS) -> float:
    """Ratio of the error of the default to that of the best of its own candidates, on their splits; see `Errors.ratio`."""
    return max((found.ratio(name, more=more, own=own) for name in candidates_of(found)), default=math.nan)


def unseen_regret(found: Errors) -> float:
    """Ratio of the error of the default to that of the candidate that is best on the other splits.

    The best of eleven candidates by their own test errors owes a part of its lead to chance, which `regret` counts.  NaN of
    one split.
    """
    names = candidates_of(found)
    if not names:
        return math.nan
    tried = np.array([found.methods[name] for name in names])
    both = np.isfinite(tried).all(axis=0) & np.isfinite(found.methods[OURS])
    tried, ours, n = tried[:, both], found.methods[OURS][both], int(both.sum())
    if n < 2:
        return math.nan
    others = tried.sum(axis=1, keepdims=True) - tried
    picked = float(np.mean(tried[others.argmin(axis=0), np.arange(n)]))
    half = found.floor * len(both) / n
    return max(float(ours.mean()), half) / max(picked, half)


def p_value(tables: Mapping[str, Errors], rival: str) -> float:
    """Level of Wilcoxon's signed-rank test over tables of the logarithms of our error over a rival's; NaN for few tables."""
    from scipy.stats import wilcoxon

    logs = [math.log(found.ratio(rival)) for found in tables.values() if rival in found.methods]
    return float(wilcoxon(logs).pvalue) if sum(map(bool, logs)) > 5 else math.nan


def halves(cells: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Errors]]]:
    """Errors of the tables of each half that were measured."""
    for half in (DESIGN, JUDGING):
        part = errors([cell for cell in cells if cell["half"] == half])
        if part:
            yield half, part


def _lines(cells: Sequence[Mapping[str, Any]]) -> Iterator[Result]:
    """One line for each table and method."""
    for table, found in errors(cells).items():
        own, means = [cell for cell in cells if cell["table"] == table], found.means
        behind = max(1.0, found.ratio(best_rival(found)))
        for name, error in means.items():
            times = [cell["methods"][name]["cpu_seconds"] for cell in own if name in cell["methods"]]
            compared = f", p {found.p_value(name):.2g}" if name != OURS else ""
            of_best = behind / found.ratio(name)
            details = f"{len(times)} splits; {np.mean(times):.2g} s of CPU, {of_best:.2f} of the best{compared}"
            yield measured(f"{table}: {name}", error, "of a constant's error", details)


def goals(cells: Sequence[Mapping[str, Any]]) -> Iterator[Result]:
    """Counts against the goals, for each half, with the tables that are lost."""
    smooth = {cell["table"] for cell in cells if cell["smooth"]}
    for half, part in halves(cells):
        ratio = {table: max(1.0, found.ratio(best_rival(found))) for table, found in part.items()}
        lost = {t: f"{t} {r:.2f}" for t, r in sorted(ratio.items(), key=lambda pair: -pair[1]) if r > WITHIN}
        close = float(np.mean([r <= WITHIN for r in ratio.values()]))
        yield at_least(
            f"{half}: within 2 % of the best of all", close, 0.5, "of tables", "not: " + ", ".join(lost.values())
        )
        worse = [t for t in lost if part[t].p_value(best_rival(part[t])) < LEVEL]
        case = f"{half}: worse than the best other method beyond noise (paired t test, level {LEVEL:g})"
        yield measured(case, len(worse) / len(part), "of tables", ", ".join(worse) or "none")
        behind = {t: r for t, r in ratio.items() if t in smooth}
        worst = max(behind, key=lambda t: behind[t], default="")
        if behind:
            level = f"worst: {worst}, p {part[worst].p_value(best_rival(part[worst])):.2g}"
            yield at_most(f"{half}: behind the best on smooth tables", behind[worst], BEHIND, "x", level)
        for rival, goal in ((BOOSTING, 2 / 3), (XRFM, None), (LINEAR, None)):
            pairs = {t: found.ratio(rival) for t, found in part.items() if rival in found.methods}
            if not pairs:
                continue
            share = float(np.mean([r < 1 for r in pairs.values()]))
            losses = "worse: " + ", ".join(f"{t} {r:.2f}" for t, r in pairs.items() if r > 1)
            if goal is not None:
                yield at_least(f"{half}: better than {rival}", share, goal, "of tables", losses)
            else:
                yield measured(f"{half}: better than {rival}", share, "of tables", losses)
            mean_ratio = float(np.exp(np.mean(np.log(list(pairs.values())))))
            case = f"{half}: geometric mean error over that of {rival}"
            yield (
                at_most(case, mean_ratio, 1.0, "x", f"{len(pairs)} tables")
                if rival == XRFM
                else measured(case, mean_ratio, "x", f"{len(pairs)} tables")
            )
        yield from _regrets(half, part)


def _regrets(half: str, part: Mapping[str, Errors]) -> Iterator[Result]:
    """The choice against its own candidates, by their test errors, with one more wrong row each, and by other splits."""
    tried = {t: found for t, found in part.items() if candidates_of(found)}

    def line(values: Mapping[str, float]) -> tuple[float, str]:
        known = {t: r for t, r in values.items() if math.isfinite(r)}
        most = ", ".join(f"{t} {r:.2f}" for t, r in sorted(known.items(), key=lambda p: -p[1])[:5])
        return float(np.exp(np.mean(np.log(list(known.values()))))), f"{len(known)} tables; most: {most}"

    if not tried:
        return
    value, said = line({t: regret(found) for t, found in tried.items()})
    yield at_most(f"{half}: the choice over the best of its candidates", value, REGRET, "x", said)
    value, said = line({t: regret(found, more=True) for t, found in tried.items()})
    yield measured(f"{half}: the same, with one more wrong row each", value, "x", said)
    folds = {t: regret(found, own=BY_FOLDS) for t, found in tried.items() if BY_FOLDS in found.methods}
    if folds:
        value, said = line(folds)
        ours, _ = line({t: regret(tried[t]) for t in folds})
        yield measured(f"{half}: the choice of ten folds over the best", value, "x", f"ours there {ours:.3g}; {said}")
    unseen = {t: unseen_regret(found) for t, found in tried.items()}
    if any(map(math.isfinite, unseen.values())):
        value, said = line(unseen)
        yield measured(f"{half}: the choice over the candidate that is best on the other splits", value, "x", said)
