# SPDX-License-Identifier: Apache-2.0 OR MIT
"""JSON read into frozen dataclasses by their types; a mistake names its key.

What the types can say: dataclasses, `tuple[T, ...]`, `T | None`, `Literal`, unions of dataclasses
that a `Literal` field of theirs tells apart, and plain values.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import types
import typing
from collections.abc import Hashable
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from warifu.printable import clipped

T = TypeVar("T")


class JsonError(ValueError):
    """JSON of another shape; the text names the key and says what was expected."""


def read(kind: type[T], value: object, key: str = "") -> T:
    """A value of JSON as a `kind`, a dataclass. `key` is where it stands, for mistakes."""
    return typing.cast("T", _read(kind, value, key))


def _read(kind: object, value: object, key: str) -> object:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        if value not in arguments:
            raise _mistake(key, value, " or ".join(map(repr, arguments)))
        return value
    if origin in (Union, types.UnionType):
        return _one_of(arguments, value, key)
    if origin is tuple:
        if not isinstance(value, list):
            raise _mistake(key, value, "a list")
        return tuple(_read(arguments[0], one, f"{key}[{place}]") for place, one in enumerate(value))
    if dataclasses.is_dataclass(kind):
        return _dataclass(typing.cast("type[Any]", kind), value, key)
    # A bool is an int to Python, but not to JSON.
    if kind is float and type(value) in (int, float):
        try:
            return float(typing.cast("float", value))
        except OverflowError:
            raise _mistake(key, value, f"at most {sys.float_info.max:g}") from None
    if type(value) is not kind:
        raise _mistake(key, value, getattr(kind, "__name__", str(kind)))
    return value


def _one_of(kinds: tuple[object, ...], value: object, key: str) -> object:
    if value is None and type(None) in kinds:
        return None
    others = [typing.cast("type[Any]", kind) for kind in kinds if kind is not type(None)]
    if len(others) == 1:
        return _read(others[0], value, key)
    found, tag = _object(value, key), ""
    expected: list[str] = []
    for kind in others:
        tag, words = _tag(kind)
        if found.get(tag) in words:
            return _read(kind, value, key)
        expected += map(repr, words)
    raise _mistake(_joined(key, tag), found.get(tag), " or ".join(expected))


def _dataclass(kind: type[Any], value: object, key: str) -> object:
    given = _object(value, key)
    fields = {field.name: field for field in dataclasses.fields(typing.cast("Any", kind))}
    if unknown := [name for name in given if name not in fields]:
        raise JsonError(
            f"{_joined(key, clipped(unknown[0]))} is unknown: expected {', '.join(fields)}"
        )
    found = {}
    for name, hint in _hints(typing.cast("Hashable", kind)).items():
        if name in given:
            found[name] = _read(hint, given[name], _joined(key, name))
        elif fields[name].default is dataclasses.MISSING:
            raise JsonError(f"{_joined(key, name)} is missing")
    return kind(**found)


def _object(value: object, key: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise _mistake(key, value, "an object")
    return value


def _tag(kind: type[Any]) -> tuple[str, tuple[object, ...]]:
    """The field that tells a dataclass from the others of a union, and its words."""
    hints = _hints(typing.cast("Hashable", kind)).items()
    return next((name, get_args(hint)) for name, hint in hints if get_origin(hint) is Literal)


@functools.cache
def _hints(kind: Hashable) -> dict[str, Any]:
    """The types of a dataclass's fields, with the names in them resolved."""
    return typing.get_type_hints(kind)


def _mistake(key: str, value: object, expected: str) -> JsonError:
    return JsonError(f"{key or 'the value'} is {clipped(repr(value))}: expected {expected}")


def _joined(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name
