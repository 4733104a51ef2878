# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The lists of what the papers say, and how a claim gets its verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources import files

import pytest

from warifu.reproduce import dds_offload, papers, sros2_aead, sros2_aead_tables
from warifu.reproduce.papers import Judge, Missing, Outcome, Paper, Word

JUDGES: dict[str, Callable[[], Mapping[str, Judge]]] = {
    "dds_offload": lambda: dds_offload.Judges(dds_offload.Seen()).all(),
    "sros2_aead": lambda: sros2_aead.Judges(sros2_aead.Seen()).all(),
}

PAPER = """
source = "somebody"
platform = "a machine"
tables = ["Table 1", "Figure 1"]
[published]
calls = 3
share = { mean = 0.5 }
[[claim]]
id = "one"
where = "Table 1"
says = "three calls"
figures = ["calls"]
covers = ["Table 1"]
judged = true
expect = "reproduced"
[[claim]]
id = "two"
where = "Figure 1"
says = "half"
figures = ["share.mean"]
covers = ["Figure 1"]
expect = "not testable"
why = "a picture"
"""


@pytest.mark.parametrize("name", JUDGES)
def test_every_table_figure_and_number_of_a_paper_has_a_claim(name: str) -> None:
    assert papers.load(name).problems(JUDGES[name]()) == []


@pytest.mark.parametrize("name", JUDGES)
def test_the_numbers_of_a_claims_words_are_published(name: str) -> None:
    """What a claim says with decimals stands in the paper's figures or follows from them."""
    text = files("warifu.reproduce").joinpath(f"{name}.toml").read_text()
    figures = text[text.index("[published]") : text.index("[[claim]]")]
    for claim in papers.load(name).claims:
        for number in re.findall(r"\d+\.\d{2,}", f"{claim.says} {claim.published}"):
            assert re.search(rf"\b{re.escape(number)}\b", figures), f"{claim.id}: {number}"


def _paper(old: str = "", new: str = "") -> Paper:
    assert old in PAPER
    return papers.parse(PAPER.replace(old, new, 1))


def test_a_complete_list_has_no_problem() -> None:
    assert _paper().problems({"one": lambda: Outcome(True)}) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('covers = ["Table 1"]', "", "Table 1: is in no claim"),
        ('covers = ["Figure 1"]', 'covers = ["Figure 2"]', "Figure 2: is not of this paper"),
        ('figures = ["share.mean"]', "", "published.share.mean: is in no claim"),
        ('figures = ["calls"]', 'figures = ["calls", "x"]', "published.x: is unknown"),
        ('why = "a picture"', "", "claim two: gives no reason"),
        ('id = "two"', 'id = "one"', "claim one: is there 2 times"),
        ('expect = "not testable"', "", "claim two: neither judged nor said to be not testable"),
        ('id = "one"', 'id = "other"', "claim other: nothing judges it"),
    ],
)
def test_what_is_left_out_is_found(old: str, new: str, problem: str) -> None:
    assert problem in _paper(old, new).problems({"one": lambda: Outcome(True)})


def test_a_verdict_follows_from_what_was_found() -> None:
    found = papers.judge(_paper(), {"one": lambda: Outcome(True, "3.00")})
    assert [word for _, word, _ in found.rows] == [Word.REPRODUCED, Word.UNTESTABLE]
    assert found.holds
    assert found.headline.startswith("2 claims: 1 reproduced, 1 not testable")


def test_another_verdict_than_recorded_fails_and_is_named() -> None:
    found = papers.judge(_paper(), {"one": lambda: Outcome(False, "4.00")})
    assert not found.holds
    assert found.unexpected == ["one"]
    assert found.headline.startswith("FAILS: ")
    table = papers.verdict_table("Paper", found)
    assert table.records[0]["verdict"] == "not reproduced"
    assert "(recorded: reproduced)" in table.cells[0][-1]


def test_a_finding_that_is_recorded_as_not_reproduced_fails_when_it_is() -> None:
    paper = _paper('expect = "reproduced"', 'expect = "not reproduced"')
    assert papers.judge(paper, {"one": lambda: Outcome(False)}).holds
    assert papers.judge(paper, {"one": lambda: Outcome(True)}).unexpected == ["one"]


def test_what_could_not_be_run_is_incomplete_with_its_reason() -> None:
    found = papers.judge(_paper(), {"one": lambda: Missing("no root: use sudo")})
    assert (found.holds, found.not_run, found.unexpected) == (False, ["one"], [])
    assert found.headline.startswith("INCOMPLETE: ")
    assert "1 not run here" in found.headline
    assert "no root: use sudo" in papers.verdict_table("Paper", found).cells[0][-1]


def test_times_have_a_verdict_that_decides_nothing() -> None:
    paper = _paper('expect = "reproduced"', "")
    assert papers.judge(paper, {"one": lambda: Outcome(True)}).holds
    assert papers.judge(paper, {"one": lambda: Outcome(False)}).holds


def test_table_5_follows_from_table_4_within_its_rounding() -> None:
    figures = papers.load("sros2_aead").published
    for cipher in sros2_aead.CIPHERS:
        assert sros2_aead.arithmetic(figures, cipher.key).follows, cipher.name
    aegis = sros2_aead.arithmetic(figures, "aegis_128")
    # 0.0135 to 0.0145 ms a call, of which 0.153 ms takes all but the first thousandth.
    assert (round(aegis.crypto_low, 4), round(aegis.crypto_high, 4)) == (0.1523, 0.1636)


@pytest.mark.parametrize(("row", "value"), [("crypto", 0.140), ("total", 1.700)])
def test_a_row_of_table_5_that_does_not_follow_is_found(row: str, value: float) -> None:
    paper = papers.load("sros2_aead")
    table = {**paper.published["table5"]}
    table["aegis_128"] = {**table["aegis_128"], row: value}
    changed = replace(paper, published={**paper.published, "table5": table}).published
    assert not sros2_aead.arithmetic(changed, "aegis_128").follows


def test_without_the_programs_every_run_is_missing_and_arithmetic_stands() -> None:
    parts = (sros2_aead.FAST, sros2_aead.CYCLONE, sros2_aead.BENCH)
    seen = sros2_aead.Seen(missing=dict.fromkeys(parts, "install it"))
    tables, holds = sros2_aead_tables.tables(seen)
    assert not holds
    assert "INCOMPLETE: " in tables[0].title
    words = {record["id"]: record["verdict"] for record in tables[0].records}
    assert words["calls"] == "not run here"
    assert words["table5.arithmetic"] == "reproduced"
    assert "install it" in "\n".join(tables[0].notes)
