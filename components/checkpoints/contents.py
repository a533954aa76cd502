"""What a file of a checkpoint may be, by its name and by its content: an allow-list."""

from __future__ import annotations

import pickletools
import re
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path

from components.errors import InputError
from components.files import os_errors, read_json
from components.opening import open_regular, read_regular

PICKLED = frozenset({".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib"})
CODE = frozenset({".py", ".pyc", ".so", ".sh", ".exe", ".dll", ".dylib", ".ipynb"})
PLAIN = frozenset({".txt", ".md", ".jinja", ".metadata", ".lock", ".tag"})
"""The last three are what `hf download` leaves next to the files."""
PICTURES = {".png": b"\x89PNG\r\n\x1a\n", ".jpg": b"\xff\xd8\xff", ".jpeg": b"\xff\xd8\xff"}
"""Of a model card, by how they begin."""
NAMES = re.compile(
    r"(licen[cs]e|notice|copying|readme|use_policy)([-._].*)?|\.gitattributes|\.gitignore", re.IGNORECASE
)
"""Files that are text whatever their ending."""

_ZIP, _PICKLE_PROTOCOLS = b"PK\x03\x04", tuple(bytes((0x80, protocol)) for protocol in range(2, 6))
_PROGRAMS = {b"#!": "a script", b"\x7fELF": "a program", b"MZ": "a program", b"\xca\xfe\xba\xbe": "a program"}
_CALLS = frozenset({"REDUCE", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "BUILD"})
_GLOBAL = re.compile(r"[A-Za-z_][\w.]* [A-Za-z_][\w.]*")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]")
_LOOKED_AT = 2**20
"""Bytes at the beginning of a file in which it must have shown that it is no pickle; text does so in the first few."""


def check_kind(file: Path) -> None:
    """Refuse a file whose kind or content can run code, whatever it is called.

    Raises:
        InputError: a pickle, an archive, a program; or a kind of file that no checkpoint needs.
    """
    suffix = file.suffix.lower()
    if suffix in PICKLED:
        raise _refusal(f"a {suffix} file can hold a pickle, which runs code when it is loaded", file, "use safetensors")
    if suffix in CODE:
        raise _refusal("a checkpoint must not bring code", file, "use an architecture that transformers knows")
    with os_errors("read", file), open_regular(file) as stream:
        start, more = stream.read(_LOOKED_AT), bool(stream.read(1))
    if suffix != ".safetensors" and (start.startswith((_ZIP, *_PICKLE_PROTOCOLS)) or _calls(start, more)):
        raise _refusal("a pickle under another name", file, "use safetensors")
    program = next((name for magic, name in _PROGRAMS.items() if start.startswith(magic)), None)
    if program and suffix != ".safetensors":
        raise _refusal(f"{program} under another name", file, "take it out: a checkpoint must not bring code")
    if _reader(file) is None:
        kinds = "safetensors, json, txt, md, jinja, model (SentencePiece), a license"
        raise _refusal(
            f"a kind of file that no checkpoint needs; it may hold {kinds}", file, "take it out of the folder"
        )


def check_content(file: Path) -> None:
    """Refuse a file that is not what its name says.

    Raises:
        InputError: JSON that does not parse, text that is none, a SentencePiece model or a picture that is none.
    """
    if reader := _reader(file):
        reader(file)


def _reader(file: Path) -> Callable[[Path], object] | None:
    """How a file of an allowed kind is looked into; None for any other kind."""
    if NAMES.fullmatch(file.name):
        return _check_text
    return READERS.get(file.suffix.lower())


def _refusal(what: str, where: Path, how: str) -> InputError:
    return InputError(what, where=where, how=how)


def _calls(start: bytes, more: bool) -> bool:
    """Whether an unpickler would look something up and call it before it noticed that this is no pickle.

    With ``more`` behind ``start``, what reads as a pickle to the end of it may still do so.
    """
    marks, found, stream = 0, False, BytesIO(start)
    try:
        for opcode, argument, _ in pickletools.genops(stream):
            if opcode.name == "MARK":
                marks += 1
            named = opcode.name in ("GLOBAL", "INST") and isinstance(argument, str) and _GLOBAL.fullmatch(argument)
            found = found or bool(named) or opcode.name == "STACK_GLOBAL"
            if found and opcode.name in _CALLS and (opcode.name != "INST" or marks):
                return True
    except Exception:  # the library says nothing about what it raises, and any of it means: no pickle up to here
        return more and stream.tell() == len(start)
    return False


def _check_text(file: Path) -> None:
    """UTF-8 without characters that control anything."""
    data = read_regular(file)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise _refusal(f"not plain text (byte {error.start})", file, "save it as UTF-8, or take it out") from error
    if strange := _CONTROL.search(text):
        raise _refusal(f"not plain text: it holds {strange[0]!r}", file, "save it as UTF-8, or take it out")


def _check_picture(file: Path) -> None:
    magic = PICTURES[file.suffix.lower()]
    with os_errors("read", file), open_regular(file) as stream:
        if stream.read(len(magic)) != magic:
            raise _refusal("not the picture that its name says", file, "take it out of the folder")


def _check_sentencepiece(file: Path) -> None:
    """A protobuf message whose fields add up to the file, the first of them the pieces."""
    data = read_regular(file)
    try:
        fields = _protobuf_fields(data)
    except (IndexError, ValueError):
        fields = []
    if not fields or fields[0] != (1, 2):
        raise _refusal("not a SentencePiece model", file, "save the tokenizer again, or take it out of the folder")


def _protobuf_fields(data: bytes) -> list[tuple[int, int]]:
    """Number and wire type of every field of a message; raises ValueError or IndexError where it is none."""
    fields, at = [], 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            _, at = _varint(data, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        elif kind == 2:
            length, at = _varint(data, at)
            at += length
        else:
            raise ValueError("no such wire type")
        if not number or at > len(data):
            raise ValueError("a field beyond the end")
        fields.append((number, kind))
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, at, shift = value | (byte & 0x7F) << shift, at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number too long")


READERS: dict[str, Callable[[Path], object]] = {
    ".safetensors": lambda file: None,  # its header is read with the names of the tensors
    ".json": partial(read_json, how="save the checkpoint again"),
    ".model": _check_sentencepiece,
    **dict.fromkeys(PLAIN, _check_text),
    **dict.fromkeys(PICTURES, _check_picture),
}
"""The kinds of files that there may be."""
