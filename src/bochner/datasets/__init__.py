"""Data sets by name, and tables of the user's own.

`load` looks for embedded data first, then in the folder that the environment variable ``BOCHNER_DATA`` names, and
downloads last.  `read_table` reads a CSV, NPZ or Parquet file, and explains what is wrong with it by row and column.
"""

from ._entries import Dataset, Text, names
from ._file_formats import TableError
from ._load import load
from ._read_table import Table, read_table

__all__ = ["Dataset", "Table", "TableError", "Text", "load", "names", "read_table"]
