# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What every verb opens with: the answer, within 80 columns, the same as data in every format."""

from __future__ import annotations

import csv
import io
import json
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from support.commands import Run
from support.paths import ROOT
from support.synthetic import Cell, study
from warifu.cli import answers, screen
from warifu.cli.errors import FAILED, OK, USAGE
from warifu.cli.formats import Format
from warifu.results import read_manifest
from warifu.results.repeating import command

ENDS = (
    "--device",
    "xeon-2-5-ghz-vm",
    "--server",
    "xeon-2-5-ghz-vm",
    "--set",
    "predict_trials=2000",
)
SCHEMA = json.loads((ROOT / "docs" / "reference" / "output.schema.json").read_text())
GRID = [
    Cell(tls, session, rtt)
    for tls in ("1.2", "1.3")
    for session in ("full", "resumed")
    for rtt in (0, 60, 150)
]

#: Questions that differ in every way that changes what is printed, and part of each answer.
QUESTIONS = {
    "one case": ((), "A connection takes"),
    "two options": (("--vary", "stack.tls=1.2,1.3"), "TLS 1.3 "),
    "eight options": (
        (
            "--link", "nb-iot", "--vary", "stack.tls=1.2,1.3", "--vary",
            "stack.session=full,resumed", "--vary", "stack.authentication=server,mutual",
            "--require", "https.establishment.p50 < 5 s",
        ),
        "https.establishment.p50 < 5 s: met in ",
    ),
    "key stores": (
        ("--vary", "key_store=software,iot-safe-sakomoto,iot-safe-sakomoto-agent"),
        "iot-safe-sakomoto adds ",
    ),
    "losses": (("--vary", "link.loss=0 %,2 %", "--rtt", "60 ms"), "2 % loss "),
    "many": (("--vary", f"link.rtt={','.join(f'{ms} ms' for ms in range(40, 80))}"), "round trips"),
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_predict_opens_with_the_answer_in_80_columns(warifu: Run, name: str) -> None:
    flags, part = QUESTIONS[name]
    code, out, err = warifu("predict", *ENDS, *flags, "--out", "here")
    assert code in {OK, FAILED}, err
    assert out.startswith("question: HTTPS with TLS "), out
    assert "device xeon-2-5-ghz-vm" in " ".join(out.split())
    assert part in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80, out
    assert len(out.splitlines()) < 60


@pytest.mark.parametrize("verb", ["compare", "report"])
def test_comparing_and_reporting_fit_80_columns(warifu: Run, verb: str) -> None:
    study(Path("s"), GRID, n=300)
    form = ("--format", "table") if verb == "report" else ()
    code, out, _ = warifu(verb, "s", *form)
    assert code in {OK, FAILED}
    wide = [line for line in out.splitlines() if len(line) > 80]
    # A report's tables have more numbers than a terminal is wide; what a verb opens with fits.
    assert not wide or verb == "report"


@pytest.mark.parametrize(
    "words",
    [
        ("trace", *ENDS, "--stack", "https/tls1.3", "--authentication", "mutual"),
        ("trace", *ENDS, "--stack", "https/tls1.3", "--costs"),
        ("m3", "chips"),
        ("dds", "discovery", "--nodes", "2,20", "--rtt", "20 ms"),
        ("dds", "advise", "--device", "raspberry-pi-3", "--payload", "1 MiB"),
    ],
    ids=lambda words: f"{words[0]} {words[-1]}",
)
def test_other_verbs_fit_a_terminal_of_80_columns(
    warifu: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(screen, "columns", lambda _: 80)
    code, out, err = warifu(*words)
    assert code == OK, err
    assert not [line for line in out.splitlines() if len(line) > 80]


def test_compare_says_what_failed_and_why(warifu: Run) -> None:
    study(Path("s"), [Cell(), Cell(rtt_ms=150)], n=300, scale=1.05)
    code, out, _ = warifu("compare", "s", "--worst-first")
    assert code == FAILED
    said = " ".join(out.split())
    assert "outside its gates in 2: median error" in said
    assert "failed: RTT 150 ms: the predicted" in said and "below the measured one" in said


def test_a_run_ends_in_about_fifteen_lines(warifu: Run) -> None:
    code, out, err = warifu(
        "run", *ENDS, "--no-measure", "--vary", "stack.tls=1.2,1.3",
        "--vary", "stack.session=full,resumed", "--out", "here",
    )  # fmt: skip
    assert code == OK, err
    lines = out.splitlines()
    assert len(lines) <= 20 and max(map(len, lines)) <= 80
    heads = [line.partition(":")[0] for line in lines]
    assert heads[-1] == "next" or "next" in heads[-2:]
    assert {"question", "checked", "report"} <= set(heads)
    code, brief, _ = warifu("run", *ENDS, "--no-measure", "--brief", "--out", "here")
    assert code == OK and len(brief.splitlines()) <= 8
    assert brief.startswith("answer: A connection takes")


@pytest.mark.parametrize(
    ("bound", "code", "word"), [("< 5 s", OK, "met"), ("< 1 ms", FAILED, "missed")]
)
def test_predict_judges_requirements(warifu: Run, bound: str, code: int, word: str) -> None:
    for place, more in (("flag", ("--require", f"https.establishment.p99 {bound}")), ("set", ())):
        flags = more or ("--set", f"require.https.establishment.p99={bound}")
        got, out, err = warifu("predict", *ENDS, "--rtt", "60 ms", *flags, "--out", place)
        assert (got, f"https.establishment.p99 {bound}: {word}." in out) == (code, True), err
    Path("s.toml").write_text(
        'name = "s"\npredict_trials = 2000\n'
        'device = "xeon-2-5-ghz-vm"\nserver = "xeon-2-5-ghz-vm"\n'
        f'[link]\nrtt = "60 ms"\n[require]\n"https.establishment.p99" = "{bound}"\n'
    )
    assert warifu("predict", "s.toml", "--out", "file")[0] == code


@pytest.mark.parametrize("wrong", ["https.establishment.p99", "< 3 s", "", "https.x.p99 < 3 s"])
def test_a_wrong_requirement_is_one_line(warifu: Run, wrong: str) -> None:
    code, _, err = warifu("predict", *ENDS, "--require", wrong)
    assert code == USAGE
    assert len(err.splitlines()) == 1 and "require" in err


@pytest.mark.parametrize("wrong", ["stack.session", "=full", "stack.session=", "stack.sesion=a,b"])
def test_a_wrong_axis_is_one_line(warifu: Run, wrong: str) -> None:
    code, _, err = warifu("predict", *ENDS, "--vary", wrong)
    assert code == USAGE
    assert len(err.splitlines()) == 1 and "vary" in err


def _as_json(warifu: Run, *arguments: str) -> dict[str, Any]:
    _, out, _ = warifu(*arguments, "--format", "json")
    whole: dict[str, Any] = json.loads(out)
    jsonschema.validate(whole, SCHEMA)
    return whole


def test_json_has_one_shape(warifu: Run) -> None:
    axis = ("--vary", "stack.tls=1.2,1.3", "--require", "https.establishment.p99 < 5 s")
    study(Path("s"), GRID[:2], n=300)
    for verb in (
        ("predict", *ENDS, *axis, "--out", "p"),
        ("run", *ENDS, *axis, "--no-measure", "--out", "r"),
        ("compare", "s"),
        ("report", "s"),
    ):
        whole = _as_json(warifu, *verb)
        assert whole["answer"]["sentences"], verb
        assert whole["tables"][0]["rows"], verb
        assert any("requirement" in table["title"] for table in whole["tables"][1:]) or (
            verb[0] == "report" and whole["tables"][0]["title"] == "requirements"
        )
    assert "answer" not in _as_json(warifu, "init", "--list")


@pytest.mark.parametrize("verb", ["predict", "run"])
def test_csv_is_one_table_with_settings_and_verdicts(warifu: Run, verb: str) -> None:
    bound = "https.establishment.p99 < 5 s"
    flags = ("--vary", "stack.tls=1.2,1.3", "--require", bound)
    more = ("--no-measure",) if verb == "run" else ()
    code, out, err = warifu(verb, *ENDS, *flags, *more, "--out", "h", "--format", "csv")
    assert code == OK, err
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["tls"] for row in rows] == ["1.2", "1.3"]
    assert [row[bound] for row in rows] == ["met", "met"]
    for name in ("p50_ns", "delta_ns", "rtt_ns", "device", "session", "deadline", "link_b"):
        assert all(row[name] for row in rows), name


def test_csv_of_a_comparison_has_the_settings(warifu: Run) -> None:
    study(Path("s"), GRID[:2], n=300)
    rows = list(csv.DictReader(io.StringIO(warifu("compare", "s", "--format", "csv")[1])))
    assert {row["rtt_ns"] for row in rows} == {"0", "60000000"}
    assert {row["deadline"] for row in rows} == {"met"}


def test_a_baseline_is_chosen_by_number_or_label(warifu: Run) -> None:
    flags = ("--vary", "stack.tls=1.2,1.3", "--rtt", "60 ms", "--out", "here")
    for baseline in ("2", "tls 1.3"):
        _, out, _ = warifu("predict", *ENDS, *flags, "--baseline", baseline)
        assert "Baseline: tls 1.3." in out and "- TLS 1.2 adds " in out
    code, _, err = warifu("predict", *ENDS, *flags, "--baseline", "3")
    assert code == USAGE and "give a number from 1 to 2" in err


def test_a_printed_command_runs_as_it_is_printed(warifu: Run) -> None:
    """What a report offers for repetition, lists, quotes and bounds among it."""
    flags = (
        "--vary", 'stack.tls=["1.2", "1.3"]', "--set", "link.rtt=60 ms", "--set",
        'vary.link.loss=["0 %", "2 %"]', "--require", "https.establishment.p99 < 5 s",
        "--set", "require.bytes.link.mean=< 8 KiB",
    )  # fmt: skip
    assert warifu("predict", *ENDS, *flags, "--out", "first")[0] == OK
    before = read_manifest(Path("first") / "predicted")
    words = shlex.split(command(before, "predict"))
    assert words[:2] == ["warifu", "predict"]
    assert warifu(*words[1:], "--out", "again")[0] == OK
    after = read_manifest(Path("again") / "predicted")
    # The same study, whatever the order of its flags.
    ids = [{case["case_id"] for case in manifest["cases"]} for manifest in (before, after)]
    assert ids[0] == ids[1] and len(ids[0]) == 4
    assert sorted(before["require"]) == sorted(after["require"])
    assert sorted(before["study"]["overrides"]) == sorted(after["study"]["overrides"])


def test_cases_without_costs_are_left_out_where_others_have_them(warifu: Run) -> None:
    code, out, err = warifu(
        "predict", *ENDS[2:], "--device", "gr-peach", "--authentication", "server",
        "--vary", "stack.certificate=ecdsa_secp256r1,rsa-2048", "--out", "h",
    )  # fmt: skip
    assert code == OK, err
    assert "not predicted: certificate ecdsa_secp256r1: " in err
    assert "A connection takes" in out


def test_trials_of_a_prediction_are_called_without_effect(warifu: Run) -> None:
    _, _, err = warifu("predict", *ENDS, "--set", "trials=500", "--out", "h")
    assert "trials has no effect on a prediction" in err and "predict_trials=N" in err


@pytest.mark.parametrize("link", ["lte-m", "nb-iot"])
def test_cellular_answers_say_what_is_not_in_them(warifu: Run, link: str) -> None:
    _, out, _ = warifu("predict", *ENDS, "--link", link, "--out", "h")
    assert f"Not included over {link}: waking the radio" in " ".join(out.split())
    _, out, _ = warifu("predict", *ENDS, "--link", "ethernet", "--out", "h")
    assert "Not included" not in out


def test_the_time_left_counts_down() -> None:
    from warifu.cli.screen import TimeLeft

    clock = TimeLeft()
    assert clock.left(0, 10, 0.0) is None
    assert clock.left(1, 10, 10.0) == pytest.approx(90.0)
    # A case that lasts longer than the others foresees no later end.
    assert clock.left(1, 10, 15.0) == pytest.approx(85.0)
    assert clock.left(1, 10, 99.0) == pytest.approx(1.0)
    assert clock.left(1, 10, 101.0) is None
    assert clock.left(2, 10, 102.0) == pytest.approx(408.0)


@pytest.mark.usefixtures("elsewhere")
def test_a_case_without_costs_meets_no_requirement(warifu: Run, tmp_path: Path) -> None:
    """gr-peach has no figure of TLS 1.2, so nobody knows whether it meets the bound."""
    question = (
        *("predict", "--vary", "device=nrf52840,gr-peach", "--server", "xeon-2-5-ghz-vm"),
        *("--link", "nb-iot", "--stack", "https/tls1.2/server", "--set", "predict_trials=400"),
        *("--out", str(tmp_path)),
    )
    code, out, _ = warifu(*question)
    assert code == OK and "Not predicted: device gr-peach" in out
    code, out, _ = warifu(*question, "--require", "https.establishment.p99 < 100 s")
    assert code == FAILED and "https.establishment.p99 < 100 s: met" in out


class _Terminal(io.StringIO):
    """A terminal of so many columns."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_an_answer_is_as_wide_as_its_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    folder = study(tmp_path / "s", GRID, n=100)
    out, err = _Terminal(), _Terminal()
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    answers.show(answers.of_halves(folder / "predicted", None, None, None), Format.TABLE)
    screen.warn("a machine stands in for this one, " * 5 + "and results: " + "x" * 90)
    lines = [*out.getvalue().splitlines(), *err.getvalue().splitlines()[:-1]]
    assert max(map(len, lines)) <= columns
    assert "x" * 90 in err.getvalue()


def test_a_negative_time_left_is_none() -> None:
    assert screen._span(-0.3) == "0 s"
