"""One place where a paper's print is wrong."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Erratum:
    """A wrong print, and two numbers that show it.

    Attributes
    ----------
    paper : str
        Key of the paper: hrf, crt, simrf, omc or qbf.
    equation : str
        Where in the paper.
    printed, right : str
        What is printed, and what is right.
    example : str
        The quantity and the point at which the two numbers are computed.
    printed_value, right_value : float
        What the print gives there, and what is true.
    """

    paper: str
    equation: str
    printed: str
    right: str
    example: str
    printed_value: float
    right_value: float
