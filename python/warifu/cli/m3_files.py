# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What `warifu m3` reads and writes beside the program: files that must not be one another, console
input, and where a program's output goes."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import typer

from warifu.printable import printable

#: Bytes of console input at most.
MAX_INPUT_BYTES = 64_000_000


def refuse_inputs(
    elf: Path, chip: str, input_file: Path | None, outputs: dict[str, Path | None]
) -> None:
    """What is written must not be what is read, nor two outputs be one file."""
    from warifu.files import FileRefused, refuse_same, refuse_to_replace

    read = [elf, *([Path(chip)] if chip.endswith(".toml") else [])]
    read += [] if input_file is None or str(input_file) == "-" else [input_file]
    given = [(name, path) for name, path in outputs.items() if path is not None]
    for index, (name, path) in enumerate(given):
        if name == "--trace" and str(path) == "-":
            continue
        for other, before in given[:index]:
            if path.absolute() == before.absolute():
                raise typer.BadParameter(f"{other} and {name} are one file: name another one")
        try:
            refuse_same(path, read)
            if name not in ("--trace", "--out"):
                refuse_to_replace(path)
        except FileRefused as error:
            raise FileRefused(f"{name} {error}") from None


def where(file: Path) -> str:
    """A file as messages name it."""
    return "stdout" if str(file) == "-" else str(file)


def console_input(path: Path) -> bytes:
    """A program's console input: a file, or `-` for stdin."""
    from warifu import WarifuError
    from warifu.files import read_bytes

    if str(path) != "-":
        return read_bytes(path, MAX_INPUT_BYTES)
    text = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
    if len(text) > MAX_INPUT_BYTES:
        raise WarifuError(
            f"--input -: stdin has more than {MAX_INPUT_BYTES:,} bytes, the most that is read: "
            "shorten it"
        )
    return text


def writer_to(stream: TextIO) -> Callable[[bytes], object]:
    """Writes a program's output, which may be binary, to a stream as it is printed."""

    def take(printed: bytes) -> None:
        stream.flush()
        stream.buffer.write(printed)
        stream.buffer.flush()

    return take


def shown_on(stream: TextIO) -> Callable[[bytes], object]:
    """The same beside figures of the program: a terminal gets text that it does not obey."""
    if not stream.isatty():
        return writer_to(stream)
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def take(printed: bytes) -> None:
        text = decoder.decode(printed).replace("\r\n", "\n")
        stream.write(printable(text, keep="\n\t"))
        stream.flush()

    return take
