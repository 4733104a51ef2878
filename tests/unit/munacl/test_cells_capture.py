# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu cells`: captures of memory over a serial line, and what is estimated from them."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.serial_board import Board
from warifu import m3
from warifu.calibrate import capture
from warifu.calibrate.errors import CalibrateError
from warifu.cli.cells import cells_app

Build = Callable[..., Path]
BYTES = 256


def lines(memory: bytes, power_up: int = 1) -> bytes:
    """As bench/capture.c prints them."""
    rows = "".join(f"{memory[at : at + 32].hex()}\n" for at in range(0, len(memory), 32))
    crc = zlib.crc32(rows.encode())
    head = f"# munacl cells board=b-1 bytes={len(memory)} power_up={power_up}\n"
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
    found = capture.read(iter(run.output.decode().splitlines()), "port")
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


def test_estimate_prints_the_parameter(tmp_path: Path) -> None:
    chance = random.Random(4)
    pattern = chance.randbytes(BYTES)
    for number in range(12):
        noise = bytes(sum((chance.random() < 0.05) << bit for bit in range(8)) for _ in pattern)
        image = bytes(a ^ b for a, b in zip(pattern, noise, strict=True))
        (tmp_path / f"c-{number}.bin").write_bytes(image)
    done = CliRunner().invoke(cells_app, ["estimate", str(tmp_path), "--format", "json"])
    assert done.exit_code == 0, done.output
    table = json.loads(done.stdout)
    text = json.dumps(table)
    assert "millibits_per_cell = " in text
    assert "SP 800-90B asks for 1,000,000" in text
    assert 0 < int(text.split("millibits_per_cell = ")[1].split(",")[0]) < 74
