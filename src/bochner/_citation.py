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
    fields = {key: _fields(entry) for key, entry in _entries().items()}
    return {
        key: f"{field['author'].replace(' and ', '; ').removesuffix('.')}. *{field['title']}*, {field['year']}."
        for key, field in fields.items()
    }


def addresses() -> dict[str, tuple[str, str]]:
    """Return where papers can be read, by key: a name of the place and its address."""
    fields = {key: _fields(entry) for key, entry in _entries().items()}
    return {
        key: (f"arXiv:{field['eprint']}", f"https://arxiv.org/abs/{field['eprint']}")
        if "eprint" in field
        else ("paper", field["url"])
        for key, field in fields.items()
        if "eprint" in field or "url" in field
    }


def _fields(entry: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+) = {([^{}]*)}", entry))


def _entries() -> dict[str, str]:
    text = resources.files("bochner").joinpath("references.bib").read_text(encoding="utf-8")
    return {match[1]: match[0].strip() for match in re.finditer(r"^@\w+{(\w+),.*$", text, re.MULTILINE)}


def _keys(thing: Any) -> Iterator[str]:
    yield from getattr(thing, "references", ())
    if dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            yield from _keys(getattr(thing, field.name))
