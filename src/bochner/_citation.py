"""BibTeX entries for the methods that were used."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from importlib import resources
from typing import Any


def citation(*objects: Any) -> str:
    r"""Return BibTeX entries of the papers behind the given objects and their parts.

    Parameters
    ----------
    *objects : kernels, rotations, projections, ...
        Objects of this library.

    Returns
    -------
    str
        BibTeX entries.

    Examples
    --------
    >>> from bochner import citation, projections
    >>> print(citation(projections.Simplex())[:21])
    @article{mezzadri2007
    """
    keys = {key for thing in objects for key in _keys(thing)}
    if not keys:
        raise ValueError("citation: expected at least one kernel, rotation or projection of this library.")
    entries = _entries()
    return "\n\n".join(entries[key] for key in sorted(keys))


def bibliography() -> dict[str, str]:
    """Return readable references (authors, title, year) by key."""
    readable = {}
    for key, entry in _entries().items():
        title, author, year = (re.search(rf"{name} = {{([^{{}}]*)}}", entry) for name in ("title", "author", "year"))
        assert title and author and year, f"references.bib: {key} lacks a title, author or year"
        readable[key] = f"{author[1].replace(' and ', '; ').removesuffix('.')}. *{title[1]}*, {year[1]}."
    return readable


def _entries() -> dict[str, str]:
    text = resources.files("bochner").joinpath("references.bib").read_text(encoding="utf-8")
    return {match[1]: match[0].strip() for match in re.finditer(r"^@\w+{(\w+),.*$", text, re.MULTILINE)}


def _keys(thing: Any) -> Iterator[str]:
    yield from getattr(thing, "references", ())
    if dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            yield from _keys(getattr(thing, field.name))
