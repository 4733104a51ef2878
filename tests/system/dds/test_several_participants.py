# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Several participants in one process, on real middleware: Cyclone DDS puts submessages of several
into one RTPS message, and asks the plugin about it for each of its own participants in turn."""

from __future__ import annotations

import datetime
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import cyclone, dds_probes, needs
from support.cyclone import End, ours
from support.paths import ROOT
from warifu.dds.governance import Basic, Governance, Protection
from warifu.dds.keystore import Enclave, create

pytestmark = [
    needs.root,
    needs.program("ip"),
    needs.program("tcpdump"),
    needs.program("idlc"),
]

COUNT = 50
MARK = b"xxxxxxxxxxxxxxxx"
NONE, ORIGIN = Protection.NONE, Protection.ENCRYPT_WITH_ORIGIN_AUTHENTICATION
GOVERNANCE = {
    "data-only": Governance(Basic.ENCRYPT, NONE, NONE, NONE, NONE),
    "all-encrypted-by-origin": Governance(Basic.ENCRYPT, ORIGIN, ORIGIN, ORIGIN, ORIGIN),
}
AES, AEGIS = "AES-256-GCM", "AEGIS-128L"


@dataclass(frozen=True)
class Talk:
    """What was said, and what the readers have read: by reader, then by writer."""

    read: list[list[int]]
    log: str
    wire: bytes


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several")
    # Its type's code is made with the probe.
    dds_probes.build(folder, "cyclonedds-probe")
    path = folder / "several"
    source = ROOT / "tests" / "support" / "cyclone_several.c"
    subprocess.run(
        ["cc", "-std=gnu11", "-Wall", f"-I{folder}", "-o", path, source,
         folder / "std_msgs_string.c", "-lddsc"],
        check=True,
    )  # fmt: skip
    return path


@pytest.fixture(scope="module")
def network() -> Iterator[str]:
    with cyclone.network() as name:
        yield name


def _talk(
    network: str,
    folder: Path,
    program: Path,
    writers: list[tuple[Enclave, str]],
    readers: list[tuple[Enclave, str]],
    peers: int,
) -> Talk:
    configuration = folder / "cyclone.xml"
    configuration.write_text(cyclone.configuration(End()))
    library, _ = ours()

    def start(role: str, ends: list[tuple[Enclave, str]]) -> subprocess.Popen[bytes]:
        chosen = [f"{enclave.folder}={aead}" for enclave, aead in ends]
        command = [str(program), role, str(COUNT), str(peers), library, *chosen]
        return cyclone.start(network, configuration, folder / f"{role}.log", command)

    capture = folder / "lo.pcap"
    with cyclone.captured(network, capture):
        reading = start("read", readers)
        writing = start("write", writers)
        codes = [process.wait(90) for process in (writing, reading)]
    logs = [(folder / f"{role}.log").read_text(errors="replace") for role in ("write", "read")]
    log = "\n".join(logs)
    assert codes == [0, 0], log
    rows = [
        json.loads(line) for line in logs[1].splitlines() if line.startswith("[") and "," in line
    ]
    return Talk(rows, log, capture.read_bytes())


def _enclaves(folder: Path, names: list[str], governance: Governance) -> list[Enclave]:
    made = create(folder / "keys", names, governance, now=datetime.datetime.now(datetime.UTC))
    return [made[name] for name in names]


@pytest.mark.parametrize("name", GOVERNANCE)
def test_each_reads_those_of_its_cipher(
    network: str, program: Path, tmp_path: Path, name: str
) -> None:
    writer, reader = _enclaves(tmp_path, ["/w", "/r"], GOVERNANCE[name])
    aeads = [AES, AEGIS]
    talk = _talk(
        network, tmp_path, program,
        [(writer, aead) for aead in aeads], [(reader, aead) for aead in aeads], peers=1,
    )  # fmt: skip
    assert talk.read == [[COUNT, 0], [0, COUNT]], talk.log[-3000:]
    assert MARK not in talk.wire
    assert talk.log.count("EXPERIMENT") == 2, "once in each process"


@pytest.mark.parametrize("name", GOVERNANCE)
def test_all_of_one_cipher_read_all(network: str, program: Path, tmp_path: Path, name: str) -> None:
    writer, reader = _enclaves(tmp_path, ["/w", "/r"], GOVERNANCE[name])
    talk = _talk(
        network, tmp_path, program, [(writer, AES)] * 2, [(reader, AES)] * 2, peers=2
    )  # fmt: skip
    assert talk.read == [[COUNT, COUNT], [COUNT, COUNT]], talk.log[-3000:]
    assert MARK not in talk.wire
