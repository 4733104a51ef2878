# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Answers from results: differences, with which choices they change, and whether they are sure."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.studies import PROFILES, host, study
from support.synthetic import Cell, Half, case_used
from warifu import _core
from warifu.answer import Level, answer, deadlines
from warifu.answer.axes import Axis, _grid_of_columns
from warifu.answer.badge import badge
from warifu.answer.effects import Choice, Effect, effects
from warifu.answer.model import Change
from warifu.answer.question import _DEFAULTS
from warifu.answer.samples import Samples
from warifu.answer.sentences import _largest, _of_choice
from warifu.answer.tables import cases_table
from warifu.compare.gates import Verdict
from warifu.compare.join import compare
from warifu.compare.require import Judged, Requirement
from warifu.compare.stats import Interval
from warifu.report.table import Format, render
from warifu.report.tables import judge_halves
from warifu.results import Results, ResultsError, Setting


def half(
    folder: Path, cells: Sequence[Cell], kind: str = "predicted", n: int = 4_000, scale: float = 1.0
) -> Results:
    """A made-up half whose manifest says what was varied, as a study writes it."""
    paths = ("stack.tls", "stack.session", "link.rtt", "link.loss")
    cases = []
    for cell in cells:
        values = (cell.tls, cell.session, f"{cell.rtt_ms} ms", f"{cell.loss * 100:g} %")
        choices = list(zip(paths, values, strict=True))
        label = ", ".join(f"{path.rpartition('.')[2]} {value}" for path, value in choices)
        cases.append(case_used(cell.case_id, cell.canonical, label, choices))
    written = Half(kind, list(cells), n, seed=len(kind), scale=scale, manifest={"cases": cases})
    return Results.open(written.write(folder))


GRID = [
    Cell(tls, session, rtt)
    for tls in ("1.2", "1.3")
    for session in ("full", "resumed")
    for rtt in (20, 60)
]


def test_each_choice_has_its_sentence(tmp_path: Path) -> None:
    predicted = half(tmp_path, GRID)
    found = answer(predicted, None, None, judge_halves(predicted, None))
    tls, session, rtt = found.sentences[1:]
    # The made-up 1.3 saves a round trip, but not where 1.2 resumes.
    assert tls.startswith("TLS 1.3 saves 20")
    assert "at 20 ms RTT" in tls and "60" in tls and "no " in tls
    assert session.startswith("Resuming saves") and "with TLS 1.2" in session
    assert rtt.startswith("A connection waits for 4 round trips with a full handshake and TLS 1.2")
    assert found.sentences[0] == "https.establishment.p99 < 5 s: met in all 8 cases."


def test_rows_are_held_against_the_baseline(tmp_path: Path) -> None:
    predicted = half(tmp_path, GRID)
    first = answer(predicted, None, None, [])
    assert first.baseline == GRID[0].case_id
    row = first.rows[1]
    assert row.settings["link.rtt"] == "60 ms"
    assert row.delta.value == pytest.approx(160e6, rel=0.01)
    assert row.delta.interval.low < row.delta.value < row.delta.interval.high
    assert row.certain and row.deadline is None
    by_label = answer(predicted, None, None, [], baseline="tls 1.3, session full, rtt 60 ms")
    by_number = answer(predicted, None, None, [], baseline="6")
    assert by_label.baseline == by_number.baseline == GRID[5].case_id
    assert by_label.rows[0].delta.value < 0
    for wrong in ("0", "9", "tls 1.3", "nothing", ""):
        with pytest.raises(ResultsError, match="give a number from 1 to 8 or a label"):
            answer(predicted, None, None, [], baseline=wrong)


def test_what_no_trial_tells_apart_is_not_certain(tmp_path: Path) -> None:
    alike = [Cell("1.3", "full", 60), Cell("1.3", "resumed", 60)]
    predicted = half(tmp_path, alike, n=100)
    found = answer(predicted, None, None, [])
    assert not found.rows[1].certain
    assert "no " in found.sentences[0] and "difference" in found.sentences[0]


def test_a_loss_is_told_by_its_tail(tmp_path: Path) -> None:
    cells = [Cell("1.3", "full", 60, loss) for loss in (0.0, 0.02)]
    found = answer(half(tmp_path, cells), None, None, [])
    assert found.sentences[0].startswith("2 % loss") and "to P99" in found.sentences[0]


def test_an_only_case_says_how_long_and_what_costs_most(tmp_path: Path) -> None:
    found = answer(half(tmp_path, [Cell()]), None, None, [])
    assert found.sentences[0].startswith("A connection takes 18")
    assert "(median)" in found.sentences[0] and "P99" in found.sentences[0]
    assert "propagation 180 ms (99 %)" in found.sentences[1]
    assert found.table().cells[0][0] == "the only case" or found.rows[0].label


def test_a_sweep_is_in_the_order_of_its_numbers() -> None:
    """Its study may write them in other words, `1000 ms`, and stores its cases in any order."""
    cases: dict[str, dict[str, Setting]] = {
        str(ms): {"rtt_ns": ms * 1_000_000, "tls": tls}
        for ms in (1_500, 2, 1_000)
        for tls in ("1.3",)
    }
    written = {"link.rtt": ["2 ms", "1000 ms", "1500 ms"]}
    (axis,) = _grid_of_columns(cases, written).axes
    assert axis.values == ("2 ms", "1 s", "1.5 s")
    # Where the study has the same words, its order holds.
    (axis,) = _grid_of_columns(cases, {"link.rtt": ["1.5 s", "2 ms", "1 s"]}).axes
    assert axis.values == ("1.5 s", "2 ms", "1 s")


SECTIONS = {"workers": "server", "session_open": "key_store"} | dict.fromkeys(
    ("response_body", "request_body", "concurrent", "path", "kind"), "pattern"
)


@pytest.mark.parametrize(
    ("key", "value"), [(key, one) for key, values in _DEFAULTS.items() for one in values]
)
def test_what_the_question_does_not_name_is_so_by_default(key: str, value: str) -> None:
    if key == "crypto_aead":
        named, plain = (
            _core.Study.parse(
                'name = "dds"\ndevice = "host"\nserver = "host"\nlink = "ethernet"\n'
                f'stack = "{one}"\n',
                "dds.toml",
                [*PROFILES, host()],
            ).cases
            for one in (f"dds/builtin/{value}", "dds/builtin")
        )
    else:
        named, plain = study((f"{SECTIONS.get(key, 'stack')}.{key}", value)).cases, study().cases
    assert [case.id for case in named] == [case.id for case in plain]


@pytest.mark.parametrize(("scale", "level"), [(1.0, Level.PASS), (1.2, Level.FAIL)])
def test_badge_of_a_comparison(tmp_path: Path, scale: float, level: Level) -> None:
    predicted = half(tmp_path, GRID, n=20_000)
    measured = half(tmp_path, GRID, "measured", n=2_000, scale=scale)
    found = answer(predicted, measured, compare(predicted, measured), [])
    assert found.badge.level is level
    assert "median error" in found.badge.text and "8 cells" in found.badge.text
    assert {row.verdict for row in found.rows} == {"pass" if level is Level.PASS else "fail"}


def test_a_warning_of_both_halves_is_told_once(tmp_path: Path) -> None:
    both = "restored from the archive a.parquet"
    ours: dict[str, object] = {"warnings": [both, "a guess of the prediction"]}
    theirs: dict[str, object] = {"warnings": ["other work took 97 % of a processor", both]}
    halves = [
        Half(kind, [Cell()], 300, seed, manifest=warnings)
        for seed, (kind, warnings) in enumerate({"predicted": ours, "measured": theirs}.items())
    ]
    predicted, measured = (Results.open(one.write(tmp_path)) for one in halves)
    found = answer(predicted, measured, compare(predicted, measured), [])
    of_measurement = "Warning from the measurement: other work took 97 % of a processor."
    assert found.warnings == [both, "a guess of the prediction", of_measurement]
    # Without the prediction it is the measurement's.
    alone = answer(None, measured, None, []).warnings
    assert alone == [of_measurement, f"Warning from the measurement: {both}."]


def test_deadline_by_case(tmp_path: Path) -> None:
    predicted = half(tmp_path, GRID)
    bound = ["https.establishment", "p99", "<", 150e6, "https.establishment.p99 < 150 ms"]
    predicted.manifest["require"] = [bound]
    found = answer(predicted, None, None, judge_halves(predicted, None))
    words = [row.deadline for row in found.rows]
    # Round trips of 20 ms are short enough, four and three of 60 ms are not.
    assert words == ["met", "missed"] * 4
    assert found.sentences[0].startswith(
        "https.establishment.p99 < 150 ms: met in 4 of 8 cases, missed in 4 of 8 cases."
    )


def test_a_deadline_says_which_cases_are_not_judged(tmp_path: Path) -> None:
    """Nobody knows of a case that could not be predicted whether it would meet a bound."""
    predicted = half(tmp_path, GRID[:1], n=20_000)
    predicted.manifest |= {
        "skipped": {"session 0-rtt": "no cost"},
        "without_costs": ["session 0-rtt"],
    }
    found = answer(predicted, None, None, judge_halves(predicted, None))
    assert found.sentences[0].startswith("https.establishment.p99 < 5 s: met in 1 of 2 cases")
    assert found.sentences[0].endswith("not predicted in 1 of 2 cases (session 0-rtt).")


@pytest.mark.parametrize(
    ("body", "why"),
    [(100, "ends with its first byte: require https.establishment"), (200_000, "128 KiB is not")],
)
def test_a_deadline_of_a_time_that_a_case_has_not_says_why(
    tmp_path: Path, body: int, why: str
) -> None:
    predicted = half(tmp_path, GRID[:1], n=200)
    next(iter(predicted.cases.values()))["response_body"] = body
    bound = ["https.response_complete", "p99", "<", 5e9, "https.response_complete.p99 < 5 s"]
    predicted.manifest["require"] = [bound]
    (first, *_) = answer(predicted, None, None, judge_halves(predicted, None)).sentences
    assert first.startswith(
        "https.response_complete.p99 < 5 s: no value of https.response_complete"
    )
    assert why in first and "undecided" not in first


def test_tables_of_many_cases_are_cut_short_and_fit(tmp_path: Path) -> None:
    cells = [Cell(tls, "full", rtt) for tls in ("1.2", "1.3") for rtt in range(10, 110, 2)]
    found = answer(half(tmp_path, cells, n=50), None, None, [])
    assert len(found.rows) == 100
    table = found.table(24)
    assert len(table.cells) <= 25
    assert max(map(len, render([table], Format.TABLE, 80).splitlines())) <= 80
    assert len(found.table().cells) == 100
    assert all(len(sentence) < 600 for sentence in found.sentences)


def test_effects_are_told_apart_by_what_they_depend_on() -> None:
    others = [Axis("a", ("1", "2")), Axis("b", ("x", "y"))]

    def change(value: float) -> Change:
        return Change(value, Interval(value - 0.1, value + 0.1))

    changes: dict[tuple[str, ...], float]
    changes = {("1", "x"): 10.0, ("1", "y"): 10.5, ("2", "x"): -40.0, ("2", "y"): -41.0}
    found = effects({key: change(value) for key, value in changes.items()}, others, lambda _: 100.0)
    assert [one.where for one in found] == [(("a", "1"),), (("a", "2"),)]
    assert [one.change.value for one in found] == [10.5, -40.0]
    assert all(one.certain for one in found)
    alike = {key: change(5.0) for key in changes}
    assert [one.where for one in effects(alike, others, lambda _: 100.0)] == [()]


def test_an_answer_is_made_of_plain_values(tmp_path: Path) -> None:
    found = answer(half(tmp_path, [Cell()]), None, None, [])
    assert dataclasses.asdict(found)["half"] == "predicted"
    with pytest.raises(ResultsError, match="warifu predict"):
        answer(None, None, None, [])


def test_a_study_of_very_many_cases_is_told_in_its_order(tmp_path: Path) -> None:
    """Its manifest lists no cases: they come in the order of their ids."""
    predicted = half(tmp_path, GRID)
    predicted.manifest["cases"] = []
    predicted.manifest["vary"] = [
        ["link.rtt", ["60 ms", "20 ms"]],
        ["stack.tls", ["1.3", "1.2"]],
        ["stack.session", ["resumed", "full"]],
    ]
    found = answer(Results(predicted.path, predicted.manifest, predicted.cases, predicted._places),
                   None, None, [])  # fmt: skip
    first = next(row for row in found.rows if row.case_id == found.baseline)
    assert first.settings == {"link.rtt": "60 ms", "stack.tls": "1.3", "stack.session": "resumed"}


def test_cases_that_were_left_out_are_named_by_reason(tmp_path: Path) -> None:
    predicted = half(tmp_path, GRID[:2])
    predicted.manifest["skipped"] = {"a": "no cost", "b": "no cost", "c": "not emulated"}
    found = answer(predicted, None, None, [])
    assert found.not_included == [
        "Not predicted: 2 cases, such as a: no cost.",
        "Not predicted: c: not emulated.",
    ]


@pytest.mark.parametrize(
    ("column", "length", "words"),
    [
        ("request_body", 64_001, "Less certain: requests of more than 64 kB."),
        ("request_body", 64_000, ""),
        ("response_body", 131_073, "Not included: the end of responses of more than 128 KiB"),
        ("response_body", 131_072, ""),
    ],
)
def test_long_payloads_say_what_is_left_out(
    tmp_path: Path, column: str, length: int, words: str
) -> None:
    for kind in ("predicted", "measured"):
        made = half(tmp_path / kind, GRID[:2], kind)
        next(iter(made.cases.values()))[column] = length
        said = answer(made, None, None, []).not_included
        if words and kind == "predicted":
            assert len(said) == 1 and said[0].startswith(words)
        else:
            assert said == []


def test_a_small_measurement_leaves_a_met_deadline_as_it_is(tmp_path: Path) -> None:
    predicted = half(tmp_path, GRID[:2], n=20_000)
    measured = half(tmp_path, GRID[:2], "measured", n=50)
    judged = judge_halves(predicted, measured)
    assert any(one.trials_needed for one in judged)
    found = answer(predicted, measured, compare(predicted, measured), judged)
    assert found.sentences[0] == "https.establishment.p99 < 5 s: met in both cases."


def effect(value: float, where: str, half_width: float = 1e6) -> Effect:
    """In ns, in one value of the other choice."""
    interval = Interval(value - half_width, value + half_width)
    return Effect((("link.rtt", where),), Change(value, interval), value, value, 500e6)


def test_a_largest_difference_that_is_not_everywhere_is_up_to() -> None:
    axis = Axis("stack.tls", ("1.2", "1.3"))
    saves, nothing = effect(-60e6, "60 ms"), effect(0.0, "0 ms")
    assert _largest(axis, "1.3", [saves], 0.0) == "TLS 1.3 saves 60.0 ms"
    assert _largest(axis, "1.3", [saves, nothing], 0.0) == "TLS 1.3 saves up to 60.0 ms"
    assert _largest(axis, "1.3", [saves, effect(60e6, "0 ms")], 0.0).startswith("TLS 1.3 ")
    assert "up to" in _largest(axis, "1.3", [saves, effect(60e6, "0 ms")], 0.0)
    assert _largest(axis, "1.3", [nothing], 0.0) == ""


def test_a_tail_that_grows_in_one_place_alone_is_not_told_of_others() -> None:
    axis = Axis("stack.tls", ("1.2", "1.3"))
    median = [effect(-20e6, "60 ms"), effect(10e6, "0 ms")]
    tail = [effect(400e6, "60 ms"), effect(-300e6, "0 ms")]
    told = _of_choice(Choice(axis, "1.3", "1.2", median, tail), 0.0, first=True)
    assert told.endswith("adds up to 400 ms to P99 and elsewhere saves up to 300 ms")
    # Both ends of the median are certain.
    assert "saves 20.0 ms at 60 ms RTT" in told and "adds 10.0 ms at 0 ms RTT" in told


def test_bytes_that_programs_wrote_are_as_uncertain_as_their_means(tmp_path: Path) -> None:
    """No packets were counted: the made-up programs write 915 to 917 B at random."""
    measured = half(tmp_path, GRID[:2], "measured", n=50)
    ids = [cell.case_id for cell in GRID[:2]]
    assert not measured.distribution(ids[0], "bytes.link").values.size
    change = Samples(measured).size_change(*ids)
    assert change.interval.low < change.value < change.interval.high


def asked(folder: Path, text: str = "", overrides: Sequence[tuple[str, str]] = ()) -> str:
    """The question of a study or of flags."""
    predicted = half(folder, GRID[:2], n=50)
    predicted.manifest["study"] |= {"text": text, "overrides": [list(one) for one in overrides]}
    return answer(predicted, None, None, []).question


def test_a_question_has_every_setting_that_is_not_so_by_default(tmp_path: Path) -> None:
    flags = [
        ("stack.session", "resumed"),
        ("stack.certificate", "rsa-2048"),
        ("stack.group", "P-256"),
        ("pattern.response_body", "200 kB"),
        ("pattern.concurrent", "4"),
        ("stack.nagle", "true"),
        ("predict_trials", "50"),
        ("require.https.establishment.p99", "< 5 s"),
    ]
    said = asked(tmp_path / "flags", overrides=flags)
    assert "TLS 1.2, session resumed" in said
    assert said.endswith(
        "; certificate rsa-2048; response_body 200 kB; 4 connections at once; Nagle's algorithm."
    )
    text = 'name = "x"\nlink = "lte-m"\n[stack]\ngroup = "x25519"\nnagle = false\n[key_store]\n'
    text += 'profile = "card"\nsession_open = false\n[link]\nrate = "1 Mbit/s"\n'
    said = asked(tmp_path / "file", text.replace('link = "lte-m"\n', ""))
    assert said.endswith("; group x25519; opening the card's session; rate 1 Mbit/s.")
    other = asked(tmp_path / "dds", overrides=[("stack", "dds/builtin/AES-128-GCM")])
    assert other.endswith("; crypto_aead AES-128-GCM.")
    # What was varied is said already.
    assert "link.rtt" not in said and said.count("RTT") == 1


@pytest.mark.parametrize(
    ("failed", "words"),
    [(100, "and has no P99, since more than 1 % fail."), (2_000, "has no median time, since half")],
)
def test_what_fails_too_often_has_no_quantile(tmp_path: Path, failed: int, words: str) -> None:
    written = Half("predicted", [Cell()], 1_000, seed=1, failed=failed)
    found = answer(Results.open(written.write(tmp_path)), None, None, [])
    assert words in found.sentences[0] and "without end" not in found.sentences[0]


@pytest.mark.parametrize(
    ("predicted", "measured", "told"),
    [
        (Verdict.UNDECIDED, Verdict.FAIL, "missed."),
        (Verdict.UNDECIDED, Verdict.PASS, "undecided (why)."),
        (Verdict.FAIL, Verdict.UNDECIDED, "missed."),
        (Verdict.PASS, Verdict.UNDECIDED, "met."),
    ],
)
def test_no_reason_to_be_undecided_stands_beside_a_verdict(
    predicted: Verdict, measured: Verdict, told: str
) -> None:
    bound = Requirement("https.establishment", "p50", "<", 1e9, "p50 < 1 s")
    judged = [
        Judged(bound, "c", "c", half, 1e9, Interval(0.0, 2e9), 100.0, verdict, None, why)
        for half, verdict in (("predicted", predicted), ("measured", measured))
        for why in ["why" if verdict is Verdict.UNDECIDED else ""]
    ]
    assert deadlines.sentences(judged) == [f"p50 < 1 s: {told}"]


def test_what_programs_wrote_is_not_called_bytes_on_the_link(tmp_path: Path) -> None:
    """A measurement counts no packets: its sizes are no part of what a prediction has."""
    measured = half(tmp_path, GRID, "measured", n=50)
    found = answer(None, measured, None, [])
    assert not any("on the link" in one for one in found.sentences)
    table = cases_table(found)
    assert [one.head for one in table.columns][-2:] == ["B written", "+/- B"]
    rows = json.loads(render([table], Format.JSON))["tables"][0]["rows"]
    assert {row["link_b"] for row in rows} == {None}
    assert {row["delta_link_b"] for row in rows} == {None}
    assert all(row["sent_b"] > 0.0 for row in rows)


def test_a_measurement_alone_says_what_to_do_next(tmp_path: Path) -> None:
    measured = half(tmp_path, GRID[:1], "measured", n=50)
    assert badge(measured, None).text == "measured, and nothing predicted to hold it against"
    half(tmp_path, GRID[:1], n=50)
    assert "`warifu compare`" in badge(measured, None).text


def test_the_inputs_of_the_weakest_evidence_are_named(tmp_path: Path) -> None:
    predicted = half(tmp_path, GRID[:1], n=50)
    values = {"a": ("published", "1 ms"), "b": ("measured", "9 s"), "c": ("published", "2 s")}
    predicted.manifest |= {
        "evidence": ["published"],
        "figures": [
            {"id": name, "name": name, "kind": kind, "value": value, "unit": "ns"}
            for name, (kind, value) in values.items()
        ],
    }
    assert badge(predicted, None).text.endswith("rests on published values: c, a")
