"""Docstrings can be read alone: they say what a thing is or does, and do not continue the sentence of another one."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import bochner

ROOT = Path(__file__).parent.parent
PACKAGE = Path(bochner.__file__).parent
FILES = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))
OTHERS = sorted(path for folder in ("lab/src", "docs", "examples") for path in (ROOT / folder).rglob("*.py"))
REFERENCE = re.compile(r"(?<!`)`(bochner\.[a-z_]+)\.([A-Za-z]\w*)`(?!`)")
"""A name with its module."""
CONTINUED = re.compile(r"(Of|The same|As)\b")


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Docstrings, and the strings that follow constants, each with its line."""
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        for part in body if isinstance(body, list) else ():
            if (
                isinstance(part, ast.Expr)
                and isinstance(part.value, ast.Constant)
                and isinstance(part.value.value, str)
            ):
                yield part.lineno, part.value.value.strip()


def test_no_docstring_continues_another():
    found = [
        (path.name, line, text[:60])
        for path in [*(PACKAGE / name for name in FILES), *OTHERS]
        for line, text in texts(path.read_text())
        if CONTINUED.match(text)
    ]
    assert not found


def test_every_kernel_and_map_says_when_to_use_it():
    """The tables of both guides are made from this sentence."""
    from bochner import catalogue

    kinds = {type(one) for one in [*catalogue.kernels().values(), *catalogue.maps().values()]}
    assert not [kind.__name__ for kind in kinds if not re.search(r"\bUse (it|them)\b", kind.__doc__ or "")]


def test_names_in_docstrings_are_public_where_they_are_said_to_be():
    said = {pair for name in FILES for pair in REFERENCE.findall((PACKAGE / name).read_text())}
    assert len(said) > 10
    hidden = [f"{module}.{name}" for module, name in said if name not in importlib.import_module(module).__all__]
    assert not [name for name in hidden if importlib.util.find_spec(name) is None]


def test_such_a_docstring_is_found():
    assert [bool(CONTINUED.match(text)) for _, text in texts('A = 1\n"""Of A."""\ndef f():\n    """Return A."""')] == [
        True,
        False,
    ]


def unexplained(source: str) -> list[str]:
    """Numbers at the top of a module that have neither a comment on or above their line nor a string below."""
    lines, body = source.split("\n"), ast.parse(source).body
    found = []
    for node, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(node.value, ast.expr):
            continue
        try:
            value = eval(compile(ast.Expression(node.value), "", "eval"), {"__builtins__": {}})
        except Exception:  # names of other things
            continue
        numbers = value if isinstance(value, tuple) and value else (value,)
        if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers):
            continue
        said = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        near = (
            lines[max(node.lineno - 2, 0)].startswith("#"),
            *("#" in line for line in lines[node.lineno - 1 : node.end_lineno]),
        )
        if not said and not any(near):
            found.append(lines[node.lineno - 1])
    return found


def test_every_number_says_why():
    found = {name: unexplained((PACKAGE / name).read_text()) for name in FILES}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_number_without_a_reason_is_found():
    assert unexplained('A = 2 * 3\nB = 1  # one\nC = 4\n"""Four."""\n# Five\nD = 5\nE = (6, 7.5)\nF = "6"\n') == [
        "A = 2 * 3",
        "E = (6, 7.5)",
    ]
