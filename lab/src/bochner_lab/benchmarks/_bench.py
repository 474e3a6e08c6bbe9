"""The command ``bochner-lab bench``: cases with a measured value and a goal, how they are timed, and where."""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from bochner.reporting import as_json, environment, format_table


@dataclass(frozen=True)
class Result:
    """One measured line: a value, what it is compared with, and the goal it was built to."""

    case: str
    value: float
    unit: str
    goal: str
    met: bool
    details: str
    numbers: dict[str, Any] = field(default_factory=dict)
    """What pages and pictures are made from."""

    def with_numbers(self, **numbers: Any) -> Result:
        """A copy of this line with more numbers."""
        return replace(self, numbers=self.numbers | numbers)


def measured(case: str, value: float, unit: str, details: str) -> Result:
    """A case without a goal."""
    return Result(case, value, unit, "-", True, details)


def not_measured(case: str, reason: str) -> Result:
    """A case that cannot be measured here, and why."""
    return Result(case, math.nan, "not measured", "-", True, reason)


def at_most(case: str, value: float, bound: float, unit: str, details: str) -> Result:
    """A case whose value must not exceed a bound."""
    return Result(case, value, unit, f"<= {bound:g} {unit}", value <= bound, details)


def at_least(case: str, value: float, bound: float, unit: str, details: str) -> Result:
    """A case whose value must reach a bound."""
    return Result(case, value, unit, f">= {bound:g} {unit}", value >= bound, details)


def _suite(name: str) -> Callable[[], Iterator[Result]]:
    """The cases of a module of this package, which is imported once they are measured."""
    return lambda: import_module(f"{__package__}.{name}").run()


SUITES = {
    name: _suite(name)
    for name in (
        "attention",
        "beyond",
        "decode",
        "engines",
        "exact",
        "families",
        "features",
        "graphs",
        "hashing",
        "intervals",
        "learn",
        "low_dimensions",
        "optimize",
        "processes",
        "projections",
        "tables",
        "text",
        "trained",
        "without_numba",
    )
}


KEEPING = ("exact", "processes", "text")
"""Suites of cases that take minutes each, which are kept as files; beside tables, which has more to choose."""


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("bench", help="measure speed against other libraries, and print the ratios")
    parser.add_argument("suite", nargs="?", choices=sorted(SUITES), help="run only this suite")
    parser.add_argument(
        "--data",
        action="append",
        metavar="NAME",
        help="only this data set of the suite learn, where speed means its other cases, or of those that keep cells",
    )
    parser.add_argument(
        "--profile", choices=("smoke", "quick", "full"), help="size of the suite tables (default quick)"
    )
    parser.add_argument(
        "--results",
        type=Path,
        metavar="FOLDER",
        help="keep and continue the cells of tables, exact, processes or text here",
    )
    parser.add_argument("--split", type=int, action="append", metavar="K", help="only this split of the suite tables")
    parser.add_argument(
        "--again",
        action="append",
        metavar="METHOD",
        help="measure methods that begin so again, where they are kept, and no others (tables)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--cg", action="store_true", help="measure conjugate gradients on wide features alone (learn)")
    parser.add_argument("--neighbour", action="store_true", help="measure attention beside two busy processes instead")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure and print; the exit code is zero if every case was measured and every goal met, 130 if interrupted."""
    suites = SUITES
    for option, suite, module in (("neighbour", "attention", "attention_neighbour"), ("cg", "learn", "wide")):
        if getattr(options, option):
            if options.suite not in (None, suite):
                print(f"bochner-lab bench: --{option} measures {suite}, not {options.suite}.", file=sys.stderr)
                return 2
            suites = {suite: _suite(module)}
    if options.suite == "tables":
        sized = {"profile": options.profile or "quick", "folder": options.results, "splits": options.split or ()}
        sized["again"] = options.again or ()
        suites = {"tables": partial(import_module(f"{__package__}.tables").run, options.data or (), **sized)}
    elif options.profile or options.split or options.again or (options.results and options.suite not in KEEPING):
        print(
            "bochner-lab bench: --profile, --results, --split and --again belong to the suite tables.", file=sys.stderr
        )
        return 2
    elif options.suite in KEEPING:
        work = import_module(f"{__package__}.{options.suite}").run
        suites = {options.suite: partial(work, options.data or (), options.results)}
    elif options.data:
        if options.suite != "learn":
            print(f"bochner-lab bench: --data measures learn or tables, not {options.suite}.", file=sys.stderr)
            return 2
        suites = {"learn": partial(import_module(f"{__package__}.learn").run, options.data)}
    results: list[Result] = []
    interrupted, ended = False, 0
    try:
        for name in [options.suite] if options.suite else suites:
            try:
                for result in suites[name]():
                    results.append(result)
                    if not options.json:
                        met = "ok  " if result.met else "MISS"
                        print(f"{met} {result.case}: {result.value:.3g} {result.unit}", file=sys.stderr)
            except (FileNotFoundError, ImportError) as missing:
                if options.suite:
                    raise
                ended += 1  # the other suites can be measured without this table or package
                print(f"bochner-lab bench: {name} ends here. {missing}", file=sys.stderr)
    except KeyboardInterrupt:
        if not results:
            raise
        interrupted = True
        print("bochner-lab bench: interrupted; what was measured before follows.", file=sys.stderr)
    if options.json:
        print(as_json({"environment": environment(), "results": [asdict(result) for result in results]}))
    else:
        print(_table(results))
    return 130 if interrupted else 0 if not ended and all(result.met for result in results) else 1


def _table(results: list[Result]) -> str:
    rows = [[r.case, f"{r.value:.3g} {r.unit}", r.goal, "yes" if r.met else "NO", r.details] for r in results]
    facts = ", ".join(f"{name} {value}" for name, value in environment().items())
    return f"{facts}\n{format_table(['case', 'measured', 'goal', 'met', 'times'], rows)}"


def kept_cell(folder: Path | None, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a case has measured, from its file in the folder where there is one; otherwise it is measured and kept."""
    path = None if folder is None else folder / f"{file_name(name)}.json"
    if path is not None and path.exists():
        return dict(json.loads(path.read_text()))
    cell = work() | {"environment": environment()}
    print(f"{name}: {cell}", file=sys.stderr)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(as_json(cell) + "\n")
    return cell


def file_name(name: str) -> str:
    """The name with nothing but letters, digits and hyphens."""
    return "".join(c if c.isalnum() or c == "-" else "_" for c in name)


def best_of(work: Callable[[], Any], repeats: int = 5) -> float:
    """Shortest of several runs in seconds, after one that is not counted."""
    return best_of_each([work], repeats)[0]


REST = 0.1
"""Seconds until threads of BLAS sleep: after a product they spin on a core, which the next method would have to share."""


def best_of_each(works: Sequence[Callable[[], Any]], repeats: int = 7, rest: float = 0.0) -> list[float]:
    """Shortest runs of several functions, interleaved so that noise affects all of them equally, after a rest each."""
    for work in works:
        work()
    times = [[_time(work, rest) for work in works] for _ in range(repeats)]
    return [min(column) for column in zip(*times, strict=True)]


def _time(work: Callable[[], Any], rest: float) -> float:
    time.sleep(rest)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def resident_memory() -> float:
    """Memory of this process now, in bytes, where Linux says so; otherwise the largest one so far."""
    status = Path("/proc/self/status")
    found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return 1024.0 * int(found[1]) if found else peak_memory()


def in_process(module: str, what: str, *numbers: float) -> Any:
    """What a function of a module returns, which is run in a process of its own: its memory is not that of others."""
    command = [sys.executable, "-m", module, what, *map(repr, numbers)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def peak_memory() -> float:
    """Largest resident memory of this process in bytes.

    Linux counts the memory of the process that started it in ``ru_maxrss``, so its own record is read there.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if found:
            return 1024.0 * int(found[1])
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
