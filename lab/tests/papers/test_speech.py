"""Connected digits, the Conformer that reads them, and associative recall."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import mechanism
from bochner_lab._experiment import Results, experiment
from bochner_lab._verdicts import verdict_of
from bochner_lab.datasets import _load

torch = pytest.importorskip("torch")

from bochner_lab.papers._conformer import ELEMENTWISE, EXACT, NONE, UNIFORM, Attention, Conformer, fit_again, with_kind  # noqa: E402
from bochner_lab.papers._recall import Recall, RecallModel  # noqa: E402
from bochner_lab.papers._spoken_digits import BANDS, SpokenDigits, collapsed, spectra, word_errors  # noqa: E402
from bochner_lab.papers._transformers import Shape, train  # noqa: E402


@pytest.fixture
def voices(tmp_path, monkeypatch):
    """Two speakers whose digits are tones of different pitch."""
    rng = np.random.default_rng(0)
    takes = [(digit, name, take) for digit in range(10) for name in ("a", "b") for take in range(7)]
    clips = []
    for digit, _, _ in takes:
        t = np.arange(1600 + 80 * digit) / 8000
        clips.append((9000 * np.sin(2 * np.pi * (300 + 300 * digit) * t) + rng.normal(0, 50, len(t))).astype(np.int16))
    digit, speaker, take = (np.array(column) for column in zip(*takes, strict=True))
    lengths = np.array([len(clip) for clip in clips], np.int32)
    arrays = {"samples": np.concatenate(clips), "lengths": lengths, "digit": digit, "speaker": speaker, "take": take}
    np.savez(tmp_path / "spoken_digits.npz", **arrays)
    monkeypatch.setenv(_load.VARIABLE, str(tmp_path))
    from bochner_lab._experiment import dataset

    dataset.cache_clear()
    spectra.cache_clear()
    yield arrays
    dataset.cache_clear()
    spectra.cache_clear()


def test_strings_are_of_one_speaker_and_never_of_the_other_takes(voices):
    task = SpokenDigits((3, 6), 0.0, 4, 8, 20, seed=1)
    for held in (False, True):
        members = task.clips[held]
        assert len(members) == 2
        for name, own in zip(("a", "b"), members, strict=True):
            assert set(voices["speaker"][own]) == {name} and ((voices["take"][own] < 5) == held).all()
    frames, lengths, words = task.strings(np.random.default_rng(0), 30, held=True)
    assert frames.shape == (30, int(lengths.max()), BANDS) and (lengths % 4 == 0).all()
    assert {len(one) for one in words} == {3, 4, 5, 6} and all(((one > 0) & (one < 11)).all() for one in words)


def test_a_loud_band_is_where_the_tone_is(voices):
    means = np.array([spectrum.mean(0) for spectrum in spectra()])
    lowest = means[voices["digit"] == 0].mean(0).argmax(), means[voices["digit"] == 9].mean(0).argmax()
    assert lowest[0] < lowest[1]


@pytest.mark.parametrize(
    ("path", "words"), [([0, 0, 1, 1, 0, 1, 2, 2], [1, 1, 2]), ([3], [3]), ([0, 0], []), ([4, 4, 5, 4], [4, 5, 4])]
)
def test_paths_collapse(path, words):
    assert collapsed(np.array(path)).tolist() == words


def test_word_errors_are_a_distance():
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b, c = (rng.integers(0, 3, rng.integers(0, 6)).tolist() for _ in range(3))
        assert word_errors(a, b) == word_errors(b, a) >= abs(len(a) - len(b))
        assert word_errors(a, a) == 0 and word_errors(a, c) <= word_errors(a, b) + word_errors(b, c)
    assert word_errors([1, 2, 3, 4], [2, 3, 5]) == 2


def test_the_best_constant_answer_is_far_from_right(voices):
    assert 0.6 < SpokenDigits((3, 6), 0.0, 4, 8, 100, seed=1).constant() < 1


@pytest.mark.parametrize("kind", [EXACT, UNIFORM, NONE, *ELEMENTWISE, "favor+"])
def test_padding_does_not_change_what_is_read(kind):
    made = kind if kind != "favor+" else mechanism(kind, n_projections=8)
    model = Conformer(3, 2, 5, Shape(8, 2, 2), 3, made, seed=0)
    frames = torch.randn(1, 12, 3, generator=torch.Generator().manual_seed(0))
    alone, _ = model(frames, torch.tensor([12]))
    fit_again(model)  # constants of the maps are none here: only the call is repeated
    padded, lengths = model(torch.nn.functional.pad(frames, (0, 0, 0, 6)), torch.tensor([12]))
    assert lengths.tolist() == [6]
    torch.testing.assert_close(padded[:, :6], alone, rtol=1e-4, atol=1e-5)


def test_kinds_start_from_the_same_weights_and_features_estimate_softmax():
    kinds = (EXACT, mechanism("favor+", n_projections=4096))
    models = [Conformer(3, 2, 5, Shape(8, 1, 2), 3, kind, seed=3) for kind in kinds]
    for a, b in zip(*(model.parameters() for model in models), strict=True):
        assert torch.equal(a, b)
    frames = torch.randn(2, 12, 3, generator=torch.Generator().manual_seed(0))
    exact, found = (model(frames, torch.tensor([12, 8]))[0] for model in models)
    assert float((exact[0] - found[0]).detach().abs().max()) < 0.05


def test_uniform_attention_is_the_mean_of_the_values():
    attention = Attention(4, 2, UNIFORM, seed=0)
    x = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))
    there = torch.ones(2, 5, dtype=torch.bool)
    v = attention.inward(x)[..., 8:]
    expected = attention.outward(v.mean(1, keepdim=True)).expand(2, 5, 4)
    torch.testing.assert_close(attention(x, there), expected)


def test_recall_asks_for_a_key_that_was_there():
    keys, values, answers = Recall(8, 5, 4, 10, 0).rows(np.random.default_rng(0), 200)
    assert all(len(set(row.tolist())) == 5 for row in keys[:, :5])
    place = (keys[:, :5] == keys[:, 5:]).int()
    assert (place.sum(1) == 1).all() and torch.equal(values[place.bool()], answers)


def test_softmax_learns_to_recall_and_uniform_attention_does_not():
    task = Recall(8, 3, 32, 400, 0)
    start = RecallModel(8, 16, 1, EXACT, seed=0)
    found = {}
    for kind in (EXACT, UNIFORM):
        model = with_kind(start, kind)
        for _ in train(model, task, 120, 1e-2):
            pass
        found[kind] = task.evaluate(model)
    assert found[EXACT] > 0.9 > 0.6 > found[UNIFORM]


@pytest.mark.parametrize("name", ["hrf-table2-digits", "crt-fig3-digits", "crt-table2-recall"])
def test_statements_cannot_be_reached_by_noise(name):
    """Numbers that are exchanged between mechanisms within each seed make no statement of superiority true often."""
    one = experiment(name)
    p = one.profiles["full"]
    names = ["softmax", "HRF-C(3,3)", "HRF-A", "FAVOR+", "trigonometric", "ELU", "ReLU"]
    names += [f"{kind} {m}" for kind in ("FAVOR+", "FAVOR++", "dense", "uptrained FAVOR++") for m in (8, 16)]
    trivial = ["uniform attention", "no attention", "one digit for all"]
    rng, held = np.random.default_rng(0), 0
    better = 1 if name == "crt-table2-recall" else -1
    for _ in range(40):
        parts = {
            f"seed {k}": {n: 50 + rng.normal() for n in names} | {n: 50 - better * 40 + rng.normal() for n in trivial}
            for k in range(p["seeds"])
        }
        results = Results(p, parts)
        assert one.power(results).passed
        held += verdict_of(one.judge(results).values()) == "holds"
    assert held <= 2
