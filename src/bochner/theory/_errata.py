"""Errors in the published formulas of the five papers, each with two computed numbers that show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

Values: TypeAlias = Callable[[], tuple[float, float]]


@dataclass(frozen=True)
class Erratum:
    """An error in a published formula, with two numbers that demonstrate it.

    Attributes
    ----------
    paper : str
        Key of the paper: hrf, crt, simrf, omc or qbf.
    equation : str
        Location in the paper.
    printed, right : str
        The published formula and the correct one.
    example : str
        The quantity and the point at which the two numbers are computed.
    printed_value, right_value : float
        The value of the published formula at that point, and the true value.
    """

    paper: str
    equation: str
    printed: str
    right: str
    example: str
    printed_value: float
    right_value: float


@dataclass(frozen=True)
class Entry:
    """An erratum whose numbers are not computed yet: ``values`` returns the published and the correct one."""

    paper: str
    equation: str
    printed: str
    right: str
    example: str

    def __call__(self, values: Values) -> Callable[[], Erratum]:
        """Decorate ``values``."""
        return lambda: Erratum(self.paper, self.equation, self.printed, self.right, self.example, *values())


def errata() -> tuple[Erratum, ...]:
    """Return the known errors in the published formulas, each with two computed numbers that show it.

    Returns
    -------
    tuple of Erratum

    Examples
    --------
    >>> from bochner.theory import errata
    >>> sorted({entry.paper for entry in errata()})
    ['crt', 'hrf', 'omc', 'qbf', 'simrf']
    """
    from . import _errata_hrf_crt, _errata_simrf_omc_qbf

    return tuple(entry() for entry in _errata_hrf_crt.ENTRIES + _errata_simrf_omc_qbf.ENTRIES)
