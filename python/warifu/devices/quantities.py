# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Times and rates as people type them; the core reads numbers and units (crates/core/model)."""

from __future__ import annotations

import re

from warifu import _core
from warifu._core import WarifuError
from warifu.devices.text import LONGEST_BYTE_NS, LONGEST_NS, number


class NotUnderstood(Exception):  # noqa: N818 - what happened, not what it is
    """A text that is no quantity; its text says what is expected."""


def spaced(text: str) -> str:
    """`45ms` with its space."""
    return re.sub(r"^\s*([\d.]+)\s*", r"\1 ", text).strip()


def call_ns(text: str) -> float:
    """`45 ms`, or `45ms`; more than nothing, in whole nanoseconds. Raises NotUnderstood."""
    try:
        value = _core.duration_ns(spaced(text))
    except WarifuError as error:
        raise NotUnderstood(str(error)) from None
    if not 0 < value <= LONGEST_NS:
        raise NotUnderstood('expected a time above 0, and of 1000 s at most, such as "45 ms"')
    return float(value)


def fine_ns(text: str) -> float:
    """A time that may be finer than a nanosecond, of an instruction or a byte: `0.8 ns`. Raises
    NotUnderstood."""
    expected = 'expected a time above 0, and of 100 ms at most, such as "0.8 ns"'
    amount, _, unit = spaced(text).partition(" ")
    value = number(amount)
    if value is None:
        raise NotUnderstood(expected)
    try:
        ns = value * _core.duration_ns(f"1 {unit}")
    except WarifuError:
        raise NotUnderstood(expected) from None
    if ns > LONGEST_BYTE_NS:
        raise NotUnderstood(expected)
    return ns


def byte_ns(text: str) -> float:
    """The time of a byte: from `1.2 MB/s`, or `830 ns/byte`. Raises NotUnderstood."""
    expected = 'expected a rate such as "1.2 MB/s" or "840 KiB/s"'
    words = spaced(text).strip()
    if words.endswith("/byte"):
        return fine_ns(words.removesuffix("/byte"))
    if not words.endswith("/s"):
        raise NotUnderstood(expected)
    amount, _, unit = words.removesuffix("/s").partition(" ")
    try:
        # A rate need not be whole bytes, as a size is.
        per_second = float(amount) * _core.byte_count(f"1 {unit}")
    except (ValueError, WarifuError) as error:
        raise NotUnderstood(f"{expected}: {error}") from None
    if not 0 < per_second < 1e15:
        raise NotUnderstood(expected)
    return _rated(1e9 / per_second, expected)


def _rated(ns: float, expected: str) -> float:
    if ns > LONGEST_BYTE_NS:
        raise NotUnderstood(f"{expected}, and 10 B/s at least")
    return ns


def clock_hz(text: str) -> int:
    """`64 MHz`, or `64MHz`. Raises NotUnderstood."""
    try:
        return round(_core.clock_hz(spaced(text)))
    except WarifuError as error:
        raise NotUnderstood(str(error)) from None


def size(text: str) -> int:
    """`256 KiB`, or `256KiB`, in B; more than nothing. Raises NotUnderstood."""
    try:
        value = int(_core.byte_count(spaced(text)))
    except WarifuError as error:
        raise NotUnderstood(str(error)) from None
    if value <= 0:
        raise NotUnderstood('expected a size above 0, such as "256 KiB"')
    return value
