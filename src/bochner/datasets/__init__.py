"""Data sets by name, and tables from your own files.

`load` returns embedded data, or reads a file from the folder given by the environment variable ``BOCHNER_DATA``, or
downloads it, in this order.  `read_table` reads a CSV, NPZ or Parquet file; its errors name the row and the column.
"""

from ._entries import Dataset, Text, names
from ._load import load
from ._raw_table import TableError
from ._read_table import Table, read_table

__all__ = ["Dataset", "Table", "TableError", "Text", "load", "names", "read_table"]
