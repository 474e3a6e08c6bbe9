"""What both examples share: the command line, the loop of steps, and the table of results."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Protocol

import torch
from mechanisms import NAMES, adapt, with_attention
from torch import Tensor, nn

from bochner._progress import progress
from bochner._table import format_table, seconds
from bochner.nn import attention_report

RATE = 3e-3
RATE_OF_UPTRAINING = 3e-4
STEPS_BETWEEN_ADAPTATIONS = 50


@dataclass(frozen=True)
class Profile:
    """How much to compute."""

    steps: int
    batch: int
    width: int
    layers: int
    heads: int
    n_projections: int


class Task(Protocol):
    """Data with a loss and a measure of success."""

    data: str
    measure: str

    def loss(self, model: nn.Module, step: int) -> Tensor:
        """The loss on the batch of a step, the same for all models."""

    def evaluate(self, model: nn.Module) -> float:
        """The measure on data that are not trained on."""

    def example(self) -> Tensor:
        """A few inputs."""


@dataclass(frozen=True)
class Result:
    """One line of the table."""

    name: str
    value: float
    seconds_a_step: float | None


def command_line(description: str | None) -> argparse.Namespace:
    """Arguments of an example."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attention", choices=[*NAMES, "all"], default="all", help="which mechanism to train with")
    parser.add_argument("--profile", choices=["smoke", "full"], default="full", help="seconds, or minutes")
    parser.add_argument("--steps", type=int, help="training steps, in place of the profile's")
    parser.add_argument("--uptrain", type=int, metavar="STEPS", help="also convert the trained softmax model, train on")
    parser.add_argument("--report", action="store_true", help="also print the errors of each head of the softmax model")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def compare(start: nn.Module, task: Task, profile: Profile, arguments: argparse.Namespace) -> None:
    """Train with each mechanism from the same start, and print what came of it."""
    names = NAMES if arguments.attention == "all" else (arguments.attention,)
    steps = profile.steps if arguments.steps is None else arguments.steps
    results, softmax = [], None
    for name in names:
        model = with_attention(start, name, profile.n_projections, arguments.seed)
        time_a_step = train(model, task, steps, name)
        results.append(Result(name, task.evaluate(model), time_a_step))
        softmax = model if name == "softmax" else softmax
    if softmax is not None and arguments.uptrain is not None:
        results += uptrain(softmax, task, profile, arguments, names)
    print(f"data: {task.data}; {steps} steps of {profile.batch}\n")
    cells = [
        [r.name, f"{r.value:.3f}", "-" if r.seconds_a_step is None else seconds(r.seconds_a_step)] for r in results
    ]
    print(format_table(["attention", task.measure, "time a step"], cells))
    if softmax is not None and arguments.report:
        print(f"\n{attention_report(softmax, task.example(), n_projections=profile.n_projections, verbose=True)}")


def uptrain(
    softmax: nn.Module, task: Task, profile: Profile, arguments: argparse.Namespace, names: tuple[str, ...]
) -> list[Result]:
    """Convert the trained softmax model, and train it on for some steps."""
    results = []
    for name in names:
        if name != "softmax":
            model = with_attention(softmax, name, profile.n_projections, arguments.seed)
            adapt(model)
            task.loss(model, 0)  # a batch from which maps choose their constants
            results.append(Result(f"{name}, converted", task.evaluate(model), None))
            time_a_step = train(model, task, arguments.uptrain, f"{name}, uptrained", RATE_OF_UPTRAINING)
            results.append(Result(f"{name}, uptrained", task.evaluate(model), time_a_step))
    return results


def train(model: nn.Module, task: Task, steps: int, label: str, rate: float = RATE) -> float:
    """Train with Adam and a bar; returns seconds a step, the first one apart."""
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=max(steps, 2), pct_start=0.2)
    started = time.perf_counter()
    for step in progress(range(steps), label=label, delay=0.0):
        if step % STEPS_BETWEEN_ADAPTATIONS == 0:
            adapt(model)
        optimizer.zero_grad()
        task.loss(model, step).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step == 0:
            started = time.perf_counter()
    return (time.perf_counter() - started) / max(steps - 1, 1)
