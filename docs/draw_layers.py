"""Draws the picture of the layers: ``python docs/draw_layers.py`` writes ``docs/layers.svg``.

The rows are the layers that ``pyproject.toml`` gives to import-linter, top to bottom, so the picture shows what is enforced.
"""

from __future__ import annotations

import tomllib
from html import escape
from pathlib import Path

DOCS = Path(__file__).parent
WIDTH, ROW, GAP, LEFT, TOP = 900, 46, 8, 150, 16

ROLES = {
    "cli": "the commands compare, recommend and info",
    "comparison": "compare: kernel machines and other estimators on the same folds",
    "distributed": "the estimators on Dask collections",
    "statistics": "two-sample and independence tests",
    "adapters": "for GPyTorch, BoTorch, Performer",
    "learn": "kernel machines",
    "nn": "attention for PyTorch",
    "graphs": "features of nodes",
    "optimize": "black boxes",
    "monte_carlo": "expectations",
    "selection": "recommend: which mechanism, how many features",
    "extending": "what a variant of your own needs",
    "catalogue": "every part and mechanism by name",
    "approximation": "specification, plan, draw; files; the stabilised ratio",
    "maps": "nonlinearities: from projections to features",
    "theory": "closed-form errors and optimal constants",
    "projections": "W = D S R as a linear operator",
    "radii": "D: lengths of rows",
    "geometries": "S: directions within a block",
    "rotations": "R: random rotations",
    "kernels": "exact kernels and their bandwidth",
    "reporting": "results as text",
    "linalg": "fast transforms, and the engine that walks over rows",
    "_random": "one door for randomness",
    "_arrays": "one door for array libraries",
    "_validation": "checks",
    "_progress": "progress bars",
    "_facts": "declared facts",
    "_whole_file": "writing a file as a whole",
}
"""What each package is for, in a few words."""
BANDS = (
    (
        "for users",
        "#dbe9f6",
        (
            "cli",
            "comparison",
            "distributed",
            "statistics",
            "adapters",
            "learn",
            "nn",
            "graphs",
            "optimize",
            "monte_carlo",
        ),
    ),
    ("choosing", "#e3f1dc", ("selection", "extending", "catalogue")),
    ("features", "#fdf0d2", ("approximation", "maps")),
    ("closed forms", "#ece2f3", ("theory",)),
    ("random rows", "#fbe1da", ("projections", "radii", "geometries", "rotations")),
    ("kernels", "#ece2f3", ("kernels",)),
    (
        "foundations",
        "#e7e7e7",
        ("reporting", "linalg", "_random", "_arrays", "_validation", "_progress", "_facts", "_whole_file"),
    ),
)
"""Neighbouring layers that belong together: what they are called, their colour, and their packages."""


def layers() -> list[list[str]]:
    """The packages of each layer, top to bottom, as import-linter has them."""
    settings = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())
    contract = next(c for c in settings["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    return [[part.strip().removeprefix("bochner.") for part in layer.split("|")] for layer in contract["layers"]]


def draw() -> str:
    """The picture as SVG."""
    rows = layers()
    height = 2 * TOP + len(rows) * (ROW + GAP) - GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" role="img" '
        'aria-label="The layers of bochner; imports go down only">',
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="white"/>',
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="4" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>',
        f'<path d="M27,{TOP + 6} V{height - TOP - 8}" stroke="#555" stroke-width="2" marker-end="url(#head)"/>',
        f'<text x="15" y="{height / 2}" font-size="13" fill="#555" text-anchor="middle" '
        f'transform="rotate(-90 15 {height / 2})">imports go down only</text>',
    ]
    for index, packages in enumerate(rows):
        parts += _row(TOP + index * (ROW + GAP), packages)
    parts += _labels(rows)
    return "\n".join([*parts, "</svg>", ""])


def _band(package: str) -> tuple[str, str]:
    return next((label, colour) for label, colour, members in BANDS if package in members)


def _row(y: int, packages: list[str]) -> list[str]:
    """The boxes of one layer, side by side, with name and role."""
    width = (WIDTH - LEFT - TOP - GAP * (len(packages) - 1)) / len(packages)
    found = []
    for i, package in enumerate(packages):
        x = LEFT + i * (width + GAP)
        role, colour = escape(ROLES[package]), _band(package)[1]
        found.append(
            f'<rect x="{x:g}" y="{y}" width="{width:g}" height="{ROW}" rx="6" fill="{colour}" stroke="#777"/>'
            f'<text x="{x + 12:g}" y="{y + 19}" font-size="14" font-weight="bold" fill="#111">{package}</text>'
            f'<text x="{x + 12:g}" y="{y + 36}" font-size="12" fill="#333">{role}</text>'
        )
    return found


def _labels(rows: list[list[str]]) -> list[str]:
    """The name of each band, beside the middle of its layers."""
    found = []
    for label, _, members in BANDS:
        own = [i for i, packages in enumerate(rows) if packages[0] in members]
        y = TOP + (own[0] + own[-1] + 1) / 2 * (ROW + GAP) - GAP / 2 + 4
        found.append(f'<text x="{LEFT - 12}" y="{y:g}" font-size="13" fill="#555" text-anchor="end">{label}</text>')
    return found


if __name__ == "__main__":
    (DOCS / "layers.svg").write_text(draw())
