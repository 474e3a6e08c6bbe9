"""The command line."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from bochner.cli import info, main
from bochner.cli.info import self_test


def test_info_shows_every_projection_and_draws_a_picture(tmp_path, capsys):
    picture = tmp_path / "deep" / "projections.png"
    assert main(["info", "--dimension", "70", "--rows", "20", "--picture", str(picture)]) == 0
    out = capsys.readouterr().out
    for name in ("IID()", "Simplex()", "Orthogonal(StructuredGivens())", "Quadrature()", "QMC('sobol')"):
        assert name in out
    assert "20 x 70" in out and str(picture) in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_info_explains_a_bad_dimension(capsys):
    assert main(["info", "--dimension", "1"]) == 2
    assert "--dimension must be at least 2" in capsys.readouterr().err


def test_info_finds_out_before_the_work_where_it_cannot_write(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    for picture, message in (
        (tmp_path / "file" / "p.png", "is a file; give a folder"),
        (tmp_path / "p.xyz", r"must end in one of .*png"),
        (tmp_path / "folder.png", "is a folder; give a file"),
    ):
        (tmp_path / "folder.png").mkdir(exist_ok=True)
        assert main(["info", "--picture", str(picture)]) == 2
        printed = capsys.readouterr()
        assert re.search(message, printed.err) and printed.out == ""


def test_info_refuses_what_would_not_fit_in_memory(capsys):
    assert main(["info", "--dimension", "1000000", "--rows", "1000000"]) == 2
    assert "--rows must be at most 67, got 1000000" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error, code, message",
    [
        (KeyboardInterrupt(), 130, "bochner info: interrupted."),
        (MemoryError(), 2, "bochner info: there is not enough memory; ask for fewer rows, columns or features."),
        (OSError(28, "No space left on device"), 2, "No space left on device"),
        (ValueError("x must be \x1b[31mred"), 2, r"bochner info: x must be \x1b[31mred"),
    ],
)
def test_what_goes_wrong_ends_in_a_sentence(monkeypatch, capsys, error, code, message):
    def fail():
        raise error

    monkeypatch.setattr(info, "environment", fail)
    assert main(["info"]) == code
    err = capsys.readouterr().err
    assert message in err and "Traceback" not in err and "\x1b" not in err


def test_a_closed_pipe_is_not_an_error():
    command = f"{sys.executable} -m bochner info --dimension 4 --rows 4 | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stdout.startswith("bochner") and done.stderr == ""


def test_arguments_are_shown_without_escape_sequences(capsys):
    with pytest.raises(SystemExit):
        main(["info", "\x1b[31mred"])
    assert "\x1b" not in capsys.readouterr().err


def test_unknown_command_lists_the_commands(capsys):
    with pytest.raises(SystemExit):
        main(["frobnicate"])
    assert "recommend" in capsys.readouterr().err


def test_the_package_runs_as_a_script():
    done = subprocess.run([sys.executable, "-m", "bochner", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("bochner ")


def test_without_arguments_shows_what_there_is(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert all(f"bochner {command}" in out for command in ("compare", "recommend", "info"))


def test_info_ends_in_a_self_test(monkeypatch, capsys):
    assert main(["info", "--dimension", "4", "--rows", "4"]) == 0
    assert capsys.readouterr().out.endswith("all well\n")

    def broken():
        raise ValueError("two is not three")

    monkeypatch.setattr(info, "self_test", lambda: self_test({"numbers": (broken, "count again")}))
    assert main(["info", "--dimension", "4", "--rows", "4"]) == 1
    out = capsys.readouterr().out
    assert "FAILED: ValueError: two is not three. To mend it, count again." in out and out.endswith("1 checks failed\n")


def test_a_message_names_the_command_once(tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_text("a,b\n" + "".join(f"{k},{k % 7}\n" for k in range(40)))
    assert main(["recommend", str(table), "--tolerance", "nan"]) == 2
    assert capsys.readouterr().err.startswith("bochner recommend: tolerance must be a positive number")
    assert main(["compare", ".", "--target", "b"]) == 2
    assert "bochner compare: .: files of kind '(none)' are not read" in capsys.readouterr().err
