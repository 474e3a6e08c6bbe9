"""Generated reference: the list of names of every public module, and the table of every map with every projection.

A page for each name, from its docstring, is written by ``sphinx.ext.autosummary`` when the site is built.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

import bochner
from bochner import Approximation, catalogue
from bochner.extending import Map
from bochner.kernels import Gaussian
from bochner.projections import Projection

POINTS = np.random.default_rng(0).standard_normal((50, 4)) / 2
"""On which maps plan their constants for the tables."""


def points_for(feature_map: Map) -> np.ndarray:
    """The points, with as many columns as the map serves."""
    return POINTS[:, : feature_map.largest_dimension]


_ELSEWHERE = {"maps": ("coefficients", "NoClosedForm"), "extending": ()}
"""Names of a module that another page describes."""
_GUIDES = {
    "learn": {"kernel machines": "learn.md", "Gaussian processes": "gaussian_process.md"},
    "comparison": {"what predicts a target best": "recommend.md#what-predicts-a-target-best"},
    "nn": {"attention": "attention.md", "conversion": "uptraining.md", "many classes": "sampled_softmax.md"},
    "selection": {"which mechanism, and how many features": "recommend.md"},
    "approximation": {"Maps and Approximation": "maps.md", "glossary": "glossary.md"},
    "kernels": {"kernels": "kernels.md", "bandwidths": "learn.md#bandwidth"},
    "maps": {"maps": "maps.md", "frames": "frames.md", "landmarks": "landmarks.md"},
    "projections": {"projections": "projections.md"},
    "rotations": {"projections": "projections.md"},
    "geometries": {"the one equation": "one_equation.md"},
    "radii": {"coupled radii": "coupled_radii.md"},
    "theory": {"errata of the papers": "errata.md"},
    "statistics": {"kernel tests": "statistics.md"},
    "graphs": {"graphs": "graphs.md"},
    "distributed": {"Dask clusters": "distributed.md"},
    "optimize": {"black-box optimisation": "optimization.md"},
    "monte_carlo": {"expectations": "expectation.md"},
    "adapters": {"other packages": "adapters.md"},
    "catalogue": {"adding a variant": "adding_a_variant.md"},
    "extending": {"adding a variant": "adding_a_variant.md"},
    "linalg": {"speed": "speed.md"},
}
"""Guides of each module, the modules that most users need first."""


def modules() -> list[str]:
    """Public modules, by importance."""
    public = [name for name in bochner.__all__ if hasattr(getattr(bochner, name), "__all__")]
    return sorted(public, key=list(_GUIDES).index)


def summary(module: str) -> str:
    """First sentence of the docstring of a module, which tells the reader of the index what it is for."""
    return (getattr(bochner, module).__doc__ or "").partition("\n\n")[0].replace("\n", " ").replace("``", "`")


def reference_pages() -> dict[str, str]:
    """The index of the reference and one page per module, by file name."""
    return {"reference/index.md": _index()} | {f"reference/{name}.md": _page(name) for name in modules()}


def _index() -> str:
    names = "\n".join(f"- [`bochner.{name}`]({name}.md): {summary(name)}" for name in modules())
    tree = "\n".join(modules())
    return (
        "# Reference\n\nEvery public class and function has a page, with its formula, its sources and the examples that "
        "use it. "
        "`import bochner` loads a module when it is first used.\n\n"
        f"{names}\n\n## bochner\n\nNames that most programs need are also in the package itself: {_shortcuts()}.\n\n"
        "```{eval-rst}\n.. autofunction:: bochner.citation\n```\n\n"
        f"```{{toctree}}\n:hidden:\n\n{tree}\n```\n"
    )


def _shortcuts() -> str:
    found = [f"`{name}` of [{module}]({module}.md)" for name, module in bochner._NAMES.items() if module[0] != "_"]
    return f"{', '.join(found)}, and `citation`"


def _page(name: str) -> str:
    guides = ", ".join(f"[{title}](../{page})" for title, page in _GUIDES[name].items())
    more = _names("bochner.maps.coefficients", bochner.maps.coefficients) if name == "maps" else ""
    head = f"```{{eval-rst}}\n.. automodule:: bochner.{name}\n   :no-members:\n```"
    return (
        f"# bochner.{name}\n\nGuides: {guides}.\n\n{head}\n\n{_names(f'bochner.{name}', getattr(bochner, name))}{more}"
    )


def _names(path: str, module: Any) -> str:
    """Table of the names of a module with links to their pages, in the order in which its docstring mentions them."""
    text = module.__doc__ or ""
    left_out = _ELSEWHERE.get(path.rpartition(".")[2], ())
    names = [name for name in module.__all__ if name not in left_out and not _repeated(path, getattr(module, name))]
    names += _results(path, module)
    found = {name: re.search(rf"`{name}`", text) for name in names}
    ordered = sorted(names, key=lambda name: (found[name].start() if found[name] else len(text), name.lower()))
    lines = "\n   ".join(ordered)
    return (
        f"```{{eval-rst}}\n.. currentmodule:: {path}\n\n.. autosummary::\n   :toctree: generated\n   :nosignatures:\n\n"
        f"   {lines}\n```\n"
    )


def _results(path: str, module: Any) -> list[str]:
    """Classes that its functions return, which no user calls: the docstring names them, and ``__all__`` does not."""
    said = dict.fromkeys(re.findall(r"`(\w+)`", module.__doc__ or ""))
    others = [name for name in said if name not in (*module.__all__, *bochner.extending.__all__)]
    return [name for name in others if getattr(vars(module).get(name), "__module__", "") == path]


def _repeated(path: str, item: Any) -> bool:
    """Whether a class or function of `bochner.extending` has its page in the module that defines it."""
    home = ".".join(getattr(item, "__module__", path).split(".")[:2])
    return path == "bochner.extending" and getattr(item, "__name__", "") in getattr(
        sys.modules.get(home), "__all__", ()
    )


FACTS = ("unbiased", "positive", "symmetric", "closed form")
"""What is said of an approximation in tables."""


def pair_rows() -> list[list[str]]:
    """With which projections every map works, is unbiased, has a closed form of its error, and keeps sign and symmetry."""
    rows = []
    for name, m in catalogue.maps().items():
        served = [kernel for kernel in catalogue.kernels().values() if m.serves(kernel)]
        kernel = next((kernel for kernel in served if isinstance(kernel, Gaussian)), served[0])
        found = {key: known(Approximation(kernel, m), P) for key, P in catalogue.projections().items()}
        works = {key: facts for key, facts in found.items() if facts is not None}
        shown = {fact: [key for key in works if fact in works[key]] for fact in FACTS}
        cells = {fact: _among(keys, works) for fact, keys in shown.items()}
        if shown["unbiased"] == [key for key in works if catalogue.projection(key).unbiased] != list(works):
            cells["unbiased"] = "those that are"
        rows.append([f"`{name}`", _among(works, found), *cells.values()])
    return rows


def known(spec: Approximation, projection: Projection) -> list[str] | None:
    """What holds for a specification with a projection; None if they do not go together."""
    try:
        plan = replace(spec, projection=projection, n_projections=4).plan(points_for(spec.map), rng=0)
    except ValueError:
        return None
    try:
        plan.mse(points_for(spec.map)[:1])
    except bochner.NoClosedForm:
        closed = False
    else:
        closed = True
    holds = (plan.unbiased, plan.positive, plan.symmetric, closed)
    return [fact for fact, true in zip(FACTS, holds, strict=True) if true]


def _among(some: Collection[str], every: Collection[str]) -> str:
    """Names of some of the projections, by exclusion where that is shorter."""
    rest = [name for name in every if name not in some]
    if not some or not rest:
        return "none" if not some else "all"
    return ", ".join(some) if len(some) <= len(rest) else f"all but {', '.join(rest)}"
