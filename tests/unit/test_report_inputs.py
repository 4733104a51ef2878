# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a prediction rests on is said beside it, and it gets no more decimals than that bears."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.paths import ROOT
from support.synthetic import Cell, Half, case_used, figure_used
from warifu.compare.require import judge_all, requirements
from warifu.report import inputs, summaries
from warifu.report.figures import ms, ms_with
from warifu.report.page import render
from warifu.report.requirements import requirement_table
from warifu.results import Results

CELL = Cell(rtt_ms=837)
MS = 1_000_000


def manifest(jitter: list[int], *figures: dict[str, Any], **case: Any) -> dict[str, Any]:  # noqa: ANN401
    link = {"profile": "nb-iot", "rtt": 837 * MS, "jitter": [one * MS for one in jitter]}
    stack = {"tcp": {"device": "linux-6.18", "server": "linux-6.18"}, "tls": {}}
    return {
        "cases": [case_used(CELL.case_id, {"link": link, "stack": stack, **case})],
        "figures": list(figures),
    }


RTT = figure_used(
    "nb-iot rtt",
    "837 ms",
    "published",
    "a survey: measured latency",
    what=("link", "nb-iot", "rtt"),
    number=837e6,
    last_digit_ns=MS,
)
JITTER = figure_used(
    "nb-iot jitter",
    "[0 ms, 20 ms, 50 ms, 150 ms, 1 s]",
    "assumed",
    what=("link", "nb-iot", "jitter"),
)
NB_IOT = manifest([0, 20, 50, 150, 1000], RTT, JITTER)


def test_jitter_that_no_label_shows_is_said_with_its_kind() -> None:
    (line,) = inputs.delays(NB_IOT)
    assert "RTT 837 ms (published) plus jitter of 180 ms on average each way (assumed;" in line
    # 360 of 1197 ms.
    assert "about 30 % of a round trip" in line
    assert inputs.delays(manifest([], RTT)) == []
    what = ("link", "link", "jitter")
    chosen = figure_used("link jitter", "[5 ms, 5 ms]", "emulated", chosen=True, what=what)
    (line,) = inputs.delays(manifest([5, 5], RTT, chosen))
    assert "jitter of 5.0 ms on average each way (chosen by the study;" in line


def test_table_verdict_and_page_say_what_they_rest_on(tmp_path: Path) -> None:
    half = Results.open(Half("predicted", [CELL], 2_000, 1, manifest=NB_IOT).write(tmp_path))
    notes = summaries.half_table(half).notes
    assert any("noise of the simulation alone" in note for note in notes)
    assert any("plus jitter of 180 ms" in note for note in notes)
    assert "Assumed, without a source: nb-iot jitter." in notes
    bound = ("https.establishment", "p99", "<", 5e9, "https.establishment.p99 < 5 s")
    table = requirement_table(judge_all(half, requirements([bound])), half.manifest)
    assert table.cells[0][-1] == table.records[0]["evidence"] == "published"
    assert any("rest on inputs that are published" in note for note in table.notes)
    assert any("plus jitter of 180 ms" in note for note in table.notes)
    # The lead, the requirements, the waterfall and the table.
    assert render(tmp_path, None).count("plus jitter of 180&nbsp;ms") == 4


RTO = ("tcp", "linux-6.18", "tcp_rto_min")


@pytest.mark.parametrize(
    ("figures", "finest"),
    [
        (
            [
                figure_used("a", "172.69 ms", "published", last_digit_ns=10_000),
                figure_used("b", "2.5 ms", "assumed", last_digit_ns=100_000),
            ],
            1e5,
        ),
        # What is neglected, exact, calibrated or no time sets no limit.
        (
            [
                figure_used("a", "0 ms", "assumed", number=0.0),
                figure_used(
                    "linux-6.18 rto", "1 s", "published", what=RTO, last_digit_ns=1000 * MS
                ),
            ],
            0.0,
        ),
        (
            [
                figure_used("a", "5 ms", "simulated", last_digit_ns=MS),
                figure_used("mtu", "1358 B", "assumed", number=1358),
            ],
            0.0,
        ),
        # A round second may be known to the millisecond.
        ([figure_used("a", "1 s", "assumed", last_digit_ns=1000 * MS)], 1e6),
    ],
)
def test_the_coarsest_written_input_ends_the_decimals(
    figures: list[dict[str, Any]], finest: float
) -> None:
    assert inputs.finest_ns(manifest([], *figures), CELL.case_id) == finest


def test_figures_from_written_inputs_have_no_finer_decimals(tmp_path: Path) -> None:
    from warifu.compare.stats import Interval

    narrow = Interval(37.2039e6, 37.2050e6)
    assert ms_with(37.2044e6, narrow) == "37.2044 (37.2039 to 37.2050)"
    assert ms_with(37.2044e6, narrow, 1e5) == "37.2 (37.2 to 37.2)"
    assert ms(37.2044e6, narrow, 1e6) == "37"
    assert ms(7_112e6, Interval(7_060e6, 7_160e6), 1e5) == "7110"
    worth = manifest([], figure_used("a", "2 ms", "published", last_digit_ns=MS))
    half = Results.open(Half("predicted", [CELL], 20_000, 1, manifest=worth).write(tmp_path))
    (row,) = summaries.half_table(half).cells
    assert not any("." in cell for cell in (row[2], row[3], row[4], row[5]))


def test_a_key_store_that_no_case_calls_is_named() -> None:
    store = {"profile": "iot-safe-sakomoto"}
    what = ("key_store_call", "iot-safe-sakomoto", "C_Sign")
    call = figure_used("iot-safe-sakomoto C_Sign", "1 s", "published", "papers/1", what=what)
    idle = manifest([], RTT, key_store=store)
    (line,) = (one for one in inputs.remarks(idle) if one.startswith("Key store"))
    assert "iot-safe-sakomoto is never called in this case" in line
    assert not any(
        "never called" in one for one in inputs.remarks(manifest([], call, key_store=store))
    )


def test_neglected_figure_is_no_assumption_to_name() -> None:
    nothing = figure_used("d client.sign", "0 ms", "assumed", number=0.0)
    assert inputs.remarks(manifest([], nothing)) == []
    some = figure_used("d client.sign", "1 us", "assumed", number=1e3)
    assert inputs.remarks(manifest([], some)) == ["Assumed, without a source: d client.sign."]


OLDER = [
    figure_used("nb-iot rtt", "837 ms", "published", "a survey", what=None),
    figure_used("link jitter", "[5 ms, 5 ms]", "emulated", what=None, chosen=True),
    figure_used("d client.sign", "0 ms", "assumed", what=None),
    figure_used("d server.sign", "1 ms", "assumed", what=None),
]


def test_figures_of_an_older_version_are_listed_with_the_kinds_that_they_have() -> None:
    held = manifest([5, 5], *OLDER, key_store={"profile": "iot-safe-sakomoto"})
    cells = inputs.inputs_table(held).cells
    assert ["nb-iot rtt", "837 ms", "published", "a survey"] in cells
    (jitter,) = inputs.delays(held)
    assert "RTT 837 ms (published) plus jitter" in jitter
    assert "each way (chosen by the study;" in jitter


def test_note_on_an_older_version_says_all_that_its_figures_do_not() -> None:
    held = manifest([], *OLDER, key_store={"profile": "iot-safe-sakomoto"})
    assert inputs.finest_ns(held, CELL.case_id) == 0.0
    # Neither the neglected figure nor any other is said to be assumed without a source.
    (note,) = inputs.remarks(held)
    assert note.startswith("The inputs were written by an older version, which did not say")
    for missing in ("more decimals", "inputs without a source", "key stores that are never called"):
        assert missing in note


def test_link_figure_that_a_manifest_does_not_list_is_not_stated() -> None:
    (line,) = inputs.delays(manifest([5, 5]))
    assert "RTT 837 ms (not stated)" in line


@pytest.mark.parametrize("version", ["version-1", "version-2"])
def test_values_of_older_results_have_their_units(version: str) -> None:
    held = Results.open(ROOT / "tests" / "goldens" / version / "predicted").manifest
    values = {row[0]: row[1] for row in inputs.inputs_table(held).cells}
    assert values["linux-6.18 hz"] == "250/s"
    assert values["linux-6.18 cubic_beta"] == "717/1024"
    assert values["linux-6.18 cubic_bic_scale"] == "41"
    (sign,) = (value for name, value in values.items() if name.endswith(" client.sign"))
    assert sign == "100 us"


def test_remarks_on_older_results_state_kinds_and_name_no_neglected_figure() -> None:
    held = Results.open(ROOT / "tests" / "goldens" / "version-1" / "predicted").manifest
    jitter, note = inputs.remarks(held)
    assert "RTT 150 ms (assumed) plus jitter" in jitter
    assert "each way (assumed; 0 ms to 75 ms a packet)" in jitter
    assert note.startswith("The inputs were written by an older version")


def test_a_figure_with_two_values_says_where_each_holds() -> None:
    hello = figure_used("d ClientHello", "1 us", "simulated", cases=["a", "b"])
    other = figure_used("d ClientHello", "2 us", "simulated", cases=["c"])
    session, loss = "stack.session", "link.loss"
    chosen = {
        "a": [(session, "full"), (loss, "0 %")],
        "b": [(session, "full"), (loss, "2 %")],
        "c": [(session, "resumed"), (loss, "0 %")],
    }
    cases = [case_used(name, {}, choices=choices) for name, choices in chosen.items()]
    held = {"figures": [hello, other], "cases": cases}
    assert [row[0] for row in inputs.inputs_table(held).cells] == [
        "d ClientHello (stack.session full)",
        "d ClientHello (stack.session resumed, link.loss 0 %)",
    ]
    held["cases"] = [case_used(name, {}) for name in chosen]
    assert "in 2 of 3 cases" in inputs.inputs_table(held).cells[0][0]


def test_key_store_of_a_case_that_has_nothing_to_sign() -> None:
    coap = manifest([], RTT, key_store={"profile": "iot-safe-sakomoto"}, stack={"protocol": "coap"})
    assert not any("Key store" in one for one in inputs.remarks(coap))


def test_assumed_values_that_may_move_a_time_furthest_come_first() -> None:
    """A primitive with a wide band before system calls, and what nobody has a band for by all of
    it; the report counts as many as the answer's badge."""

    def of(
        owner: str, key: str, value: str, number: float | None = None, unit: str = "ns"
    ) -> dict[str, Any]:
        what = ("link" if owner == "lte-m" else "device", owner, key)
        return figure_used(f"{owner} {key}", value, "assumed", what=what, number=number, unit=unit)

    figures = [
        of("d", "instruction", "20 to 40 ns"),
        of("d", "client.system.connect", "mean 700 us, 200 us to 1.2 ms", 700e3),
        of("d", "client.system.interface", "0 ms", 0.0),
        of("d", "sign.rsa-2048", "mean 1.8 s, 250 ms to 6.2 s", 1.8e9),
        of("lte-m", "rtt", "150 ms", 150e6),
        of("lte-m", "mtu", "1428 B", 1428.0, "B"),
    ]
    costs = [
        {"device": "d", "operation": "client.system.connect", "count": 2, "mean_ns": 700e3},
        {
            "device": "d", "operation": "client.receive.Certificate", "count": 1,
            "mean_ns": 900e6, "remainder": 0.5, "cases": ["a"],
        },
        {
            "device": "d", "operation": "client.receive.Certificate", "count": 1,
            "mean_ns": 90e6, "remainder": 0.5, "cases": ["b"],
        },
    ]  # fmt: skip
    manifest = {
        "figures": figures,
        "costs": costs,
        "cases": [{"case_id": "a", "choices": []}, {"case_id": "b", "choices": []}],
    }
    assert [one["what"]["key"] for one in inputs.assumed_figures(manifest)] == [
        "sign.rsa-2048",
        # 450 ms of instructions, whose band is two thirds of its middle.
        "instruction",
        "rtt",
        "client.system.connect",
        "mtu",
    ]
    assert inputs.tally(manifest) == "5 assumed, 1 neglected"
    assert inputs.named(inputs.assumed_figures(manifest), 2) == (
        "d sign.rsa-2048, d instruction and 3 more"
    )
