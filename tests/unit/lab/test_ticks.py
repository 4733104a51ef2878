# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Where the kernel's ticks lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from warifu.lab import ticks
from warifu.results.parts import Ticks

JIFFIES = 4_296_026_590


@pytest.mark.parametrize(
    ("hz", "length_ns"), [(100, 10_000_000), (250, 4_000_000), (300, 3_333_333), (1_000, 1_000_000)]
)
def test_the_length_of_a_tick_comes_from_two(hz: int, length_ns: int) -> None:
    # The second was seen some microseconds after it began.
    second = (JIFFIES + 20, 10**12 + 20 * 10**9 // hz + 6_000)
    assert ticks.between((JIFFIES, 10**12), second) == Ticks(length_ns, *second)


@pytest.mark.parametrize("second", [(JIFFIES + 12, 10**12 + 44_000_000), (JIFFIES, 10**12)])
def test_of_a_tick_that_was_read_while_it_began_nothing_is_told(second: tuple[int, int]) -> None:
    assert ticks.between((JIFFIES, 10**12), second) is None


@pytest.mark.parametrize("text", ["", "jiffies: 7\njiffies: 8\n", "jiffies: -3\n", "\xff"])
def test_a_kernel_that_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "timer_list").write_text(text, "latin-1")
    monkeypatch.setattr(ticks, "_TIMER_LIST", tmp_path / "timer_list")
    assert ticks.read() is None
    monkeypatch.setattr(ticks, "_TIMER_LIST", tmp_path / "absent")
    assert ticks.read() is None
