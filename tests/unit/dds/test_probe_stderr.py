# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the probe says goes to its program's standard error, whatever that is: the program neither
ends by it nor waits."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.paths import ROOT
from warifu.dds.recording import read
from warifu.tools import find

#: It waits a tenth of a second; a program that hangs would be ended by this.
SECONDS = 20


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("evp") / "evp-program"
    source = ROOT / "tests" / "support" / "evp_program.c"
    subprocess.run(["cc", "-O1", "-pthread", "-o", path, source, "-lcrypto"], check=True)
    return path


@contextmanager
def full_device() -> Iterator[int]:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    yield descriptor
    os.close(descriptor)


@contextmanager
def full_pipe() -> Iterator[int]:
    """That nobody reads from, and that has no room left."""
    reads, writes = os.pipe()
    flags = fcntl.fcntl(writes, fcntl.F_GETFL)
    fcntl.fcntl(writes, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writes, b"x" * 4096)
    fcntl.fcntl(writes, fcntl.F_SETFL, flags)
    yield writes
    os.close(reads)
    os.close(writes)


@contextmanager
def closed_pipe() -> Iterator[int]:
    """Whose other end is gone: a write raises SIGPIPE."""
    reads, writes = os.pipe()
    os.close(reads)
    yield writes
    os.close(writes)


def _environment(folder: Path) -> dict[str, str]:
    folder.mkdir(mode=0o700)
    return os.environ | {
        "LD_PRELOAD": str(find("libwarifu_evp_probe.so")),
        "WARIFU_EVP_PROBE": str(folder),
        # It says so, at length.
        "WARIFU_EVP_SWAP": "ascon-aead128",
    }


def _seven(folder: Path) -> bool:
    (path,) = folder.glob("*.evp")
    return read(path).totals["now"]["encrypt"]["operations"] == 7


@pytest.mark.parametrize("stderr", [full_device, full_pipe, closed_pipe])
def test_stderr_that_takes_nothing_does_not_end_the_program(
    program: Path, tmp_path: Path, stderr: object
) -> None:
    with stderr() as descriptor:  # type: ignore[operator]
        done = subprocess.run(
            [program, "round-trip", "7", "16"], stderr=descriptor, timeout=SECONDS,
            env=_environment(tmp_path / "r"), check=False,
        )  # fmt: skip
    assert done.returncode == 0
    assert _seven(tmp_path / "r")


def test_stderr_that_is_closed_does_not_end_the_program(program: Path, tmp_path: Path) -> None:
    environment = _environment(tmp_path / "r")
    # Not for the shell, which would be another process that is recorded.
    preload = environment.pop("LD_PRELOAD")
    shell = ["sh", "-c", 'LD_PRELOAD=$1 exec "$0" round-trip 7 16 2>&-', program, preload]
    done = subprocess.run(
        list(map(str, shell)), env=environment, timeout=SECONDS, check=False, stdout=subprocess.PIPE
    )
    assert done.returncode == 0
    assert _seven(tmp_path / "r")


def test_stderr_that_may_not_grow_does_not_end_the_program(program: Path, tmp_path: Path) -> None:
    """A limit of files' sizes raises SIGXFSZ."""
    environment = _environment(tmp_path / "r")
    log = tmp_path / "log"
    log.write_bytes(b"x" * 8_000_000)

    def limit() -> None:
        # More than a recording has, and no more than the log has already.
        resource.setrlimit(resource.RLIMIT_FSIZE, (8_000_000, 8_000_000))

    with log.open("ab") as file:
        done = subprocess.run(
            [program, "round-trip", "7", "16"], stderr=file, timeout=SECONDS, env=environment,
            preexec_fn=limit, check=False,
        )  # fmt: skip
    assert done.returncode == 0, signal.strsignal(-done.returncode)
    assert log.stat().st_size == 8_000_000
    assert _seven(tmp_path / "r")
