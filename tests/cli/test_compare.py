"""``bochner compare`` and ``bochner recommend``, as a user types them."""

from __future__ import annotations

import json
import os
import re
import sys

import numpy as np
import pytest

from bochner import Approximation, kernels, maps, projections, radii, rotations
from bochner.cli import compare, main
from bochner.cli.main import parser
from bochner.cli.mechanisms import _Ground, measure
from bochner.cli.problem import read_problem
from bochner.comparison import _run
from bochner.comparison._candidates import standard_candidates
from bochner.selection._sample import Sample

PARTS = {
    name: value for module in (kernels, maps, projections, radii, rotations) for name, value in vars(module).items()
}
PARTS["Approximation"] = Approximation
FEW = ["--rows", "30", "--draws", "3", "--features", "32", "--budget", "1e6"]


@pytest.fixture
def table(tmp_path):
    X = np.random.default_rng(0).standard_normal((40, 3)) * [1.0, 10.0, 0.1]
    path = tmp_path / "data.csv"
    path.write_text("a,b,c\n" + "\n".join(",".join(map(str, row)) for row in X) + "\n")
    return path


@pytest.fixture(scope="module")
def found():
    """Mechanisms on 400 rows."""
    X = np.random.default_rng(0).standard_normal((400, 3))
    return measure(X, None, kernels.Gaussian(1.5), 64, rows=60, n_draws=8, seed=0, limit=1e6, shown=False)


def test_compare_measures_and_reports(table, tmp_path, capsys):
    assert main(["compare", str(table), *FEW, "--kernel", "matern-3/2", "--out", str(tmp_path / "report")]) == 0
    out = capsys.readouterr().out
    assert (
        "data.csv: 40 rows x 3 columns, columns standardised" in out
        and "Mechanisms for Matern(nu=1.5, lengthscale=" in out
    )
    for column in ("error", "by theory", "time per row", "positive", "unbiased"):
        assert column in out
    assert "Trigonometric(), Orthogonal()" in out and f"Report: {tmp_path / 'report' / 'index.html'}" in out
    numbers = json.loads((tmp_path / "report" / "comparison.json").read_text())
    assert len(numbers["mechanisms"]["mechanisms"]) >= 8 and numbers["estimators"] is None
    assert numbers["mechanisms"]["n_features"] == 10  # far below the number of rows


def test_compare_prints_json_that_rebuilds_the_mechanisms(table, tmp_path, capsys):
    assert main(["compare", str(table), *FEW, "--kernel", "angular", "--json", "--out", str(tmp_path / "r")]) == 0
    printed = json.loads(capsys.readouterr().out)["mechanisms"]["mechanisms"]
    for m in printed:
        assert isinstance(eval(m["spec"], PARTS), Approximation) and m["n_features"] <= 32 and m["error"] > 0
    assert [m["error"] for m in printed] == sorted(m["error"] for m in printed)


def test_closed_forms_agree_with_measured_errors(found):
    known = [m for m in found.found if m.predicted is not None and not m.rare and m.standard_error]
    assert len(known) > 5
    for m in known:  # of cosines; few draws of exponentials have a standard error that says little
        if "Trigonometric" in m.label:
            assert abs(m.error - m.predicted) < 5 * m.standard_error, m.label


def test_landmarks_are_measured_and_one_mechanism_is_listed_once(found):
    labels = [m.label for m in found.found]
    assert len(labels) == len(set(labels)) == len({(m.n_features, m.error) for m in found.found})
    assert "Landmarks()" in labels and "OptimalPositive(), Orthogonal()" in labels
    assert "GeneralizedExponential('optimal'), Orthogonal()" not in labels
    assert [m.ranked for m in found.found] == sorted(m.ranked for m in found.found)
    assert f"With 64 features, {labels[0]} has the lowest error" in found.sentences[0]
    assert any(s.startswith("Independent rows (RBFSampler) have ") for s in found.sentences)


def test_theory_is_shown_only_where_it_says_something_of_the_draws(found):
    rare = [m for m in found.found if m.rare]
    assert all(m.ranked == m.predicted > 2 * m.error for m in rare)
    assert all("rare draws" in found.table() for _ in rare[:1])


def test_theory_on_few_rows_is_that_of_all():
    """The diagonal, on which landmarks have their largest errors, has the share that it has among all rows."""
    X = np.random.default_rng(0).standard_normal((900, 6))
    sample = Sample.of(X, None, kernel := kernels.Gaussian(1.0), np.random.default_rng(0), 900)
    ground = _Ground(sample, kernel, X.dtype, 0)
    plan = Approximation(kernel, maps.Landmarks(), n_projections=100).plan(X, rng=0)
    whole = float(np.sqrt(plan.mse(X).sum()) / np.linalg.norm(kernel(X)))
    assert ground._theory(plan) == pytest.approx(whole, rel=0.2)  # without the weight it would be 1.5 times that


def test_mechanisms_stop_at_the_limit():
    X = np.random.default_rng(0).standard_normal((100, 3))
    cut = measure(X, None, kernels.Gaussian(), 16, rows=20, n_draws=2, seed=0, limit=0.0, shown=False)
    assert (
        len(cut.found) == 1
        and cut.n_left > 20
        and cut.sentences[-1] == f"{cut.n_left} more were not measured: the time was over."
    )


def test_the_default_bandwidth_is_that_of_the_estimators(capsys):
    from sklearn.datasets import load_iris

    from bochner.learn import RandomFeatures

    X = load_iris().data
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
    monkeypatch.setattr(compare, "measure", lambda *args, **options: pytest.fail("measured first"))
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


def test_names_of_tables(capsys):
    assert main(["recommend", "digit"]) == 2
    assert "there is no such file. The table with the nearest name is digits." in capsys.readouterr().err
    assert main(["recommend", "iris", "--drop", "1"]) == 2
    assert "--drop and --categorical are for files" in capsys.readouterr().err
    assert main(["recommend"]) == 2
    assert "give a CSV, NPZ or Parquet file, or one of breast-cancer, " in capsys.readouterr().err


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A table with a column of text, one of codes, a missing value, and a target; and only fast estimators."""
    quick = ("constant", "linear model", "KernelRidge()", "KernelClassifier()")
    chosen = lambda *args, **options: [c for c in standard_candidates(*args, **options) if c.name in quick]  # noqa: E731
    monkeypatch.setattr(_run, "standard_candidates", chosen)
    rng = np.random.default_rng(0)
    size, colour, zone = rng.uniform(0, 3, 120), rng.choice(["red", "blue"], 120), rng.integers(3, size=120)
    price = np.sin(2 * size) + (colour == "red") + 0.1 * rng.standard_normal(120)
    cells = zip(size, colour, zone, price, strict=True)
    rows = [f"{'' if k == 7 else size},{colour},{zone},{price}" for k, (size, colour, zone, price) in enumerate(cells)]
    path = tmp_path / "shop.csv"
    path.write_text("\n".join(["size,colour,zone,price", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    return path


TARGET = ["--target", "price", "--categorical", "zone", "--kernel", "laplacian", "--rows", "30", "--budget", "1e6"]


def code_of(out):
    """The code between the sentences on estimators and those on mechanisms."""
    start = min(out.index(f"\n{word} ") for word in ("from", "import") if f"\n{word} " in out)
    return out[start : out.index("\nRandom features of")]


def test_compare_by_a_target_says_what_won_with_code_that_runs(shop, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # the report does not need it
    assert main(["recommend", "shop.csv", "--categorical", "zone"]) == 2
    assert "Missing values are in 1 of 120 rows, in the columns 'size' (1)" in capsys.readouterr().err
    assert main(["compare", "shop.csv", *TARGET, "--drop-missing"]) == 0
    out = capsys.readouterr().out
    assert (
        "shop.csv: 119 rows x 6 columns, target 'price', colour, zone one-hot encoded, 1 row with missing values" in out
    )
    assert "Use KernelRidge(): RMSE 0." in out and "% below a constant" in out and "Report: report/index.html" in out
    assert "table in the report" in out and "mechanism   " not in out  # beside a target the table is not the answer
    names = {}
    exec(code_of(out), names)
    assert names["X"].shape == (119, 6) and names["model"].score(names["X"], names["y"]) > 0.8


def test_missing_numbers_are_imputed(shop, capsys):
    assert main(["compare", "shop.csv", *TARGET]) == 0
    out = capsys.readouterr().out
    assert "120 rows x 6 columns" in out and "1 missing number replaced by medians" in out
    names = {}
    exec(code_of(out), names)
    assert names["X"].isna().sum().sum() == 1 and names["model"].score(names["X"], names["y"]) > 0.8


def test_a_comparison_as_json(shop, capsys):
    command = ["compare", "shop.csv", "--target", "2", "--drop", "zone", "--drop-missing", "--kernel", "laplacian"]
    assert main([*command, "--rows", "30", "--json", "--budget", "1e6"]) == 0
    printed = json.loads(capsys.readouterr().out)["estimators"]
    assert printed["task"] == "classification" and printed["n_folds"] == 5
    errors = [line["error"] for line in printed["results"]]
    assert errors == sorted(errors) and {"constant", "linear model"} <= {line["name"] for line in printed["results"]}


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


def test_the_target_of_a_named_table(capsys):
    assert main(["compare", "iris", "--target", "species"]) == 2
    assert "this table has one target; name it by --target y" in capsys.readouterr().err
    problem = read_problem(parser().parse_args(["compare", "iris"]), target="y")
    assert problem.table.target == "species" and len(problem.table.y) == 150
    names = {}
    exec(problem.table.code, names)
    np.testing.assert_array_equal(names["X"], problem.table.X)


def test_help_says_where_positions_start(capsys):
    with pytest.raises(SystemExit):
        main(["compare", "--help"])
    assert "by name or by position counted from 1" in " ".join(capsys.readouterr().out.split())
