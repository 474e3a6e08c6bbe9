"""``bochner compare`` and ``bochner recommend``, as a user types them."""

from __future__ import annotations

import json
import os
import re
import sys

import numpy as np
import pytest

from bochner import Approximation, datasets, kernels, maps, projections, radii, rotations
from bochner.cli import compare, main
from bochner.cli.main import parser
from bochner.cli.problem import Problem, read_problem
from bochner.selection import _peers, _rivals

PARTS = {
    name: value for module in (kernels, maps, projections, radii, rotations) for name, value in vars(module).items()
}
PARTS["Approximation"] = Approximation
FEW = ["--rows", "30", "--draws", "3", "--features", "32"]


@pytest.fixture
def table(tmp_path):
    X = np.random.default_rng(0).standard_normal((40, 3)) * [1.0, 10.0, 0.1]
    path = tmp_path / "data.csv"
    path.write_text("a,b,c\n" + "\n".join(",".join(map(str, row)) for row in X) + "\n")
    return path


@pytest.fixture(scope="module")
def found():
    """A comparison on 40 rows."""
    X = np.random.default_rng(0).standard_normal((40, 3))
    problem = Problem("rows", X, None, kernels.Matern(1.5, 1.2), False)
    return compare.compare(problem, 32, 40, 6, 0, shown=False)


def test_compare_measures_and_reports(table, tmp_path, capsys):
    assert main(["compare", str(table), *FEW, "--kernel", "matern-3/2", "--out", str(tmp_path / "report")]) == 0
    out = capsys.readouterr().out
    assert "data.csv: 40 rows x 3 columns, columns standardised; Matern(nu=1.5, lengthscale=" in out
    for column in ("measured error", "predicted", "time per row", "memory", "positive"):
        assert column in out
    assert "Trigonometric(), Orthogonal()" in out and f"Report: {tmp_path / 'report' / 'index.html'}" in out
    numbers = json.loads((tmp_path / "report" / "comparison.json").read_text())
    assert len(numbers["measurements"]) >= 10 and len(numbers["curves"]) >= 3


def test_compare_prints_json_that_rebuilds_the_mechanisms(table, tmp_path, capsys):
    assert main(["compare", str(table), *FEW, "--kernel", "angular", "--json", "--out", str(tmp_path / "r")]) == 0
    printed = json.loads(capsys.readouterr().out)
    for m in printed["measurements"]:
        spec = eval(m["spec"], PARTS)
        assert isinstance(spec, Approximation) and m["n_features"] <= 32 and m["measured"] > 0 and m["nbytes"] > 0
    assert [m["measured"] for m in printed["measurements"]] == sorted(m["measured"] for m in printed["measurements"])
    assert printed["best"] in {m["spec"] for m in printed["measurements"] if m["label"] in printed["equal"]}


def test_predicted_and_measured_errors_agree(tmp_path, capsys):
    command = ["compare", "iris", "--rows", "60", "--draws", "30", "--features", "64", "--kernel", "laplacian"]
    assert main([*command, "--json", "--out", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)["measurements"]
    assert all(m["measured"] == pytest.approx(m["predicted"]) for m in found if "Landmarks" in m["label"])
    (m,) = (m for m in found if "Landmarks" not in m["label"])
    assert m["source"] == "theory" and abs(m["measured"] - m["predicted"]) < 5 * m["standard_error"]


def test_the_default_bandwidth_is_that_of_the_estimators(capsys):
    from bochner.learn import RandomFeatures

    X = datasets.embedded("iris").X
    fitted = RandomFeatures(random_state=0).fit((X - X.mean(axis=0)) / X.std(axis=0))
    assert main(["recommend", "iris", "--features", "16", "--json"]) == 0
    assert repr(fitted.features_.spec.kernel) in json.loads(capsys.readouterr().out)["best"]


def test_queries_and_keys_of_one_file(tmp_path, capsys):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "qk.npz", X=rng.standard_normal((30, 4)), Y=rng.standard_normal((25, 4)) + 1)
    command = ["recommend", str(tmp_path / "qk.npz"), "--kernel", "softmax", "--gamma", "0.25", "--no-standardize"]
    assert main([*command, "--features", "32", "--positive"]) == 0
    out = capsys.readouterr().out
    assert "30 rows and 25 keys x 4 columns; Softmax(scale=0.25)" in out
    assert "Recommended: Approximation(kernel=Softmax(scale=0.25)" in out


def test_recommend_prints_json(table, capsys):
    assert main(["recommend", str(table), "--kernel", "cauchy", "--tolerance", "0.2", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["tolerance"] == 0.2 and printed["ranking"][0]["spec"] == printed["best"]
    assert printed["ranking"][0]["error"] <= 1.02 * 0.2


def test_recommend_prints_warnings_with_the_table(table, capsys):
    command = ["recommend", str(table), "--kernel", "laplacian", "--features", "8", "--tolerance", "0.001"]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "Warning: no mechanism reaches the tolerance 0.001 with 8 features" in out and "\n\nRecommended: " in out


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--lengthscale", "long"], r"--lengthscale must be a positive number or 'scale' or 'median', got 'long'"),
        (["--kernel", "softmax", "--gamma", "-1"], r"--gamma must be a positive number, got '-1'"),
        (["--kernel", "angular", "--lengthscale", "2"], r"Angular\(\) has no bandwidth"),
        (["--kernel", "angular", "--gamma", "2"], r"Angular\(\) has no bandwidth"),
        (["--features", "0"], r"--features must be at least 1, got 0"),
        (["--features", "9" * 30], r"--features must be at most 65536, got 9"),
        (["--rows", "1000000"], r"--rows must be at most 10000, got 1000000"),
        (["--seed", "-1"], r"--seed must not be negative, got -1"),
        (["--rows", "3"], r"--rows must be at least 10, got 3"),
        (["--draws", "1"], r"--draws must be at least 2, got 1"),
        (["--drop", "q"], r"there is no column 'q' to drop; the columns are a, b, c"),
    ],
)
def test_options_that_do_not_work_are_explained(table, tmp_path, capsys, arguments, message):
    assert main(["compare", str(table), "--out", str(tmp_path / "r"), *arguments]) == 2
    err = capsys.readouterr().err
    assert re.search(message, err) and err.startswith("bochner compare: ")
    assert not (tmp_path / "r").exists()


def test_bad_data_are_explained_with_row_and_column(table, tmp_path, capsys):
    lines = table.read_text().splitlines()
    lines[4] = "1.0,blue,2.0"
    table.write_text("\n".join(lines))
    for command in ("compare", "recommend"):
        assert main([command, str(table)]) == 2
        err = capsys.readouterr().err
        assert (
            f"bochner {command}: data.csv: row 4 (line 5 of the file), column 'b' (number 2) holds the text 'blue'"
            in err
        )
    assert main(["recommend", "data_that_is_not_there.csv"]) == 2
    assert "there is no such file" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["compare", "iris", "--out", str(tmp_path / "file")]) == 2
    assert "is a file; give a folder" in capsys.readouterr().err


def test_a_report_that_cannot_be_written_is_found_out_before_the_work(table, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(compare, "compare", lambda *args: pytest.fail("measured first"))
    (tmp_path / "file").write_text("")
    assert main(["compare", str(table), "--out", str(tmp_path / "file" / "report")]) == 2
    assert re.search(r"--out .*file/report cannot be written to \(Not a directory\)", capsys.readouterr().err)
    if os.access("/proc/version", os.R_OK):
        assert main(["compare", str(table), "--out", "/proc/report"]) == 2
        assert "--out /proc/report cannot be written to" in capsys.readouterr().err


def test_numbers_that_cannot_be_standardised_are_explained(tmp_path, capsys):
    X = np.random.default_rng(0).standard_normal((20, 2))
    for column, name in ((1e308 * np.sign(X[:, 1]), "large"), (1e-300 * X[:, 1], "small")):
        np.savez(tmp_path / f"{name}.npz", X=np.column_stack([X[:, 0], column]))
        assert main(["recommend", str(tmp_path / f"{name}.npz")]) == 2
        assert f"{name}.npz: column 'x2' cannot be standardised" in capsys.readouterr().err


def test_names_of_files_and_columns_are_printed_without_escape_sequences(table, tmp_path, capsys):
    hostile = tmp_path / "\x1b[31mdata\x07.csv"
    hostile.write_text(table.read_text().replace("a,b,c", "\x1b]0;title\x07,b,c"))
    report = ["--kernel", "laplacian", "--out", str(tmp_path / "r")]
    for command in (
        ["recommend", "--features", "16"],
        ["compare", *FEW, *report],
        ["compare", *FEW, *report, "--json"],
    ):
        assert main([command[0], str(hostile), *command[1:]]) == 0
        printed = capsys.readouterr()
        assert "\x1b" not in printed.out + printed.err and "\x07" not in printed.out + printed.err
    assert "\x1b" not in (tmp_path / "r" / "index.html").read_text()


def test_help_names_the_defaults_that_are_used(capsys):
    for command in ("recommend", "compare"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert "(default 512)" in " ".join(capsys.readouterr().out.split())
    assert main(["recommend", "iris", "--kernel", "laplacian", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ranking"][0]["n_features"] == 512
    assert parser().parse_args(["compare"]).features == 512


def test_pictures_of_the_report_show_the_errors_of_its_table(found):
    errors = {m.label: m.typical for m in found.measurements}
    exact, *drawn = found.pictures
    assert drawn[0].label == found.best.label == found.curves[0].label
    for picture in drawn:  # the rows of the picture are all rows here, so that it has the very error of the table
        seen = np.linalg.norm(picture.gram - exact.gram) / np.linalg.norm(exact.gram)
        assert picture.error == errors[picture.label] == pytest.approx(seen)
    assert len(drawn) > 1 and drawn[0].error < min(picture.error for picture in drawn[1:])


def test_close_mechanisms_are_drawn_more_often_and_equal_ones_are_named(found):
    best, n = found.measurements[0], len(found.equal)
    assert n > 1 and {m.n_draws for m in found.equal} == {96} and found.measurements[-1].n_draws < 96
    spreads = [np.hypot(m.standard_error, best.standard_error) for m in found.measurements]
    assert all(m.measured - best.measured > 2 * s for m, s in zip(found.measurements[n:], spreads[n:], strict=True))
    assert found.sentences[0].startswith(f"These {n} are equal") and found.best in found.equal
    assert found.sentences[1].startswith(f"Recommended: {found.best.label}")


def test_names_of_data_sets(capsys):
    assert main(["recommend", "breast-cacner"]) == 2
    assert "there is no such file. The data set with the nearest name is breast-cancer." in capsys.readouterr().err
    assert main(["recommend", "iris", "--drop", "1"]) == 2
    assert "--drop and --categorical are for files" in capsys.readouterr().err


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A table with a column of text, one of codes, a missing value, and a target."""
    monkeypatch.setattr(_peers, "_RATES", (0.2,))
    monkeypatch.setattr(_rivals, "MOST_TREES", 10)
    monkeypatch.setattr(_peers, "_COSTS", (10.0,))
    rng = np.random.default_rng(0)
    size, colour, zone = rng.uniform(0, 3, 120), rng.choice(["red", "blue"], 120), rng.integers(3, size=120)
    price = np.sin(2 * size) + (colour == "red") + 0.1 * rng.standard_normal(120)
    cells = zip(size, colour, zone, price, strict=True)
    rows = [f"{'' if k == 7 else size},{colour},{zone},{price}" for k, (size, colour, zone, price) in enumerate(cells)]
    path = tmp_path / "shop.csv"
    path.write_text("\n".join(["size,colour,zone,price", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    return path


TARGET = ["--target", "price", "--categorical", "zone", "--features", "16", "--kernel", "laplacian"]
TARGET += ["--budget", "1e6"]  # seconds that no machine needs


def test_compare_by_a_target_prints_a_decision_and_code_that_runs(shop, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # the report does not need it
    assert main(["compare", "shop.csv", *TARGET]) == 2
    assert "Missing values are in 1 of 120 rows, in the columns 'size' (1)" in capsys.readouterr().err
    assert main(["compare", "shop.csv", *TARGET, "--drop-missing"]) == 0
    out = capsys.readouterr().out
    assert "119 rows x 6 columns, columns standardised, colour, zone one-hot encoded, 1 row with missing values" in out
    assert "laplacian kernel, its bandwidth chosen; regression" in out and "Report: report/index.html" in out
    for line in (
        "exact kernel ridge",
        "Nystroem + Ridge",
        "SVR",
        "HistGradientBoostingRegressor",
        "Landmarks()",
        "KernelRidge, automatic",
    ):
        assert line in out
    assert re.search(r"\nThese \d+ are equal within .* standard errors of paired differences: ", out)
    code, names = out[out.index("\nfrom bochner") : out.index("\nReport:")], {}
    exec(code, names)
    assert "make_column_transformer((StandardScaler(), slice(1))" in code and len(names["X"]) == 119
    assert names["model"].score(names["X"], names["y"]) > 0.8


def test_a_decision_as_json(shop, capsys):
    command = ["recommend", "shop.csv", "--target", "colour", "--drop", "zone", "--features", "8", "--drop-missing"]
    assert main([*command, "--kernel", "laplacian", "--lengthscale", "2", "--json", "--budget", "1e6"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["task"] == "classification" and "Laplacian(2.0)" in printed["code"]
    errors = [line["error"] for line in printed["estimators"] if line["n_folds"] == 5]
    assert errors == sorted(errors) and "SVC (scikit-learn)" in {line["label"] for line in printed["estimators"]}


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--target", "cost"], r"there is no column 'cost' to predict; the columns are size, colour, zone, price"),
        (["--target", "colour", "--task", "regression", "--drop-missing"], r"y holds text such as 'blue'"),
        (["--task", "regression"], r"--task regression needs the column to predict; give --target COLUMN"),
        (["--target", "price", "--budget", "-1"], r"--budget must be a positive number of seconds, got -1"),
        (["--categorical", "hue"], r"there is no column 'hue' to encode"),
    ],
)
def test_targets_that_do_not_work_are_explained(shop, capsys, arguments, message):
    assert main(["compare", "shop.csv", *arguments]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_the_target_of_a_named_data_set(capsys):
    assert main(["recommend", "iris", "--target", "species"]) == 2
    assert "this data set has one target; name it by --target y" in capsys.readouterr().err
    problem = read_problem(parser().parse_args(["compare", "iris", "--target", "y"]))
    assert problem.task.kind == "classification" and problem.searched == "gaussian" and len(problem.task.y) == 150
