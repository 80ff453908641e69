"""liblinkwise.so: found, loaded at the first use, and called.

Calls release the interpreter's lock (ctypes).
"""

import ctypes
import functools
import json
import operator
import os
import warnings
import weakref
from ctypes import Array, byref, c_char, c_char_p, c_double, c_int, c_size_t, c_void_p
from dataclasses import fields
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Type

from .errors import OF_STATUS, InvalidInput, LibraryNotFound, LinkwiseWarning, UsageError

NAME = "liblinkwise.so.0"

# Of functions that return something else than a status.
RETURNS: Dict[str, Any] = {
    "linkwise_version": c_char_p,
    "linkwise_notes_create": c_void_p,
    "linkwise_notes_at": c_char_p,
    "linkwise_gpu_type_at": c_char_p,
    "linkwise_model_preset_at": c_char_p,
    "linkwise_launcher_at": c_char_p,
    "linkwise_model_name": c_char_p,
    "linkwise_model_parameters": c_double,
}


def candidates() -> Iterator[str]:
    """Where the library may be: LINKWISE_LIBRARY alone where it is set; else beside the package
    (a wheel), build/ of a source tree, and where the system's loader looks."""
    said = os.environ.get("LINKWISE_LIBRARY")
    if said:
        yield said
        return
    package = Path(__file__).resolve().parent
    yield str(package / NAME)
    yield str(package.parent.parent / "build" / NAME)
    yield NAME


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """The library, loaded once.  Raises LibraryNotFound."""
    tried: List[str] = []
    for path in candidates():
        try:
            lib = ctypes.CDLL(path)
            for name, kind in RETURNS.items():
                getattr(lib, name).restype = kind
            return lib
        except (OSError, AttributeError) as why:
            tried.append(str(why))
    raise LibraryNotFound(
        f"no {NAME} can be loaded: {'; '.join(tried)}; build it (make), install it, or say "
        "where it is in LINKWISE_LIBRARY"
    )


def version() -> str:
    """ "0.1.0": of the library."""
    return str(library().linkwise_version().decode())


class CError(ctypes.Structure):
    """struct linkwise_error."""

    _fields_ = [("text", c_char * 2048)]


def call(function: str, *arguments: Any) -> None:
    """Call a function that takes an error last.  Raises the exception of its status."""
    error = CError()
    status = getattr(library(), function)(*arguments, byref(error))
    if status:
        raise OF_STATUS[status](error.text.decode(errors="replace"))


def call_noting(function: str, *arguments: Any) -> List[str]:
    """Call a function that takes notes and an error last.  Gives its notes."""
    lib = library()
    notes = c_void_p(lib.linkwise_notes_create())
    try:
        call(function, *arguments, notes)
        n = lib.linkwise_notes_count(notes)
        return [lib.linkwise_notes_at(notes, i).decode(errors="replace") for i in range(n)]
    finally:
        lib.linkwise_notes_destroy(notes)


def warn(notes: List[str], stacklevel: int = 3) -> None:
    """Warn of each at the caller's caller."""
    for line in notes:
        warnings.warn(line, LinkwiseWarning, stacklevel=stacklevel)


class Handle(c_void_p):
    """A C object, destroyed with the last reference to this: a call that has it keeps it."""


def create(kind: str, function: str, *arguments: Any) -> Tuple[Handle, List[str]]:
    """Call a function that creates an object of a kind ("plan").  Gives it, and the notes."""
    pointer = c_void_p()
    notes = call_noting(function, *arguments, byref(pointer))
    handle = Handle(pointer.value)
    weakref.finalize(handle, getattr(library(), f"linkwise_{kind}_destroy"), pointer)
    return handle, notes


# ---- values as C takes them; what it would cut off or take for another is a UsageError ----


def text(word: Any, what: str = "a text without NUL") -> bytes:
    """A str or a path, which says `what`."""
    try:
        data = os.fsencode(word)
    except (TypeError, UnicodeError):
        data = b"\0"
    if b"\0" in data:
        raise UsageError(f"expected {what}, found {word!r}")
    return data


def optional(word: Any) -> Optional[bytes]:
    """The same; None is NULL."""
    return None if word is None else text(word)


def json_text(document: Any, what: str, allow_nan: bool = False) -> bytes:
    """A document as JSON, which has neither NaN nor infinity; a model's may have them."""
    try:
        words = json.dumps(document, allow_nan=allow_nan)
    except (TypeError, ValueError) as why:
        raise InvalidInput(f"{what}: {why}") from why
    return text(words)


def integer(value: Any, what: str, kind: Any = c_int) -> int:
    """Within what kind holds: ctypes drops the bits above."""
    try:
        number = operator.index(value)
    except TypeError as why:
        raise UsageError(f"{what}: expected an integer, found {value!r}") from why
    if kind(number).value != number:
        bits = 8 * ctypes.sizeof(kind)
        raise UsageError(f"{what}: expected an integer of {bits} bits, found {number}")
    return number


def integers(values: Iterable[Any], what: str) -> "Array[c_int]":
    """An int[]."""
    numbers = [integer(value, what) for value in several(values, what)]
    return (c_int * len(numbers))(*numbers)


def several(values: Any, what: str) -> List[Any]:
    """A list of what an iterable has."""
    try:
        return list(values)
    except TypeError as why:
        raise UsageError(f"{what}: expected several, found {values!r}") from why


def text_of(function: str, pointer: c_void_p) -> str:
    """What a function writes that hands over a text."""
    out = c_void_p()
    call(function, pointer, byref(out))
    try:
        return (ctypes.cast(out, c_char_p).value or b"").decode()
    finally:
        library().linkwise_free(out)


def listed(function: str) -> List[str]:
    """Names that a function gives by their number."""
    names: List[str] = []
    name = getattr(library(), function)(0)
    while name is not None:
        names.append(name.decode())
        name = getattr(library(), function)(len(names))
    return names


# ---- structs, which are dataclasses here: the same members in the same order ----

C_TYPES = {
    "int": c_int,
    "Optional[int]": c_int,
    "float": c_double,
    "bool": ctypes.c_bool,
    "Optional[str]": c_char_p,
    "Optional[Sequence[int]]": ctypes.POINTER(c_int),
}


@functools.lru_cache(maxsize=None)
def structure(kind: Any) -> Type[ctypes.Structure]:
    """The C struct of a dataclass: its size, the members, and what the class names as `more`."""
    members = [(f.name, f.metadata.get("c", C_TYPES[str(f.type)])) for f in fields(kind)]
    more = getattr(kind, "MORE", [])
    body = {"_fields_": [("size", c_size_t), *members, *more]}
    return type(kind.__name__, (ctypes.Structure,), body)


def fresh(kind: Any) -> Any:
    """A struct of zeros that has its size."""
    struct = structure(kind)
    return struct(ctypes.sizeof(struct))


def _member(values: Any, f: Any) -> Any:
    """A dataclass's member for its struct.  None is LINKWISE_FREE, which no number is."""
    value, kind = getattr(values, f.name), str(f.type)
    if kind == "Optional[int]" and value is None:
        return -1
    if kind in ("int", "Optional[int]"):
        value = integer(value, f.name, f.metadata.get("c", c_int))
        if kind == "Optional[int]" and value < 0:
            raise UsageError(f"{f.name}: expected None or 0 and more, found {value}")
    elif kind == "Optional[str]":
        return optional(value)
    elif kind == "Optional[Sequence[int]]" and value is not None:
        value = integers(value, f.name)
        per = f.metadata["per"]
        n = getattr(values, per) or 1
        if len(value) != n:
            raise UsageError(f"{f.name}: expected {n}, as {per} says, found {len(value)}")
    return value


def to_struct(kind: Any, values: Any) -> Any:
    """A dataclass of this kind as its struct."""
    if not isinstance(values, kind):
        raise UsageError(f"expected a linkwise.{kind.__name__}, found {values!r}")
    struct = fresh(kind)
    for f in fields(kind):
        value = _member(values, f)
        try:
            if value is not None:
                setattr(struct, f.name, value)
        except (TypeError, OverflowError) as why:
            raise UsageError(f"{f.name}: {why}") from why
    return struct


def from_struct(kind: Type[Any], struct: Any) -> Any:
    """The other way."""
    values = (getattr(struct, f.name) for f in fields(kind))
    return kind(*(v.decode(errors="replace") if isinstance(v, bytes) else v for v in values))
