# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Cyclone DDS's ddsperf, secured, with one plugin or another, in a network of its own."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.succeeding import must
from warifu import tools
from warifu.dds.configuration import security
from warifu.dds.keystore import Enclave
from warifu.dds.middlewares import cyclone_folders

BUILTIN = ("dds_security_crypto", "init_crypto")
"""Cyclone's own plugin, by its library and function, as a configuration names them."""

PLAIN_SAMPLE = b"\xee" * 32
"""What ddsperf fills its samples with (Cyclone DDS 0.10, ddsperf.c, init_sample)."""

INIT = {
    "AES-128-GCM": "init_crypto_aes_128_gcm",
    "AES-256-GCM": "init_crypto_aes_256_gcm",
    "AEGIS-128L": "init_crypto_aegis_128l",
    "AEGIS-256": "init_crypto_aegis_256",
    "Ascon-AEAD128": "init_crypto_ascon_aead128",
    "Deoxys-II-128-128": "init_crypto_deoxys_ii_128_128",
    "ChaCha20-Poly1305": "init_crypto_chacha20_poly1305",
}
"""Our init function by the AEAD that it selects."""

_SECONDS = 3
_SECONDS_TO_MATCH = 10


@dataclass(frozen=True)
class End:
    """One participant: its files, and its plugin as in `BUILTIN`; neither for one in plain text."""

    enclave: Enclave | None = None
    plugin: tuple[str, str] | None = None
    environment: tuple[tuple[str, str], ...] = ()
    xml: str | None = None
    """A whole configuration, in the place of the one that the others make."""


@dataclass(frozen=True)
class Outcome:
    """What a writer and a reader of ddsperf's said, and what was seen on the wire."""

    writer_code: int
    reader_code: int
    writer_log: str
    reader_log: str
    wire: bytes

    @property
    def samples(self) -> int:
        """Received by the reader."""
        totals = re.findall(r"size \d+ total (\d+) lost 0", self.reader_log)
        return int(totals[-1]) if totals else 0

    @property
    def round_trips(self) -> int:
        """Answers of the reader's that came back in the last second."""
        counts = re.findall(r"size \d+ mean .* cnt (\d+)", self.writer_log)
        return int(counts[-1]) if counts else 0

    @property
    def works(self) -> bool:
        """Samples went there, and answers back."""
        codes = (self.writer_code, self.reader_code) == (0, 0)
        return codes and self.samples >= 10 and self.round_trips >= 1


def ours(aead: str = "AES-256-GCM") -> tuple[str, str]:
    """Our plugin, by its library and function."""
    return str(tools.find("libwarifu_dds_crypto.so")), INIT[aead]


@contextmanager
def network() -> Iterator[str]:
    """A namespace with a loopback that takes multicast; gives its name."""
    name = f"warifu-dds-{os.getpid()}"
    ip = str(tools.find("ip"))
    must(ip, "netns", "add", name)
    try:
        for arguments in (
            ["link", "set", "lo", "up", "multicast", "on"],
            ["route", "add", "224.0.0.0/4", "dev", "lo"],
        ):
            must(ip, "-n", name, *arguments)
        yield name
    finally:
        must(ip, "netns", "del", name)


def talk(network: str, folder: Path, writer: End, reader: End, *, bytes_each: int = 256) -> Outcome:
    """Lets one write 100 samples a second to the other, of which half are answered."""
    folder.mkdir(parents=True, exist_ok=True)
    capture = folder / "lo.pcap"
    with captured(network, capture):
        listening = _ddsperf(network, folder, "reader", reader, "-Qsamples:10", "sub")
        size = ["size", str(bytes_each)]
        writing = _ddsperf(network, folder, "writer", writer, "pub", "100Hz", *size, "50%")
        deadline = time.monotonic() + _SECONDS_TO_MATCH + _SECONDS + 10
        codes = [
            _ended(process, max(deadline - time.monotonic(), 0.1))
            for process in (writing, listening)
        ]
    logs = [(folder / f"{name}.log").read_text(errors="replace") for name in ("writer", "reader")]
    return Outcome(*codes, *logs, capture.read_bytes())


def _ended(process: subprocess.Popen[bytes], seconds: float) -> int:
    """Its exit code; one that takes longer is killed, which is no success."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def configuration(end: End, interface: str = "lo") -> str:
    """As CYCLONEDDS_URI takes it."""
    network = f'<NetworkInterface name="{interface}" multicast="true"/>'
    secured = "" if end.enclave is None else security(end.enclave, end.plugin or BUILTIN)
    return (
        f'<CycloneDDS><Domain id="any"><General><Interfaces>{network}</Interfaces></General>'
        "<Tracing><Verbosity>warning</Verbosity><OutputFile>stderr</OutputFile></Tracing>"
        f"{secured}</Domain></CycloneDDS>"
    )


def _ddsperf(
    network: str, folder: Path, name: str, end: End, *arguments: str
) -> subprocess.Popen[bytes]:
    file = folder / f"{name}.xml"
    file.write_text(end.xml or configuration(end))
    common = ["-D", str(_SECONDS), "-Qminmatch:1", f"-Qmaxwait:{_SECONDS}"]
    command = [tools.find("ddsperf"), *common, *arguments]
    return start(network, file, folder / f"{name}.log", command, end.environment)


def start(
    network: str,
    configuration: Path,
    log: Path,
    command: Sequence[str | Path],
    environment: Iterable[tuple[str, str]] = (),
) -> subprocess.Popen[bytes]:
    """Starts a program of Cyclone's in the namespace."""
    with log.open("wb") as file:
        return subprocess.Popen(
            [tools.find("ip"), "netns", "exec", network, *command],
            env={
                **os.environ,
                "CYCLONEDDS_URI": f"file://{configuration}",
                # Debian has Cyclone's plugins in a folder of their own.
                "LD_LIBRARY_PATH": str(plugins()),
                **dict(environment),
            },
            stdout=file,
            stderr=subprocess.STDOUT,
        )


def plugins() -> Path:
    """Where Debian has Cyclone's own plugins."""
    return next(iter(cyclone_folders()), Path("/usr/lib"))


@contextmanager
def captured(network: str, file: Path) -> Iterator[None]:
    """Writes what passes the namespace's loopback to a file."""
    capture = subprocess.Popen(
        [
            tools.find("ip"), "netns", "exec", network, tools.find("tcpdump"),
            "-i", "lo", "-U", "-w", file, "-Z", "root", "udp",
        ],
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert capture.stderr is not None
        # It says when it listens, and perhaps something else before.
        assert any(b"listening" in line for line in capture.stderr), "tcpdump has ended"
        yield
    finally:
        capture.terminate()
        capture.communicate(timeout=10)
