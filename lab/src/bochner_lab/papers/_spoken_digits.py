"""Connected digits made of recorded ones: spectra, strings of a speaker's digits, and word errors.

Import this file only where torch is known to be installed.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._experiment import dataset

BANDS = 24
"""Bands of a spectrum."""
LONGEST = 64
"""Frames of the longest recordings that are used: one that is much longer would be padding for all others."""
_STEP, _WINDOW, _RATE = 80, 200, 8000
"""Samples between frames and of a frame (10 and 25 ms), and in a second."""


@functools.cache
def spectra() -> list[np.ndarray]:
    """Logarithms of the energies in bands of equal width on the mel scale, (frames, bands) for each recording."""
    data = dataset("spoken-digits")
    filters, window = _filters(), np.hanning(_WINDOW)
    found = []
    for clip in np.split(data.samples / 2.0**15, np.cumsum(data.lengths)[:-1]):
        frames = np.lib.stride_tricks.sliding_window_view(np.pad(clip, (0, _WINDOW)), _WINDOW)[: len(clip) : _STEP]
        power = np.abs(np.fft.rfft(frames * window)) ** 2
        found.append(np.log(power @ filters + 1e-4).astype(np.float32))
    together = np.concatenate(found)
    mean, deviation = together.mean(0), together.std(0)
    return [(spectrum - mean) / deviation for spectrum in found]


def _filters() -> np.ndarray:
    """Triangles (frequencies, bands) whose corners are equally spaced on the mel scale."""
    top = 2595 * np.log10(1 + _RATE / 2 / 700)
    corners = 700 * (10 ** (np.linspace(0, top, BANDS + 2) / 2595) - 1)
    f = np.fft.rfftfreq(_WINDOW, 1 / _RATE)[:, None]
    low, middle, high = corners[:-2], corners[1:-1], corners[2:]
    return np.clip(np.minimum((f - low) / (middle - low), (high - f) / (high - middle)), 0, None)


class SpokenDigits:
    """Strings of digits of one speaker, with noise; takes of the usual test set are not trained on.

    Parameters
    ----------
    digits : (int, int)
        Fewest and most digits of a string.
    noise : float
        Standard deviation of what is added to the normalised logarithms.
    stride : int
        Frames of a position: lengths of digits are multiples of it.
    batch, test : int
        Strings of a step, and of the test.
    seed : int
    """

    measure = "word error rate"

    def __init__(self, digits: Sequence[int], noise: float, stride: int, batch: int, test: int, seed: int) -> None:
        data = dataset("spoken-digits")
        self.digit, self.spectra = data.digit.astype(np.int64), spectra()
        short = np.array([len(spectrum) <= LONGEST for spectrum in self.spectra])
        self.clips = {
            held: [
                np.flatnonzero(short & (data.speaker == name) & ((data.take < 5) == held))
                for name in np.unique(data.speaker)
            ]
            for held in (False, True)
        }
        self.digits, self.noise, self.stride, self.batch, self.test, self.seed = (
            tuple(digits), noise, stride, batch, test, seed,
        )  # fmt: skip

    def strings(self, rng: np.random.Generator, n: int, *, held: bool) -> tuple[Tensor, Tensor, list[np.ndarray]]:
        """Frames (n, length, bands) with padding, their numbers, and the digits 1 to 10 of each string."""
        frames, words = [], []
        for _ in range(n):
            own = self.clips[held][rng.integers(len(self.clips[held]))]
            chosen = own[rng.integers(len(own), size=rng.integers(self.digits[0], self.digits[1] + 1))]
            spectrum = np.concatenate([self.spectra[c] for c in chosen])
            spectrum = spectrum[: len(spectrum) // self.stride * self.stride]
            frames.append(torch.from_numpy(spectrum + self.noise * rng.standard_normal(spectrum.shape, np.float32)))
            words.append(self.digit[chosen] + 1)
        lengths = torch.tensor([len(frame) for frame in frames])
        return nn.utils.rnn.pad_sequence(frames, batch_first=True), lengths, words

    def loss(self, model: nn.Module, step: int) -> Tensor:
        """Loss of connectionist temporal classification on random strings."""
        frames, lengths, words = self.strings(np.random.default_rng([self.seed, step]), self.batch, held=False)
        scores, positions = model(frames, lengths)
        targets = torch.from_numpy(np.concatenate(words))
        counts = torch.tensor([len(one) for one in words])
        return F.ctc_loss(scores.transpose(0, 1), targets, positions, counts, zero_infinity=True)

    def _tests(self) -> Iterator[tuple[Tensor, Tensor, list[np.ndarray]]]:
        """Test strings in parts, the same for all seeds."""
        rng = np.random.default_rng(0)
        for start in range(0, self.test, 50):
            yield self.strings(rng, min(50, self.test - start), held=True)

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> float:
        """Word error rate on the test strings, by the likeliest path."""
        model.eval()
        errors = total = 0
        for frames, lengths, words in self._tests():
            scores, positions = model(frames, lengths)
            for path, n, right in zip(scores.argmax(-1).numpy(), positions.tolist(), words, strict=True):
                errors += word_errors(collapsed(path[:n]), right)
                total += len(right)
        return errors / total

    def constant(self) -> float:
        """Word error rate of the best of the answers that say one digit, once or several times, to every string."""
        right = [one for *_, words in self._tests() for one in words]
        answers = [[digit] * times for digit in range(1, 11) for times in range(1, self.digits[1] + 1)]
        return min(sum(word_errors(answer, one) for one in right) for answer in answers) / sum(map(len, right))


def collapsed(path: np.ndarray) -> np.ndarray:
    """The words of a path: repetitions are one word, and blanks (0) none.

    Examples
    --------
    >>> import numpy as np
    >>> collapsed(np.array([0, 3, 3, 0, 3, 1])).tolist()
    [3, 3, 1]
    """
    changes = np.concatenate([[True], path[1:] != path[:-1]])
    return np.asarray(path[changes & (path != 0)])


def word_errors(found: Sequence[int] | np.ndarray, right: Sequence[int] | np.ndarray) -> int:
    """Fewest substitutions, insertions and deletions that turn one sequence of words into the other.

    Examples
    --------
    >>> word_errors([1, 2, 3], [1, 3]), word_errors([], [1, 2])
    (1, 2)
    """
    row = list(range(len(right) + 1))
    for i, word in enumerate(found, start=1):
        before, row[0] = row[0], i
        for j, other in enumerate(right, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (word != other))
    return row[-1]
