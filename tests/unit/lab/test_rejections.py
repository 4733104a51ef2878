# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a measurement says of the attempts that were rejected: one line, with causes and counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from warifu import lab
from warifu.cli import halves
from warifu.lab.measure import Summary, causes

LATE = (
    "{} % of packets were more than 500 us late, 0.100 % are allowed: measure on a quieter machine"
)
DROPPED = "{} packets were dropped before the link could read them: send less, or free a processor"
BUSY = "others took {}% of the processors, 5.0% are allowed"


def test_causes_are_counted_whatever_their_figures() -> None:
    reasons = [
        LATE.format("0.512"),
        f"{LATE.format('1.250')}; {DROPPED.format('3')}",
        BUSY.format("7.1"),
        BUSY.format("12.0"),
        LATE.format("0.300"),
        # Both directions lost packets: one attempt.
        f"{DROPPED.format('9')}; {DROPPED.format('2')}",
    ]
    assert list(causes(reasons).items()) == [
        ("packets were more than 500 us late", 3),
        ("others took the processors", 2),
        ("packets were dropped before the link could read them", 2),
    ]


def test_all_rejections_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    reasons = [LATE.format(f"0.{n}") for n in range(101, 131)] + [BUSY.format("7.1")]
    summary = Summary(tmp_path, "run", rejections=len(reasons), causes=causes(reasons))
    monkeypatch.setattr(halves, "_measure", lambda *_: summary)
    halves.measure(None, tmp_path)  # type: ignore[arg-type]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "31 attempts at parts were rejected unseen (30: packets were more than 500 us late; "
        "1: others took the processors); each is in "
    )


def test_nothing_is_said_where_nothing_was_rejected(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(halves, "_measure", lambda *_: lab.Summary(tmp_path, "run"))
    halves.measure(None, tmp_path)  # type: ignore[arg-type]
    assert capsys.readouterr().err == ""
