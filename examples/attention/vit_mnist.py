"""A small vision transformer on MNIST, with softmax attention and with random features.

Without MNIST in the folder that BOCHNER_DATA names, the 8 x 8 digits of scikit-learn take its place.

    python examples/attention/vit_mnist.py --attention all --profile smoke
"""

from __future__ import annotations

import argparse
import os

from comparison import Profile, command_line, compare

from bochner.experiments._transformers import Images, Shape, VisionTransformer

PROFILES = {
    "smoke": Profile(steps=100, batch=64, shape=Shape(width=32, layers=2, heads=2), n_projections=32),
    "full": Profile(steps=400, batch=64, shape=Shape(width=64, layers=3, heads=4), n_projections=64),
}


def main(arguments: argparse.Namespace) -> None:
    """Compare on the images that there are."""
    profile = PROFILES[arguments.profile]
    name = "mnist" if os.environ.get("BOCHNER_DATA") else "digits"
    images = Images(name, 400 if arguments.profile == "smoke" else 2000, profile.batch, arguments.seed)
    compare(VisionTransformer(images.side, profile.shape, arguments.seed), images, profile, arguments)


if __name__ == "__main__":
    main(command_line(__doc__))
