"""Tables from your own files, and the small data sets of scikit-learn by name.

`read_table` reads a CSV, NPZ or Parquet file; its errors name the row and the column.  `embedded` returns one of the data
sets on which the command line shows what it does.
"""

from ._embedded import EMBEDDED, embedded
from ._raw_table import TableError
from ._read_table import Table, read_table

__all__ = ["EMBEDDED", "Table", "TableError", "embedded", "read_table"]
