# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Leaner governances, which change comes first, and at which payloads one pays."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from warifu.dds import advice, crossing, leaner, way
from warifu.dds.advice import Asked, Verdict
from warifu.dds.crossing import Stretch
from warifu.dds.governance import Basic, Governance, Protection

SROS2 = Governance()


def test_every_line_comes_down_and_samples_stay_protected() -> None:
    names = [step.name for step in leaner.steps(SROS2)]
    assert names == [
        "data ENCRYPT -> SIGN", "data ENCRYPT -> NONE", "metadata ENCRYPT -> SIGN",
        "metadata ENCRYPT -> NONE", "rtps SIGN -> NONE",
    ]  # fmt: skip
    one = Governance(metadata=Protection.NONE)
    assert [step.name for step in leaner.steps(one)] == [
        "data ENCRYPT -> SIGN",
        "rtps SIGN -> NONE",
    ]
    asked_for = [step.name for step in leaner.steps(one, plain=True)]
    assert asked_for == ["data ENCRYPT -> SIGN", "data ENCRYPT -> NONE", "rtps SIGN -> NONE"]
    by_origin = Governance(rtps=Protection.ENCRYPT_WITH_ORIGIN_AUTHENTICATION)
    rtps = [step.after for step in leaner.steps(by_origin) if step.line == "rtps"]
    assert rtps == ["ENCRYPT", "SIGN", "NONE"]


def test_what_is_given_up_depends_on_the_other_lines() -> None:
    def gives_up(governance: Governance, name: str, *, plain: bool = False) -> str:
        found = {step.name: step.gives_up for step in leaner.steps(governance, plain=plain)}
        return found[name]

    assert gives_up(SROS2, "data ENCRYPT -> SIGN").endswith("samples stay encrypted by metadata")
    alone = Governance(metadata=Protection.NONE, rtps=Protection.NONE)
    assert gives_up(alone, "data ENCRYPT -> SIGN").startswith("secrecy: whoever sees")
    assert gives_up(alone, "data ENCRYPT -> NONE", plain=True).startswith("everything: whoever")
    by_origin = Governance(rtps=Protection.SIGN_WITH_ORIGIN_AUTHENTICATION)
    assert gives_up(by_origin, "rtps SIGN_WITH_ORIGIN_AUTHENTICATION -> SIGN").startswith("origin:")


def test_diff_is_of_the_document_that_is_signed() -> None:
    leaner_one = Governance(data=Basic.SIGN)
    assert leaner.diff(SROS2, leaner_one) == [
        "- <data_protection_kind>ENCRYPT</data_protection_kind>",
        "+ <data_protection_kind>SIGN</data_protection_kind>",
    ]
    assert leaner.diff(SROS2, SROS2) == []


@pytest.mark.parametrize(
    ("share", "verdict"),
    [
        ((0.05, 0.1, 0.2), Verdict.SAVES),
        ((0.049, 0.1, 0.2), Verdict.UNDECIDED),
        ((-0.1, 0.01, 0.05), Verdict.UNDECIDED),
        ((-0.1, 0.01, 0.049), Verdict.LITTLE),
    ],
)
def test_verdict_is_of_the_whole_interval(share: way.Bounds, verdict: Verdict) -> None:
    assert advice.judge(share, 0.05) is verdict


def test_nothing_saved_is_never_enough() -> None:
    assert advice.judge((0.0, 0.0, 0.0), 0.0) is Verdict.LITTLE
    assert advice.judge((-0.1, 0.0, 0.1), 0.0) is Verdict.UNDECIDED


def asked(**changes: Any) -> Asked:  # noqa: ANN401 - any setting
    fixed = (("pattern.response_body", "16 B"),)
    return Asked(**{"governance": SROS2, "crypto": "warifu", "aead": "AES-256-GCM",
                    "fixed": fixed, **changes})  # fmt: skip


#: ns that a line costs by its kind, from the least to the most.
COSTS = {"data": {"NONE": (0, 0), "SIGN": (9, 11), "ENCRYPT": (10, 10)},
         "metadata": {"NONE": (0, 0), "SIGN": (20, 20), "ENCRYPT": (20, 24)},
         "rtps": {"NONE": (0, 0), "SIGN": (3, 9)}}  # fmt: skip


def predict(settings: advice.Settings) -> dict[str, Any]:
    """A writer that pays 67 ns and each line's cost."""
    of = dict(settings)
    lines = {line: COSTS[line][of[f"stack.{line}_protection"]] for line in COSTS}
    works = [("client.send.DdsSample", (67, 67))]
    works += [(f"client.send.DdsProtected {line}", bounds) for line, bounds in lines.items()]
    steps: list[dict[str, Any]] = [
        {"step": "work", "operation": name, "writer": True, "bytes": 0,
         "own_ns": (low, (low + high) // 2, high, 0), "own_per_byte_ns": 0.0, "protected_ns": 0,
         "cipher": None}
        for name, (low, high) in works
    ]  # fmt: skip
    steps += [{"step": "send", "message": 0, "bytes": 1}, {"step": "receive", "message": 0}]
    return {"steps": steps, "wake_ns": (0, 0, 0, 0), "delay_ns": 0, "rate": None}


def test_least_given_up_of_what_saves_enough_comes_first() -> None:
    found = advice.advise(asked(), predict, [], [])
    assert list(found.total) == [100, 105, 110]
    verdicts = {change.name: change.verdict for change in found.changes}
    assert verdicts == {
        "data ENCRYPT -> SIGN": Verdict.LITTLE,
        "data ENCRYPT -> NONE": Verdict.SAVES,
        "metadata ENCRYPT -> SIGN": Verdict.LITTLE,
        "metadata ENCRYPT -> NONE": Verdict.SAVES,
        "rtps SIGN -> NONE": Verdict.UNDECIDED,
    }
    # Metadata saves twice as much, and gives up more.
    assert found.first is not None
    assert found.first.name == "data ENCRYPT -> NONE"
    assert list(found.first.saves) == [10, 10, 10]
    assert [change.name for change in found.undecided] == ["rtps SIGN -> NONE"]


def test_undecided_change_is_named_where_none_saves_enough() -> None:
    from warifu.cli.dds_advice_tables import headline

    strict = advice.advise(asked(at_least=0.205), predict, [], [])
    assert strict.first is None
    assert headline("a board", strict, "measured").endswith(
        "No change saves 20.5 % for certain; metadata ENCRYPT -> NONE may: 19 to 23 %."
    )
    stricter = advice.advise(asked(at_least=0.5), predict, [], [])
    assert headline("a board", stricter, None).endswith("No change saves 50 %.")


def test_experiments_say_so_and_standard_ones_do_not() -> None:
    found = advice.advise(asked(crypto="builtin"), predict, ["AES-128-GCM", "AEGIS-128L"], [])
    others = {change.name: change for change in found.changes if change.of.effort > 0}
    assert list(others) == [
        "Warifu's plugin, which keeps keyed contexts",
        "AES-128-GCM by Warifu's plugin",
        "AEGIS-128L by Warifu's plugin: an EXPERIMENT",
    ]
    # All are predicted to save nothing here, which is not enough.
    assert {change.verdict for change in others.values()} == {Verdict.LITTLE}


@pytest.mark.parametrize(
    ("pays_from", "undecided_from"),
    [(543, 300), (16, 16), (543, 542), (5_000_000, 100), (40, 17), (500, 300), (9_800, 9_100)],
)
def test_crossings_are_found_to_a_tenth(pays_from: int, undecided_from: int) -> None:
    def judge(size: int) -> Verdict:
        if size >= pays_from:
            return Verdict.SAVES
        return Verdict.UNDECIDED if size >= undecided_from else Verdict.LITTLE

    found = crossing.stretches(judge)
    assert found[0].first == 16
    assert found[-1].last == crossing.SIZES[-1]
    for stretch in found:
        assert judge(stretch.first) is judge(stretch.last) is stretch.verdict
    starts = {of.verdict: of.first for of in found}
    if pays_from <= crossing.SIZES[-1]:
        assert pays_from <= starts[Verdict.SAVES] <= pays_from * 1.1 + 1
        for before, after in itertools.pairwise(found):
            assert after.first <= before.last * 1.1 + 1
    else:
        assert Verdict.SAVES not in starts
    # An accelerator of 10 us beside 24.1 ns a byte in software and 5.674 in it: 543 B.
    assert round(10_000 / (24.1 - 5.674)) == 543


def test_crossings_as_sentences() -> None:
    little, open_, saves = Verdict.LITTLE, Verdict.UNDECIDED, Verdict.SAVES
    for found, expected in [
        ([Stretch(16, 4 << 20, saves)], "X pays at every payload from 16 B to 4 MiB."),
        ([Stretch(16, 4 << 20, little)], "X does not pay at any payload from 16 B to 4 MiB."),
        ([Stretch(16, 4 << 20, open_)], "X is undecided at every payload from 16 B to 4 MiB."),
        (
            [Stretch(16, 1000, little), Stretch(1001, 1536, open_), Stretch(1537, 4 << 20, saves)],
            "X pays from 1.5 KiB on; undecided from 1001 B to 1.5 KiB.",
        ),
        (
            [Stretch(16, 2048, saves), Stretch(2100, 4 << 20, little)],
            "X pays up to 2 KiB.",
        ),
        (
            [Stretch(16, 2048, open_), Stretch(2100, 4 << 20, little)],
            "X does not pay for certain at any payload; undecided up to 2 KiB.",
        ),
    ]:
        assert crossing.sentence("X", found) == expected


def test_rounded_rows_add_up_to_the_rounded_whole() -> None:
    from warifu.cli.dds_advice_tables import adding_up

    assert adding_up([1.4, 1.4, 1.4], 1.0) == [1, 2, 1, 4]
    assert adding_up([149.0, 149.0, 4.0], 100.0) == [100, 200, 0, 300]
    assert adding_up([], 1.0) == [0]


def test_a_change_without_figures_is_named_and_the_others_stay() -> None:
    def lacks(settings: advice.Settings) -> dict[str, Any]:
        if dict(settings)["stack.crypto"] == "warifu":
            raise advice.NoFigures("a board has no cost of that")
        return predict(settings)

    found = advice.advise(asked(crypto="builtin"), lacks, [], [])
    assert [name for name, _ in found.unknown] == ["Warifu's plugin, which keeps keyed contexts"]
    assert found.first is not None
    with pytest.raises(advice.NoFigures, match="no cost"):
        advice.advise(asked(), lacks, [], [])
