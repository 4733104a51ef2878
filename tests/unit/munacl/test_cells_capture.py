# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu cells`: captures of memory over a serial line, and what is estimated from them."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from support.serial_board import Board, Plug
from warifu import WarifuError, m3
from warifu.calibrate import board, capture
from warifu.calibrate.errors import CalibrateError
from warifu.calibrate.serial import opened
from warifu.cli.cells import cells_app
from warifu.entropy import cells
from warifu.files import FileRefused

Build = Callable[..., Path]
BYTES = 256


def lines(memory: bytes, power_up: int = 1) -> bytes:
    """As bench/capture.c prints them."""
    rows = "".join(f"{memory[at : at + 32].hex()}\n" for at in range(0, len(memory), 32))
    head = f"# munacl cells board=b-1 bytes={len(memory)} power_up={power_up}\n"
    crc = zlib.crc32(f"{head}{rows}".encode())
    text = f"{head}{rows}# end rows={len(rows.splitlines())} crc32={crc}\n"
    return text.replace("\n", "\r\n").encode()


@pytest.fixture
def there() -> Iterator[Board]:
    one = Board()
    yield one
    one.close()


def read(there: Board, folder: Path, count: int) -> list[Path]:
    return capture.captures(there.port, 115200, folder, count, silence_s=1.0)


def say_when_open(there: Board, text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a port drops what came before."""
    original = capture.opened

    def opened(port: Path, baud: int) -> object:
        context = original(port, baud)
        enter = context.__enter__

        class Then:
            def __enter__(self) -> object:
                line = enter()
                there.say(text)
                return line

            def __exit__(self, *why: object) -> None:
                context.__exit__(None, None, None)

        return Then()

    monkeypatch.setattr(capture, "opened", opened)


def test_program_prints_what_the_host_reads(build: Build) -> None:
    run = m3.run(str(build("fast", "capture-lpc1768.elf")), m3.Options(chip="lpc1768"))
    assert run.code == 0
    first, *rest = run.output.decode().splitlines()
    head = capture.CAPTURE.head.fullmatch(first)
    assert head is not None
    found = capture.read(head, iter(rest), "port")
    # In the simulator nobody says whether it was a power-up, and memory comes up as zeros.
    assert (found.board, found.is_power_up) == ("none", False)
    assert found.memory == bytes(4096)


def test_power_ups_are_written_and_other_resets_left_out(
    there: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (random.Random(seed).randbytes(BYTES) for seed in (1, 2, 3))
    text = lines(first) + b"# left with code 0\r\n" + lines(third, power_up=0) + lines(second)
    say_when_open(there, text, monkeypatch)
    written = read(there, tmp_path, 2)
    assert [one.name for one in written] == ["b-1-0001.bin", "b-1-0002.bin"]
    assert [one.read_bytes() for one in written] == [first, second]


def test_numbers_go_on_after_those_that_are_there(
    there: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "b-1-0041.bin").write_bytes(b"kept")
    say_when_open(there, lines(bytes(BYTES)), monkeypatch)
    assert [one.name for one in read(there, tmp_path, 1)] == ["b-1-0042.bin"]
    assert (tmp_path / "b-1-0041.bin").read_bytes() == b"kept"


def test_head_that_was_changed_is_refused(
    there: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A warm reset, whose memory is that of the power-up before, as a power-up.
    text = lines(bytes(BYTES), power_up=0).replace(b"power_up=0", b"power_up=1")
    say_when_open(there, text, monkeypatch)
    with pytest.raises(CalibrateError, match="changed on the line"):
        read(there, tmp_path, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((b"00", b"01"), "changed on the line"),
        ((b"0" * 64 + b"\r\n", b""), "224 of 256 bytes"),
        ((b"0000", b"00 0"), "expected hexadecimal"),
        ((b"# end", b"# stop"), "expected hexadecimal"),
    ],
)
def test_damaged_captures_are_not_written(
    there: Board,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: tuple[bytes, bytes],
    message: str,
) -> None:
    text = lines(bytes(BYTES))
    head, rest = text.split(b"\n", 1)
    say_when_open(there, head + b"\n" + rest.replace(*change, 1), monkeypatch)
    with pytest.raises(CalibrateError, match=message):
        read(there, tmp_path, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"boot: ready\r\n" * 300, "200 lines came and no capture began, .*'boot: ready'"),
        (b"\r\n" * 300, "200 lines came and no capture began"),
        (b"\x00\xf8\x80\n" * 300, "200 lines came and no capture began"),
        (b"x" * 5000, "bytes came without the end of a line"),
        (b"# munacl bench board=b hz=1 profile=fast\r\n", "the board runs bench-BOARD.elf"),
        (b"# munacl cells board=none bytes=32 power_up=1\r\n", "board=none: it runs in a sim"),
    ],
)
def test_what_is_no_capture_ends_with_the_program_to_flash(
    there: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes, message: str
) -> None:
    say_when_open(there, text, monkeypatch)
    with pytest.raises(CalibrateError, match=message) as error:
        capture.captures(there.port, 115200, tmp_path, 1, silence_s=60.0)
    if "board=none" not in message:
        assert "flash capture-BOARD.elf" in str(error.value)
    if "came" in message:
        assert "--baud; the board's files use 115200" in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("board=-x bytes=256", "board=-x: expected a letter or digit first, .*munacl_board_name"),
        ("board=.. bytes=256", r"board=\.\.: expected a letter or digit first"),
        ("board=_x bytes=256", "board=_x: expected a letter or digit first"),
        ("board=b-1 bytes=0", "bytes=0: expected 1 to 1,048,576: change its CAPTURE_BYTES"),
        ("board=b-1 bytes=1048577", "bytes=1048577: expected 1 to 1,048,576"),
    ],
)
def test_capture_that_could_not_be_used_is_refused_at_its_first_line(
    there: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str, message: str
) -> None:
    rows = "" if head.endswith("=0") else "00" * 32 + "\n"
    rows *= 8
    end = f"# end rows={8 * bool(rows)} crc32={zlib.crc32(rows.encode())}\n"
    say_when_open(there, f"# munacl cells {head} power_up=1\n{rows}{end}".encode(), monkeypatch)
    with pytest.raises(CalibrateError, match=message):
        read(there, tmp_path, 1)
    assert list(tmp_path.iterdir()) == []


def test_rows_of_a_byte_each_are_added_up_in_place() -> None:
    size = 1 << 17
    head = capture.CAPTURE.head.fullmatch(f"# munacl cells board=b bytes={size} power_up=1")
    assert head is not None
    rows = itertools.chain(itertools.repeat("5a", size), ["# end rows=0 crc32=0"])
    tracemalloc.start()
    with pytest.raises(CalibrateError, match=f"{size} of {size} bytes came"):
        capture.read(head, rows, "port")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Where each row makes a copy of all before it, the last two are there at once.
    assert peak < 1.5 * size


def test_slow_lines_that_are_no_capture_end_as_well(there: Board) -> None:
    clock = itertools.count(0.0, 1.5)
    with opened(there.port, 115200) as line:
        there.say(b"temperature 21\r\n" * 20)
        with pytest.raises(CalibrateError, match=r"1\d lines came and no capture began"):
            line.begin(capture.CAPTURE, 60.0, lambda: next(clock))


def test_slow_bytes_without_a_line_end_as_well(there: Board) -> None:
    clock = itertools.count(0.0, 25.0)
    with opened(there.port, 115200) as line:
        there.say(b"." * 130)
        with pytest.raises(CalibrateError, match="bytes came without the end of a line"):
            line.begin(capture.CAPTURE, 3600.0, lambda: next(clock))


def test_noise_as_the_power_comes_is_no_part_of_a_capture(
    there: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = random.Random(8).randbytes(BYTES)
    noise = b"\x00\xfe\r\nBoot ROM 1.2\r\n\x00\x80"
    rest = b"ab" * 32 + b"\r\n# end rows=8 crc32=1\r\n"
    say_when_open(there, rest + noise + lines(memory), monkeypatch)
    (written,) = read(there, tmp_path, 1)
    assert written.read_bytes() == memory


@pytest.fixture
def plug(tmp_path: Path) -> Iterator[Plug]:
    one = Plug(tmp_path)
    one.put_in()
    yield one
    if one.port.is_symlink():
        one.pull()


def test_port_that_goes_with_the_boards_power_is_opened_again(
    plug: Plug, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = [random.Random(seed).randbytes(BYTES) for seed in (1, 2, 3)]
    waiting = iter(images)
    original = capture.opened

    @contextmanager
    def opened(port: Path, baud: int) -> Iterator[object]:
        with original(port, baud) as line:
            # Half of a capture is lost with the power.
            plug.say(lines(next(waiting)) + lines(bytes(BYTES))[:200])
            yield line

    def progress(text: str) -> None:
        said.append(text)
        if " of 3: " in text:
            plug.pull()
            if not text.startswith("3"):
                threading.Timer(0.5, plug.put_in).start()

    said: list[str] = []
    monkeypatch.setattr(capture, "opened", opened)
    folder = tmp_path / "captures"
    written = capture.captures(plug.port, 115200, folder, 3, silence_s=20.0, progress=progress)
    assert [one.read_bytes() for one in written] == images
    assert sum(one.endswith("waiting for its port") for one in said) == 2
    assert sum(one.endswith("is back") for one in said) == 2


def when_open(
    module: ModuleType, then: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something that happens once a module has opened the port, however long that takes."""
    original = module.opened

    @contextmanager
    def opened(port: Path, baud: int) -> Iterator[object]:
        with original(port, baud) as line:
            then()
            yield line

    monkeypatch.setattr(module, "opened", opened)


def test_port_that_does_not_come_back_is_said_so(
    plug: Plug, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "captures"
    when_open(capture, plug.pull, monkeypatch)
    with pytest.raises(CalibrateError, match=r"ttyACM0: the board went away and did not come back"):
        capture.captures(plug.port, 115200, folder, 1, silence_s=1.0)
    assert list(folder.iterdir()) == []


def test_board_that_goes_away_in_calibration_is_named_with_the_fix(
    plug: Plug, monkeypatch: pytest.MonkeyPatch
) -> None:
    # While the port is read.
    when_open(board, threading.Timer(0.3, plug.pull).start, monkeypatch)
    with pytest.raises(CalibrateError, match=r"ttyACM0: the board went away.*: plug it in"):
        board.measure(plug.port, 115200, silence_s=20.0, begin=False)


def write_captures(folder: Path) -> None:
    chance = random.Random(4)
    pattern = chance.randbytes(BYTES)
    for number in range(12):
        noise = bytes(sum((chance.random() < 0.05) << bit for bit in range(8)) for _ in pattern)
        image = bytes(a ^ b for a, b in zip(pattern, noise, strict=True))
        (folder / f"c-{number:02d}.bin").write_bytes(image)


def estimated(folder: Path, form: str) -> str:
    done = CliRunner().invoke(cells_app, ["estimate", str(folder), "--format", form])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_estimate_prints_the_parameter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_captures(tmp_path)
    bits = 12 * BYTES * 8
    monkeypatch.setattr(cells, "ASKED_SAMPLES", bits)
    monkeypatch.setattr(cells, "USED_SAMPLES", bits - 1000)
    text = json.dumps(json.loads(estimated(tmp_path, "json")))
    assert 0 < int(text.split("millibits_per_cell = ")[1].split(",")[0]) < 74
    assert f"look at the first {bits - 1000:,} of {bits:,} bits" in text


def test_estimate_that_is_interrupted_says_what_it_did(tmp_path: Path) -> None:
    chance = random.Random(6)
    for number in range(30):
        (tmp_path / f"c-{number:02d}.bin").write_bytes(chance.randbytes(8192))
    command = [sys.executable, "-m", "warifu.cli", "cells", "estimate", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stderr is not None and program.stdout is not None
        said = program.stderr.readline().decode()
        assert (
            said == "30 captures of 8,192 B, judged by ten estimators in two orders of their bits\n"
        )
        program.send_signal(signal.SIGINT)
        assert program.wait(60) == 130
        assert program.stderr.read() == b"warifu: interrupted; nothing was written\n"
        assert program.stdout.read() == b""


def test_folder_of_too_many_captures_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_captures(tmp_path)
    monkeypatch.setattr("warifu.cli.cells._MOST_FILES", 11)
    done = CliRunner().invoke(cells_app, ["estimate", str(tmp_path)])
    assert "12 captures: expected at most 11, and one chip's: move" in str(done.exception)


def test_too_few_bits_give_no_parameter(tmp_path: Path) -> None:
    write_captures(tmp_path)
    for form in ("table", "json"):
        text = estimated(tmp_path, form)
        assert "millibits_per_cell = " not in text
        assert "too few captures for a figure" in text
        assert "24,576 bits are fewer than the 1,000,000" in text
        # 1,000,000 bits are 489 captures of 2,048 cells, of which 12 are there.
        assert "Make 477 more captures" in text


@pytest.mark.parametrize("kind", ["device", "pipe", "long", "many"])
def test_captures_that_are_no_files_or_too_long_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    write_captures(tmp_path)
    odd = tmp_path / "c-99.bin"
    message = {
        "device": "is a device, not a file",
        "pipe": "is a pipe, not a file",
        "long": "is longer than 1,048,576 bytes",
        "many": "captures of more than 2,560 bytes in all",
    }[kind]
    if kind == "device":
        odd.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(odd)
    elif kind == "long":
        odd.write_bytes(bytes((1 << 20) + 1))
    else:
        monkeypatch.setattr("warifu.cli.cells._MOST_TOTAL", 10 * BYTES)
    done = CliRunner().invoke(cells_app, ["estimate", str(tmp_path)])
    assert isinstance(done.exception, FileRefused | WarifuError), done.output
    assert message in str(done.exception)
