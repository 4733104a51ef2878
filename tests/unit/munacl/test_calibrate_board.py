# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu calibrate board` at a pseudo-terminal, with what the benchmark prints on the chip."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.serial_board import Board
from warifu import Results, m3
from warifu.calibrate import board
from warifu.calibrate.errors import CalibrateError

Build = Callable[..., Path]


@pytest.fixture
def there() -> Iterator[Board]:
    one = Board()
    yield one
    one.close()


def ended(text: bytes) -> bytes:
    """A head and rows with what ends a run."""
    return text + b"# end rows=%d crc32=%d\n" % (text.count(b"\n") - 1, zlib.crc32(text))


@pytest.fixture(scope="module")
def printed(build: Build) -> bytes:
    """What the benchmark of a board prints, as a UART gives it."""
    run = m3.run(str(build("small", "bench-lpc1768.elf")), m3.Options(chip="lpc1768"))
    assert run.code == 0
    text, end = run.output.split(b"# end ")
    assert ended(text).split(b"# end ")[1] == end.splitlines(keepends=True)[0]
    text = text.replace(b"board=none hz=0", b"board=mbed-lpc1768 hz=96000000")
    return ended(text).replace(b"\n", b"\r\n")


def measure(there: Board, silence_s: float = 5.0) -> board.Measured:
    return board.measure(there.port, 115200, silence_s=silence_s)


def test_calls_of_the_benchmark_are_read(there: Board, printed: bytes) -> None:
    there.text = printed
    found = measure(there)
    assert (found.board, found.hz, found.profile) == ("mbed-lpc1768", 96_000_000, "small")
    expected = [line.split() for line in printed.decode().splitlines() if not line.startswith("#")]
    assert [
        [one.name, str(one.bytes), str(one.cycles), str(one.stack)] for one in found.calls
    ] == expected
    assert len(expected) == 29


def test_example_of_the_documentation_is_a_run(there: Board) -> None:
    assert board.__doc__ is not None
    lines = [line.strip() for line in board.__doc__.splitlines() if line.startswith("    ")]
    there.text = "".join(f"{line}\r\n" for line in lines).encode()
    found = measure(there)
    assert (found.board, found.hz, found.profile) == ("mbed-lpc1768", 96_000_000, "fast")
    assert [one.name for one in found.calls] == ["crypto_scalarmult_curve25519"]


def test_end_of_an_earlier_run_is_skipped(there: Board, printed: bytes) -> None:
    there.at_once = b"crypto_verify_32 0 121 24\r\n# end rows=29 crc32=1\r\n"
    there.text = printed
    assert len(measure(there).calls) == 29


def test_results_folder_says_measured_and_names_the_board(
    there: Board, printed: bytes, tmp_path: Path
) -> None:
    there.text = printed
    found = measure(there).named("mbed rev. C")
    board.write(found, tmp_path / "results")
    results = Results.open(tmp_path / "results")
    assert results.half == "board"
    (case_id,) = results.cases
    assert results.cases[case_id]["board"] == "mbed rev. C"
    rows = results.rows(case_id)
    assert set(rows["method"]) == {"measured"}
    of = rows.filter(
        (rows["stage"] == "crypto_core_salsa20/0") & (rows["metric"] == "board.cycles")
    )
    assert of["value"].to_list() == [
        one.cycles for one in found.calls if one.name == "crypto_core_salsa20"
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((b"crypto_verify_16 0 85", b"crypto_verify_16 0 95"), "changed on the line"),
        ((b"crypto_verify_16 0 85 24\r\n", b""), "28 rows"),
        ((b"crypto_verify_16 0 85", b"crypto_verify_16 0 8x"), "line 28 of the run is"),
        ((b"crypto_verify_16 0 85", b"crypto_ver\xff\x80\xfe 0 85"), "baud rate is wrong"),
        ((b"hz=96000000", b"hz=36000000"), "changed on the line"),
        ((b"board=mbed-lpc1768", b"board=mbed-lpc1769"), "changed on the line"),
        ((b"# munacl bench", b"# another bench"), "nothing more in 1 s"),
        ((b"# end rows", b"# ended rows"), "line 30 of the run is"),
    ],
)
def test_damaged_lines_are_refused(
    there: Board, printed: bytes, change: tuple[bytes, bytes], message: str
) -> None:
    assert change[0] in printed
    there.text = printed.replace(*change)
    with pytest.raises(CalibrateError, match=message):
        measure(there, silence_s=1.0)


def test_run_without_a_cycle_counter_is_refused(there: Board) -> None:
    there.text = ended(b"# munacl bench board=b hz=1 profile=fast\na 0 0 0\n")
    with pytest.raises(CalibrateError, match="no cycle counter"):
        measure(there)


def test_run_of_a_simulator_is_not_measured(there: Board) -> None:
    there.text = ended(b"# munacl bench board=none hz=0 profile=fast\na 0 9 0\n")
    with pytest.raises(CalibrateError, match=r"board=none: it runs in a simulator or under a deb"):
        measure(there)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"$ \r\n" * 250, "200 lines came and no run of the benchmark began"),
        (b"\x00\x00\r\n" * 250, "200 lines came and no run of the benchmark began"),
        (b"# munacl cells board=b bytes=32 power_up=1\r\n", "the board runs capture-BOARD.elf"),
        (b"# munacl bench board=b hz=1 profile=f\n" + b"a 0 1\n" * 10_002, "more than 10,000 rows"),
        (b"# munacl bench board=b hz=1 profile=f\n" + b"a" * 5000, "without the end of a line"),
        (b"# munacl bench board=b hz=1 profile=f\n\0\0\n", "are no text"),
        (b"# munacl bench board=b hz=1 profile=f\na 99999999999 1\n", "line 1 of the run is"),
    ],
)
def test_hostile_lines_end_with_the_program_to_flash(
    there: Board, text: bytes, message: str
) -> None:
    there.text = text
    with pytest.raises(CalibrateError, match=message) as error:
        measure(there)
    assert len(str(error.value)) < 400


def test_call_that_is_timed_again_is_another_trial(there: Board, tmp_path: Path) -> None:
    there.text = ended(b"# munacl bench board=b hz=1 profile=fast\na 0 7\na 0 9\n")
    board.write(measure(there), tmp_path / "results")
    results = Results.open(tmp_path / "results")
    found = results.rows(next(iter(results.cases)))
    assert sorted(zip(found["trial"], found["value"], strict=True)) == [(0, 7.0), (1, 9.0)]


def test_silence_is_said_with_what_to_check(there: Board) -> None:
    with pytest.raises(CalibrateError, match=r"nothing in 0\.2 s: check that the board has power"):
        measure(there, silence_s=0.2)


def test_wrong_baud_rate_is_said(there: Board) -> None:
    # What 9600 baud look like at 115200: long zeros and ones.
    there.text = b"\x00\xf8\x80\xfe\x00\xe0" * 40
    with pytest.raises(CalibrateError, match="baud rate is wrong"):
        # It reads until nothing more comes; a busy machine may take a while to say the first.
        measure(there, silence_s=2.0)


def test_endless_line_is_refused(there: Board) -> None:
    there.text = b"x" * 5000
    with pytest.raises(CalibrateError, match="without the end of a line"):
        measure(there)


@pytest.mark.parametrize(
    ("port", "baud", "message"),
    [
        ("/dev/null", 115200, "is no serial port"),
        ("/dev/no-such-port", 115200, "plug the board in"),
        ("/dev/null", 12345, "expected one of 9600"),
    ],
)
def test_port_that_is_none_is_refused(port: str, baud: int, message: str) -> None:
    with pytest.raises(CalibrateError, match=message):
        board.measure(Path(port), baud, silence_s=0.1)


def test_interrupt_ends_with_130_and_writes_nothing(there: Board, tmp_path: Path) -> None:
    out = tmp_path / "results"
    command = [sys.executable, "-m", "warifu.cli", "calibrate", "board", "--port", str(there.port)]
    program = subprocess.Popen([*command, "--out", str(out)], stderr=subprocess.PIPE, text=True)
    assert there.asked.wait(30)
    time.sleep(0.2)
    program.send_signal(signal.SIGINT)
    assert program.wait(30) == 130
    assert program.stderr is not None
    assert "nothing was written" in program.stderr.read()
    assert not out.exists()
