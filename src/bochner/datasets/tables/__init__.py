"""Tables of numbers in the user's files, read with errors that name the row and the column."""

from .reading import read_table
from .table import Table, TableError

__all__ = ["Table", "TableError", "read_table"]
