"""Numba kernels on *lanes*: sixteen rows of data side by side, so that every step works on whole vectors.

A tile of data is stored as ``lanes`` of shape (groups, capacity, 16): group g holds sixteen rows of the input,
transposed, one coordinate to a line of sixteen.  A transform along the coordinates is then the same few operations
on every line, with no shuffling inside a vector.  Each function here has its readable counterpart in
`bochner.linalg.references`; tests hold one to the other.

Nothing here draws or decides; everything releases the GIL and is compiled on first use, cached on disk.
"""
