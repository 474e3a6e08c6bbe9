"""Docstrings can be read alone: they say what a thing is or does, and do not continue the sentence of another one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bochner

PACKAGE = Path(bochner.__file__).parent
FILES = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))
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


@pytest.mark.parametrize("name", FILES)
def test_no_docstring_continues_another(name):
    found = [(line, text[:60]) for line, text in texts((PACKAGE / name).read_text()) if CONTINUED.match(text)]
    assert not found


def test_such_a_docstring_is_found():
    assert [bool(CONTINUED.match(text)) for _, text in texts('A = 1\n"""Of A."""\ndef f():\n    """Return A."""')] == [
        True,
        False,
    ]
