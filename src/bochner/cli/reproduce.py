"""The command ``bochner reproduce``: list, run, plot and report the experiments of the papers."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import Any

from .. import experiments as lab
from .._table import as_json, format_table, seconds
from .problem import check_range, writable

_NAMES = "experiments by name, such as simrf-fig6"


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("reproduce", help="reproduce the figures, tables and theorems of the five papers")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = _action(actions, "list", _list, "show all experiments, their claims, data and times")
    listing.add_argument("--json", action="store_true", help="print JSON instead of a table")
    running = _action(actions, "run", _run, "run experiments; finished parts are not repeated")
    running.add_argument("--all", action="store_true", help="all experiments")
    running.add_argument(
        "--profile", choices=("smoke", "full"), default="full", help="how much to compute (default full)"
    )
    running.add_argument("--jobs", type=int, default=1, help="number of processes (default 1)")
    running.add_argument("--seed", type=int, default=0, help="seed of all random numbers (default 0)")
    running.add_argument("--fresh", action="store_true", help="compute finished parts again")
    plotting = _action(actions, "plot", _plot, "draw the figures of finished experiments again")
    for action in (running, plotting):
        action.add_argument("names", nargs="*", metavar="NAME", help=_NAMES)
    reporting = _action(actions, "report", _report, "build the HTML site of all results")
    reporting.add_argument("--site", type=Path, help="folder of the site (default: site/ in the folder of the results)")


def _action(actions: Any, name: str, work: Any, text: str) -> Any:
    action = actions.add_parser(name, help=text)
    if name != "report":
        action.add_argument("--paper", choices=tuple(lab.PAPERS), help="the experiments of one paper")
    action.add_argument("--out", type=Path, default=Path("results"), help="folder of the results (default results/)")
    action.set_defaults(run=work)
    return action


def _list(options: argparse.Namespace) -> int:
    results = lab.read_results(options.out)
    chosen = [one for one in lab.experiments().values() if options.paper in (None, one.paper)]
    missing = [one for one in lab.absent().values() if options.paper in (None, one.paper)]
    if options.json:
        fields = ("name", "paper", "item", "claim", "rule", "data", "methods", "seconds")
        print(as_json([{key: getattr(one, key) for key in fields} for one in chosen]))
        return 0
    rows = []
    for one in chosen:
        found = results.get(one.name)
        verdict = "-" if found is None else found["verdict"] + (" (smoke)" if found["profile"] == "smoke" else "")
        times = [f"{one.seconds[profile]:,.0f} s" for profile in ("smoke", "full")]
        rows.append([one.name, one.item, *times, ", ".join(one.data) or "none", verdict])
    print(format_table(["experiment", "item", "smoke", "full", "data", "verdict"], rows))
    print()
    for one in chosen:
        print(f"{one.name}: {one.claim}")
    for lacking in missing:
        print(f"{lacking.name} cannot be run here: {lacking.missing}")
    return 0


def _chosen(options: argparse.Namespace) -> list[lab.Experiment]:
    """The experiments that the options name; none is a mistake."""
    named = [lab.experiment(name) for name in dict.fromkeys(options.names)]
    if options.paper:
        named += [one for one in lab.experiments().values() if one.paper == options.paper and one not in named]
    if getattr(options, "all", False):
        named = list(lab.experiments().values())
    return named


def _run(options: argparse.Namespace) -> int:
    check_range(options, "jobs", 1, 256)
    check_range(options, "seed", 0, 2**63 - 1)
    chosen = _chosen(options)
    if not chosen:
        raise ValueError("name experiments, or give --paper or --all; `bochner reproduce list` shows them.")
    writable("--out", options.out)
    failed = False
    for one in chosen:
        try:
            found = lab.run(
                one, options.out, options.profile, seed=options.seed, jobs=options.jobs, fresh=options.fresh
            )
        except KeyboardInterrupt:
            print("Interrupted. The same command continues after the parts that are finished.", file=sys.stderr)
            raise
        except (ValueError, ArithmeticError) as error:  # the others still run
            print(f"{one.name}: failed: {error}", file=sys.stderr)
            failed = True
            continue
        _print_result(found, lab.result_path(options.out, one.name, options.profile))
    return 1 if failed else 0


def _print_result(found: dict[str, Any], path: Path) -> None:
    print(f"{found['experiment']}: {found['verdict']}. {found['claim']}")
    if "missing" in found:
        print(f"  {found['missing']}")
        return
    for line in found["statements"]:
        print(f"  {'yes' if line['holds'] else 'NO '} {line['sentence']} {line['evidence']}")
    print(f"  {seconds(found['wall_seconds'])}, numbers: {path}")
    if importlib.util.find_spec("matplotlib") is None:
        print("  no figure: it needs matplotlib; pip install 'bochner[plot]'.")
    else:
        print(f"  figure: {lab.draw(path)}")


def _plot(options: argparse.Namespace) -> int:
    results = lab.read_results(options.out)
    names = [one.name for one in _chosen(options)] or list(results)
    for name in names:
        if name not in results:
            raise ValueError(f"{name} has no result in {options.out}; run it first.")
        if "missing" not in results[name]:
            print(lab.draw(lab.result_path(options.out, name, results[name]["profile"])))
    return 0


def _report(options: argparse.Namespace) -> int:
    if not lab.read_results(options.out):
        raise ValueError(f"{options.out} holds no results; run experiments first.")
    site = options.site or options.out / "site"
    writable("--site", site)
    print(lab.write_site(options.out, site))
    return 0
