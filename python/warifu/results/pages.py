# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a Parquet file takes once it is decompressed: known before any of it is.

A hundred megabytes of one letter are a few kilobytes of zstd, and what the footer says of a column
binds no reader: each page says again how long it is and how many values it holds. So the footer is
held against what observations take, and the header of each page against the footer. Polars gives
out neither; the format is that of parquet.thrift in Thrift's compact protocol
(thrift-compact-protocol.md of Apache Thrift), of which only what is asked for is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

#: Bytes of a column beside those of its rows: twice a dictionary, which writers end at 1 MiB, and
#: the headers of pages.
_COLUMN_BYTES = 4 << 20
#: Bytes of a row in a column: the longest texts, of which few rows have their own, and an index.
_ROW_BYTES = 256
#: Bytes of a file's columns together: those of five million observations have 120 MB.
MOST_BYTES = 400 << 20
#: The footer's own length: a column of a row group has some 200 bytes.
MOST_FOOTER = 8 << 20
_MAGIC = b"PAR1"
#: Longer than any header without the page's smallest and largest value, which may be long.
_HEADER_BYTES = 64 << 10
#: Of `Encoding`: a text of it may begin as the text before, however long that is.
_DELTA_BYTE_ARRAY = 7
_DEPTH = 16

_STOP, _TRUE, _FALSE, _BYTE, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = (
    0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 12,
)  # fmt: skip

#: What is kept of a structure: the numbers of its fields, and what is kept of theirs.
_Kept = dict[int, Any]
#: FileMetaData: row groups; RowGroup: columns, number of rows; ColumnChunk: file, metadata;
#: ColumnMetaData: path, values, bytes without and with compression, where the data and the
#: dictionary are.
_FOOTER: _Kept = {
    4: {1: {1: None, 3: {3: None, 5: None, 6: None, 7: None, 9: None, 11: None}}, 3: None}
}
#: PageHeader: type, bytes without and with compression; the headers of data pages and of
#: dictionaries: values, encoding.
_DATA: _Kept = {1: None, 2: None}
_PAGE: _Kept = {1: None, 2: None, 3: None, 5: _DATA, 7: _DATA, 8: {1: None, 4: None}}


class PagesRefused(Exception):  # noqa: N818 - what happened, not what it is
    """Why a file is not decompressed: a verb and what it was about."""


@dataclass(frozen=True)
class _Chunk:
    """A column of a row group."""

    name: str
    values: int
    bytes: int
    start: int
    length: int


def refuse_large(file: BinaryIO) -> int:
    """How many bytes a file takes without compression, for `MOST_BYTES`; nothing is decompressed.

    Raises PagesRefused for a file whose columns take more than its rows give, or whose pages hold
    more than its footer says."""
    try:
        total = 0
        rows: dict[str, int] = {}
        sizes: dict[str, int] = {}
        for count, chunk in _chunks(file):
            rows[chunk.name] = rows.get(chunk.name, 0) + count
            sizes[chunk.name] = sizes.get(chunk.name, 0) + chunk.bytes
            total += chunk.bytes
            _check_pages(file, chunk)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise PagesRefused(f"cannot be read (its Parquet structure is damaged: {error})") from None
    for name, size in sizes.items():
        most = rows[name] * _ROW_BYTES + _COLUMN_BYTES
        if size > most:
            raise PagesRefused(
                f"takes {size:,} bytes in the column {name} once it is decompressed, and {most:,} "
                f"are the most for {rows[name]:,} rows"
            )
    return total


def _chunks(file: BinaryIO) -> Iterator[tuple[int, _Chunk]]:
    """Each column of each row group with the group's number of rows."""
    end = file.seek(0, 2)
    file.seek(max(0, end - 8))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or length > end - 12:
        raise PagesRefused("cannot be read (it does not end as a Parquet file)")
    if length > MOST_FOOTER:
        raise PagesRefused(
            f"has a footer of {length:,} bytes, and {MOST_FOOTER:,} are the most that is read"
        )
    file.seek(end - 8 - length)
    for group in _Reader(file.read(length)).structure(_FOOTER).get(4, []):
        for column in group[1]:
            if 1 in column:
                raise PagesRefused("has columns in another file, which is not read")
            about = column[3]
            name = b".".join(about[3]).decode("utf-8", "replace")
            # A dictionary comes first, where there is one.
            start = about[11] if about.get(11) else about[9]
            chunk = _Chunk(name, about[5], about[6], start, about[7])
            if min(chunk.values, chunk.bytes, start, chunk.length, group[3]) < 0:
                raise ValueError("a negative number")
            if len(about[3]) == 1 and chunk.values != group[3]:
                raise PagesRefused(
                    f"has {chunk.values:,} values in the column {name} of {group[3]:,} rows"
                )
            yield group[3], chunk


def _check_pages(file: BinaryIO, chunk: _Chunk) -> None:
    """Raises PagesRefused unless the pages of a column hold what the footer says."""
    at, end = chunk.start, chunk.start + chunk.length
    values = size = 0
    while at < end:
        file.seek(at)
        reader = _Reader(file.read(min(_HEADER_BYTES, end - at)))
        page = reader.structure(_PAGE)
        if min(page[2], page[3]) < 0:
            raise ValueError("a page of negative length")
        size += page[2] + reader.at
        at += reader.at + page[3]
        data = page.get(5) or page.get(8)
        if data is not None:
            values += data[1]
            if data.get(2, data.get(4)) == _DELTA_BYTE_ARRAY:
                raise PagesRefused(
                    f"has the encoding DELTA_BYTE_ARRAY in the column {chunk.name}, of which "
                    "nobody knows how long its texts are before they are read"
                )
        if size > chunk.bytes or values > chunk.values:
            raise PagesRefused(
                f"has pages of {size:,} bytes and {values:,} values in the column {chunk.name}, "
                f"and its footer says {chunk.bytes:,} and {chunk.values:,}"
            )


class _Reader:
    """Structures of Thrift's compact protocol."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def structure(self, kept: _Kept | None, depth: int = 0) -> dict[int, Any]:
        """What is kept of the structure that begins here, by the number of the field."""
        if depth > _DEPTH:
            raise ValueError("structures within structures")
        found: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != _STOP:
            kind = head & 15
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            wanted = kept is not None and number in kept
            inner = kept[number] if kept is not None and wanted else None
            if kind in (_TRUE, _FALSE):
                value: Any = kind == _TRUE
            else:
                value = self._value(kind, inner, depth + 1)
            if wanted:
                found[number] = value
        return found

    def _value(self, kind: int, kept: _Kept | None, depth: int) -> object:
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind <= _I64:
            return self._zigzag()
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind in (_LIST, _SET):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            return [self._value(head & 15, kept, depth + 1) for _ in range(self._few(count))]
        if kind == _MAP:
            count = self._few(self._varint())
            kinds = self._byte() if count else 0
            for _ in range(count):
                self._value(kinds >> 4, None, depth + 1)
                self._value(kinds & 15, None, depth + 1)
            return None
        if kind == _STRUCT:
            return self.structure(kept, depth)
        raise ValueError(f"type {kind}")

    def _few(self, count: int) -> int:
        """A count of elements, each of which has a byte at least."""
        if count > len(self.content) - self.at:
            raise ValueError("a list that is longer than the file")
        return count

    def _byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def _bytes(self, length: int) -> bytes:
        self._few(length)
        self.at += length
        return self.content[self.at - length : self.at]

    def _varint(self) -> int:
        value = shift = 0
        while shift < 70:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
        raise ValueError("a number of more than 64 bits")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
