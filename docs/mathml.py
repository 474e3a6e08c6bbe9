"""Formulas as MathML, which browsers render by themselves: pages need no script and no network."""

from __future__ import annotations

import itertools
import re
from html import escape
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

_FUNCTION = r"\\(?:cos|sin|log|exp|max|min|arccos)(?![a-zA-Z])"
_BEFORE = re.compile(rf"(?<=[\w)\]}}])\s*({_FUNCTION})")
_AFTER = re.compile(rf"({_FUNCTION}(?:[_^](?:\w|{{[^{{}}]*}}))?)\s*(?=[\w\\|])(?!\\(?:big|Big|left|,))")
"""Places around the names of functions where TeX sets a thin space: E cos x, not Ecosx."""


def mathml(formula: str, display: str) -> str:
    """The formula as a ``<math>`` element, with its TeX as alternative text."""
    tex = " ".join(formula.split())
    spaced = _AFTER.sub(r"\1\\,", _BEFORE.sub(r"\\,\1", tex))
    markup = _signs(_bars(convert(spaced, display=display)))
    return markup.replace("<math ", f'<math alttext="{escape(tex)}" ', 1)


def _bars(markup: str) -> str:
    """Let bars open and close in turn, without the space of an operator; an odd one out is left as it is."""
    for bar in ("&#x0007C;", "&#x02016;"):
        found = re.findall(rf"<mo[^>]*>{bar}</mo>", markup)
        if len(found) % 2 == 0:
            turns = itertools.cycle(("prefix", "postfix"))
            markup = re.sub(
                rf"<mo[^>]*>{bar}</mo>",
                lambda _, bar=bar, turns=turns: f'<mo form="{next(turns)}" stretchy="false">{bar}</mo>',
                markup,
            )
    return markup


def _signs(markup: str) -> str:
    """Set a minus that follows an opening bracket, a comma or a relation as a sign, without space."""
    before = r"(<mo[^>]*>(?:&#x00028;|&#x0005B;|&#x0007B;|&#x0003D;|&#x02264;|&#x0003C;|&#x0002C;)</mo>|<mo>,</mo>)"
    return re.sub(rf"{before}<mo>&#x02212;</mo>", r'\1<mo form="prefix">&#x02212;</mo>', markup)


def inline(writer: Any, node: nodes.math) -> None:
    """Write a formula within a sentence."""
    writer.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, which scrolls where it is wider than the page."""
    writer.body.append(writer.starttag(node, "div", CLASS="formula"))
    writer.body.append(mathml(node.astext(), "block") + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer, for ``html_math_renderer = "mathml"``."""
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
