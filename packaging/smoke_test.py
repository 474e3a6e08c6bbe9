"""Uses what each extra brings, in an environment with nothing else: ``python smoke_test.py [EXTRA...]``.

`packaging/smoke_test.sh` runs it after an installation, away from the source tree.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import files, metadata, requires
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np


def command(*arguments: str, name: str = "bochner") -> str:
    """What a command prints, in an empty folder."""
    program = str(Path(sys.executable).parent / name)
    with TemporaryDirectory() as folder:
        done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def star(module: str) -> None:
    """Everything public can be imported."""
    exec(f"from {module} import *", {})


def base() -> None:
    """The self-test, advice on embedded data, and a kernel machine."""
    from sklearn.datasets import load_iris

    from bochner.learn import KernelClassifier

    star("bochner")
    assert command("info", "--dimension", "8", "--rows", "8").endswith("all well\n")
    assert "wine" in command("recommend", "wine", "--features", "16")
    assert KernelClassifier(random_state=0).fit(*load_iris(return_X_y=True)).score(*load_iris(return_X_y=True)) > 0.9


def torch() -> None:
    """Attention is computed and differentiated."""
    import torch

    from bochner.nn import RandomFeatureAttention

    star("bochner.nn")
    attention, x = RandomFeatureAttention(16, 2, batch_first=True), torch.randn(1, 20, 16)
    attention(x, x, x)[0].sum().backward()
    assert all(parameter.grad is not None for parameter in attention.parameters())


def dask() -> None:
    """A fit over blocks."""
    import dask.array as da

    from bochner.distributed import KernelRidge

    star("bochner.distributed")
    X = da.random.default_rng(0).standard_normal((200, 3), chunks=(50, 3))
    KernelRidge(gamma=0.1, map=None, n_components=32, alpha=0.1, random_state=0).fit(X, X[:, 0]).predict(X).compute()


def plot() -> None:
    """A picture of the couplings."""
    command("info", "--dimension", "8", "--rows", "8", "--picture", "couplings.png")


def parquet() -> None:
    """A table with numbers, text and missing text."""
    import pyarrow
    import pyarrow.parquet

    from bochner.cli.tables import read_table

    table = pyarrow.table({"a": np.arange(12.0), "b": pyarrow.array(["x", "y", None] * 4).dictionary_encode()})
    with TemporaryDirectory() as folder:
        pyarrow.parquet.write_table(table, path := Path(folder) / "data.parquet")
        assert read_table(path).columns == ("a", "b=missing", "b=x", "b=y")


def wheel_is_the_library() -> None:
    """The library's distribution has neither experiments nor benchmarks, and its extras need no browser."""
    assert not [file for file in files("bochner") or () if {"experiments", "benchmarks", "results"} & set(file.parts)]
    assert not [line for line in requires("bochner") or () if "selenium" in line]


def laboratory(*arguments: str) -> str:
    """What ``bochner-lab`` prints, in an empty folder."""
    return command(*arguments, name="bochner-lab")


def lab() -> None:
    """The laboratory without extras: lists, data, an experiment and its figure."""
    star("bochner_lab")
    assert "simrf-fig6" in laboratory("list") and "OpenML" in laboratory("data")
    assert "figure.png" in laboratory("run", "simrf-fig6", "--profile", "smoke")


def experiments() -> None:
    """An experiment of each kind of dependency, with its figure."""
    for name in ("crt-fig4-right", "hrf-fig4-policy"):
        assert "figure.png" in laboratory("run", name, "--profile", "smoke"), name


def optimizers() -> None:
    """Our experiment finds the optimisers of other libraries, and runs them."""
    assert "not installed" not in laboratory("run", "ours-black-box", "--profile", "smoke")


def rl() -> None:
    """A robot is loaded and stands at its start."""
    from bochner_lab.papers._robots import ANT, Robot

    assert np.isfinite(Robot(ANT).start(0)).all()


def minitaur() -> None:
    """The Minitaur stands."""
    from bochner_lab.papers.omc._minitaur import Minitaur

    Minitaur()


def peers() -> None:
    """Libraries that the benchmarks compare with can be imported."""
    import faiss
    import performer_pytorch

    assert faiss.IndexLSH(8, 16) and performer_pytorch.FastAttention(8)


def gpytorch() -> None:
    """A kernel of GPyTorch on our features."""
    import torch

    import bochner
    from bochner.adapters import FeatureKernel

    kernel = FeatureKernel(3, bochner.Approximation("gaussian"))
    assert kernel(torch.zeros(2, 3)).to_dense().shape == (2, 2)


def botorch() -> None:
    """Features for sample paths of BoTorch."""
    from bochner.adapters import path_features

    assert callable(path_features)


def docs() -> None:
    """Every extension of the site, and every name that its pages import."""
    for name in (
        "sphinx",
        "myst_parser",
        "furo",
        "sphinx_design",
        "sphinx_copybutton",
        "sphinx_gallery",
        "latex2mathml",
    ):
        importlib.import_module(name)
    for module in ("bochner.nn", "bochner.distributed"):
        star(module)
    from bochner.nn import CodedCache, LinearCache

    assert CodedCache and LinearCache


def dev() -> None:
    """The tools of the tests."""
    for tool in ("pytest", "ruff", "mypy", "codespell"):
        assert command("--version", name=tool), tool


CHECKS: dict[str, tuple[Callable[[], None], ...]] = {
    "": (base, wheel_is_the_library),
    "torch": (torch,),
    "dask": (dask,),
    "plot": (plot,),
    "parquet": (parquet,),
    "gpytorch": (gpytorch,),
    "botorch": (botorch,),
    "docs": (docs,),
    "dev": (docs, parquet, dev),
    "all": (torch, dask, plot, parquet),
    "lab": (lab,),
    "lab-rl": (rl,),
    "lab-minitaur": (minitaur,),
    "lab-optimizers": (optimizers,),
    "lab-experiments": (lab, plot, torch, rl, optimizers, experiments),
    "lab-peers": (torch, optimizers, peers),
}
"""What must work with each extra; the empty name is the library alone, and "lab" the laboratory beside it."""


if __name__ == "__main__":
    for extra in sys.argv[1:] or [""]:
        for check in CHECKS[extra]:
            check()
    print(f"bochner {metadata('bochner')['Version']}, {' '.join(sys.argv[1:]) or 'alone'}: works")
