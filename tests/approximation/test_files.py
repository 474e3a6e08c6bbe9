"""Files of drawn features: the same features come back, old files stay readable, and strange ones are refused in words."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

import bochner
from bochner import Approximation, catalogue, kernels, maps
from bochner.approximation import FeatureMap, plan_from_json, plan_to_json
from bochner.projections import Orthogonal, Quadrature
from bochner.rotations import Hadamard, Kac
from support.catalogue import ADAPTIVE_MAPS, MAPS, POINTWISE, D, data, spec_of

KEPT = Path(__file__).parent / "files"
"""Small files of every version of the format, made by `tests/approximation/make_files.py`; never made again."""
SAVABLE = [m for m in MAPS if m is not POINTWISE]


@pytest.mark.parametrize("feature_map", SAVABLE, ids=repr)
def test_features_come_back_bit_for_bit(feature_map, tmp_path, seed):
    A, B = data(seed)
    phi = spec_of(feature_map, None, 5).fit(A, B, seed)
    phi.save(tmp_path / "phi.npz")
    again = bochner.load(tmp_path / "phi.npz")
    assert again.spec == phi.spec
    np.testing.assert_array_equal(again.queries(A), phi.queries(A))
    np.testing.assert_array_equal(again.keys(B), phi.keys(B))


@pytest.mark.parametrize("projection", catalogue.projections().values(), ids=repr)
@pytest.mark.swept(3)
def test_every_projection_comes_back_bit_for_bit(projection, tmp_path):
    phi = Approximation(kernels.Gaussian(), maps.Trigonometric(), projection, 11).draw(6, rng=0)
    phi.save(tmp_path / "phi.npz")
    X = np.random.default_rng(0).standard_normal((40, 6))
    for dtype in (np.float32, np.float64):
        np.testing.assert_array_equal(
            bochner.load(tmp_path / "phi.npz").queries(X.astype(dtype)), phi.queries(X.astype(dtype))
        )


@pytest.mark.parametrize("feature_map", MAPS, ids=repr)
def test_pickles_hold_plain_data(feature_map, seed):
    A, B = data(seed)
    phi = spec_of(feature_map, None, 5).fit(A, B, seed)
    assert set(phi.__getstate__()) == {"format", "d", "arrays", "spec" if feature_map is POINTWISE else "plan"}
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(phi)).queries(A), phi.queries(A))


@pytest.mark.parametrize("path", sorted(KEPT.glob("*.npz")), ids=lambda path: path.stem)
def test_files_of_every_version_are_read(path):
    """Each holds, beside the features of a plan, rows of data and what their features were."""
    expected = np.load(path.with_suffix(".expected.npy"))
    X = np.linspace(-1, 1, 12).reshape(4, 3)
    np.testing.assert_allclose(bochner.load(path).queries(X), expected, rtol=1e-12, atol=1e-14)


def test_there_are_files_of_this_version():
    versions = {path.stem.partition("-")[0] for path in KEPT.glob("*.npz")}
    assert versions == {f"v{version}" for version in range(1, bochner.approximation.files.FORMAT + 1)}


@pytest.mark.parametrize("feature_map", ADAPTIVE_MAPS, ids=repr)
def test_the_plan_as_json_is_the_plan(feature_map, seed):
    plan = spec_of(feature_map, None, 5).plan(*data(seed), seed)
    assert plan_from_json(plan_to_json(plan)) == plan
    assert "_" not in "".join(types_in(json.loads(plan_to_json(plan))))


def types_in(value):
    """All names of classes in the JSON of a plan."""
    if isinstance(value, dict):
        return [value[key] for key in ("type",) if key in value] + [
            t for part in value.values() for t in types_in(part)
        ]
    return [t for part in value for t in types_in(part)] if isinstance(value, list) else []


# Files from strangers


def saved(tmp_path, **options):
    phi = Approximation(kernels.Gaussian(), n_projections=4, **options).draw(D, rng=0)
    phi.save(tmp_path / "phi.npz")
    return tmp_path / "phi.npz"


def rewritten(path, **changes):
    with np.load(path) as file:
        members = {name: file[name] for name in file.files}
    members = {name: a for name, a in (members | changes).items() if a is not None}
    np.savez(path, **members)
    return path


def plan_of(path):
    with np.load(path) as file:
        return json.loads(file["plan"].tobytes())


def as_member(plan):
    return np.frombuffer(json.dumps(plan).encode(), dtype=np.uint8)


def test_a_file_that_is_not_ours_is_refused(tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(ValueError, match=r"text\.npz is not a file of FeatureMap\.save"):
        bochner.load(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", X=np.ones(3))
    with pytest.raises(ValueError, match=r"other\.npz lacks 'format'"):
        bochner.load(tmp_path / "other.npz")
    with pytest.raises(FileNotFoundError):
        bochner.load(tmp_path / "nowhere.npz")


def test_a_pickled_member_is_not_read(tmp_path):
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "sprung",))

    path = rewritten(saved(tmp_path), **{"arrays/base/W": np.array([Trap()], dtype=object)})
    with pytest.raises(ValueError, match=r"is not a file of FeatureMap\.save"):
        bochner.load(path)
    assert not (tmp_path / "sprung").exists()


def test_a_later_version_asks_for_an_upgrade(tmp_path):
    with pytest.raises(ValueError, match=r"format version 99, and this bochner reads up to 2; upgrade bochner"):
        bochner.load(rewritten(saved(tmp_path), format=np.int64(99)))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("os.system", r"the plan names 'os\.system', which is not a class of this bochner"),
        ("maps._classical.Trigonometric", r"which is not a class of this bochner"),
        ("maps.Pointwise", r"which is not a class of this bochner"),
        ("maps.Draws", r"which is not a class of this bochner"),
        (["maps.Positive"], r"which is not a class of this bochner"),
    ],
    ids=str,
)
def test_only_public_values_are_built(tmp_path, name, message):
    path = saved(tmp_path)
    plan = plan_of(path)
    plan["map"]["type"] = name
    with pytest.raises(ValueError, match=message):
        bochner.load(rewritten(path, plan=as_member(plan)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"surprise": 1}, r"Approximation has no parameter 'surprise'; it has kernel, map, n_projections, projection"),
        ({"n_projections": 5}, r"these arrays do not belong to"),
        ({"n_projections": -1}, r"n_projections must be an integer of at least 1"),
        ({"n_projections": "4"}, r"cannot be built from the plan"),
        ({"kernel": {"type": "kernels.Gaussian", "lengthscale": 0}}, r"lengthscale must be a positive number"),
        ({"map": None, "kernel": None}, r"give a kernel, or a map"),
    ],
    ids=str,
)
def test_a_plan_that_does_not_fit_is_refused(tmp_path, change, message):
    path = saved(tmp_path)
    with pytest.raises(ValueError, match=message):
        bochner.load(rewritten(path, plan=as_member(plan_of(path) | change)))


@pytest.mark.parametrize(
    "W", (None, np.ones((4, 4)), np.full((4, 3), np.nan), np.ones((4, 3), dtype=complex)), ids=repr
)
def test_arrays_that_do_not_fit_the_plan_are_refused(tmp_path, W):
    with pytest.raises(ValueError, match=r"FeatureMap\.from_arrays: these arrays do not belong to"):
        bochner.load(rewritten(saved(tmp_path), **{"arrays/base/W": W}))


@pytest.mark.parametrize("projection", (Orthogonal(Hadamard()), Orthogonal(Kac()), Quadrature()), ids=repr)
def test_every_array_is_needed(tmp_path, projection):
    path = saved(tmp_path, projection=projection)
    with np.load(path) as file:
        names = [name for name in file.files if name.startswith("arrays/")]
    for name in names:
        if name.endswith("/order"):
            continue  # files of version 1 have none: their cut blocks keep the first rows
        saved(tmp_path, projection=projection)
        with pytest.raises(ValueError, match=r"these arrays do not belong to"):
            bochner.load(rewritten(path, **{name: None}))


def test_a_bomb_is_not_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("plan.npy", bytes(50_000_000))
    with pytest.raises(
        ValueError, match=r"would unpack to 50000000 bytes, and files of FeatureMap\.save are not compressed"
    ):
        bochner.load(tmp_path / "bomb.npz")


def test_deep_nesting_is_refused(tmp_path):
    path = saved(tmp_path)
    deep = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(ValueError, match=r"nested more than 64 deep"):
        bochner.load(
            rewritten(path, plan=as_member(plan_of(path) | {"map": {"type": "maps.ComplexExponential", "A": deep}}))
        )


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = saved(tmp_path)
    before = path.read_bytes()
    monkeypatch.setattr(np, "savez", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        saved(tmp_path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["phi.npz"]


def test_a_function_is_not_saved(tmp_path):
    phi = Approximation(map=maps.Pointwise(np.tanh), n_projections=3).draw(2, rng=0)
    with pytest.raises(TypeError, match=r"holds a function, and a file holds no code"):
        phi.save(tmp_path / "phi.npz")


def test_the_same_draw_serves_another_lengthscale():
    phi = Approximation(kernels.Gaussian(), n_projections=5).draw(3, rng=0)
    X = np.random.default_rng(0).standard_normal((4, 3))
    np.testing.assert_allclose(phi.with_kernel(kernels.Gaussian(2.0)).queries(2 * X), phi.queries(X), rtol=1e-12)
    with pytest.raises(TypeError, match=r"with_kernel: expected a kernel such as Gaussian"):
        phi.with_kernel(kernels.Cauchy())


def test_arrays_have_stable_names():
    hybrid = Approximation(kernels.Softmax(), maps.AngularHybrid(2), n_projections=3).draw(4, rng=0)
    assert sorted(hybrid.to_arrays()) == ["base/W", "base/radii", "coefficient-0/tau/W", "coefficient-0/tau/radii"]
    fast = Approximation(kernels.Gaussian(), projection=Orthogonal(Hadamard(2)), n_projections=3).draw(4, rng=0)
    assert sorted(fast.to_arrays()) == ["base/order", "base/radii", "base/stages.0.signs", "base/stages.1.signs"]
    assert hybrid.nbytes == (3 * 4 + 2 * 4) * 8
    assert FeatureMap.from_arrays(fast.spec, 4, fast.to_arrays()).nbytes == fast.nbytes


# Damage, modes and links


def small(tmp_path):
    phi = Approximation(kernels.Gaussian(), n_projections=4).draw(D, rng=0)
    return phi, tmp_path / "phi.npz"


@pytest.mark.parametrize("umask", (0o022, 0o077))
def test_a_new_file_has_the_mode_of_the_umask_and_an_old_one_keeps_its_own(tmp_path, umask):
    phi, path = small(tmp_path)
    before = os.umask(umask)
    try:
        phi.save(path)
        assert path.stat().st_mode & 0o777 == 0o666 & ~umask
        path.chmod(0o640)
        phi.save(path)
        assert path.stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


def test_a_link_stays_a_link(tmp_path):
    phi, path = small(tmp_path)
    (tmp_path / "folder").mkdir()
    path.symlink_to(tmp_path / "folder" / "real.npz")
    phi.save(path)
    assert path.is_symlink() and (tmp_path / "folder" / "real.npz").is_file()
    assert bochner.load(path).spec == phi.spec


def test_something_else_is_not_replaced(tmp_path):
    phi, _ = small(tmp_path)
    with pytest.raises(ValueError, match=r"FeatureMap\.save: expected a path to a file"):
        phi.save(tmp_path)
    with pytest.raises(ValueError, match=r"FeatureMap\.save: expected a path to a file"):
        phi.save("/dev/null")
    with pytest.raises(FileNotFoundError):
        phi.save(tmp_path / "nowhere" / "phi.npz")


@pytest.mark.parametrize("named", (False, True))
def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, named):
    phi, path = small(tmp_path)
    phi.save(path)
    if named:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
        phi.save(path)
    content = path.read_bytes()

    def broken(file, **members):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", broken)
    with pytest.raises(KeyboardInterrupt):
        phi.save(path)
    assert path.read_bytes() == content and list(tmp_path.iterdir()) == [path]


def test_content_reaches_the_disk_before_its_name(tmp_path, monkeypatch):
    phi, path = small(tmp_path)
    steps = []
    real = {"fsync": os.fsync, "replace": os.replace}
    monkeypatch.setattr(os, "fsync", lambda handle: (steps.append("sync"), real["fsync"](handle))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (steps.append("replace"), real["replace"](a, b))[1])
    phi.save(path)
    assert steps[:2] == ["sync", "replace"]


def with_member(path, name, content):
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for member, old in (members | {name: content}).items():
            archive.writestr(member, old)
    return path


def header_of(shape, dtype="'<f8'"):
    text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize("member", ("plan.npy", "format.npy", "d.npy", "arrays/base/W.npy", "arrays/base/radii.npy"))
@pytest.mark.parametrize(
    "content",
    (
        b"",
        b"no array",
        header_of("(5000000000,)"),  # 37 GiB declared
        header_of("(100000, 100000, 100000)"),
        header_of("(-1, 3)") + bytes(24),
        header_of("()", "'<c16'") + bytes(16),
        header_of("()") + bytes(8),
        header_of("(1,)", "'|O'") + bytes(8),
        b"\x93NUMPY\x09\x00" + bytes(40),
        header_of("(3,)")[:20],
    ),
    ids=range(10),
)
def test_a_damaged_member_gives_a_sentence(tmp_path, member, content):
    with pytest.raises(ValueError, match=r"^(bochner\.load|FeatureMap\.from_arrays): "):
        bochner.load(with_member(saved(tmp_path), member, content))


def test_a_flipped_bit_gives_the_same_features_or_a_sentence(tmp_path):
    """All checksums hold: no flip changes a feature."""
    phi, path = small(tmp_path)
    phi.save(path)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(int(os.environ.get("BOCHNER_FLIPS", "200"))):
        spoiled = bytearray(content)
        spoiled[rng.integers(len(content))] ^= 1 << rng.integers(8)
        path.write_bytes(spoiled)
        try:
            again = bochner.load(path)
        except ValueError as error:
            assert str(error).startswith(("bochner.load: ", "FeatureMap.from_arrays: "))
        else:
            np.testing.assert_array_equal(again.queries(np.ones((1, D))), phi.queries(np.ones((1, D))))
