"""What both examples share: the command line, the comparison of mechanisms, and the table of results."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

from torch import nn

from bochner._progress import progress
from bochner._table import format_table, seconds
from bochner.experiments._transformers import (
    RATE,
    RATE_OF_UPTRAINING,
    Images,
    Shape,
    Words,
    converted,
    train,
    with_attention,
)
from bochner.nn import attention_report

MECHANISMS = {"softmax": "softmax", "favor+": "favor+", "favor++": "favor++", "simplex": "simrf-performer"}
"""Names of the command line, and of `bochner.mechanism`."""


@dataclass(frozen=True)
class Profile:
    """How much to compute."""

    steps: int
    batch: int
    shape: Shape
    n_projections: int


@dataclass(frozen=True)
class Result:
    """One line of the table."""

    name: str
    value: float
    seconds_per_step: float | None


def command_line(description: str | None) -> argparse.Namespace:
    """Arguments of an example."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    choices = [*MECHANISMS, "all"]
    parser.add_argument("--attention", choices=choices, default="all", help="which mechanism to train with")
    parser.add_argument("--profile", choices=["smoke", "full"], default="full", help="seconds, or minutes")
    parser.add_argument("--steps", type=int, help="training steps, in place of the profile's")
    parser.add_argument("--uptrain", type=int, metavar="STEPS", help="also convert the trained softmax model, train on")
    parser.add_argument("--report", action="store_true", help="also print the errors of each head of the softmax model")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def compare(start: nn.Module, task: Images | Words, profile: Profile, arguments: argparse.Namespace) -> None:
    """Train with each mechanism from the same start, and print the results."""
    names = list(MECHANISMS) if arguments.attention == "all" else [arguments.attention]
    steps = profile.steps if arguments.steps is None else arguments.steps
    results, softmax = [], None
    for name in names:
        model = with_attention(start, MECHANISMS[name], profile.n_projections, arguments.seed)
        time_per_step = timed(model, task, steps, name)
        results.append(Result(name, task.evaluate(model), time_per_step))
        softmax = model if name == "softmax" else softmax
    if softmax is not None and arguments.uptrain is not None:
        for name in names[1:]:
            results += uptrain(softmax, task, profile, arguments, name)
    print(f"data: {task.data}; {steps} steps of {profile.batch}\n")
    cells = [
        [r.name, f"{r.value:.3f}", "-" if r.seconds_per_step is None else seconds(r.seconds_per_step)] for r in results
    ]
    print(format_table(["attention", task.measure, "time per step"], cells))
    if softmax is not None and arguments.report:
        rows = task.example()
        half = len(rows) // 2
        report = attention_report(softmax, [rows[:half], rows[half:]], rows=[profile.n_projections], verbose=True)
        print(f"\n{report}")


def uptrain(
    softmax: nn.Module, task: Images | Words, profile: Profile, arguments: argparse.Namespace, name: str
) -> list[Result]:
    """Convert the trained softmax model, and train it on for some steps."""
    model = converted(softmax, task, MECHANISMS[name], profile.n_projections, arguments.seed)
    before = Result(f"{name}, converted", task.evaluate(model), None)
    time_per_step = timed(model, task, arguments.uptrain, f"{name}, uptrained", RATE_OF_UPTRAINING)
    return [before, Result(f"{name}, uptrained", task.evaluate(model), time_per_step)]


def timed(model: nn.Module, task: Images | Words, steps: int, label: str, rate: float = RATE) -> float:
    """Train with a bar; returns seconds per step, without the first one."""
    started = time.perf_counter()
    for done in progress(train(model, task, steps, rate), total=steps, label=label, delay=0.0):
        if done == 1:
            started = time.perf_counter()
    return (time.perf_counter() - started) / max(steps - 1, 1)
