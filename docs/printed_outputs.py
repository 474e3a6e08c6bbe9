"""Real output in tutorials: ``python docs/generate.py --printed [PAGE ...]`` runs the code of pages and fills it in.

In a page, ``>>> print(...)  # doctest: +SKIP`` is followed by a block ``text``, which has what the call printed when it
was last run here.  The flag keeps doctest from comparing times; `stale` compares the rest.  A block ``console`` with a
command after ``$`` is run as well, at the root of the repository, and followed by such a block.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
WIDTH = 110
"""Columns of a line of prose."""
TIMED = {
    "recommend.md": "a comparison takes as many rows as there is time for",
    "convert_a_model.md": "reports on trained models take minutes, and name what is faster",
}
"""Pages whose output depends on the time at hand, and why: it is only renewed by hand."""
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d*)?(?:e[+-]?\d+)?")
DURATION = re.compile(rf"{NUMBER.pattern} (?:s|ms|us|ns)\b")
FASTER = re.compile(r"^[^\n]* times faster here[^.]*\.[^.]*\.[^.\n]*\.?\n", re.MULTILINE)
"""A sentence on times, which another run may not print."""
CLOSE = 0.1
"""Relative difference of printed numbers that rounding of another machine, carried through a search, may make."""
BLOCK = re.compile(r"^```(python|console|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def printed_pages() -> list[Path]:
    """Pages with printed output."""
    mark = re.compile(r"^>>> print\(.*\+SKIP|^```console\n\$ python", re.MULTILINE)
    return sorted(path for path in DOCS.rglob("*.md") if mark.search(path.read_text()))


def with_output(path: Path) -> str:
    """The page with the output of its last run in place of what stood there."""
    names: dict[str, Any] = {"__name__": "__main__"}
    outputs: list[str] = []

    def filled(block: re.Match[str]) -> str:
        kind, text = block.groups()
        if kind == "python":
            outputs[:] = _run(text, names)
            return block[0]
        if kind == "console":
            command = [sys.executable, *shlex.split(text.removeprefix("$ python"))]
            shown = subprocess.run(command, cwd=DOCS.parent, stdout=subprocess.PIPE, text=True, check=True).stdout
            outputs[:] = [_as_block(shown)]
            return block[0]
        return f"```text\n{outputs.pop(0)}```" if outputs else block[0]

    return BLOCK.sub(filled, path.read_text())


def stale(path: Path) -> list[str]:
    """Lines of printed output that the code does not print any more: other words, or numbers that are not close."""
    then, now = (
        [m[2] for m in BLOCK.finditer(text) if m[1] == "text"] for text in (path.read_text(), with_output(path))
    )
    return [new for old, new in zip(then, now, strict=True) if not _alike(old, new)]


def _alike(old: str, new: str) -> bool:
    """Whether two outputs say the same, but for durations and the widths of columns."""
    quiet = [FASTER.sub("", text) for text in (old, new)]
    texts = [DURATION.sub("a duration", re.sub("-{3,}", "---", " ".join(text.split()))) for text in quiet]
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in texts]
    words = [NUMBER.sub("#", text) for text in texts]
    return words[0] == words[1] and all(abs(a - b) <= CLOSE * abs(b) for a, b in zip(*numbers, strict=True))


def _run(code: str, names: dict[str, Any]) -> list[str]:
    """Run the examples of a block, and return what those with output printed."""
    found = []
    for example in doctest.DocTestParser().get_examples(code):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(example.source, "<page>", "single"), names)
        if example.options.get(doctest.SKIP) and out.getvalue():
            found.append(_as_block(out.getvalue()))
    return found


def _as_block(shown: str) -> str:
    return "\n".join(_folded(line.rstrip()) for line in shown.rstrip().splitlines()) + "\n"


def _folded(line: str) -> str:
    """A sentence on several lines; rows of tables, whose cells are two spaces apart, stay as they are."""
    return line if "  " in line or len(line) <= WIDTH else textwrap.fill(line, WIDTH)
