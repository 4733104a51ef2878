# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu.ask`: the answers are the command line's, mistakes are exceptions of one line, and
nothing is printed or left behind."""

from __future__ import annotations

import ast
import doctest
import gc
import inspect
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import warifu as package
from support.commands import Run
from support.paths import ROOT
from warifu import question, study
from warifu.cli.choices import FLAGS

PAGE = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
#: GR-PEACH's figures are of servers with RSA certificates.
CASE: dict[str, Any] = {
    "device": "gr-peach", "server": "xeon-2-5-ghz-vm", "link": "lte-m",
    "stack": "https/tls1.3/server", "certificate": "rsa-2048", "trials": 50,
}  # fmt: skip

pytestmark = pytest.mark.usefixtures("elsewhere")


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made, and nothing else is."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(question.files, "temporary_folder", lambda: folder)
    return folder


def test_examples_of_the_page_run_as_they_stand(capfd: pytest.CaptureFixture[str]) -> None:
    assert len(BLOCKS) >= 5
    names: dict[str, Any] = {}
    for block in BLOCKS:
        exec(compile(block, "docs/reference/python.md", "exec"), names)
    out, err = capfd.readouterr()
    assert "GR-PEACH" in out.upper()
    assert "warifu.ask: link.loss is" in out
    assert err == ""


def test_readme_s_example_runs(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    ((code),) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert {path.name for path in tmp_path.iterdir()} == {"asked.csv", "asked.html"}


def test_examples_of_docstrings_run() -> None:
    found = [
        one
        for one in doctest.DocTestFinder(exclude_empty=True).find(question, "warifu.question")
        if one.examples
    ]
    assert found
    for one in found:
        assert doctest.DocTestRunner().run(one).failed == 0, one.name


def test_page_and_package_name_the_same() -> None:
    named = set(re.findall(r"\b[A-Za-z_]+\b", PAGE))
    assert [name for name in package.__all__ if name not in named | {"__version__"}] == []
    for name in package.__all__:
        assert getattr(package, name) is not None
    parameters = inspect.signature(package.ask).parameters
    rows = " ".join(line for line in PAGE.splitlines() if line.startswith("| "))
    assert [one for one in parameters if one != "settings" and f"`{one}`" not in rows] == []
    assert [name for name in study.SHORT_NAMES if f"`{name}`" not in rows] == []


def test_short_names_are_the_flags_of_the_command_line() -> None:
    flags = {name: path for name, (path, _) in FLAGS.items() if name != path}
    assert flags | {"nagle": "stack.nagle"} == study.SHORT_NAMES


def test_answers_are_those_of_the_command_line(warifu: Run, tmp_path: Path) -> None:
    asked = package.ask(**CASE, vary={"rtt": ["60 ms", "120 ms"]}, nagle=True, seed=7)
    code, _, err = warifu(
        "predict", "--device", "gr-peach", "--server", "xeon-2-5-ghz-vm", "--link", "lte-m",
        "--stack", "https/tls1.3/server", "--certificate", "rsa-2048", "--nagle", "--set",
        "predict_trials=50", "--set", "seed=7", "--set", 'vary.link.rtt=["60 ms", "120 ms"]',
        "--out", tmp_path / "there",
    )  # fmt: skip
    assert code == 0, err
    there = package.Results.open(tmp_path / "there" / "predicted")
    assert [case.id for case in asked.cases] == list(there.cases)
    for case_id in there.cases:
        assert asked.results.rows(case_id).drop("run_id").equals(there.rows(case_id).drop("run_id"))


def test_a_frame_has_a_column_for_each_setting_and_units_in_its_names(temporary: Path) -> None:
    frame = package.ask(**CASE, vary={"session": ["full", "resumed"]}).frame()
    assert frame["session"].to_list() == ["full", "psk_dhe_ke"], "as TLS 1.3 resumes"
    assert frame["device"].unique().to_list() == ["gr-peach"]
    assert frame["rtt_ns"].n_unique() == 1
    assert frame["p50_ns"].is_sorted(descending=True)
    assert frame["delta_ns"].to_list()[0] == 0.0
    assert "coap_type" not in frame.columns


def test_nanoseconds_of_a_frame_are_whole(temporary: Path) -> None:
    frame = package.ask(**CASE, loss="2 %", vary={"rtt": ["60 ms", "61 ms", "67 ms"]}).frame()
    times = [name for name in frame.columns if name.endswith("_ns")]
    assert {"mean_ns", "delta_ns", "p99_high_ns"} <= set(times)
    for name in times:
        whole = [one for one in frame[name].to_list() if one is not None and math.isfinite(one)]
        assert all(one == round(one) for one in whole), name


def test_baseline_may_be_a_number(temporary: Path) -> None:
    asked = package.ask(**CASE, vary={"rtt": ["0 ms", "90 ms"]}, baseline=2)
    assert asked.answer.baseline == asked.cases[1].id
    with pytest.raises(package.ResultsError, match="names no case: give a number from 1 to 2"):
        package.ask(**CASE, vary={"rtt": ["0 ms", "90 ms"]}, baseline=3)


def test_requirements_and_the_baseline_are_in_the_answer(temporary: Path) -> None:
    bounds: list[Any] = [
        ["https.establishment.p99 < 1 ms"],
        {"https.establishment.p99": "< 1 ms"},
    ]
    for require in bounds:
        asked = package.ask(**CASE, vary={"rtt": ["0 ms", "90 ms"]}, require=require, baseline="2")
        assert [row.deadline for row in asked.answer.rows] == ["missed", "missed"]
        assert asked.answer.baseline == asked.cases[1].id


def test_a_study_s_file_is_asked_with_choices_of_ones_own(temporary: Path) -> None:
    Path("s.toml").write_text(
        'name = "s"\ndevice = "gr-peach"\nserver = "xeon-2-5-ghz-vm"\n[stack]\n'
        'authentication = "server"\ncertificate = "rsa-2048"\n'
    )
    asked = package.ask("s.toml", rtt="90 ms", trials=20)
    assert (asked.answer.study, asked.cases[0].columns["rtt_ns"]) == ("s", 90_000_000)


def test_nothing_is_printed_and_nothing_left(
    temporary: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = package.ask(**CASE)
    assert [*temporary.iterdir()] == [asked.folder]
    assert repr(asked)
    del asked
    gc.collect()
    assert [*temporary.iterdir()] == []
    with package.ask(**CASE) as asked:
        assert asked.frame().height == 1
    assert [*temporary.iterdir(), *tmp_path.iterdir()] == []
    with pytest.raises(ValueError, match=r"is closed .* out=FOLDER"):
        asked.frame()
    asked.close()
    assert asked.answer.rows
    assert capfd.readouterr() == ("", "")


def test_what_is_asked_with_out_stays(temporary: Path, tmp_path: Path) -> None:
    with package.ask(**CASE, out="kept") as asked:
        pass
    assert asked.frame().height == 1
    assert package.Results.open(tmp_path / "kept" / "predicted").study == "question"
    assert asked.report("page.html").read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(package.AnotherStudy, match="holds results of the study 'question'"):
        package.ask(**CASE, out="kept", name="other")
    assert [*temporary.iterdir()] == []


def test_progress_is_reported(temporary: Path) -> None:
    seen: list[tuple[int, int, int]] = []
    package.ask(**CASE, progress=lambda *done: seen.append(done))
    assert all(cases == 1 for _, cases, _ in seen)


MISTAKES: Mapping[str, tuple[Callable[[], object], str]] = {
    "value": (lambda: package.ask(**CASE, loss="120 %"), r'link\.loss is "120 %": expected '),
    "profile": (
        lambda: package.ask(**CASE | {"device": "nrf"}),
        r'device is "nrf": expected one of ',
    ),
    "key": (lambda: package.ask(**CASE, colour="red"), r"colour is unknown; expected a setting"),
    "axis": (
        lambda: package.ask(**CASE, vary={"link.rrt": ["1 ms"]}),
        r"vary\.link\.rrt is unknown; did you mean rtt",
    ),
    "axis's values": (lambda: package.ask(**CASE, vary={"rtt": "1 ms"}), r"vary\.link\.rtt is"),
    "axes without values": (lambda: package.ask(**CASE, vary="rtt"), "vary is .rtt.: expected"),
    "type": (lambda: package.ask(**CASE, loss=[1]), r"link\.loss is \[1\]: expected text"),
    "bound": (lambda: package.ask(**CASE, require=["x"]), r"require is 'x': expected a bound"),
    "metric": (lambda: package.ask(**CASE, require={"x.p99": "< 1 s"}), r".*x\.p99.*"),
    "setting twice": (
        lambda: package.ask(**CASE, rtt="70 ms", **{"link.rtt": "60 ms"}),
        r"link\.rtt is given twice: give it once$",
    ),
    "trials twice": (lambda: package.ask(**CASE, predict_trials=9), "predict_trials is given tw"),
    "axis twice": (
        lambda: package.ask(**CASE, vary={"rtt": ["1 ms"], "link.rtt": ["2 ms"]}),
        r"vary\.link\.rtt is given twice",
    ),
    "bound twice": (
        lambda: package.ask(**CASE, require=["https.total.p99 < 1 s", "https.total.p99 < 2 s"]),
        r"require\.https\.total\.p99 is given twice",
    ),
    "baseline": (
        lambda: package.ask(**CASE, baseline=True),
        r"baseline is True: expected a case's label, a part of it, or its number from 1",
    ),
    "threads": (lambda: package.ask(**CASE, threads=0), "threads is 0: expected a whole number"),
    "threads below": (lambda: package.ask(**CASE, threads=-1), "threads is -1: expected"),
    "threads above": (lambda: package.ask(**CASE, threads=2**70), r"threads is \d+: expected"),
    "threads as text": (lambda: package.ask(**CASE, threads="2"), "threads is '2': expected"),
    "out in /proc": (
        lambda: package.ask(**CASE, out="/proc/x"),
        r"out is '/proc/x', where nothing can be written \(No such file or directory\): choose",
    ),
    "out below a file": (
        lambda: package.ask(**CASE, out=f"{__file__}/x"),
        r"out is '.*', where nothing can be written \(Not a directory\): choose another folder$",
    ),
    "out with a zero": (lambda: package.ask(**CASE, out="a\0b"), r"out is 'a\\x00b', where"),
    "terminal": (lambda: package.ask(**CASE | {"device": "\x1b[31m"}), r'device is ".*expected'),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_one_line(
    what: str, temporary: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ask, words = MISTAKES[what]
    with pytest.raises((package.WarifuError, package.StudyError)) as caught:
        ask()
    text = str(caught.value)
    assert re.match(f"warifu.ask: {words}", text), text
    assert text.isprintable()
    assert [*temporary.iterdir()] == []
    assert capfd.readouterr() == ("", "")


def test_a_baseline_that_is_none_leaves_nothing(temporary: Path) -> None:
    with pytest.raises(package.ResultsError):
        package.ask(**CASE, baseline="nothing like it")
    assert [*temporary.iterdir()] == []


def test_ctrl_c_removes_the_temporary_folder(tmp_path: Path) -> None:
    script = f"import warifu\nwarifu.ask(**{CASE | {'trials': 20_000_000}!r})\n"
    started = subprocess.Popen(
        [sys.executable, "-c", script], env=os.environ | {"TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    end = time.monotonic() + 60
    while not any(tmp_path.glob("warifu-*/*")) and time.monotonic() < end:
        time.sleep(0.05)
    assert any(tmp_path.glob("warifu-*"))
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=60)
    assert "KeyboardInterrupt" in err
    assert [*tmp_path.iterdir()] == []


def test_what_is_shown_moves_no_cursor_and_makes_no_elements(temporary: Path) -> None:
    asked = package.ask(**CASE, vary={"pattern.path": ["/", "/<script>alert(1)</script>"]})
    page = asked._repr_html_()
    assert "<script" not in page
    assert "<table>" in page
    assert asked.answer.question in " ".join(repr(asked).split())


def test_types_hold_for_whoever_uses_the_package(tmp_path: Path) -> None:
    """mypy, strict and without this project's settings, on what the page shows."""
    program = tmp_path / "program.py"
    lines = "\n".join(BLOCKS)
    ast.parse(lines)
    program.write_text(f"{lines}\nreveal_type(frame)\nreveal_type(asked.answer.rows[0].p50)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--cache-dir",
         tmp_path / "cache", program],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
        env={name: one for name, one in os.environ.items() if name != "MYPYPATH"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "polars.dataframe.frame.DataFrame" in done.stdout
    assert 'Revealed type is "float"' in done.stdout or "builtins.float" in done.stdout
