# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a measurement says of the attempts that were rejected: one line, with causes and counts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.paths import ROOT
from warifu import lab
from warifu.cli import halves
from warifu.lab import causes
from warifu.lab.causes import Cause
from warifu.lab.measure import Summary

LATE = (
    "{} % of packets were more than 500 us late, 0.100 % are allowed: measure on a quieter machine"
)
DROPPED = "{} packets were dropped before the link could read them: send less, or free a processor"
BUSY = "others took {}% of the processors, 5.0% are allowed"
FULL = "{} packets found no room in the pool: limit the rate with a queue, or shorten the delay"
REFUSED = "{} packets were refused by the receiving device: keep it up while measuring"
LONG = "{} packets were longer than the MTU: set it in the configuration, not on the device"


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
    assert list(causes.counted(reasons).items()) == [
        ("packets were too late", 3),
        ("other programs took too much of the processors", 2),
        ("packets were dropped before the link could read them", 2),
    ]


@pytest.mark.parametrize(
    ("reason", "cause", "is_busy"),
    [
        (LATE.format("0.512"), Cause.LATE, True),
        (f"{LATE.format('0.512')}, or send less, and as root", Cause.LATE, True),
        (BUSY.format("7.1"), Cause.OTHERS, True),
        (DROPPED.format("3"), Cause.DROPPED, False),
        (FULL.format("3"), Cause.POOL_FULL, False),
        (REFUSED.format("3"), Cause.REFUSED, False),
        (LONG.format("3"), Cause.TOO_LONG, False),
    ],
)
def test_each_cause_has_its_advice(reason: str, cause: Cause, is_busy: bool) -> None:
    rejection = lab.RunRejected([reason], {})
    assert rejection.causes == {cause}
    assert ("busy" in rejection.advice("try again")) == is_busy
    assert rejection.advice("try again").endswith(" and try again")


def test_several_reasons_are_several_causes() -> None:
    reasons = [LATE.format("0.512"), LONG.format("3"), LONG.format("1")]
    assert lab.RunRejected(reasons, {}).causes == {Cause.LATE, Cause.TOO_LONG}
    assert causes.counted(["; ".join(reasons)]) == {
        "packets were longer than the MTU": 1,
        "packets were too late": 1,
    }


def test_a_reason_of_another_kind_is_counted_by_its_words() -> None:
    assert lab.RunRejected(["the cable was cut"], {}).causes == set()
    assert causes.counted(["3 cables were cut: plug them in", "5 cables were cut"]) == {
        "cables were cut": 2
    }


def test_the_links_reasons_are_in_these_words() -> None:
    text = (ROOT / "crates/lab/link/src/report.rs").read_text()
    objections = text[text.index("fn objections(") : text.index("mod tests")]
    for cause in set(Cause) - {Cause.OTHERS, Cause.SERVER}:
        # It writes `packets` before most of them in one place.
        assert re.search(cause.value.pattern.removeprefix("packets "), objections), cause


def test_all_rejections_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    reasons = [LATE.format(f"0.{n}") for n in range(101, 131)] + [BUSY.format("7.1")]
    summary = Summary(tmp_path, "run", rejections=len(reasons), causes=causes.counted(reasons))
    monkeypatch.setattr(halves, "_measure", lambda *_: summary)
    halves.measure(None, tmp_path)  # type: ignore[arg-type]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "31 attempts at parts were rejected unseen (30: packets were too late; "
        "1: other programs took too much of the processors); each is in "
    )


def test_nothing_is_said_where_nothing_was_rejected(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(halves, "_measure", lambda *_: lab.Summary(tmp_path, "run"))
    halves.measure(None, tmp_path)  # type: ignore[arg-type]
    assert capsys.readouterr().err == ""
