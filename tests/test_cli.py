# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The command line: exit codes, one-line errors, choices, and nothing lost on the way."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from synthetic import Cell, Half
from synthetic import study as made_up

from warifu import _core, cli, tools
from warifu import study as studies
from warifu.calibrate import environment, host, profile, variants
from warifu.cli import calibration, halves, ownership, templates, verdicts
from warifu.cli.errors import ENVIRONMENT, FAILED, INTERRUPTED, OK, USAGE, guarded
from warifu.compare.store import load
from warifu.lab.errors import LabUnavailable, ResultsMixed

ROOT = Path(__file__).resolve().parents[1]
DEVICE = ("--device", "gr-peach", "--server", "gr-peach")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test has a folder of its own, and the shipped profiles."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WARIFU_PROFILES", raising=False)
    yield


@pytest.fixture
def warifu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line in this process; its exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["warifu", *arguments])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        out, err = capsys.readouterr()
        return int(exit_.value.code or 0), out, err

    return run


Run = Callable[..., tuple[int, str, str]]


def one_line(err: str) -> str:
    lines = err.strip().splitlines()
    assert len(lines) == 1, err
    assert "Traceback" not in err
    return lines[0]


def test_help_teaches_and_gives_the_exit_codes(warifu: Run) -> None:
    code, out, _ = warifu("--help")
    assert code == OK
    verbs = ("predict", "measure", "compare", "run", "report", "trace", "init", "calibrate")
    for verb in (*verbs, "doctor", "version"):
        assert f"\n  {verb}" in out
    assert "130 interrupted" in " ".join(out.split())
    for verb in verbs:
        arguments = (verb, "host") if verb == "calibrate" else (verb,)
        code, out, _ = warifu(*arguments, "--help")
        assert code == OK
        assert "Example" in out
        assert "Exit codes: 0 ok" in out


def test_help_gives_the_defaults_that_the_core_takes(warifu: Run) -> None:
    _, out, _ = warifu("predict", "--help")
    words = " ".join(out.split())
    profiles = list(studies.profile_texts(studies.profile_folders()))
    profiles.append(("device", "this-host", calibration._stand_in(), "stand-in"))
    case = _core.Study.from_choices([("trials", "1")], profiles).cases[0].columns
    keys = ("device", "key_store", "link", "session", "certificate", "chain_length")
    for key in keys:
        assert f"{case[key]} (default)" in words, key
    assert f"{case['authentication']} (default)" in words
    assert f"{case['server']} by default" in words
    assert f"{case['group']} (P-256, default)" in words
    assert f"https/tls{case['tls']} (default)" in words


def test_nothing_heavy_is_loaded_to_start() -> None:
    """The time of a start depends on the machine; what it loads does not."""
    script = (
        "import sys; sys.argv = ['warifu', '--help']\n"
        "from warifu.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'polars', 'numpy', 'scipy', 'altair', 'rich', 'vl_convert', 'warifu._core'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("frobnicate",), "No such command 'frobnicate'"),
        (("predict", "--bogus"), "No such option: --bogus"),
        (("predict",), "name a study's file, or say the case by flags"),
        (("predict", "nope.toml"), "nope.toml: is not there: name a study, or make one"),
        (("predict", "."), "is a folder"),
        (("trace", *DEVICE, "--rtt", "60"), 'link.rtt is "60": expected a duration'),
        (("trace", *DEVICE, "--loss", "1.2"), "expected a probability"),
        (("trace", *DEVICE, "--set", "link.rt=60 ms"), "did you mean rtt?"),
        (("trace", *DEVICE, "--set", "60 ms"), "expected PATH=VALUE"),
        (
            ("trace", *DEVICE, "--rtt", "1 ms", "--set", "link.rtt=2 ms"),
            "link.rtt is given twice, by --rtt and --set: give it once",
        ),
        (("trace", *DEVICE, "--case", "7"), "expected a number from 1 to 1"),
        (("compare", "nowhere"), "is not there: name a folder of results, or a study's file"),
        (("report", "nowhere"), "is not there: name a folder of results, or a study's file"),
        (("init", "--template", "toaster"), "expected one of"),
        (("compare", "x", "--format", "pdf"), "'pdf' is not one of"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(
    warifu: Run, arguments: tuple[str, ...], words: str
) -> None:
    code, out, err = warifu(*arguments)
    assert code == USAGE
    assert out == ""
    assert words in one_line(err)


def test_a_mistake_in_a_file_names_file_and_key(warifu: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text('name = "bad"\ndevice = "gr-peach"\nserver = "gr-peach"\n[link]\nlos = "2 %"\n')
    code, _, err = warifu("predict", str(path))
    assert code == USAGE
    line = one_line(err)
    assert "bad.toml" in line
    assert "link.los" in line
    assert "loss" in line
    assert not (tmp_path / "results").exists()


def test_a_trace_needs_no_file(warifu: Run) -> None:
    code, out, err = warifu("trace", *DEVICE, "--stack", "https/tls1.3", "--rtt", "60 ms")
    assert (code, err) == (OK, "")
    assert out.startswith("HTTPS, TLS 1.3")
    assert "ClientHello" in out
    code, request, _ = warifu("trace", *DEVICE, "--request")
    assert request.startswith("GET / HTTP/1.1")


STUDY = """name = "three"
device = "gr-peach"
server = "gr-peach"
predict_trials = 50
[vary]
"link.rtt" = ["0 ms", "60 ms", "150 ms"]
[require]
"https.establishment.p99" = "< 5 s"
"""


def test_a_case_is_chosen_by_number_or_label(warifu: Run, tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(STUDY)
    assert warifu("trace", "three.toml", "--case", "3")[0] == OK
    assert warifu("trace", "three.toml", "--case", "rtt 60 ms")[0] == OK
    code, _, err = warifu("trace", "three.toml", "--case", "rtt")
    assert code == USAGE
    assert "names several cases; labels are such as: rtt 0 ms; rtt 60 ms" in one_line(err)


def test_flags_override_a_file(tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(STUDY)
    loaded = studies.load("three.toml", [("link.rtt", "80 ms"), ("trials", "7")])
    assert [case.columns["rtt_ns"] for case in loaded.study.cases] == ["80000000"]
    assert loaded.study.trials == 7


def test_a_manifest_tells_where_everything_comes_from(tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(STUDY)
    loaded = studies.load("three.toml")
    manifest = studies.manifest(loaded)
    assert manifest["study"] == {
        "name": "three",
        "sha256": studies.sha256(STUDY),
        "text": STUDY,
    }
    assert len(manifest["cases"]) == len(manifest["labels"]) == len(manifest["inputs"]) == 3
    assert ("device", "gr-peach") in {(one["kind"], one["name"]) for one in manifest["profiles"]}
    assert all(one["kind"] != "device" or one["name"] == "gr-peach" for one in manifest["profiles"])
    assert manifest["require"][0][:3] == ["https.establishment", "p99", "<"]
    json.dumps(manifest)


def test_run_ids_of_profiles_are_calibration_runs() -> None:
    text = 'run_id = "a"\n[[operation]]\nrun_id = "b"\n[x]\nrun_ids = ["c"]\n'
    profiles = [("device", "d", text, "d.toml")]
    assert studies._calibration_run_ids(profiles) == ["a", "b", "c"]


def test_own_profiles_come_before_those_that_are_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "mine" / "devices"
    own.mkdir(parents=True)
    (own / "gr-peach.toml").write_text("mine")
    monkeypatch.setenv("WARIFU_PROFILES", str(tmp_path / "mine"))
    texts = list(studies.profile_texts(studies.profile_folders()))
    assert [text for kind, name, text, _ in texts if name == "gr-peach"] == ["mine"]
    assert any(name == "loopback" for _, name, _, _ in texts)
    monkeypatch.setenv("WARIFU_PROFILES", str(tmp_path / "none"))
    with pytest.raises(studies.StudyError, match="is not a folder"):
        studies.profile_folders()


def test_init_overwrites_only_when_told(warifu: Run, tmp_path: Path) -> None:
    code, _, err = warifu("init", "meter.toml")
    assert code == OK
    assert "warifu run meter.toml" in err
    written = (tmp_path / "meter.toml").read_text()
    (tmp_path / "meter.toml").write_text("mine")
    code, _, err = warifu("init", "meter.toml")
    assert code == USAGE
    assert "--force" in one_line(err)
    assert (tmp_path / "meter.toml").read_text() == "mine"
    assert warifu("init", "meter.toml", "--force")[0] == OK
    assert (tmp_path / "meter.toml").read_text() == written


def test_what_the_readme_says_of_init_makes_a_study(tmp_path: Path) -> None:
    """By a shell, as a reader would: a redirection must not leave an empty study behind."""
    words = " ".join((ROOT / "README.md").read_text().split())
    found = re.findall(r"`warifu (init --template [^`]*)`", words)
    assert len(found) == 1
    for arguments in (*found, "init --template smart-meter - > printed.toml"):
        program = f"{shlex.quote(sys.executable)} -m warifu.cli {arguments}"
        subprocess.run(program, shell=True, check=True, capture_output=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["meter.toml", "printed.toml"]
    assert 'name = "smart-meter"' in (tmp_path / "meter.toml").read_text()
    assert (tmp_path / "printed.toml").read_text() == (tmp_path / "meter.toml").read_text()


def test_templates_are_listed_with_a_sentence_each(warifu: Run) -> None:
    code, out, _ = warifu("init", "--list", "--format", "json")
    assert code == OK
    rows = json.loads(out)["rows"]
    assert "smart-meter" in {row["name"] for row in rows}
    assert all(row["about"].endswith(".") and "SPDX" not in row["about"] for row in rows)


@pytest.mark.parametrize("name", templates.names())
def test_every_template_is_a_good_study(name: str, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    templates.write(name, path, force=False)
    texts = list(studies.profile_texts(studies.profile_folders()))
    texts.append(("device", "this-host", calibration._stand_in(), "stand-in"))
    assert _core.mistakes(path.read_text(), str(path), texts) == []


def test_the_stand_in_serves_every_study_of_this_machine() -> None:
    texts = list(studies.profile_texts(studies.profile_folders()))
    cases = calibration.cases_of([ROOT / "studies" / "first-loop.toml"], texts)
    assert len(cases) == len(set(cases)) == 24


@pytest.mark.parametrize(
    ("raised", "code", "words"),
    [
        (KeyboardInterrupt(), INTERRUPTED, "interrupted"),
        (OSError(errno.ENOSPC, "No space left on device", "x"), ENVIRONMENT, "make room"),
        (PermissionError(errno.EACCES, "Permission denied", "x"), ENVIRONMENT, "may write"),
        (_core.WarifuError("x: no space left on the device: free some"), ENVIRONMENT, "free some"),
        (_core.WarifuError("s.toml: link.rtt is 3"), USAGE, "s.toml: link.rtt is 3"),
        (LabUnavailable("no namespaces\nhere"), ENVIRONMENT, "no namespaces here"),
        (ResultsMixed(Path("m"), "kernel 'a', now it is 'b'", "r"), ENVIRONMENT, "move this one"),
        (ModuleNotFoundError("No module named 'altair'", name="altair"), ENVIRONMENT, "make setup"),
    ],
)
def test_what_is_expected_is_said_in_one_line(
    raised: BaseException, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> int:
        raise raised

    assert guarded(work) == code
    assert words in one_line(capsys.readouterr().err)


def test_what_nobody_foresaw_keeps_its_traceback() -> None:
    def work() -> int:
        raise AssertionError("a bug")

    with pytest.raises(AssertionError, match="a bug"):
        guarded(work)


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    made_up(tmp_path / "s", [Cell(rtt_ms=rtt) for rtt in range(3)], n=20)
    command = f"{sys.executable} -m warifu.cli report s --format md | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert done.returncode == OK, done.stderr
    assert "Traceback" not in done.stderr


def test_compare_prints_every_format_and_keeps_the_result(warifu: Run, tmp_path: Path) -> None:
    made_up(tmp_path / "s", [Cell()], n=300)
    code, out, err = warifu("compare", "s")
    assert code == OK
    assert "pass" in out
    assert (tmp_path / "s" / "comparison.json").is_file()
    assert "\x1b" not in out + err
    assert warifu("compare", "s", "--format", "csv")[1].startswith("case_id,label,metric,")
    assert len(json.loads(warifu("compare", "s", "--format", "json")[1])) == 3
    assert "| :--- |" in warifu("compare", "s", "--format", "md")[1]
    assert r"\toprule" in warifu("compare", "s", "--format", "latex")[1]


@pytest.mark.parametrize("form", ["table", "md", "latex", "json", "csv"])
def test_warnings_of_the_measurement_stand_beside_the_verdicts(
    warifu: Run, tmp_path: Path, form: str
) -> None:
    warning = "other work took up to 97 of the processors"
    Half("predicted", [Cell()], 20_000, seed=1).write(tmp_path / "s")
    Half("measured", [Cell()], 300, 2, manifest={"warnings": [warning]}).write(tmp_path / "s")
    _, out, err = warifu("compare", "s", "--format", form)
    assert out.count(warning) + err.count(warning) == 1
    kept = load(tmp_path / "s")
    assert kept is not None
    assert kept.warnings == [warning]
    warifu("report", "s")
    assert f"Warning: {warning}." in (tmp_path / "s" / "report.html").read_text()


def test_a_failing_gate_is_code_1(warifu: Run, tmp_path: Path) -> None:
    made_up(tmp_path / "s", [Cell()], n=300, scale=1.05)
    code, out, _ = warifu("compare", "s")
    assert code == FAILED
    assert "fail" in out


def test_report_makes_the_comparison_that_is_missing_or_old(warifu: Run, tmp_path: Path) -> None:
    made_up(tmp_path / "s", [Cell()], n=300)
    code, out, err = warifu("report", "s")
    assert (code, out) == (OK, "")
    assert "report: s/report.html" in err
    first = (tmp_path / "s" / "comparison.json").read_text()
    path = tmp_path / "s" / "measured" / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "run_id": "another-run"}))
    assert warifu("report", "s")[0] == OK
    assert "another-run" not in first
    assert "another-run" in (tmp_path / "s" / "comparison.json").read_text()


Progress = Callable[[int, int, int], None]


class FakePredict:
    """Stands in for `_core.predict`: writes made-up results as it does, or is interrupted."""

    def __init__(self, seed: int = 1, interrupted: bool = False, bound_ns: float = 5e9) -> None:
        self.seed, self.interrupted, self.bound_ns = seed, interrupted, bound_ns

    def __call__(
        self, study: _core.Study, out_dir: str, manifest: str, *, progress: Progress, **_: object
    ) -> dict[str, object]:
        progress(0, 1, 0)
        bound = ["https.establishment", "p99", "<", self.bound_ns, "p99"]
        target, partial = Path(out_dir), Path(f"{out_dir}.partial")
        more = {"require": [bound], "study": {"name": study.name}}
        half = Half("predicted", [Cell()], 1_000, self.seed, manifest=more)
        place = half.write(target.parent / "work")
        shutil.rmtree(partial, ignore_errors=True)
        place.rename(partial)
        place.parent.rmdir()
        if self.interrupted and target.exists():
            raise KeyboardInterrupt
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
        if self.interrupted:
            raise KeyboardInterrupt
        return {}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakePredict], None]:
    def use(predict: FakePredict) -> None:
        monkeypatch.setattr(_core, "predict", predict)

    return use


def study_name() -> str:
    """What a study without a file is called."""
    choices = [("device", "gr-peach"), ("server", "gr-peach")]
    return str(studies.load(None, choices).study.name)


def run_id(folder: Path) -> str:
    return str(json.loads((folder / "manifest.json").read_text())["run_id"])


def test_predict_shows_a_table_and_says_where_the_results_are(
    warifu: Run, fake: Callable[[FakePredict], None], tmp_path: Path
) -> None:
    fake(FakePredict())
    code, out, err = warifu("predict", *DEVICE, "--out", "here")
    assert code == OK
    assert "mean (95 % interval)" in out
    assert "results: here/predicted" in err
    assert "results" not in out


def test_older_results_stay_until_new_ones_are_complete(
    warifu: Run, fake: Callable[[FakePredict], None], tmp_path: Path
) -> None:
    fake(FakePredict(seed=1))
    warifu("predict", *DEVICE, "--out", "here")
    fake(FakePredict(seed=2, interrupted=True))
    code, _, err = warifu("predict", *DEVICE, "--out", "here")
    assert code == INTERRUPTED
    assert "here/predicted is as it was; what was finished is in here/predicted.partial" in err
    assert run_id(tmp_path / "here" / "predicted") == "run-predicted-1"
    assert run_id(tmp_path / "here" / "predicted.partial") == "run-predicted-2"
    fake(FakePredict(seed=3))
    assert warifu("predict", *DEVICE, "--out", "here")[0] == OK
    assert run_id(tmp_path / "here" / "predicted") == "run-predicted-3"
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["predicted"]
    fake(FakePredict(seed=4, interrupted=True))
    code, _, err = warifu("predict", *DEVICE, "--out", "first")
    assert code == INTERRUPTED
    assert "what was finished is in first/predicted\n" in err


def test_a_study_that_cannot_be_run_leaves_nothing_behind(
    warifu: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(_: object, out_dir: str, *__: object, **___: object) -> None:
        Path(out_dir).parent.mkdir(parents=True, exist_ok=True)
        raise _core.WarifuError("gr-peach.toml: server.sign has no cost: add it to the profile")

    monkeypatch.setattr(_core, "predict", refuse)
    code, _, err = warifu("predict", *DEVICE)
    assert code == USAGE
    assert "server.sign has no cost" in one_line(err)
    assert list(tmp_path.iterdir()) == []


def unavailable(*_: object, **__: object) -> None:
    raise LabUnavailable("network namespaces cannot be made: run as root")


@pytest.mark.parametrize(("bound_ns", "code"), [(5e9, OK), (1e6, FAILED)])
def test_run_without_a_lab_predicts_and_says_so(
    warifu: Run,
    fake: Callable[[FakePredict], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    bound_ns: float,
    code: int,
) -> None:
    fake(FakePredict(bound_ns=bound_ns))
    monkeypatch.setattr(halves, "measure", unavailable)
    got, out, err = warifu("run", *DEVICE, "--out", "here")
    assert got == code
    assert "nothing was measured" in err
    assert "run as root" in err
    assert "warifu doctor" in err
    assert ("holds" if code == OK else "fails") in out
    assert (tmp_path / "here" / "report.html").is_file()


class Measured:
    """Stands in for `halves.measure`: made-up results, after refusing to mix them with others."""

    measured = ("one",)

    def __init__(self, scale: float = 1.0, cells: Sequence[Cell] = (Cell(),)) -> None:
        self.scale, self.cells = scale, list(cells)
        self.works = True

    def __call__(self, loaded: studies.Loaded, folder: Path, *_: object) -> tuple[Path, Measured]:
        if (folder / "measured").exists():
            raise ResultsMixed(folder / "measured", "kernel 'a', now it is 'b'", "run-old")
        if not self.works:
            raise LabUnavailable("a network namespace cannot be made: run as root")
        half = Half("measured", self.cells, 200, 2, self.scale)
        half.manifest = {"study": {"name": loaded.study.name}}
        return half.write(folder), self


def test_run_goes_by_its_requirements(
    warifu: Run, fake: Callable[[FakePredict], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A measured half contradicts only if its whole interval does, and for the study's cases."""
    fake(FakePredict())
    stale = Cell(rtt_ms=60_000)
    for folder, measured, code in (
        ("a", Measured(), OK),
        ("b", Measured(scale=100.0), FAILED),
        ("c", Measured(cells=[Cell(), stale]), OK),
    ):
        monkeypatch.setattr(halves, "measure", measured)
        got, out, _ = warifu("run", *DEVICE, "--out", folder)
        assert got == code, out


def test_run_where_no_case_can_be_measured_writes_its_report(
    warifu: Run, fake: Callable[[FakePredict], None], tmp_path: Path
) -> None:
    """With the real lab, which is not asked to do anything, so that nobody need be root."""
    fake(FakePredict())
    card = ("--key-store", "iot-safe-sakomoto")
    for _ in range(2):
        code, out, err = warifu("run", *DEVICE, *card, "--out", "here")
        assert code == OK, err
        assert "holds" in out
        assert "nothing was measured" in err
        assert not (tmp_path / "here" / "measured").exists()
        assert (tmp_path / "here" / "report.html").is_file()
    assert warifu("measure", *DEVICE, *card, "--out", "alone")[0] == ENVIRONMENT
    assert not (tmp_path / "alone").exists()


def test_a_half_of_which_nothing_came_is_none(warifu: Run, tmp_path: Path) -> None:
    made_up(tmp_path / "s", [Cell()], n=300)
    for part in (tmp_path / "s" / "measured" / "observations").iterdir():
        part.unlink()
    assert warifu("report", "s")[0] == OK
    code, _, err = warifu("compare", "s")
    assert code == USAGE
    assert "has no measured half" in one_line(err)


def test_old_measurements_do_not_spoil_a_run_without_one(
    warifu: Run, fake: Callable[[FakePredict], None], tmp_path: Path
) -> None:
    fake(FakePredict())
    same = {"study": {"name": study_name()}}
    Half("measured", [Cell(rtt_ms=99)], 50, seed=2, manifest=same).write(tmp_path / "here")
    code, _, err = warifu("run", *DEVICE, "--no-measure", "--out", "here")
    assert code == OK, err
    assert "it was not asked for" in err
    page = (tmp_path / "here" / "report.html").read_text()
    assert "measured (thin, dashed)" not in page
    assert "was not compared with this prediction" in page


@pytest.mark.parametrize("form", [(), ("--format", "md")])
def test_a_report_warns_of_a_measurement_of_something_else(
    warifu: Run, tmp_path: Path, form: tuple[str, ...]
) -> None:
    Half("predicted", [Cell()], 500, seed=1).write(tmp_path / "s")
    Half("measured", [Cell(rtt_ms=99)], 50, seed=2).write(tmp_path / "s")
    code, _, err = warifu("report", "s", *form)
    assert code == OK
    assert "warning: " in err
    assert "have no case in common" in err
    (tmp_path / "s" / "measured" / "manifest.json").write_text('{"schema_version": 0}')
    code, _, err = warifu("report", "s", *form)
    assert code == OK
    assert "schema_version is 0" in err


def test_what_other_tools_measured_is_set_aside_by_run_alone(
    warifu: Run,
    fake: Callable[[FakePredict], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    fake(FakePredict())
    lab = Measured()
    monkeypatch.setattr(halves, "measure", lab)
    here, aside = tmp_path / "here", tmp_path / "here" / "measured.before-run-old"
    assert warifu("run", *DEVICE, "--out", "here")[0] == OK
    before = (here / "measured" / "manifest.json").stat().st_ino

    lab.works = False
    code, _, err = warifu("run", *DEVICE, "--out", "here")
    assert code == OK
    assert "here/measured.before-run-old is here/measured again" in err
    assert (here / "measured" / "manifest.json").stat().st_ino == before

    lab.works = True
    code, _, err = warifu("run", *DEVICE, "--out", "here")
    assert code == OK
    assert "kernel 'a', now it is 'b': they are kept in here/measured.before-run-old" in err
    assert (aside / "manifest.json").stat().st_ino == before
    assert (here / "measured" / "manifest.json").is_file()

    code, _, err = warifu("measure", *DEVICE, "--out", "here")
    assert code == ENVIRONMENT
    assert "choose another folder, or move this one away" in one_line(err)


def test_what_sudo_wrote_is_given_to_the_user_who_called_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, inside = 1234, tmp_path / "results" / "s" / "measured"
    inside.mkdir(parents=True)
    (inside / "manifest.json").write_text("{}")
    (inside / "link").symlink_to(tmp_path)
    owners = {tmp_path: user, inside / "link": 99}
    given: list[Path] = []

    def chown(path: Path, *to: int, follow_symlinks: bool) -> None:
        assert (to, follow_symlinks) == ((user, 77), False)
        given.append(path)

    monkeypatch.setattr(ownership, "_owner", lambda path: owners.get(path, 0))
    monkeypatch.setattr(os, "chown", chown)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv("SUDO_UID", raising=False)
    ownership.give_back(inside)
    assert given == []
    monkeypatch.setenv("SUDO_UID", str(user))
    monkeypatch.setenv("SUDO_GID", "77")
    ownership.give_back(inside, tmp_path / "nothing")
    assert set(given) == {inside, inside.parent, inside.parent.parent, inside / "manifest.json"}
    given.clear()
    owners[tmp_path] = 0
    ownership.give_back(inside)
    assert given == [], "root's own folders stay root's"


def test_both_halves_and_the_report_are_given_back(
    warifu: Run, fake: Callable[[FakePredict], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    monkeypatch.setattr(ownership, "give_back", lambda *paths: given.extend(map(str, paths)))
    fake(FakePredict())
    assert warifu("run", *DEVICE, "--key-store", "iot-safe-sakomoto", "--out", "here")[0] == OK
    assert {"here/predicted", "here/measured", "here/report.html"} <= set(given)


def test_root_is_asked_for_by_a_command_that_sudo_finds() -> None:
    """sudo does not look into a virtual environment."""
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("python/**/*.py")]
    assert [path.name for path in texts if "sudo warifu" in path.read_text()] == []
    words = shlex.split(tools.program())
    assert len(words) == 1
    assert Path(words[0]).name == "warifu"
    if (Path(sys.executable).parent / "warifu").exists():
        assert Path(words[0]).is_absolute()


def test_the_plans_take_as_long_as_they_say(warifu: Run) -> None:
    rows = (ROOT / "docs" / "calibration.md").read_text().splitlines()
    times = [row.split("|")[3].split()[0] for row in rows if row.startswith("| `")]
    _, out, _ = warifu("calibrate", "host", "--help")
    assert f"about {times[0]}, {times[1]} or {times[2]} minutes" in " ".join(out.split())


CALIBRATED = """name = "c"
device = "this-host"
server = "this-host"
[stack]
tls = "{tls}"
"""


def test_a_calibration_is_kept_only_if_it_covers_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine" / "devices" / "this-host.toml"
    path.parent.mkdir(parents=True)
    path.write_text(calibration._stand_in())
    monkeypatch.setenv("WARIFU_PROFILES", str(tmp_path / "mine"))
    monkeypatch.setattr(environment, "machine", lambda: {"kernel": "1"})
    for tls in ("1.2", "1.3"):
        (tmp_path / f"{tls}.toml").write_text(CALIBRATED.format(tls=tls))
    texts = list(studies.profile_texts(studies.profile_folders()))
    of_13 = host.needed_for(calibration.cases_of([Path("1.3.toml")], texts))
    of_12 = host.needed_for(calibration.cases_of([Path("1.2.toml")], texts))
    rare = variants.Variant(group="x25519", certificate="rsa-2048")

    def record(timed: list[variants.Variant]) -> None:
        details = {"variants": [one.json() for one in timed]}
        value = {"run_id": "r", "machine": {"kernel": "1"}, "details": details}
        profile.record_path(path).write_text(json.dumps(value))

    asked: list[dict[str, Any]] = []

    def calibrate(_: object, out: Path, **options: Any) -> host.Outcome:  # noqa: ANN401
        asked.append(options)
        return host.Outcome(out, "r", 0, [])

    monkeypatch.setattr(host, "calibrate_host", calibrate)
    record(of_13)
    assert calibration.host([Path("1.3.toml")], path, "quick", if_stale=True) is None
    assert asked == []
    record([rare])
    assert calibration.host([Path("1.2.toml")], path, "quick", if_stale=True) is not None
    assert "does not cover 1.2.toml" in capsys.readouterr().err
    (options,) = asked
    assert options["also"] == [rare], "what the profile served it serves again"
    assert host.needed_for(options["stacks"]) == of_12


def test_no_colour_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    from warifu.cli import screen

    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert screen.colourful(Terminal())
    assert not screen.colourful(object())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not screen.colourful(Terminal())
    assert "\x1b[32mpass\x1b[0m" in screen._coloured("a  pass  200\n")
    assert "\x1b" not in screen._coloured("surpass passing\n")


def test_results_of_a_study_are_found_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(STUDY)
    assert verdicts.results_folder(tmp_path / "three.toml") == Path("results/three")
    assert verdicts.results_folder(tmp_path) == tmp_path


def test_the_version_is_the_core_s(warifu: Run) -> None:
    code, out, _ = warifu("version")
    assert code == OK
    assert out.startswith(f"warifu {_core.__version__}")


def test_the_environment_is_not_needed_for_help() -> None:
    """A broken terminal setting must not break the start."""
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "20"}
    done = subprocess.run(
        [sys.executable, "-m", "warifu.cli", "--help"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == OK
    assert "predict" in done.stdout


def test_what_an_earlier_run_did_says_nothing_of_the_pace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from warifu.cli import screen

    now = iter([0.0, 10.0, 20.0, 30.0])
    monkeypatch.setattr(screen.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(screen, "_PLAIN_EVERY_S", 1.0)
    with screen.progress("measuring") as report:
        for done in (900, 910, 920):
            report(done, 1000)
    first, second, third = capsys.readouterr().err.splitlines()
    assert "left" not in first
    assert "about 90 s left" in second or "about 2 min left" in second
    assert "about 80 s left" in third
