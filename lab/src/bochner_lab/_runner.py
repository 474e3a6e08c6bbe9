"""Runs experiments part by part, keeps what is finished, and writes the result as JSON."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import re
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict
from importlib import resources
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from bochner.reporting import as_json, environment

from ._experiment import Experiment, Results, experiment
from ._verdicts import CANNOT_RUN, VERDICTS, verdict_of

FORMAT = 2
_VERDICTS = "known_verdicts.json"


def result_path(out: Path, name: str, profile: str) -> Path:
    """Where the result of an experiment is written; its parts and its figure stand beside it."""
    return out / name / profile / "result.json"


def run(
    one: Experiment, out: Path, profile: str = "full", *, seed: int = 0, jobs: int = 1, fresh: bool = False
) -> dict[str, Any]:
    """Run an experiment, without repeating parts that a previous run with the same parameters has finished.

    Parameters
    ----------
    one : Experiment
    out : Path
        Folder of all results.
    profile : {"smoke", "full"}
    seed : int
        Of all random numbers; each part has a stream of its own.
    jobs : int
        Processes that compute parts; those of an experiment that measures time run one after the other.
    fresh : bool
        Whether finished parts are computed again.

    Returns
    -------
    dict
        The result, as written to `result_path`.
    """
    p = one.profiles[profile]
    folder = result_path(out, one.name, profile).parent
    (folder / "parts").mkdir(parents=True, exist_ok=True)
    names = list(one.parts(p))
    finished = {} if fresh else _finished(folder, one, names, p, seed)
    todo = [name for name in names if name not in finished]
    result = _heading(one, profile, p, seed)
    try:
        computed = _compute(one, profile, todo, seed, jobs)
        for name, part in tqdm(computed, total=len(todo), desc=one.name, delay=0.5, dynamic_ncols=True, leave=False):
            write_atomically(_part_path(folder, name), _text(part))
            finished[name] = _part_of(part)
    except (FileNotFoundError, ImportError) as error:  # a data set, or a library of an extra, that is not here
        result |= {"rule": one.rule, "verdict": CANNOT_RUN, "missing": str(error)}
        result |= {"statements": [], "power": None, "comparison": [], "parts": {}}
    else:
        result |= _conclusion(one, {name: finished[name] for name in names}, p)
    write_atomically(result_path(out, one.name, profile), _text(result))
    return result


def seconds_left(
    one: Experiment, out: Path, profile: str, *, seed: int = 0, jobs: int = 1, fresh: bool = False
) -> float:
    """Time that `run` will take: of the parts that are not finished, as a result recorded it, but at most as declared.

    Parts of an experiment that measures time run one after the other, whatever ``jobs`` is.
    """
    p = one.profiles[profile]
    names = list(one.parts(p))
    path = result_path(out, one.name, profile)
    known = _json(path).get("parts", {}) if path.exists() else {}
    finished = {} if fresh else _finished(path.parent, one, names, p, seed)
    each = one.seconds[profile] / len(names)
    seconds = {name: float(known.get(name, {}).get("seconds", each)) for name in names}
    beside = max(1.0, sum(seconds.values()) / one.seconds[profile])  # recorded while other work ran
    left = [seconds[name] / beside for name in names if name not in finished]
    return sum(left) / (1 if one.timed else max(1, min(jobs, len(left))))


def _compute(
    one: Experiment, profile: str, todo: list[str], seed: int, jobs: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    if jobs == 1 or one.timed or len(todo) < 2:
        for name in todo:
            yield name, compute_part(one, profile, name, seed)
        return
    context = get_context("spawn")  # threads of compiled code do not survive a fork
    with ProcessPoolExecutor(min(jobs, len(todo)), mp_context=context) as pool:
        futures = {pool.submit(_compute_by_name, one.name, profile, name, seed): name for name in todo}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _compute_by_name(name: str, profile: str, part: str, seed: int) -> dict[str, Any]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return compute_part(experiment(name), profile, part, seed)


def compute_part(one: Experiment, profile: str, name: str, seed: int) -> dict[str, Any]:
    """The numbers of one part, with what is needed to know them again and the time they took."""
    p = one.profiles[profile]
    rng = np.random.default_rng([seed, zlib.crc32(f"{one.name}/{name}".encode())])
    start = time.perf_counter()
    numbers = plain(one.run(name, p, rng))
    seconds = time.perf_counter() - start
    return {
        "part": name,
        "parameters": plain(p),
        "seed": seed,
        "code": code(),
        "seconds": seconds,
        "numbers": numbers,
    }


def _part_of(part: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "seconds": part["seconds"],
        **{key: part[key] for key in ("code", "commit") if key in part},
        "numbers": part["numbers"],
    }


def _part_path(folder: Path, name: str) -> Path:
    """A file name that the part's name cannot break."""
    safe = "".join(c if c.isalnum() or c in "-_.+" else "_" for c in name)
    return folder / "parts" / f"{safe}-{zlib.crc32(name.encode()):08x}.json"


def _finished(folder: Path, one: Experiment, names: list[str], p: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Parts of a previous run with these parameters and this seed."""
    found = {}
    for name in names:
        try:
            part = json.loads(_part_path(folder, name).read_text(encoding="utf-8"))
            if (part["part"], part["parameters"], part["seed"]) == (name, plain(p), seed):
                found[name] = _part_of(part)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue  # not there, or not one of ours: it is computed
    return found


def _heading(one: Experiment, profile: str, p: Mapping[str, Any], seed: int) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "experiment": one.name,
        "paper": one.paper,
        "item": one.item,
        "claim": one.claim,
        "deviations": one.deviations,
        "profile": profile,
        "command": f"bochner-lab run {one.name} --profile {profile} --seed {seed}",
        "parameters": plain(p),
        "data": list(one.data),
        "methods": list(one.methods),
        "seed": seed,
        "code": code(),
        "environment": environment(),
    }


def _conclusion(one: Experiment, parts: dict[str, Any], p: Mapping[str, Any]) -> dict[str, Any]:
    seconds = sum(part["seconds"] for part in parts.values())
    return {"wall_seconds": seconds, **conclusion(one, parts, p), "parts": parts}


def conclusion(one: Experiment, parts: Mapping[str, Any], p: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict, the statements, the power check and the comparison that follow from numbers."""
    results = Results(plain(p), {name: part["numbers"] for name, part in parts.items()})
    tests, found = one.statements(), one.judge(results)
    ours = {sentence: bool(getattr(test, "ours", False)) for sentence, test in tests.items()}
    check = one.power(results)
    return {
        "rule": one.rule,
        "verdict": verdict_of(finding for sentence, finding in found.items() if not ours[sentence]),
        "statements": [
            {"sentence": sentence, "ours": ours[sentence], **plain(asdict(finding))}
            for sentence, finding in found.items()
        ],
        "power": None if check is None else plain(asdict(check)),
        "comparison": [plain(asdict(row)) for row in one.comparison(results)],
    }


def judged_again(path: Path) -> dict[str, Any]:
    """The result in a file, with the verdict that its numbers have by today's statements; nothing is computed again."""
    found = _json(path)
    one = experiment(found["experiment"])
    heading = {"format": FORMAT, "claim": one.claim, "deviations": one.deviations}
    return {**found, **heading, **conclusion(one, found["parts"], found["parameters"])}


def read_result(path: Path) -> dict[str, Any]:
    """A result that `run` wrote; a file that is something else is refused in a sentence."""
    found = _json(path)
    lacking = [key for key, kind in _FIELDS.items() if not isinstance(found.get(key), kind)]
    if found.get("format") != FORMAT:
        raise _no_result(path, f"its format is {found.get('format')!r}, not {FORMAT}")
    if lacking:
        raise _no_result(path, f"it lacks {', '.join(lacking)}, or they are of another kind")
    if found["verdict"] not in VERDICTS:
        raise _no_result(path, f"its verdict {found['verdict']!r} is none of {', '.join(VERDICTS)}")
    if found["verdict"] == CANNOT_RUN and not isinstance(found.get("missing"), str):
        raise _no_result(path, "it does not say what was missing")
    for key, fields in (("statements", _STATEMENT), ("comparison", _ROW)):
        if not all(
            isinstance(row, dict) and all(isinstance(row.get(f), k) for f, k in fields.items()) for row in found[key]
        ):
            raise _no_result(path, f"its {key} are damaged")
    if not all(isinstance(part, dict) and "numbers" in part for part in found["parts"].values()):
        raise _no_result(path, "its parts are damaged")
    return found


_FIELDS: dict[str, Any] = {
    "experiment": str,
    "item": str,
    "claim": str,
    "deviations": str,
    "profile": str,
    "command": str,
    "rule": str,
    "seed": int,
    "parameters": dict,
    "environment": dict,
    "verdict": str,
    "statements": list,
    "comparison": list,
    "parts": dict,
}
_NUMBER: Any = int | float | type(None)
_STATEMENT: dict[str, Any] = {"sentence": str, "evidence": str, "holds": bool | type(None), "smallest": _NUMBER}
_ROW: dict[str, Any] = {"label": str, "printed": str, "ours": _NUMBER, "standard_error": _NUMBER}


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise _no_result(path, "it is not JSON that can be read") from None
    if not isinstance(found, dict):
        raise _no_result(path, "it is not an object")
    return found


def _no_result(path: Path, why: str) -> ValueError:
    return ValueError(f"{path} is not a result of `bochner-lab run`: {why}; delete it and run the experiment again.")


def read_results(out: Path) -> dict[str, dict[str, Any]]:
    """Results by experiment: of the full profile, or of the smoke profile where there is no other."""
    found: dict[str, dict[str, Any]] = {}
    for profile in ("smoke", "full"):
        for path in sorted(out.glob(f"*/{profile}/result.json")):
            found[path.parent.parent.name] = read_result(path)
    return found


def _text(value: Mapping[str, Any]) -> str:
    """JSON whose lists of numbers are on one line each."""
    lists = re.compile(r"\[\n\s+([^\[\]{}]*?)\n\s+\]")
    return lists.sub(lambda found: "[" + re.sub(r"\n\s+", " ", found[1]) + "]", as_json(value)) + "\n"


def write_atomically(path: Path, text: str) -> None:
    """Write a file that is afterwards either whole or as it was, whatever happens meanwhile."""
    with _temporary(path.parent) as temporary:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)


@contextmanager
def _temporary(folder: Path) -> Iterator[Path]:
    handle, name = tempfile.mkstemp(dir=folder, prefix=".", suffix=".tmp")
    os.close(handle)
    try:
        os.chmod(name, 0o644)
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


@functools.cache
def code() -> str:
    """Twelve digits that stand for the source of both packages: whoever has the same files computes the same digits."""
    digest = hashlib.sha256()
    for root in (Path(str(resources.files("bochner"))), Path(__file__).parent):
        for path in sorted(p for kind in ("*.py", "*.json") for p in root.rglob(kind)):
            if path.name != _VERDICTS:  # follows from results
                digest.update(f"{root.name}/{path.relative_to(root).as_posix()}\n".encode())
                digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:12]


def plain(value: Any) -> Any:
    """The value in types that JSON has: arrays as lists, numbers with eight digits, None where they are not finite."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.8g}") if math.isfinite(value) else None
    return value
