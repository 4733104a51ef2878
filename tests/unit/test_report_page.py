# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The page stands on its own, is well formed, and says what it must."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.studies import MANIFEST
from support.studies import study as timeline_study
from support.synthetic import Cell, Half, case_used, change_manifest, figure_used, study
from warifu import _core
from warifu.compare.join import compare_folder
from warifu.report import charts
from warifu.report.accuracy import overview_table
from warifu.report.page import ReportError, render, write_page
from warifu.report.tables import report_tables
from warifu.report.timeline import picture
from warifu.report.timeline_axis import Axis
from warifu.report.timeline_labels import lines
from warifu.results import Distribution, Timeline
from warifu.results.timelines import Activity, Mark, Message, Packet, Timer

VOID = {"meta", "br", "link", "img", "input", "hr"}
INPUTS = [
    figure_used("link.rtt", "60", "published", "a survey", "ms"),
    figure_used("a <cost>", "1", "assumed", "", "us"),
]


class Page(HTMLParser):
    """Checks that tags nest, and gathers elements and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> where {self.open[-1]} is open"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.words.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("both")
    cells = [Cell(loss=loss, rtt_ms=rtt) for loss in (0.0, 0.02) for rtt in (0, 60)]
    manifest = {
        "evidence": ["assumed"],
        "figures": INPUTS,
        "study": {"overrides": [["link.rtt", "60 ms"]]},
    }
    Half("predicted", cells, 5_000, seed=1, manifest=manifest).write(folder)
    Half("measured", cells, 200, seed=2, failed=2).write(folder)
    return render(folder, compare_folder(folder))


def test_the_answer_comes_before_what_its_question_says(tmp_path: Path) -> None:
    stands_in = "This machine was never calibrated, so x, which comes with Warifu, stands in for it"
    manifest = {
        "warnings": ["Calibrated beside other work", stands_in],
        "stands_in": {"name": "x", "warning": stands_in},
    }
    Half("predicted", [Cell()], 2_000, seed=1, manifest=manifest).write(tmp_path)
    page = render(tmp_path, None)
    answer = page[page.index('<section id="answer"') :]
    # What makes the figures doubtful is first; what the question has said already is not.
    assert answer.index("beside other work") < answer.index('class="answers"')
    assert 0 < answer.index('class="answers"') < answer.index("This machine was never")
    assert answer.index("This machine was never") < answer.index('id="cases-beside-baseline"')


def test_the_page_needs_nothing_else(both: str) -> None:
    page = Page(both)
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"link", "iframe", "object", "img", "base", "form"}
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), f"{tag} has {name}"
            if name in {"src", "href", "xlink:href", "srcset", "action"}:
                assert (value or "").startswith("#"), f"{tag} {name}={value}"
    style = re.search(r"<style>(.*?)</style>", both, re.DOTALL)
    assert style is not None
    assert not re.search(r"@import|url\(", style[1])


def test_one_script_runs_and_the_page_knows_it_by_its_hash(both: str) -> None:
    assert Page(both).of("script") == [{}]
    script = re.search(r"<script>(.*?)</script>", both, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', both)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert f"script-src 'sha256-{digest}';" in policy[1]
    # It makes texts alone: what results hold becomes neither markup nor code, and goes nowhere.
    assert not re.search(
        r"innerHTML|outerHTML|insertAdj|document\.write|eval|Function\(", script[1]
    )
    assert not re.search(r"fetch|XMLHttp|WebSocket|import|location|cookie|Storage", script[1])


def test_everything_has_a_name_for_those_who_cannot_see(both: str) -> None:
    page = Page(both)
    pictures = [one for _, one in page.elements if one.get("role") == "img"]
    assert len(pictures) >= 4
    assert all(one.get("aria-label") for one in pictures if one.get("class") != "timeline")
    assert 'lang="en"' in both
    regions = [one for one in page.of("div") if one.get("role") == "region"]
    assert regions
    assert all(one.get("aria-label") and one.get("tabindex") == "0" for one in regions)
    assert all(one.get("scope") in {"col", "row"} for one in page.of("th"))
    assert len(page.of("caption")) == len(regions)
    ids = [one["id"] for _, one in page.elements if one.get("id")]
    assert len(ids) == len(set(ids))


def test_halves_are_told_apart_without_colour(both: str) -> None:
    assert both.count('stroke-dasharray="5,3"') >= 4
    assert "predicted (thick, solid)" in both
    assert "measured (thin, dashed)" in both
    for word in ("✓ pass", "? undecided"):
        assert word in Page(both).text


def test_the_page_says_what_it_must(both: str) -> None:
    text = Page(both).text
    for part in (
        "https.establishment.p99 < 5 s holds in all 4 cases, as predicted.",
        "judged cases (4 measured)",
        "gates are judged:",
        "How each cell was measured",
        "8 measured connections failed",
        "Engine error",
        "Field error None yet",
        "What this does not say",
        "Some inputs are assumed, without a source",
        "a <cost>",
        "2 figures: 1 published, 1 assumed.",
        "warifu run study.toml --set 'link.rtt=60 ms' # seed 7",
        "run-measured-2",
        "0123456789abcdef",
        "Where the time goes",
    ):
        assert part in text, part
    assert not re.search(r"\bnan\b|\binf\b|None\b(?! yet)", text)


def test_both_schemes_and_small_screens_are_served(both: str) -> None:
    assert "prefers-color-scheme: dark" in both
    assert "max-width: 720px" in both
    assert "@media print" in both
    assert 'name="viewport"' in both


def test_names_cannot_become_markup(tmp_path: Path) -> None:
    cell = Cell()
    manifest = {
        "study": {"name": "<script>alert(1)</script>", "sha256": "", "text": "# </pre><b>"},
        "cases": [case_used(cell.case_id, cell.canonical, '"><i>')],
    }
    Half("predicted", [cell], 100, seed=1, manifest=manifest).write(tmp_path)
    page = Page(render(tmp_path, None))
    assert page.of("script") == [{}]
    assert not page.of("b") or all(one == {} for one in page.of("b"))
    assert "<script>alert(1)</script>" in page.text


def test_a_prediction_alone_says_that_nothing_was_measured(tmp_path: Path) -> None:
    Half("predicted", [Cell()], 500, seed=1).write(tmp_path)
    text = Page(render(tmp_path, None)).text
    assert "Nothing was measured, so nothing here says how close the prediction is." in text
    assert "measured (thin, dashed)" not in text
    assert 'stroke="var(--predicted)" stroke-width="3.5"' in render(tmp_path, None)
    assert 'stroke-dasharray="5,3"' not in render(tmp_path, None)
    assert "Engine error" not in text


def test_many_cases_are_told_by_a_few_pictures(tmp_path: Path) -> None:
    cells = [Cell(rtt_ms=rtt) for rtt in range(30)]
    Half("predicted", cells, 50, seed=1).write(tmp_path)
    page = Page(render(tmp_path, None))
    assert len(page.of("figure")) == 24
    assert "Shown are 24 of 30 cases, those spread over the study." in page.text


def test_the_same_results_give_the_same_page(tmp_path: Path) -> None:
    folder = study(tmp_path, [Cell()], n=50)
    comparison = compare_folder(folder)
    assert render(folder, comparison) == render(folder, comparison)


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="holds no results yet: run `warifu predict` first"):
        write_page(tmp_path, None, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
    Half("predicted", [Cell()], 50, seed=1).write(tmp_path)
    path = write_page(tmp_path, None, tmp_path / "pages" / "report.html")
    assert [one.name for one in path.parent.iterdir()] == ["report.html"]


def test_a_curve_keeps_its_ends_and_rises() -> None:
    rng = np.random.default_rng(1)
    distribution = Distribution.of(rng.gamma(3, 60e6, 50_000))
    times, shares = charts.curve(distribution)
    assert len(times) <= 241
    assert times == sorted(times)
    assert shares == sorted(shares)
    assert times[-1] == distribution.values[-1] / 1e6
    assert shares[-1] == pytest.approx(1.0)
    middle = min(range(len(shares)), key=lambda index: abs(shares[index] - 0.5))
    assert times[middle] * 1e6 == pytest.approx(distribution.quantile(0.5), rel=0.02)


def test_failed_connections_keep_a_curve_below_one() -> None:
    _, shares = charts.curve(Distribution.of([1e6, 2e6, 3e6], failed=1))
    assert shares == [0.0, 0.25, 0.5, 0.75]


@pytest.mark.parametrize(
    ("low", "high"), [(1.7, 1100.0), (184.0, 1400.0), (430.0, 900.0), (0.01, 0.02)]
)
def test_logarithmic_axes_have_a_few_ticks_inside(low: float, high: float) -> None:
    ticks = charts._log_ticks(low, high)
    assert 2 <= len(ticks) <= 6
    assert all(low <= tick <= high for tick in ticks)


def test_a_page_without_a_list_of_inputs_points_to_none(tmp_path: Path) -> None:
    Half("predicted", [Cell()], 50, seed=1, manifest={"evidence": ["assumed"]}).write(tmp_path)
    text = Page(render(tmp_path, None)).text
    assert "Some inputs are assumed, without a source: a study of so many cases lists no" in text
    assert "see the table of inputs" not in text
    inputs = {"evidence": ["assumed"], "figures": INPUTS}
    Half("predicted", [Cell()], 50, seed=1, manifest=inputs).write(tmp_path / "few")
    assert "see the table of inputs first" in Page(render(tmp_path / "few", None)).text


def test_the_page_calls_warifu_as_it_is_called_here(tmp_path: Path) -> None:
    folder = study(tmp_path, [Cell()], n=50)
    text = Page(render(folder, compare_folder(folder), ".venv/bin/warifu")).text
    assert "sudo .venv/bin/warifu run study.toml" in text


def test_the_page_says_why_a_requirement_is_undecided(tmp_path: Path) -> None:
    bound = ["https.establishment", "max", "<", 5e9, "https.establishment.max < 5 s"]
    Half("predicted", [Cell()], 50, seed=1, manifest={"require": [bound]}).write(tmp_path)
    text = Page(render(tmp_path, None)).text
    assert "is undecided in the only case, as predicted: a maximum" in text
    assert "a maximum cannot be proven by trials: require a quantile" in text
    assert not re.search(r"\bnan\b|\binf\b", text)


def test_the_lead_counts_failing_cases_and_names_the_table_s_worst(tmp_path: Path) -> None:
    cells = [Cell(rtt_ms=rtt) for rtt in (60, 150, 90)]
    bound = ["https.establishment", "p50", "<", 1e6, "https.establishment.p50 < 1 ms"]
    Half("predicted", cells, 500, seed=1, manifest={"require": [bound]}).write(tmp_path)
    text = Page(render(tmp_path, None)).text
    assert "< 1 ms fails in all 3 cases, as predicted; the worst is RTT 150 ms." in text
    assert "This rests on published inputs." in text


def test_commands_are_code_and_name_the_study(tmp_path: Path) -> None:
    manifest = {"study": {"file": "my/meter.toml", "overrides": [["seed", "3"]]}}
    Half("predicted", [Cell()], 100, seed=1, manifest=manifest).write(tmp_path)
    page = render(tmp_path, None)
    assert "<code>sudo warifu run my/meter.toml --set seed=3</code>" in page
    assert "`" not in Page(page).text


def test_a_table_of_inputs_wraps_and_the_waterfall_is_read_without_pointing(both: str) -> None:
    page = Page(both)
    sources = [one for one in page.of("td") if one.get("data-head") == "source"]
    assert sources
    values = [one for one in page.of("td") if one.get("data-head") == "value"]
    assert all("number" not in (one.get("class") or "") for one in values), "numbers do not wrap"
    parts = [one for one in page.of("div") if one.get("class") == "parts"]
    bars = [one for one in page.of("div") if one.get("class") == "bar"]
    assert len(parts) == len(bars) > 0
    assert "loss recovery" in re.findall(r'class="parts"[^>]*>([^<]*)', both)[-1]
    narrow = both[both.index("max-width: 720px") :]
    assert "content: attr(data-head)" in narrow


def test_what_the_routes_pin_stands_beside_the_settings(tmp_path: Path) -> None:
    route = {"congestion_control": "cubic", "initcwnd": 10}
    measured = {
        "machine": {"tcp": {"tcp_congestion_control": "bbr"}},
        "cells": {Cell().case_id: {"parts": [
            {"first_trial": first, "trials": 100, "route": route} for first in (0, 100)
        ]}},
    }  # fmt: skip
    Half("predicted", [Cell()], 500, seed=1).write(tmp_path)
    Half("measured", [Cell()], 200, seed=2, manifest=measured).write(tmp_path)
    text = Page(render(tmp_path, compare_folder(tmp_path))).text
    assert "pinned by route congestion_control = cubic, initcwnd = 10" in text


def test_measured_half_alone(tmp_path: Path) -> None:
    Half("measured", [Cell(), Cell(loss=0.02)], 2_000, seed=2).write(tmp_path)
    text = render(tmp_path, None)
    page = Page(text)
    assert "Nothing was predicted yet: these are measured figures alone." in page.text
    assert "https.establishment.p99 < 5 s holds in both cases, as measured." in page.text
    assert "Measured: time to the response" in page.text
    assert "n counts measured connections." in page.text
    assert "measured (thin, dashed)" in text
    assert "predicted (thick, solid)" not in text
    assert "Where the time goes" not in page.text
    assert "There is no prediction, so nothing here says how close one comes." in page.text
    assert "simulated trials" not in page.text
    assert len(page.of("figure")) == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"predict_trials": 10_000}, "18 of 10,000 trials (interrupted)"),
        ({"predict_trials": 18, "cases": 12}, "1 of 12 cases (interrupted)"),
        ({"predict_trials": 20, "cases": 12}, "1 of 12 cases; 18 of 20 trials (interrupted)"),
        (
            {"predict_trials": 18, "cases": 0, "vary": [["a", ["1"] * 40], ["b", ["1"] * 100]]},
            "1 of 4,000 cases (interrupted)",
        ),
        ({"predict_trials": 18}, "some of its cases or trials are missing (interrupted)"),
    ],
)
def test_interrupted_half_says_first_what_it_has(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    cell = Cell()
    others = [case_used(str(number), {}) for number in range(1, changes.pop("cases", 1))]
    listed = [] if "vary" in changes else [case_used(cell.case_id, cell.canonical), *others]
    manifest = {"complete": False, "finished": None, "cases": listed, **changes}
    Half("predicted", [cell], 18, seed=1, manifest=manifest).write(tmp_path)
    sentence = f"The predicted half is not complete: {words}. Run the study again for the rest."
    text = Page(render(tmp_path, None)).text.replace("\N{NO-BREAK SPACE}", " ")
    assert text.index(sentence) < text.index("https.establishment.p99")
    # Also where the tables alone are asked for.
    assert sentence in report_tables(tmp_path, None)[0].notes
    Half("measured", [cell], 18, seed=2).write(tmp_path)
    comparison = compare_folder(tmp_path)
    assert comparison.interrupted == [sentence]
    assert overview_table(comparison).notes[0] == sentence


def lead(folder: Path, bound_ns: float, predicted: int, measured: int, scale: float = 1.0) -> str:
    """The text of the page of two cases, RTT 60 and 150 ms, with so many trials in each half."""
    cells = [Cell(rtt_ms=60), Cell(rtt_ms=150)]
    bound = ["https.establishment", "p99", "<", bound_ns, "p99 < bound"]
    Half("predicted", cells, predicted, seed=1, manifest={"require": [bound]}).write(folder)
    Half("measured", cells, measured, 2, scale).write(folder)
    return Page(render(folder, compare_folder(folder))).text


def test_measurement_that_agrees_or_is_undecided_contradicts_nothing(tmp_path: Path) -> None:
    # Too few measured trials for a P99: a fail is sure, a pass is not.
    text = lead(tmp_path, 300e6, 2_000, 50)
    assert "p99 < bound holds in 1 of 2 cases, fails in 1 of 2 cases, as predicted" in text
    assert "contradicts" not in text
    assert "It is undecided by the measurement in 1 case." in text


def test_measurement_that_fails_where_the_prediction_holds_contradicts_it(tmp_path: Path) -> None:
    text = lead(tmp_path, 500e6, 2_000, 2_000, scale=1.5)
    assert "p99 < bound holds in both cases, as predicted" in text
    assert "The measurement contradicts it in 1 case." in text
    assert "undecided by" not in text


def test_measurement_that_holds_where_the_prediction_fails_contradicts_it(tmp_path: Path) -> None:
    text = lead(tmp_path, 300e6, 2_000, 2_000, scale=0.5)
    assert "The measurement contradicts it in 1 case." in text


def test_measurement_that_decides_what_is_predicted_as_undecided(tmp_path: Path) -> None:
    text = lead(tmp_path, 300e6, 50, 2_000)
    assert "holds in 0" not in text
    assert "fails in 1 of 2 cases, is undecided in 1 of 2 cases, as predicted" in text
    assert "Predicted as undecided, it holds in 1 case as measured." in text
    assert "contradicts" not in text


@pytest.mark.parametrize(
    ("losses", "scale", "words"),
    [
        ((0.0, 0.3, 0.4), 1.0, "The prediction is within every gate in 1 judged case (3 measured)"),
        ((0.3, 0.4), 1.0, "No gate says anything of the 2 cases measured."),
        ((0.0, 0.3), 1.5, "Of 1 judged case (2 measured) the prediction is within its gates in 0"),
    ],
)
def test_cases_that_are_measured_and_not_judged(
    tmp_path: Path, losses: tuple[float, ...], scale: float, words: str
) -> None:
    folder = study(tmp_path, [Cell(loss=loss) for loss in losses], scale=scale)
    assert words in Page(render(folder, compare_folder(folder))).text


def test_waterfall_of_a_case_with_failed_trials_says_whose_time_it_is(tmp_path: Path) -> None:
    Half("predicted", [Cell(), Cell(rtt_ms=9)], 810, seed=1, failed=190).write(tmp_path / "some")
    page = render(tmp_path / "some", None)
    assert page.count("(of the trials that ended; 19 % failed)") >= 4
    Half("predicted", [Cell()], 810, seed=1).write(tmp_path / "none")
    assert "of the trials that ended" not in render(tmp_path / "none", None)


def with_timelines(folder: Path, label: str = "") -> Path:
    """A prediction of four cases, whose timelines' messages may have another label."""
    _core.predict(timeline_study(("predict_trials", "200")), folder / "predicted", MANIFEST)
    if label:
        file = folder / "predicted" / "timelines.json"
        content = json.loads(file.read_text())
        for timeline in content["timelines"]:
            for message in timeline["messages"]:
                message["label"] = label
            for activity in timeline["activities"]:
                activity["name"] = label
            for mark in timeline["marks"]:
                mark["name"] = label
        file.write_text(json.dumps(content))
        files = json.loads((folder / "predicted" / "manifest.json").read_text())["files"]
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        files["timelines.json"] = {"bytes": file.stat().st_size, "sha256": sha256}
        change_manifest(folder / "predicted", files=files)
    return folder


def test_timelines_say_what_they_show(tmp_path: Path) -> None:
    page = Page(render(with_timelines(tmp_path), None))
    pictures = [
        one
        for one in page.of("svg")
        if one.get("role") == "img" and "timeline" in (one.get("class") or "")
    ]
    assert len(pictures) == 8
    assert len(page.of("desc")) == 8
    cases = [one for one in page.of("details") if one.get("class") == "case"]
    assert len(cases) == 4
    assert ["open" in one for one in cases] == [True, False, False, False]
    for part in (
        "What happens on a connection",
        "P50: a typical connection",
        "P99: a slow connection",
        "Shown: all 4 cases.",
        "ClientHello, 288 B: sent",
        "device sends ClientHello, 236 B",
        "packets, 0 lost, 0 sent again",
        "first response",
        "(arrives",
    ):
        assert part in page.text, part
    ids = [one["id"] for _, one in page.elements if one.get("id")]
    assert len(ids) == len(set(ids))


def test_names_in_timelines_cannot_become_markup(tmp_path: Path) -> None:
    hostile = "</desc></svg><script>alert(1)</script>\x1b\u202e\"'"
    text = render(with_timelines(tmp_path, hostile), None)
    page = Page(text)
    assert page.of("script") == [{}]
    assert not set(text) & set("\x1b\u202e")
    assert "<script>alert(1)</script>" in page.text


def test_silence_is_cut_from_a_timeline(tmp_path: Path) -> None:
    ends = {"end": "client", "bytes": 60, "flags": "S", "messages": (0, 0)}
    lost = Packet(at_ns=0, arrives_ns=None, again=False, **ends)
    again = Packet(at_ns=10**10, arrives_ns=10**10 + 10**8, again=True, **ends)
    timer = Timer("client", 10**10, "retransmit")
    total = 10**10 + 2 * 10**8
    marks = (Mark("start", 0), Mark("first response", total))
    one = Timeline("c", "m", 0.99, 3, 0, 7, total, marks, (), (), (lost, again), (timer,), 0)
    axis = Axis.of(one, 0.0, 100.0)
    (gap,) = axis.breaks
    assert 9e9 < gap.until_ns - gap.from_ns < 1e10
    # What happens after it keeps its room.
    assert axis(total) == pytest.approx(100.0)
    assert axis(total) - axis(10**10) > 20.0
    assert not any(gap.from_ns < tick < gap.until_ns for tick in axis.ticks())
    shown = picture(one, "P99", ("a device", "a server"))
    assert "not to scale" in shown
    assert shown.count('class="tx"') == 1
    assert shown.count('class="tt"') == 1
    Page(shown)


def test_a_silence_of_any_length_has_few_marks_beside_it() -> None:
    work = (
        Activity("client", "compute", "a", 0, 40),
        Activity("client", "compute", "b", 10**14, 10**14 + 40),
    )
    one = Timeline("c", "m", 0.5, 0, 0, 0, 10**14 + 40, (), work, (), (), (), 0)
    ticks = Axis.of(one, 0.0, 100.0).ticks()
    assert 4 <= len(ticks) <= 60
    assert all(time <= 40 or time >= 10**14 for time in ticks)


def test_times_that_no_number_with_a_fraction_tells_apart_have_places() -> None:
    """2^53 ns and more: the last corner is later than the one before, and the difference is 0."""
    end = 9_208_081_978_490_880
    corners = [(0.0, 40.0), (end - 1, 400.0), (float(end), 400.0)]
    assert Axis(corners, [])(end) == 400.0


@given(st.data())
@settings(max_examples=120, deadline=None)
def test_any_timeline_becomes_a_picture(data: st.DataObject) -> None:
    times = st.integers(0, 10**18)
    names = st.text(max_size=40)
    ends = st.sampled_from(["client", "server"])
    kinds = st.sampled_from(["compute", "system", "key_store", "queue", "pause"])
    spans = st.tuples(times, times).map(sorted)
    activities = st.builds(
        lambda end, kind, name, span: Activity(end, kind, name, *span), ends, kinds, names, spans
    )
    messages = data.draw(st.lists(st.builds(Message, ends, names, st.integers(0, 9**9), times)))
    ranges = st.tuples(st.integers(0, len(messages)), st.integers(0, len(messages))).map(
        lambda pair: tuple(sorted(pair))
    )
    packets = st.builds(
        lambda end, span, lost, again, of: Packet(
            end, span[0], None if lost else span[1], 60, "S", again, of
        ),
        ends,
        spans,
        st.booleans(),
        st.booleans(),
        ranges,
    )
    timers = st.builds(Timer, ends, times, st.sampled_from(["retransmit", "delayed_ack"]))
    one = Timeline(
        "c",
        "m",
        0.5,
        0,
        0,
        0,
        data.draw(times),
        tuple(data.draw(st.lists(st.builds(Mark, names, times)))),
        tuple(data.draw(st.lists(activities))),
        tuple(messages),
        tuple(data.draw(st.lists(packets))),
        tuple(data.draw(st.lists(timers))),
        0,
    )
    shown = picture(one, "P50", ("a device", "a server"))
    assert len(shown) < 200_000
    assert "nan" not in re.sub(r"<(title|desc|text)\b.*?</\1>|<tspan.*?</tspan>", "", shown)
    if not any(set(name) - set(map(chr, range(32, 127))) for name in _names_of(one)):
        Page(shown)
    assert all(len(line) < 10_000 for line in lines(one))


def _names_of(one: Timeline) -> list[str]:
    return [
        *(mark.name for mark in one.marks),
        *(message.label for message in one.messages),
        *(activity.name for activity in one.activities),
    ]
