"""The user's own tables, and what is said of bad ones."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from bochner.cli import table_files
from bochner.cli.table_files import TableError
from bochner.cli.tables import read_table

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
    np.testing.assert_allclose(table.X, X, rtol=1e-15)
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
    assert read_table(tmp_path / "data.parquet").constant == ("name",)
    frame["name"] = ["Ada", "Emmy", None] * 4
    frame.to_parquet(tmp_path / "data.parquet")
    assert read_table(tmp_path / "data.parquet").columns[3:] == ("name=Ada", "name=Emmy", "name=missing")


def test_parquet_missing_values(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"a": X[:, 0], "b": pd.array([1, 2, None] * 4, dtype="Int64")})
    frame.to_parquet(tmp_path / "data.parquet")
    with pytest.raises(TableError, match=r"row 3, column 'b' \(number 2\) holds a missing value, the first of 4"):
        read_table(tmp_path / "data.parquet")


def test_parquet_columns_of_categories_and_lists(tmp_path):
    import pyarrow
    import pyarrow.parquet

    categories = pyarrow.array(["x", None, "y"] * 4).dictionary_encode()
    pyarrow.parquet.write_table(pyarrow.table({"a": X[:, 0], "b": categories}), tmp_path / "data.parquet")
    assert read_table(tmp_path / "data.parquet").columns == ("a", "b=missing", "b=x", "b=y")
    lists = pyarrow.array([[1, 2], None] * 6)
    pyarrow.parquet.write_table(pyarrow.table({"a": X[:, 0], "b": lists}), tmp_path / "data.parquet")
    with pytest.raises(TableError, match=r"row 1, column 'b' \(number 2\) holds .*(list|List).*which is not a number"):
        read_table(tmp_path / "data.parquet")
    assert read_table(tmp_path / "data.parquet", drop=["b"]).columns == ("a",)


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


def test_constant_columns_are_left_out_and_named(tmp_path):
    constant = np.column_stack([X, np.full((12, 2), 7.0)])
    table = read_table(write(tmp_path / "data.csv", constant, "a,b,c,d,e"))
    assert table.columns == ("a", "b", "c") and table.constant == ("d", "e")


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


def test_positions_count_from_one_also_beside_dropped_columns(tmp_path):
    path = write(tmp_path / "data.csv", X, "a,b,c")
    assert read_table(path, drop=["1", "3"]).columns == ("b",)
    table = read_table(path, drop=["a"], target="3")
    assert table.columns == ("b",) and table.target == "c"
    np.testing.assert_allclose(table.y, X[:, 2])
    with pytest.raises(TableError, match="there is no column '0' to predict"):
        read_table(path, target="0")


def test_two_columns_of_one_name(tmp_path):
    path = write(tmp_path / "data.csv", X, "a,a,b")
    assert read_table(path, drop=["a"]).columns == ("b",)
    np.testing.assert_allclose(read_table(path, drop=["2"]).X, X[:, [0, 2]])
    for purpose, asked in (("to predict", {"target": "a"}), ("to encode", {"categorical": ["a"]})):
        message = rf"2 columns are named 'a'; say which one {purpose} by its number, one of 1, 2"
        with pytest.raises(TableError, match=message):
            read_table(path, **asked)
    assert read_table(path, target="2").columns == ("a", "b")


def comma(path, separator=";", quote=""):
    rows = [separator.join(f"{quote}{v:.3f}{quote}".replace(".", ",") for v in row) for row in X]
    path.write_text("\n".join([separator.join("abc"), *rows]) + "\n")
    return path


def test_decimal_commas_are_read_as_numbers(tmp_path):
    np.testing.assert_allclose(read_table(comma(tmp_path / "data.csv")).X, X.round(3))
    (tmp_path / "bare.csv").write_text((tmp_path / "data.csv").read_text().partition("\n")[2])
    np.testing.assert_allclose(read_table(tmp_path / "bare.csv").X, X.round(3))


def test_unclear_decimals_are_refused_in_the_right_words(tmp_path):
    with pytest.raises(TableError, match=r"numbers such as '.*,.*' in quotes, and commas between the cells; write all"):
        read_table(comma(tmp_path / "quoted.csv", ",", '"'))
    path = comma(tmp_path / "mixed.csv")
    path.write_text(path.read_text() + "1.5;2,5;3\n")
    with pytest.raises(TableError, match=r"numbers such as '.*,.*' and numbers such as '1.5'; write all decimals"):
        read_table(path)


def test_a_quoted_field_longer_than_the_reader_takes(tmp_path):
    path = write(tmp_path / "data.csv", X)
    path.write_text(path.read_text() + f'1,2,"{"3" * 140_000}"\n')
    with pytest.raises(
        TableError, match=r"row that starts at line 14 has broken quotes \(field larger than field limit"
    ):
        read_table(path)


def test_an_unclosed_quote(tmp_path):
    path = replaced(write(tmp_path / "data.csv", X), 5, 1, '"1.5')
    with pytest.raises(TableError, match=r"row that starts at line 6 has broken quotes.*close each quote"):
        read_table(path)


@pytest.mark.parametrize(
    "content",
    [b"a,b\n1,2\n", gzip.compress(b"a,b\n1,2\n" * 100)[:-9], b"\x1f\x8b\x08\x00junk"],
    ids=["plain", "cut", "junk"],
)
def test_files_that_are_not_gzip(tmp_path, content):
    (tmp_path / "data.csv.gz").write_bytes(content)
    with pytest.raises(TableError, match="not a complete gzip file"):
        read_table(tmp_path / "data.csv.gz")


def test_a_gzip_bomb_is_not_unpacked_beyond_the_limit(tmp_path, monkeypatch):
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"1,2,3\n" * 4_000_000, compresslevel=1))
    monkeypatch.setattr(table_files, "MOST_TEXT", 1_000_000)
    tracemalloc.start()
    with pytest.raises(TableError, match=r"bomb.csv.gz: it holds more than 1.0 MB once unpacked"):
        read_table(tmp_path / "bomb.csv.gz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6_000_000  # of 24


def test_a_compressed_array_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "bomb.npz", X=np.zeros((20_000, 100)))
    monkeypatch.setattr(table_files, "MOST_BYTES", 10_000_000)
    monkeypatch.setattr(np, "load", None)
    with pytest.raises(TableError, match=r"bomb.npz: it holds more than 10.0 MB once unpacked"):
        read_table(tmp_path / "bomb.npz")


@pytest.mark.parametrize("line", [b"1," * 3_000_000, b"1" * 6_000_000, b"x" * 6_000_000], ids=["cells", "digits", "x"])
def test_one_very_long_line_is_refused_before_it_is_split(tmp_path, monkeypatch, line):
    (tmp_path / "line.csv").write_bytes(b"a,b\n" + line)
    for parser in ("_separator", "_check_records"):
        monkeypatch.setattr(table_files, parser, None)
    with pytest.raises(TableError, match=r"line.csv: line 2 has more than 4194304 characters"):
        read_table(tmp_path / "line.csv")


def test_too_many_columns(tmp_path):
    (tmp_path / "wide.csv").write_bytes(b"1," * 150_000 + b"1\n")
    with pytest.raises(TableError, match=r"the first row has 150001 cells; at most 100000 columns are read"):
        read_table(tmp_path / "wide.csv")


def test_text_members_of_an_npz_are_left_out(tmp_path):
    np.savez(tmp_path / "data.npz", X=X)
    with zipfile.ZipFile(tmp_path / "data.npz", "a") as archive:
        archive.writestr("README.txt", "what these are")
    np.testing.assert_array_equal(read_table(tmp_path / "data.npz").X, X)
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("README.txt", "nothing else")
    with pytest.raises(TableError, match="expected a matrix named X, or a single matrix; the file holds no array"):
        read_table(tmp_path / "text.npz")


@pytest.mark.parametrize("shape", [(10**9, 10**9), (2**62, 4), (10**6, 10**5)])
@pytest.mark.parametrize("name", ["huge.npy", "huge.npz"])
def test_a_header_that_promises_more_than_there_is(tmp_path, shape, name):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
    content = header.getvalue() + X.tobytes()
    if name.endswith("npz"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("X.npy", content)
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match="NumPy cannot read it"):
        read_table(tmp_path / name)


def test_names_that_are_not_a_list(tmp_path):
    np.savez(tmp_path / "data.npz", X=X, names=np.array("a"))
    assert read_table(tmp_path / "data.npz").columns == ("x1", "x2", "x3")


def test_messages_hold_no_escape_sequences(tmp_path):
    path = write(tmp_path / "da\x1b[2Jta.csv", X, "\x1b[31ma,b\x07,c\u202e")
    for drop, cell in ((["z"], "1"), ([], "\x1b[31mred"), ([], "")):
        with pytest.raises(TableError) as caught:
            read_table(replaced(path, 3, 0, cell), drop=drop)
        assert str(caught.value).isprintable()
    with pytest.raises(TableError, match=r"column '\\x1b\[31ma' \(number 1\).*with --drop 1\."):
        read_table(path)


def test_long_cells_are_cut_in_messages(tmp_path):
    path = replaced(write(tmp_path / "data.csv", X), 3, 0, "long" * 10_000)
    with pytest.raises(TableError) as caught:
        read_table(path)
    assert len(str(caught.value)) < 400 and "holds the text 'longlong" in str(caught.value)


COLOURS = ["red", "blue", "", "red", "green", "blue"] * 2


def coloured(path, colours=COLOURS):
    rows = [f"{a:.17g},{c},{b:.17g},{k % 3}" for k, ((a, b, _), c) in enumerate(zip(X, colours, strict=True))]
    path.write_text("\n".join(["a,colour,b,kind", *rows]) + "\n")
    return path


def test_columns_of_text_are_encoded_after_the_numbers(tmp_path):
    table = read_table(coloured(tmp_path / "data.csv"), drop=["kind"])
    assert table.columns == ("a", "b", "colour=blue", "colour=green", "colour=missing", "colour=red")
    assert table.encoded == ("colour",) and table.n_numbers == 2
    np.testing.assert_allclose(table.X[:, :2], X[:, :2], rtol=1e-15)
    for k, name in enumerate(("blue", "green", "", "red")):
        np.testing.assert_array_equal(table.X[:, 2 + k], [colour == name for colour in COLOURS])


def test_numbers_and_mixed_columns_are_encoded_if_they_are_named(tmp_path):
    table = read_table(coloured(tmp_path / "data.csv"), categorical=["kind"], drop=["colour"])
    assert table.columns == ("a", "b", "kind=0", "kind=1", "kind=2")
    mixed = coloured(tmp_path / "mixed.csv", ["1", "two"] * 6)
    with pytest.raises(TableError, match=r"holds the text 'two'.*encode it with --categorical colour"):
        read_table(mixed)
    assert read_table(mixed, categorical=["2"], drop=["kind"]).columns[2:] == ("colour=1", "colour=two")


def test_an_identifier_is_not_encoded(tmp_path):
    path = write(tmp_path / "data.csv", np.tile(X, (5, 1)), "a,b,c")
    lines = path.read_text().splitlines()
    path.write_text("\n".join([f"{line},{'name' if k == 0 else f'n{k}'}" for k, line in enumerate(lines)]))
    message = r"column 'name' \(number 4\) holds 60 different texts in 60 rows.*--drop name, or encode it"
    with pytest.raises(TableError, match=message):
        read_table(path)
    assert read_table(path, categorical=["name"]).X.shape == (60, 63)


def test_the_target_is_a_column_or_a_vector(tmp_path):
    table = read_table(coloured(tmp_path / "data.csv"), target="kind", drop=["colour"])
    assert table.columns == ("a", "b") and table.y.tolist() == [k % 3 for k in range(12)]
    texts = coloured(tmp_path / "text.csv", ["yes", "no"] * 6)
    assert read_table(texts, target="colour", drop=["kind"]).y.tolist() == ["yes", "no"] * 6
    np.savez(tmp_path / "data.npz", X=X, y=np.arange(12))
    table = read_table(tmp_path / "data.npz", target="y")
    assert table.y.tolist() == list(range(12)) and table.X.shape == (12, 3)
    with pytest.raises(TableError, match=r"there is no column 'z' to predict; the columns are x1, x2, x3"):
        read_table(tmp_path / "data.npz", target="z")
    with pytest.raises(TableError, match=r"column 'kind' is the target, and cannot be dropped"):
        read_table(tmp_path / "data.csv", target="kind", drop=["4"])


def test_missing_values_are_counted_and_their_rows_left_out(tmp_path):
    path = write(tmp_path / "data.csv", X)
    for row, column in ((3, 0), (5, 0), (5, 2)):
        replaced(path, row, column, "")
    message = r"Missing values are in 2 of 12 rows, in the columns 'a' \(2\), 'c' \(1\); .* with --drop-missing"
    with pytest.raises(TableError, match=message):
        read_table(path)
    table = read_table(path, drop_missing=True)
    assert table.n_left_out == 2
    np.testing.assert_array_equal(table.X, np.delete(X, [2, 4], axis=0))
    with pytest.raises(TableError, match=r"the target 'a' is missing in 2 rows, the first of them row 3 \(line 4"):
        read_table(path, target="a")


def test_one_long_cell_does_not_widen_all_cells(tmp_path):
    rows = "".join(f"{k},word{k % 3}\n" for k in range(20_000))
    (tmp_path / "long.csv").write_text(f"a,b\n0,{'x' * 131_000}\n{rows}")
    tracemalloc.start()
    table = read_table(tmp_path / "long.csv")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert table.X.shape == (20_001, 5) and peak < 50_000_000  # an array of texts of equal width would take 10.5 GB


@pytest.mark.parametrize("text", ["x" * 2_000_000, b"x" * 2_000_000], ids=["text", "bytes"])
def test_a_parquet_dictionary_is_not_expanded(tmp_path, text):
    import pyarrow
    import pyarrow.parquet

    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 600, pyarrow.int32()), pyarrow.array([text]))
    table = pyarrow.table({"a": np.arange(600.0), "b": texts})
    pyarrow.parquet.write_table(table, tmp_path / "bomb.parquet", compression="zstd", store_schema=False)
    assert (tmp_path / "bomb.parquet").stat().st_size < 20_000
    with pytest.raises(TableError, match=r"bomb.parquet: it holds more than 1.0 GB once unpacked"):
        read_table(tmp_path / "bomb.parquet")


def test_missing_numbers_may_stay(tmp_path):
    path = replaced(write(tmp_path / "data.csv", X), 3, 0, "")
    table = read_table(path, impute=True)
    assert np.argwhere(np.isnan(table.X)).tolist() == [[2, 0]]
    with pytest.raises(TableError, match=r"row 4 \(line 5 of the file\), column 'b' \(number 2\) holds inf"):
        read_table(replaced(path, 4, 1, "inf"), impute=True)


def test_missing_numbers_of_keys_are_refused(tmp_path):
    keys = X.copy()
    keys[1, 2] = np.nan
    np.savez(tmp_path / "data.npz", X=X, Y=keys)
    with pytest.raises(TableError, match=r"data.npz, array Y: row 2, column 'x3' \(number 3\) holds a missing value"):
        read_table(tmp_path / "data.npz")


@pytest.mark.parametrize("separator, decimal", [(",", "."), (";", ",")])
def test_the_code_reads_the_same_table(tmp_path, separator, decimal):
    """Two columns of one name, a dropped and a constant one, text with a gap, codes, and missing numbers and targets."""
    rng = np.random.default_rng(1)
    header = ["a", "a", "id", "colour", "code", "one", "price"]
    rows = []
    for k in range(30):
        a, b, price = (f"{v:.4f}" for v in rng.normal(size=3))
        colour = ["red", "blue", ""][k % 3]
        rows.append([a if k != 3 else "", b, f"n{k}", colour, str(k % 4), "1", price if k != 5 else "?"])
    lines = [separator.join(cell.replace(".", decimal) for cell in row) for row in rows]
    path = tmp_path / "shop.csv"
    path.write_text("\n".join([separator.join(header), *lines]) + "\n")
    table = read_table(path, drop=["id"], categorical=["code"], target="price", drop_missing=True)
    names = {}
    exec(table.code, names)
    assert table.columns == ("a", "a", "colour=blue", "colour=missing", "colour=red", *(f"code={k}" for k in range(4)))
    np.testing.assert_allclose(names["X"].to_numpy(), table.X)
    np.testing.assert_allclose(names["y"].to_numpy(), table.y)
    assert table.n_left_out == 2 and table.constant == ("one",)


def test_the_code_of_other_formats_reads_the_same_table(tmp_path):
    import pandas as pd

    pd.DataFrame(X, columns=["a", "b", "c"]).to_parquet(tmp_path / "data.parquet")
    np.save(tmp_path / "data.npy", X)
    write(tmp_path / "bare.csv", X, None)
    for name, target in (("data.parquet", "b"), ("data.npy", "2"), ("bare.csv", "2")):
        table, names = read_table(tmp_path / name, target=target), {}
        exec(table.code, names)
        np.testing.assert_allclose(names["X"].to_numpy(), table.X)
        np.testing.assert_allclose(names["y"].to_numpy(), X[:, 1])


def test_the_code_of_a_vector_of_targets(tmp_path):
    np.savez(tmp_path / "data.npz", X=X, y=X[:, 1])
    table, names = read_table(tmp_path / "data.npz", target="y", drop=["2"]), {}
    exec(table.code, names)
    np.testing.assert_array_equal(names["X"].to_numpy(), X[:, [0, 2]])
    np.testing.assert_array_equal(names["y"], X[:, 1])
