"""The user's own tables, and what is said of bad ones."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from bochner.datasets import TableError, read_table

X = np.random.default_rng(0).standard_normal((12, 3))


def write(path, X, header="a,b,c", separator=","):
    lines = [separator.join(f"{v:.17g}" for v in row) for row in X]
    path.write_text("\n".join(([header] if header else []) + lines) + "\n")
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("header", [True, False])
def test_csv(tmp_path, separator, header):
    path = write(tmp_path / "data.csv", X, separator.join("abc") if header else None, separator)
    table = read_table(path)
    np.testing.assert_array_equal(table.X, X)
    assert table.columns == (("a", "b", "c") if header else ("x1", "x2", "x3"))


def test_csv_compressed(tmp_path):
    plain = write(tmp_path / "data.csv", X)
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    np.testing.assert_array_equal(read_table(tmp_path / "data.csv.gz").X, X)


def test_npz(tmp_path):
    np.savez(tmp_path / "data.npz", X=X.astype(np.float32), Y=X[:10] + 1, y=np.arange(12))
    table = read_table(tmp_path / "data.npz")
    assert table.X.dtype == np.float32 and table.keys is not None
    np.testing.assert_array_equal(table.keys, X[:10] + 1)
    np.save(tmp_path / "data.npy", X)
    np.testing.assert_array_equal(read_table(tmp_path / "data.npy").X, X)


def test_parquet(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["name"] = "Ada"
    frame.to_parquet(tmp_path / "data.parquet")
    np.testing.assert_array_equal(read_table(tmp_path / "data.parquet", drop=["name"]).X, X)
    with pytest.raises(TableError, match=r"row 1, column 'name' \(number 4\) holds 'Ada', which is no number"):
        read_table(tmp_path / "data.parquet")


def test_parquet_missing_values(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"a": X[:, 0], "b": pd.array([1, 2, None] * 4, dtype="Int64")})
    frame.to_parquet(tmp_path / "data.parquet")
    with pytest.raises(TableError, match=r"row 3, column 'b' \(number 2\) holds a missing value, the first of 4"):
        read_table(tmp_path / "data.parquet")


def replaced(path, row, old, new):
    lines = path.read_text().splitlines()
    cells = lines[row].split(",")
    cells[old] = new
    lines[row] = ",".join(cells)
    path.write_text("\n".join(lines) + "\n")
    return path


def test_text_in_a_column(tmp_path):
    path = replaced(write(tmp_path / "data.csv", X), 5, 1, "red")
    message = r"data.csv: row 5 \(line 6 of the file\), column 'b' \(number 2\) holds the text 'red'.*--drop b"
    with pytest.raises(TableError, match=message):
        read_table(path)
    np.testing.assert_array_equal(read_table(path, drop=["b"]).X, X[:, [0, 2]])
    np.testing.assert_array_equal(read_table(path, drop=["2"]).X, X[:, [0, 2]])


@pytest.mark.parametrize("cell", ["", "?", "NA", "nan"])
def test_a_missing_value(tmp_path, cell):
    path = replaced(write(tmp_path / "data.csv", X), 7, 2, cell)
    with pytest.raises(
        TableError, match=r"row 7 \(line 8 of the file\), column 'c' \(number 3\) holds a missing value"
    ):
        read_table(path)


def test_an_infinite_value(tmp_path):
    with pytest.raises(TableError, match=r"row 2 \(line 3 of the file\), column 'a' \(number 1\) holds inf"):
        read_table(replaced(write(tmp_path / "data.csv", X), 2, 0, "inf"))


def test_a_row_of_another_length(tmp_path):
    path = write(tmp_path / "data.csv", X)
    path.write_text(path.read_text().rstrip("\n") + ",1\n")
    with pytest.raises(TableError, match=r"row 12 \(line 13 of the file\) has 4 cells, the first row has 3"):
        read_table(path)


def test_a_constant_column(tmp_path):
    constant = np.column_stack([X, np.full((12, 2), 7.0)])
    path = write(tmp_path / "data.csv", constant, "a,b,c,d,e")
    with pytest.raises(
        TableError, match=r"column 'd' \(number 4\) is constant: every row, from 1 to 12, has 7.*--drop d"
    ):
        read_table(path)
    assert read_table(path, drop_constant=True).columns == ("a", "b", "c")


def test_too_few_rows(tmp_path):
    with pytest.raises(TableError, match="9 rows are too few; at least 10"):
        read_table(write(tmp_path / "data.csv", X[:9]))
    with pytest.raises(TableError, match="0 rows are too few"):
        read_table(write(tmp_path / "data.csv", X[:0]))


def test_files_that_are_none(tmp_path):
    with pytest.raises(TableError, match="there is no such file"):
        read_table(tmp_path / "nothing.csv")
    (tmp_path / "data.xlsx").write_bytes(b"PK")
    with pytest.raises(TableError, match=r"files of kind '.xlsx' are not read; give one of .csv"):
        read_table(tmp_path / "data.xlsx")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(TableError, match="the file is empty"):
        read_table(tmp_path / "empty.csv")
    for name, words in (("bad.npz", "NumPy cannot read it"), ("bad.parquet", "it is not a Parquet file")):
        (tmp_path / name).write_bytes(b"nothing of the kind")
        with pytest.raises(TableError, match=words):
            read_table(tmp_path / name)
    (tmp_path / "latin.csv").write_bytes("a,b\n1,2\n\xe9,3\n".encode("latin-1"))
    with pytest.raises(TableError, match="line 3 is not text in UTF-8"):
        read_table(tmp_path / "latin.csv")


def test_arrays_that_do_not_fit(tmp_path):
    np.savez(tmp_path / "two.npz", A=X, B=X)
    with pytest.raises(
        TableError, match=r"expected a matrix named X, or a single matrix; the file holds A \(12, 3\), B"
    ):
        read_table(tmp_path / "two.npz")
    np.savez(tmp_path / "widths.npz", X=X, Y=X[:, :2])
    with pytest.raises(TableError, match="X has 3 columns and Y 2"):
        read_table(tmp_path / "widths.npz")
    np.savez(tmp_path / "words.npz", X=np.full((12, 2), "a"))
    with pytest.raises(TableError, match="array X holds <U1, not real numbers; its first cell, row 1, column 1"):
        read_table(tmp_path / "words.npz")


def test_dropping_what_is_not_there(tmp_path):
    with pytest.raises(TableError, match=r"there is no column 'z' to drop; the columns are a, b, c"):
        read_table(write(tmp_path / "data.csv", X), drop=["z"])
    with pytest.raises(TableError, match="no columns are left"):
        read_table(write(tmp_path / "data.csv", X), drop=["a", "b", "c"])
