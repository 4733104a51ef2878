# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu dds profile` on a middleware whose cryptography is known."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.paths import ROOT
from warifu import Results
from warifu.dds.middlewares import has_security

_SOURCES = ROOT / "tests" / "support"
_WARIFU = (sys.executable, "-m", "warifu.cli", "dds", "profile")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("middleware")
    for name, define in (("plain", "-DWITHOUT"), ("secure", "-DWITH_SECURITY")):
        (folder / name).mkdir()
        _compile(folder / name / "libddsc.so.9.8.7", "fake_middleware.c", define, "-shared",
                 "-fPIC", "-lcrypto")  # fmt: skip
    _compile(folder / "publisher", "fake_publisher.c")
    return folder


def _compile(path: Path, source: str, *more: str) -> None:
    subprocess.run(
        ["cc", "-O1", "-Wall", "-o", path, _SOURCES / source, *more], check=True
    )  # fmt: skip


def _publisher(
    built: Path, messages: int, secured: bool, *more: str, kind: str = "secure"
) -> list[str]:
    library = built / kind / "libddsc.so.9.8.7"
    return ["--", str(built / "publisher"), str(library), str(messages), str(int(secured)), *more]


def _profile(*arguments: str, code: int = 0) -> tuple[str, str]:
    done = subprocess.run([*_WARIFU, *arguments], text=True, capture_output=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def _tables(*arguments: str) -> list[Any]:
    return _parsed(_profile("--format", "json", *arguments)[0])


def _parsed(text: str) -> list[Any]:
    return list(json.loads(text)["tables"])


def _rows(tables: list[Any], title: str) -> list[dict[str, Any]]:
    (table,) = (table for table in tables if title in table["title"])
    return list(table["rows"])


def test_each_message_has_its_encryptions_macs_and_random_bytes(built: Path) -> None:
    tables = _tables(*_publisher(built, 500, True))
    rows = {row["operation"]: row for row in _rows(tables, "from the first message to the last")}
    for kind, each in (("encrypt", 3), ("mac", 1), ("random", 4)):
        assert rows[kind]["messages"] == 500
        assert rows[kind]["in_write"] == rows[kind]["operations"] == 500 * each, kind
    # A payload of 16 bytes and submessages of 80 and 40; 200 bytes are authenticated.
    assert rows["encrypt"]["bytes"] == 500 * (16 + 80 + 40)
    assert rows["mac"]["aad_bytes"] == 500 * 200
    assert 0 < rows["encrypt"]["ns"] == rows["encrypt"]["in_write_ns"]


def test_flush_of_what_a_thread_has_written_belongs_to_its_writes(
    built: Path, tmp_path: Path
) -> None:
    out = tmp_path / "seen"
    tables = _tables("--out", str(out), *_publisher(built, 500, True, "batch"))
    rows = {row["operation"]: row for row in _rows(tables, "from the first message to the last")}
    # Five messages are sent together.
    for kind, operations in (("encrypt", 1500), ("mac", 100), ("random", 1600)):
        assert rows[kind]["in_write"] == rows[kind]["operations"] == operations, kind
        assert rows[kind]["in_write_ns"] == rows[kind]["ns"], kind
    # The second of two has nothing to send.
    assert tables[0]["rows"][0]["flushes"] == 100
    assert "us outside of writes" in tables[0]["title"]
    results = Results.open(out)
    (case,) = results.cases
    frame = results.rows(case)
    macs = frame.filter(frame["metric"] == "dds.message.macs").sort("trial")["value"].to_list()
    assert macs == [0.0, 0.0, 0.0, 0.0, 1.0] * 100


def test_flush_of_what_another_thread_has_written_is_elsewhere(built: Path) -> None:
    tables = _tables(*_publisher(built, 500, True, "other-flushes"))
    rows = {row["operation"]: row for row in _rows(tables, "from the first message to the last")}
    # The last one comes after the last message.
    assert (rows["mac"]["operations"], rows["mac"]["in_write"]) == (99, 0)
    assert (rows["encrypt"]["operations"], rows["encrypt"]["in_write"]) == (1500, 1500)
    assert tables[0]["rows"][0]["flushes"] == 0


def test_answer_comes_first_and_says_what_a_message_costs(built: Path) -> None:
    out, err = _profile(*_publisher(built, 100, True))
    first = out.splitlines()[0]
    assert "Cyclone DDS 9.8.7: 100 messages, each 3.00 encryptions, 1.00 MACs" in first
    assert "us of the" in first
    assert "The probe's own cost: " in out
    shares = re.search(r"(\d+)% set cipher and key, (\d+)% make and free contexts, (\d+)%", out)
    assert shares is not None
    assert 0 < sum(map(int, shares.groups())) <= 101
    # The command's output is not among the tables.
    assert "published" in err


def test_sites_are_named_by_their_functions(built: Path) -> None:
    rows = _rows(_tables(*_publisher(built, 50, True)), "by call site")
    encryptions = [row for row in rows if row["operation"] == "encrypt"]
    assert sum(row["calls"] for row in encryptions) == 150
    for row in encryptions:
        assert "libddsc.so.9.8.7!middleware_protect < libddsc.so.9.8.7!dds_write" in row["site"]
        assert row["context_calls"] == 2 * row["calls"]


def test_unsecured_program_is_told_that_nothing_is_encrypted(built: Path) -> None:
    tables = _tables(*_publisher(built, 70, False))
    (answer,) = tables
    assert "NO SECURITY: Cyclone DDS 9.8.7 could" in answer["title"]
    assert "70 messages were published in plain text" in answer["title"]
    assert answer["rows"][0]["encrypts"] is False


def test_middleware_without_security_is_told_to_be_built_without(built: Path) -> None:
    (answer,) = _tables(*_publisher(built, 1, False, kind="plain"))
    assert "this Cyclone DDS 9.8.7 was built without DDS Security; 1 message was" in answer["title"]


def test_security_is_looked_for_in_the_library(built: Path, tmp_path: Path) -> None:
    assert has_security(built / "secure" / "libddsc.so.9.8.7")
    assert not has_security(built / "plain" / "libddsc.so.9.8.7")
    # What cannot be read is not judged.
    assert has_security(tmp_path / "missing")


_LOOKS = """
import sys
from pathlib import Path
from warifu.dds.middlewares import has_security
print(*(has_security(Path(name)) for name in sys.argv[1:]))
"""


def test_library_that_a_recording_names_may_be_anything(tmp_path: Path) -> None:
    """Looked at without waiting for a pipe, and without reading all of what has no end."""
    pipe, sparse = tmp_path / "libddsc.so.1", tmp_path / "libddsc.so.2"
    os.mkfifo(pipe)
    with sparse.open("wb") as file:
        file.truncate(20 * 2**30)
    done = subprocess.run(
        [sys.executable, "-c", _LOOKS, "/dev/zero", tmp_path, sparse, pipe],
        text=True, capture_output=True, check=True, timeout=30,
    )  # fmt: skip
    assert done.stdout.split() == ["True"] * 4


def test_program_without_middleware_is_told_so() -> None:
    out, _ = _profile("--", "true")
    assert "loaded a DDS middleware that is known here" in out.splitlines()[0]


def test_failed_write_is_counted(built: Path) -> None:
    rows = _tables(*_publisher(built, 10, True, "fail"))
    notes = [note for table in rows for note in table["notes"]]
    assert "1 writes failed." in notes


def test_exit_code_is_the_commands() -> None:
    _profile("--", "sh", "-c", "exit 7", code=7)
    _profile("--", "sh", "-c", "kill -9 $$", code=137)


def test_command_that_is_missing_is_one_line() -> None:
    _, err = _profile("--", "./no-such-program", code=3)
    assert err.strip() == (
        "warifu: ./no-such-program: no such program: name one that is on PATH, or its path"
    )


def test_ctrl_c_ends_the_command_and_shows_what_was_seen(built: Path, tmp_path: Path) -> None:
    """By a terminal, which sends it to every process of the foreground."""
    out = tmp_path / "out"
    pid, terminal = pty.fork()
    if pid == 0:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(descriptor, 1)
        command = _publisher(built, 40, True, "stay")
        os.execv(_WARIFU[0], [*_WARIFU, "--format", "json", *command])
    said = b""
    while b"published" not in said:
        said += os.read(terminal, 4096)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGINT
    rows = _rows(_parsed(out.read_text()), "from the first message to the last")
    assert {row["operation"]: row["operations"] for row in rows}["encrypt"] == 120


def test_sigterm_to_the_profiler_ends_the_command(built: Path) -> None:
    command = [*_WARIFU, "--format", "json", *_publisher(built, 5, False, "stay")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        assert running.stdout is not None
        assert running.stderr.readline() == "published\n"
        # It takes signals in turns, and is ready as soon as the command runs.
        time.sleep(0.1)
        running.terminate()
        tables = _parsed(running.stdout.read())
        assert running.wait() == 128 + signal.SIGTERM
    assert "5 messages were published in plain text" in tables[0]["title"]


def test_observations_hold_every_message_and_site(built: Path, tmp_path: Path) -> None:
    folder = tmp_path / "seen"
    _profile("--out", str(folder), *_publisher(built, 30, True))
    results = Results.open(folder)
    (case,) = results.cases
    frame = results.rows(case)
    messages = frame.filter(frame["metric"] == "dds.message.encryptions")
    assert messages["value"].to_list() == [3.0] * 30
    assert messages["trial"].to_list() == list(range(30))
    calls = frame.filter(frame["metric"] == "dds.crypto.calls")
    by_kind = dict.fromkeys(("encrypt", "mac", "random"), 0.0)
    for stage, value in zip(calls["stage"], calls["value"], strict=True):
        by_kind[stage.split()[0]] += value
    assert by_kind == {"encrypt": 90.0, "mac": 30.0, "random": 120.0}
    assert set(frame["method"]) == {"measured"}
    # They are no half of a study.
    done = subprocess.run(
        [sys.executable, "-m", "warifu.cli", "report", folder],
        text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "holds what `warifu dds profile` saw of one command" in done.stderr


def test_swap_is_loud_in_the_answer(built: Path) -> None:
    out, err = _profile("--swap", "ascon-aead128", *_publisher(built, 5, True))
    assert "EXPERIMENT: ascon-aead128 stood in the place of AES-GCM" in out
    assert err.count("EXPERIMENT") == 2
    assert "EXPERIMENT, ascon-aead128 in the place of AES-GCM: Cyclone DDS" in out.splitlines()[0]


def test_program_that_publishes_nothing_is_not_said_to_publish_plain_text(built: Path) -> None:
    (answer,) = _tables(*_publisher(built, 0, False))
    assert "NO SECURITY" in answer["title"]
    assert "no message of it was seen" in answer["title"]
    assert "plain text" not in answer["title"]


def test_program_that_failed_before_its_first_message_is_told_so(built: Path) -> None:
    command = ["--", "sh", "-c", '"$@"; exit 9', "sh", *_publisher(built, 0, False)[1:]]
    out, _ = _profile(*command, code=9)
    assert "The command ended with exit code 9." in out.splitlines()[0]


def test_earlier_profile_is_replaced_only_where_that_is_asked_for(
    built: Path, tmp_path: Path
) -> None:
    folder, mark = tmp_path / "seen", tmp_path / "ran"
    _profile("--out", str(folder), *_publisher(built, 3, True))
    run = ["--", "sh", "-c", f'touch {mark}; exec "$@"', "sh", *_publisher(built, 4, True)[1:]]
    _, err = _profile("--out", str(folder), *run, code=2)
    assert "holds an earlier profile" in err
    assert not mark.exists()
    _profile("--out", str(folder), "--replace", *run)
    assert mark.exists()
    results = Results.open(folder)
    (case,) = results.cases
    frame = results.rows(case)
    assert len(frame.filter(frame["metric"] == "dds.message.write")) == 4


@pytest.mark.parametrize("there", ["letter", "results", "file", "link", "below a file"])
def test_place_for_observations_is_looked_at_before_the_command_runs(
    tmp_path: Path, there: str
) -> None:
    folder, mark = tmp_path / "seen", tmp_path / "ran"
    code = 2
    if there == "letter":
        folder.mkdir()
        (folder / "letter.txt").write_text("dear")
    elif there == "results":
        folder.mkdir()
        (folder / "manifest.json").write_text('{"half": "measured"}')
    elif there == "file":
        folder.write_text("dear")
        code = 3
    elif there == "link":
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        (tmp_path / "file").write_text("dear")
        folder = tmp_path / "file" / "seen"
        code = 3
    _, err = _profile("--replace", "--out", str(folder), "--", "touch", str(mark), code=code)
    assert len(err.strip().splitlines()) == 1, err
    assert str(folder if there != "below a file" else folder.parent) in err
    assert not mark.exists()


def test_nothing_is_written_where_nothing_was_seen(tmp_path: Path) -> None:
    _, err = _profile("--out", str(tmp_path / "seen"), "--", "true")
    assert "nothing was seen, so nothing was written to" in err
    assert not (tmp_path / "seen").exists()


def test_what_the_command_lays_among_the_recordings_is_told(built: Path, tmp_path: Path) -> None:
    """The folder is the command's as well."""
    script = (
        'cd "$WARIFU_EVP_PROBE"; mkfifo 7-0.evp; ln -s /dev/zero 8-0.evp; truncate -s 9G 9-0.evp; '
        'mkdir 10-0.evp; touch x-y.evp "$(printf a-\\377.evp)"; mkfifo plugin.jsonl; cd /; '
        'exec "$@"'
    )
    command = ["sh", "-c", script, "sh", *_publisher(built, 6, True)[1:]]
    out, _ = _profile("--", *command)
    assert "6 messages, each 3.00 encryptions" in out
    for words in (
        "7-0.evp: is a pipe", "8-0.evp: is a link", "9-0.evp: is longer than",
        "10-0.evp", "plugin.jsonl: is a pipe",
    ):  # fmt: skip
        assert words in out


def test_command_of_many_programs_does_not_fill_the_disk(built: Path) -> None:
    script = 'i=0; while [ $i -lt 520 ]; do /bin/true; i=$((i+1)); done; exec "$@"'
    out, err = _profile("--", "sh", "-c", script, "sh", *_publisher(built, 1, False)[1:])
    assert re.search(r"(49\d|500) programs were recorded, and those that were", out)
    assert "warifu-evp-probe" not in err


def test_help_teaches_what_sites_mean() -> None:
    out, _ = _profile("--help")
    for words in ("encode_serialized_payload", "ros2 run demo_nodes_cpp talker", "EXPERIMENT"):
        assert words in out
