"""Trivial rivals of models of images, as a power check."""

from __future__ import annotations

from collections.abc import Mapping

from .._experiment import PowerCheck


def power_of_images(rivals: Mapping[str, float], models: Mapping[str, float]) -> PowerCheck:
    """Judge whether every model that is compared is more accurate than the best trivial rival."""
    best, worst = max(rivals, key=lambda name: rivals[name]), min(models.values())
    return PowerCheck(
        worst > rivals[best],
        f"The models have accuracies from {worst:.3f} to {max(models.values()):.3f}, and a {best} {rivals[best]:.3f}.",
        (*rivals.items(), *models.items()),
    )
