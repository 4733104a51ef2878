# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The command line as a whole: help, exit codes, one-line errors, progress and colour."""

from __future__ import annotations

import errno
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import DEVICE, Run, one_line
from support.paths import ROOT
from support.synthetic import Cell, Half
from support.synthetic import study as made_up
from warifu import _core, tools
from warifu import study as studies
from warifu.calibrate import parts
from warifu.cli.encoding import never_fail
from warifu.cli.errors import ENVIRONMENT, INTERRUPTED, OK, USAGE, guarded
from warifu.lab.errors import LabUnavailable, ResultsMixed


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
    profiles.append(
        ("device", "this-host", parts.stand_in([]).profile("r", "stands in").toml(), "stand-in")
    )
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


def test_the_version_is_the_core_s(warifu: Run) -> None:
    code, out, _ = warifu("version")
    assert code == OK
    assert out.startswith(f"warifu {_core.__version__}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("frobnicate",), "No such command 'frobnicate'"),
        (("predict", "--bogus"), "No such option: --bogus"),
        (("predict",), "name a study file, or describe the case by flags"),
        (("predict", "nope.toml"), "nope.toml: does not exist: name a study, or make one"),
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
        (("compare", "nowhere"), "does not exist: name a folder of results or a study file"),
        (("report", "nowhere"), "does not exist: name a folder of results or a study file"),
        (("init", "--template", "toaster"), "expected one of"),
        (("compare", "x", "--format", "pdf"), "'--format' / '-f': 'pdf' is not one of"),
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


@pytest.mark.parametrize(
    ("raised", "code", "words"),
    [
        (KeyboardInterrupt(), INTERRUPTED, "interrupted"),
        (OSError(errno.ENOSPC, "No space left on device", "x"), ENVIRONMENT, "make room"),
        (PermissionError(errno.EACCES, "Permission denied", "x"), ENVIRONMENT, "can write to"),
        (_core.StorageError("x: no space left on the device: free some"), ENVIRONMENT, "free some"),
        (_core.WarifuError("cannot write.toml: link.rtt is 3"), USAGE, "link.rtt is 3"),
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


def test_mistake_of_ours_keeps_its_traceback() -> None:
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


def test_root_is_asked_for_by_a_command_that_sudo_finds() -> None:
    """sudo does not look into a virtual environment."""
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("python/**/*.py")]
    assert [path.name for path in texts if "sudo warifu" in path.read_text()] == []
    words = shlex.split(tools.program())
    assert len(words) == 1
    assert Path(words[0]).name == "warifu"
    if (Path(sys.executable).parent / "warifu").exists():
        assert Path(words[0]).is_absolute()


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


@pytest.mark.parametrize(
    ("settings", "label"),
    [
        ({"LC_ALL": "POSIX", "PYTHONUTF8": "0"}, b"RTT 60 ms - loss 2 %"),
        ({"PYTHONIOENCODING": "ascii"}, b"RTT 60 ms - loss 2 %"),
        ({"PYTHONIOENCODING": "latin-1"}, b"RTT 60 ms \xb7 loss 2 %"),
        ({"PYTHONIOENCODING": "utf-8"}, "RTT 60 ms · loss 2 %".encode()),
    ],
)
def test_output_never_fails_for_its_encoding(
    tmp_path: Path, settings: dict[str, str], label: bytes
) -> None:
    cells = [Cell(rtt_ms=rtt, loss=loss) for rtt in (60, 99) for loss in (0.0, 0.02)]
    Half("predicted", cells, 50, seed=1, failed=10).write(tmp_path / "s")
    command = [sys.executable, "-m", "warifu.cli", "report", "s", "--format", "md"]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, **settings})
    assert done.returncode == OK, done.stderr
    assert label in done.stdout
    infinity = "∞".encode() if settings.get("PYTHONIOENCODING") == "utf-8" else b"| inf |"
    assert infinity in done.stdout


def test_sign_that_an_encoding_lacks(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w", encoding="ascii") as stream:
        never_fail(stream)
        stream.write("±2 · ≥ 3 ∞ 割")
    assert (tmp_path / "out").read_text() == "+-2 - >= 3 inf ?"
