"""Results as text, for the command lines of the library and its laboratory: tables, units, JSON, and where they are from."""

from __future__ import annotations

import dataclasses
import json
import math
import platform
import re
from collections.abc import Collection, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .linalg.engine import available_threads

__all__ = ["as_json", "environment", "figure", "format_table", "label", "printable", "seconds", "size", "with_error"]


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]], words: Collection[int] = (0,)) -> str:
    """Columns as wide as their widest cell, those of words (the first by default) to the left, the others to the right.

    Examples
    --------
    >>> print(format_table(["name", "n"], [["a", "1"], ["bb", "10"]]))
    name   n
    ----  --
    a      1
    bb    10
    >>> format_table(["name", "kind"], [["a", "x"]], words=(0, 1)).splitlines()[-1]
    'a     x'
    """
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    cells = (
        [cell.ljust(w) if k in words else cell.rjust(w) for k, (cell, w) in enumerate(zip(line, widths, strict=True))]
        for line in lines
    )
    return "\n".join("  ".join(line).rstrip() for line in cells)


def seconds(value: float) -> str:
    """A duration with a fitting unit.

    Examples
    --------
    >>> seconds(0.0123)
    '12.3 ms'
    """
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def figure(value: float) -> str:
    """Three digits, without an exponent where a reader expects none.

    Examples
    --------
    >>> figure(14418.2), figure(0.010638), figure(2433.0)
    ('14,400', '0.0106', '2,430')
    """
    return f"{float(f'{value:.3g}'):,.12g}"


_SMALL = 1e-6
"""Standard errors below it are written with an exponent."""


def with_error(value: float, spread: float) -> str:
    """A number with its standard error, both with the decimals that two digits of the latter have.

    Examples
    --------
    >>> with_error(54.0213, 1.6432), with_error(0.0213, 0.0), with_error(3.3e-9, 5e-9)
    ('54.0 +- 1.6', '0.0213 +- 0', '3.3e-09 +- 5e-09')
    """
    if not _SMALL < spread < math.inf:
        return f"{value:.3g} +- {spread:.3g}"
    decimals = max(1 - math.floor(math.log10(spread)), 0)
    return f"{value:.{decimals}f} +- {spread:.{decimals}f}"


def size(value: float) -> str:
    """A number of bytes with a fitting unit.

    Examples
    --------
    >>> size(3_000_000)
    '3.0 MB'
    """
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= factor:
            return f"{value / factor:.1f} {unit}"
    return f"{value:.0f} B"


def printable(text: str) -> str:
    r"""Text that a terminal shows and does not obey: control characters, and what cannot be encoded, as escapes.

    Examples
    --------
    >>> print(printable("red \x1b[31m and\nplain"))
    red \x1b[31m and
    plain
    """
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def as_json(value: Any) -> str:
    """Indented JSON; numbers that are not finite, which JSON does not have, as null.

    Examples
    --------
    >>> as_json({"a": float("inf")}).split()
    ['{', '"a":', 'null', '}']
    """
    return json.dumps(_finite(value), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def label(value: Any) -> str:
    """A part as one would type it, without the names of its options and without what is the default.

    Examples
    --------
    >>> from bochner import maps, projections
    >>> label(projections.Orthogonal()), label(maps.OptimalPositive())
    ('Orthogonal()', 'OptimalPositive()')
    """
    if not dataclasses.is_dataclass(value):
        return repr(value)
    arguments, named = [], ""
    for parameter in dataclasses.fields(value):
        given = getattr(value, parameter.name)
        if parameter.default is not dataclasses.MISSING and given == parameter.default:
            named = "="
            continue
        arguments.append(f"{parameter.name}={label(given)}" if named else label(given))
    return f"{type(value).__name__}({', '.join(arguments)})"


def shortened(text: str) -> str:
    """A text whose long decimal fractions are rounded to four digits.

    Examples
    --------
    >>> shortened("Gaussian(lengthscale=5.522680508593631)")
    'Gaussian(lengthscale=5.523)'
    """
    return re.sub(r"\d+\.\d{5,}(?![\de])", lambda found: f"{float(found[0]):.4g}", text)


def environment() -> dict[str, str]:
    """Where numbers were measured: versions, processor and threads.

    Examples
    --------
    >>> list(environment())[:3]
    ['bochner', 'python', 'numpy']
    """
    from . import __version__

    facts = {"bochner": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "numba", "scikit-learn", "torch"):
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    return facts | {"processor": _processor(), "threads": str(available_threads())}


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
