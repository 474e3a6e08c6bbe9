"""Writing a file as a whole: whoever reads it finds the old one or the new one, after a crash or a power failure too."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO


def write_whole(owner: str, path: str | os.PathLike[str], write: Callable[[IO[bytes]], object]) -> None:
    """Replace a file once its new content is complete and on the disk.

    A link stays a link, and the file that it points to is replaced.  An existing file keeps its mode, a new one has that
    of the umask.

    Parameters
    ----------
    owner : str
        The method to name in an error.
    path : str or path
        Where to write.
    write : function of a binary file
        Writes the content.
    """
    target = Path(os.path.realpath(path))
    mode = None
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(target).st_mode
        if not stat.S_ISREG(found):
            raise ValueError(
                f"{owner}: expected a path to a file, got {os.fspath(path)!r}, which is not a regular file."
            )
        mode = stat.S_IMODE(found)
    with _temporary_beside(target) as (file, temporary):
        write(file)
        file.flush()
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())  # else the name may reach the disk before the content
        if not os.path.exists(temporary):
            # with a descriptor, which an absolute path does not need, Python calls linkat, and that follows the link
            os.link(f"/proc/self/fd/{file.fileno()}", temporary, src_dir_fd=file.fileno())
        file.close()
        os.replace(temporary, target)
    _sync_folder(target.parent)


@contextlib.contextmanager
def _temporary_beside(target: Path) -> Iterator[tuple[IO[bytes], str]]:
    """A new file in the folder of the target, and the name by which it can be moved there.

    On Linux it has no name while it is written, so that a process that is killed leaves nothing behind.
    """
    name = str(target.parent / f".{target.name}.{secrets.token_hex(6)}")
    try:
        try:
            handle = os.open(target.parent, os.O_TMPFILE | os.O_WRONLY, 0o666)
            if not os.path.exists(f"/proc/self/fd/{handle}"):
                os.close(handle)
                raise OSError("no /proc to name the file by")
        except (AttributeError, OSError):  # another system, or a file system without files that have no name
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
            handle = os.open(name, flags, 0o666)
        with os.fdopen(handle, "wb") as file:
            yield file, name
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def _sync_folder(folder: Path) -> None:
    """Have the new name on the disk; systems on which a folder cannot be opened do that by themselves."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
