"""Files of data and the command line: broken and hostile files, any arguments, an exit code and a line, no traceback."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from bochner.cli import main, tables
from fuzz.engine import violation
from fuzz.exploring import explore
from fuzz.values import rows

PLAIN = "a,b,c\n" + "\n".join(",".join(f"{x:.3f}" for x in row) for row in rows(12)) + "\n"


def array_file(array: np.ndarray, *, pickled: bool = False) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=pickled)
    return out.getvalue()


def archive(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def zipped(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name.replace("_", "."), content)
    return out.getvalue()


def header(shape: str, descr: str = "'<f8'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


HOSTILE_FILES: dict[str, Callable[[], bytes]] = {
    "good.csv": lambda: PLAIN.encode(),
    "semicolons.csv": lambda: PLAIN.replace(",", ";").encode(),
    "no_header.txt": lambda: PLAIN.partition("\n")[2].encode(),
    "crlf.csv": lambda: PLAIN.replace("\n", "\r\n").encode(),
    "bom.csv": lambda: b"\xef\xbb\xbf" + PLAIN.encode(),
    "utf16.csv": lambda: PLAIN.encode("utf-16"),
    "latin1.csv": lambda: ("\xe9" + PLAIN).encode("latin-1"),
    "empty.csv": lambda: b"",
    "blank.csv": lambda: b"\n\n \n",
    "header_only.csv": lambda: b"a,b,c\n",
    "nul.csv": lambda: PLAIN.replace("0", "\0").encode(),
    "open_quote.csv": lambda: PLAIN.encode() + b'"1,2,3\n',
    "long_field.csv": lambda: PLAIN.encode() + b'"' + b"x" * 200_000 + b'",1,2\n',
    "long_line.csv": lambda: b"1," * 3_000_000,
    "ragged.csv": lambda: PLAIN.encode() + b"1,2\n",
    "text.csv": lambda: PLAIN.encode() + b"1,two,3\n",
    "nan.csv": lambda: PLAIN.encode() + b"1,nan,3\n",
    "inf.csv": lambda: PLAIN.encode() + b"1,1e999,3\n",
    "huge.csv": lambda: PLAIN.encode() + b"1,1e308,3\n",
    "hex.csv": lambda: PLAIN.encode() + b"1,0x10,3\n",
    "escape.csv": lambda: b"\x1b[31mred,b,c\n" + PLAIN.partition("\n")[2].encode() + b"1,x,2\n",
    "same_names.csv": lambda: PLAIN.replace("a,b,c", "a,a,a").encode(),
    "constant.csv": lambda: b"a,b\n" + b"1,2\n" * 20,
    "binary.csv": lambda: bytes(range(256)) * 20,
    "not_gzip.csv.gz": lambda: PLAIN.encode(),
    "good.csv.gz": lambda: gzip.compress(PLAIN.encode()),
    "cut.csv.gz": lambda: gzip.compress(PLAIN.encode())[:-9],
    "good.npy": lambda: array_file(rows(12)),
    "text.npy": lambda: array_file(np.array(["a", "b"])),
    "records.npy": lambda: array_file(np.zeros(3, [("a", float)])),
    "complex.npy": lambda: array_file(rows(12) + 1j),
    "pickled.npy": lambda: array_file(np.array([object()]), pickled=True),
    "cut.npy": lambda: array_file(rows(12))[:100],
    "huge_header.npy": lambda: header("(10000000000, 10000)"),
    "negative.npy": lambda: header("(-5, 3)"),
    "code.npy": lambda: header("(3, 3)", "__import__('os').getpid()"),
    "scalar.npy": lambda: array_file(np.array(3.0)),
    "cube.npy": lambda: array_file(rows(4, lead=(3,))),
    "empty.npy": lambda: b"",
    "good.npz": lambda: archive(X=rows(12), Y=rows(5, seed=1)),
    "widths.npz": lambda: archive(X=rows(12), Y=rows(5, 2)),
    "text.npz": lambda: archive(X=np.array(["a"])),
    "nothing.npz": lambda: archive(),
    "two.npz": lambda: archive(a=rows(12), b=rows(12)),
    "members.npz": lambda: zipped(X_npy=b"not an array", readme_txt=b"hello"),
    "bomb.npz": lambda: zipped(X_npy=header("(3000000, 100)") + bytes(30_000_000)),
    "not_zip.npz": lambda: b"PK\x03\x04 but nothing follows",
    "cut.npz": lambda: archive(X=rows(12))[:-40],
    "not.parquet": lambda: b"PAR1 nothing PAR1",
    "unknown.xyz": lambda: PLAIN.encode(),
    "no_suffix": lambda: PLAIN.encode(),
}


def spoiled(content: bytes, edits: list[tuple[int, int]], cut: int) -> bytes:
    """Bytes with some changed and the end cut off."""
    changed = bytearray(content)
    for position, byte in edits:
        if changed:
            changed[position % len(changed)] = byte
    return bytes(changed[: max(len(changed) - cut, 0)])


FILES = st.builds(
    lambda name, edits, cut: (name, spoiled(HOSTILE_FILES[name](), edits, cut)),
    st.sampled_from([name for name in HOSTILE_FILES if name not in ("long_line.csv", "bomb.npz")]),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=5),
    st.integers(0, 40),
)


def check_file(folder: Path, name: str, content: bytes) -> None:
    path = folder / name
    path.write_bytes(content)
    found = violation(lambda: tables.read_table(path).X)
    assert found is None, f"read_table({name}): {found}"


@pytest.mark.parametrize("name", HOSTILE_FILES)
def test_hostile_files(name, tmp_path):
    check_file(tmp_path, name, HOSTILE_FILES[name]())


def test_spoiled_files(tmp_path):
    explore("read_table", FILES, lambda file: check_file(tmp_path, *file), share=10)


# The command line


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and complaint of a command."""
    capsys.readouterr()
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    return code, capsys.readouterr().err


def check_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    outcome: list[Any] = []
    found = violation(lambda: outcome.append(run(arguments, capsys)))
    assert found is None, f"bochner {' '.join(map(repr, arguments))} {found}"
    code, complaint = outcome[0]
    assert code in (0, 1, 2), f"bochner {arguments} ended with code {code}"
    assert "Traceback" not in complaint and "\x1b" not in complaint, f"bochner {arguments}: {complaint}"
    if code == 2:
        assert complaint.strip().splitlines()[-1].startswith("bochner"), f"bochner {arguments}: {complaint}"


WORDS = st.sampled_from(
    [
        *(
            "",
            "-1",
            "0",
            "3",
            "1e9",
            "99999999999999999999",
            "nan",
            "inf",
            "gaussian",
            "softmax",
            "nonsense",
            "median",
            "auto",
        ),
        *("\x1b[31m", "\u00e9", "a,b", "..", "/", "/dev/null", "/nowhere/at/all", "diabetes", "--", "-x", "~", "a\nb"),
    ]
)
OPTIONS = st.sampled_from(
    [
        *("--kernel", "--lengthscale", "--scale", "--features", "--drop", "--seed", "--json", "--drop-constant"),
        *("--no-standardize", "--tolerance", "--positive", "--help", "--version", "--nonsense", "--draws"),
    ]
)
COMMANDS = st.builds(
    lambda command, data, extra: [command, data, *extra],
    st.sampled_from(["recommend", "recommend", "recommend", "info", "nonsense", "", "compare --help", "--version"]),
    st.sampled_from(["good.csv", "text.csv", "good.npz", "empty.csv", "nothing here.csv", "", "--help"]),
    st.lists(st.one_of(OPTIONS, WORDS), max_size=4),
)


def test_hostile_commands(tmp_path, monkeypatch, capsys):
    for name in ("good.csv", "text.csv", "good.npz", "empty.csv"):
        (tmp_path / name).write_bytes(HOSTILE_FILES[name]())
    monkeypatch.chdir(tmp_path)
    explore("command line", COMMANDS, lambda arguments: check_command(arguments, capsys), share=4)


@pytest.mark.parametrize("name", [name for name in HOSTILE_FILES if "good" not in name])
@pytest.mark.swept(2)
def test_commands_on_hostile_files(name, tmp_path, monkeypatch, capsys):
    (tmp_path / name).write_bytes(HOSTILE_FILES[name]())
    monkeypatch.chdir(tmp_path)
    check_command(["recommend", name, "--features", "8", "--kernel", "laplacian"], capsys)  # the fewest candidates
