"""The command ``bochner-lab``: list, run, plot and report experiments, measure speed, and list and fetch data."""

from __future__ import annotations

import argparse
import importlib.resources
import importlib.util
import json
import os
import string
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import bochner_lab as lab
from bochner.cli.main import load_plugins
from bochner.reporting import as_json, format_table, printable, seconds

from ._runner import code
from .benchmarks import _bench

_NAMES = "experiments by name, such as simrf-fig6"
_LONGEST = 2000
_COMMITTED = Path("lab/results")
OVERVIEW = """bochner-lab {version}: the laboratory of bochner

  bochner-lab list                  every experiment of the papers, its data, its time and its verdict
  bochner-lab run simrf-fig6        compute a figure of a paper, and say whether its claim holds
  bochner-lab plot simrf-fig6       draw it again from its numbers
  bochner-lab new my_idea.py        a file with a variant and an experiment of your own, ready to run
  bochner-lab report                all results as HTML pages
  bochner-lab bench learn           compare speed and accuracy with other libraries
  bochner-lab data                  every data set: source, licence, size, and how to get it

`bochner-lab COMMAND --help` lists the options of a command.
"""


class Parser(argparse.ArgumentParser):
    """A parser whose error messages are safe to print."""

    def error(self, message: str) -> NoReturn:
        """Print usage and the error message, and exit."""
        super().error(printable(" ".join(message.split())))


class _Version(argparse.Action):
    """Show the version, and the digits that results made by the same code have."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        print(f"bochner-lab {lab.__version__}, code {code()}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The parser of ``bochner-lab``."""
    main = Parser(prog="bochner-lab", description="Experiments, benchmarks and data sets of bochner.")
    main.add_argument(
        "--version", action=_Version, nargs=0, help="show the version and the digits of the code, and exit"
    )
    commands = main.add_subparsers(dest="command", metavar="COMMAND")
    listing = _action(commands, "list", _list, "show all experiments, their claims, data and times")
    listing.add_argument("--json", action="store_true", help="print JSON instead of a table")
    running = _action(commands, "run", _run, "run experiments; finished parts are not repeated")
    running.add_argument("--all", action="store_true", help="all experiments")
    running.add_argument(
        "--profile", choices=("smoke", "full"), default="full", help="how much to compute (default full)"
    )
    running.add_argument("--jobs", type=int, default=1, help="number of processes (default 1)")
    running.add_argument("--seed", type=int, default=0, help="seed of all random numbers (default 0)")
    running.add_argument("--fresh", action="store_true", help="compute finished parts again")
    plotting = _action(commands, "plot", _plot, "draw the figures of finished experiments again")
    for action in (running, plotting):
        action.add_argument("names", nargs="*", metavar="NAME", help=_NAMES)
    reporting = _action(commands, "report", _report, "build the HTML site of all results")
    reporting.add_argument("--site", type=Path, help="folder of the site (default: site/ in the folder of the results)")
    new = commands.add_parser("new", help="write a file with a variant and an experiment of your own")
    new.add_argument("file", type=Path, metavar="FILE.py", help="a new file")
    new.set_defaults(run=_new)
    _bench.register(commands)
    data = commands.add_parser("data", help="list data sets: source, licence, size, how to get them, who needs them")
    data.add_argument("--json", action="store_true", help="print JSON instead of a table")
    data.set_defaults(run=_data)
    fetching = data.add_subparsers(dest="action", metavar="ACTION")
    fetch = fetching.add_parser("fetch", help="download data sets into a folder")
    fetch.add_argument("names", nargs="+", metavar="NAME", help="data sets by name")
    fetch.add_argument("--to", type=Path, help="the folder (default: that of BOCHNER_DATA)")
    fetch.set_defaults(run=_fetch)
    return main


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 for a missed goal or failed experiment, 2 for an error of the user."""
    options = parser().parse_args(arguments)
    if options.command is None:
        print(OVERVIEW.format(version=lab.__version__), end="")
        return 0
    try:
        _load(getattr(options, "plugin", ()))
        return int(options.run(options))
    except BrokenPipeError:  # the output was closed, as with `bochner-lab list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _complain(options.command, "interrupted.", 130)
    except MemoryError:
        return _complain(options.command, "there is not enough memory.")
    except (ValueError, OSError) as error:
        return _complain(options.command, str(error))


def _complain(command: str, message: str, code: int = 2) -> int:
    shown = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."
    print(f"bochner-lab {command}: {printable(shown)}", file=sys.stderr)
    return code


def _action(actions: Any, name: str, work: Any, text: str) -> Any:
    action = actions.add_parser(name, help=text)
    if name != "report":
        action.add_argument("--paper", choices=tuple(lab.PAPERS), help="the experiments of one paper")
    action.add_argument(
        "--out", type=Path, help=f"folder of the results (default {_COMMITTED}/ where there is one, else results/)"
    )
    action.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="MODULE",
        help="a module or file with variants and experiments of your own",
    )
    action.set_defaults(run=work)
    return action


def _load(names: Sequence[str]) -> None:
    """Import users' modules, with their variants and experiments."""
    for module in load_plugins(names):
        lab.add_experiments(module)


def _new(options: argparse.Namespace) -> int:
    """Write the template of an idea under the name of its file."""
    path = options.file
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise ValueError(f"{path} must be the name of a Python file, such as my_idea.py.")
    if path.exists():
        raise ValueError(f"{path} exists already; name a new file.")
    names = {"file": path.name, "name": path.stem.replace("_", "-"), "Name": path.stem.title().replace("_", "")}
    text = (importlib.resources.files("bochner_lab") / "template.txt").read_text(encoding="utf-8")
    path.write_text(string.Template(text).substitute(names), encoding="utf-8")
    print(f"{path} is written. Next: bochner-lab run {names['name']} --plugin {path} --profile smoke")
    return 0


def _folder(options: argparse.Namespace) -> Path:
    """The folder of the results: in a checkout, that of the results that are committed."""
    if options.out is not None:
        return Path(options.out)
    return _COMMITTED if _COMMITTED.is_dir() else Path("results")


def known_verdicts() -> dict[str, str]:
    """Verdicts of the full runs that are committed with this version, by experiment: shown where there are no results."""
    text = (importlib.resources.files("bochner_lab") / "known_verdicts.json").read_text(encoding="utf-8")
    found: dict[str, str] = json.loads(text)
    return found


def _list(options: argparse.Namespace) -> int:
    results = lab.read_results(_folder(options))
    chosen = [one for one in lab.experiments().values() if options.paper in (None, one.paper)]
    missing = [one for one in lab.absent().values() if options.paper in (None, one.paper)]
    if options.json:
        fields = ("name", "paper", "item", "claim", "rule", "data", "methods", "seconds")
        more = {"recorded_seconds": lab.recorded_seconds, "needs": lambda one, _: lab.needs(one)}
        print(
            as_json(
                [
                    {key: getattr(one, key) for key in fields}
                    | {key: find(one, results.get(one.name)) for key, find in more.items()}
                    for one in chosen
                ]
            )
        )
        return 0
    rows, known = [], known_verdicts()
    for one in chosen:
        found = results.get(one.name)
        verdict = known.get(one.name, "-") if found is None else found["verdict"]
        verdict += " (smoke)" if found is not None and found["profile"] == "smoke" else ""
        took = lab.recorded_seconds(one, found)
        times = [f"{one.seconds['smoke']:,.0f} s", f"{took:,.0f} s"]
        data = one.data if len(one.data) <= 2 else (one.data[0], f"{len(one.data) - 1} more")
        rows.append([one.name, verdict, *times, lab.needs(one), ", ".join(data) or "none", one.item])
    header = ["experiment", "verdict", "smoke", "full", "needs", "data", "what"]
    print(format_table(header, rows, words=(0, 1, 4, 5, 6)))
    total = sum(lab.recorded_seconds(one, results.get(one.name)) for one in chosen)
    print(f"\nFull profiles together: {total / 3600:.1f} h, as recorded where there is a result.")
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
    _check_range(options, "jobs", 1, 256)
    _check_range(options, "seed", 0, 2**63 - 1)
    chosen = _chosen(options)
    if not chosen:
        raise ValueError("name experiments, or give --paper or --all; `bochner-lab list` shows them.")
    out = _folder(options)
    _writable("--out", out)
    failed = False
    if len(chosen) > 1:
        _print_estimate(chosen, out, options)
    for one in chosen:
        try:
            found = lab.run(one, out, options.profile, seed=options.seed, jobs=options.jobs, fresh=options.fresh)
        except KeyboardInterrupt:
            print("Interrupted. The same command continues after the parts that are finished.", file=sys.stderr)
            raise
        except (ValueError, ArithmeticError) as error:  # the others still run
            print(f"{one.name}: failed: {error}", file=sys.stderr)
            failed = True
            continue
        _print_result(found, lab.result_path(out, one.name, options.profile))
        failed |= "missing" in found and one.name in options.names  # of a paper or all, those that can be run are run
    return 1 if failed else 0


def _print_estimate(chosen: Sequence[lab.Experiment], out: Path, options: argparse.Namespace) -> None:
    """Say before a long run how long it will take; parts that are finished take no time."""
    how = {"seed": options.seed, "jobs": options.jobs, "fresh": options.fresh}
    total = sum(lab.seconds_left(one, out, options.profile, **how) for one in chosen)
    processes = "one process" if options.jobs == 1 else f"{options.jobs} processes"
    text = f"{total / 3600:.1f} h" if total >= 3600 else f"{total / 60:.0f} min" if total >= 60 else f"{total:.0f} s"
    print(f"{len(chosen)} experiments, about {text} in {processes} of an idle machine.", flush=True)


def _print_result(found: dict[str, Any], path: Path) -> None:
    print(f"{found['experiment']}: {found['verdict']}. {found['claim']}")
    if "missing" in found:
        print(f"  {found['missing']}")
        return
    for line in found["statements"]:
        truth = {True: "yes      ", False: "NO       ", None: "undecided"}[line["holds"]]
        print(f"  {truth} {line['sentence']} {line['evidence']}")
    print(f"  {seconds(found['wall_seconds'])}, numbers: {path}")
    if importlib.util.find_spec("matplotlib") is None:
        print("  no figure: it needs matplotlib; pip install matplotlib.")
    else:
        print(f"  figure: {lab.draw(path)}")


def _plot(options: argparse.Namespace) -> int:
    out = _folder(options)
    results = lab.read_results(out)
    names = [one.name for one in _chosen(options)] or list(results)
    for name in names:
        if name not in results:
            raise ValueError(f"{name} has no result in {out}; run it first.")
        if "missing" not in results[name]:
            print(lab.draw(lab.result_path(out, name, results[name]["profile"])))
    return 0


def _report(options: argparse.Namespace) -> int:
    out = _folder(options)
    if not lab.read_results(out):
        raise ValueError(f"{out} holds no results; run experiments first.")
    site = options.site or out / "site"
    _writable("--site", site)
    if importlib.util.find_spec("matplotlib") is not None:
        for name, found in lab.read_results(out).items():
            path = lab.result_path(out, name, found["profile"])
            if "missing" not in found and not path.with_name("figure.png").exists():
                try:
                    lab.draw(path)
                except ValueError as error:  # of another version of the experiment: the others have their figures
                    print(f"{name}: no figure: {error}", file=sys.stderr)
    print(lab.write_site(out, site))
    return 0


def _data(options: argparse.Namespace) -> int:
    needed: dict[str, list[str]] = {}
    for one in lab.experiments().values():
        for name in one.data:
            needed.setdefault(name, []).append(one.name)
    found = lab.datasets.facts()
    if options.json:
        print(as_json([{**vars(one), "needed_by": needed.get(name, [])} for name, one in found.items()]))
        return 0
    rows = [[one.name, one.size, "yes" if one.here else "no", one.licence, one.source] for one in found.values()]
    print(format_table(["data set", "size", "here", "licence", "source"], rows))
    print()
    for name, facts in found.items():
        users = ", ".join(needed.get(name, [])) or "benchmarks only"
        print(f"{name}: {facts.how}. Needed by: {users}.")
    return 0


def _fetch(options: argparse.Namespace) -> int:
    for name in options.names:
        print(lab.datasets.fetch(name, options.to))
    return 0


def _check_range(options: argparse.Namespace, option: str, least: int, most: int) -> None:
    value = getattr(options, option)
    if not least <= value <= most:
        bound = f"at least {least}" if value < least else f"at most {most}"
        raise ValueError(f"--{option} must be {bound}, got {value}.")


def _writable(option: str, folder: Path) -> None:
    """Make the folder and write into it, to find out before the work that it cannot hold the results."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{option} {folder} is a file; give a folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(f"{option} {folder} cannot be written to ({error.strerror}); give another folder.") from None
