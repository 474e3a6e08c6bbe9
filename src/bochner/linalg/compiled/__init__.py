"""Numba kernels on *lanes*: sixteen rows of data side by side, so that every step works on whole vectors.

A tile of data is stored as ``lanes`` of shape (groups, capacity, 16): group g holds sixteen rows of the input,
transposed, one coordinate per line of sixteen.  A transform along the coordinates is then the same few operations on
every line, without shuffling inside a vector.  Each function here has a readable counterpart in
`bochner.linalg.references`, against which it is tested.

Nothing here draws random numbers.  All functions release the GIL, are compiled on first use and cached on disk.
"""
