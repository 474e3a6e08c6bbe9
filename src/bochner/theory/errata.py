"""The table of errata of the five papers."""

from __future__ import annotations

from . import errata_crt, errata_hrf, errata_omc, errata_qbf, errata_simrf
from .erratum import Erratum


def errata() -> tuple[Erratum, ...]:
    """Where the papers' prints are wrong, each with two computed numbers that show it.

    Examples
    --------
    >>> from bochner.theory import errata
    >>> sorted({entry.paper for entry in errata()})
    ['crt', 'hrf', 'omc', 'qbf', 'simrf']
    """
    papers = (errata_hrf, errata_crt, errata_simrf, errata_omc, errata_qbf)
    return tuple(entry() for paper in papers for entry in paper.ENTRIES)
