"""Exceptions: one a status of linkwise.h."""

from typing import Dict, Type


class LinkwiseWarning(UserWarning):
    """A remark on inputs that were accepted: an unknown key, an assumption."""


class LinkwiseError(Exception):
    """What failed: where, what was expected, what was found.

    status is that of linkwise.h; exit_code is what the command line exits with.
    """

    status = 1
    exit_code = 1


class InvalidInput(LinkwiseError, ValueError):
    """Bad content, or a degree or batch that does not fit."""


class FileError(LinkwiseError, OSError):
    """A file cannot be read or written."""

    status = 2


class LibraryNotFound(FileError):
    """There is no liblinkwise.so that can be loaded; says where was looked."""


class OutOfMemory(LinkwiseError, MemoryError):
    """Of this process, not of a GPU."""

    status = 3


class UsageError(LinkwiseError, ValueError):
    """An argument that cannot be: an unknown word, a number out of range."""

    status = 4
    exit_code = 2


class NothingFits(LinkwiseError):
    """The inputs are right, but nothing fits in memory or the GPUs are not connected."""

    status = 5
    exit_code = 3


OF_STATUS: Dict[int, Type[LinkwiseError]] = {
    kind.status: kind for kind in (InvalidInput, FileError, OutOfMemory, UsageError, NothingFits)
}
