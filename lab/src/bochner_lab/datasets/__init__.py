"""Data sets by name: embedded ones, files of a folder, and downloads.

`load` returns embedded data, or reads a file from the folder given by the environment variable ``BOCHNER_DATA``, or
downloads it, in this order.  `names` are all of them, and `facts` says where each comes from and whether it is here.
"""

from ._entries import Dataset, Recordings, Sentences, Text, names
from ._facts import Facts, facts, fetch
from ._load import load

__all__ = ["Dataset", "Facts", "Recordings", "Sentences", "Text", "facts", "fetch", "load", "names"]
