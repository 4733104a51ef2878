# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What `warifu dds keystore --show` prints, and what docs/reference/dds.md has of it, in real
programs."""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import cyclone, dds_probes, needs
from support.cyclone import PLAIN_SAMPLE, End
from support.dds_probes import MARK
from support.paths import ROOT
from warifu.dds.keystore import make

pytestmark = [needs.root, needs.program("tcpdump"), needs.program("ip")]
_AES_256_GCM = bytes([0, 0, 0, 4])


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    folder = tmp_path / "my keys"
    make(folder, ["/talker", "/listener"], {}, now=datetime.datetime.now(datetime.UTC), days=2)
    return folder


def _shown(keys: Path, name: str, what: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "warifu.cli", "dds", "keystore", keys, "-e", name, "--show", what],
        text=True, capture_output=True, check=True,
    )  # fmt: skip
    return done.stdout


def _page(keys: Path, name: str) -> str:
    """The page's own configuration, for a keystore that is there."""
    page = (ROOT / "docs" / "reference" / "dds.md").read_text(encoding="utf-8")
    (xml,) = re.findall(r"```xml\n(<CycloneDDS .*?)```", page, re.DOTALL)
    return str(xml.replace("/absolute/keys", str(keys)).replace("/talker/", f"{name}/"))


@needs.program("ddsperf")
@pytest.mark.parametrize("source", ["page", "cyclonedds", "cyclonedds-warifu"])
def test_ddsperf_is_secured_by_it(keys: Path, tmp_path: Path, source: str) -> None:
    ends = [
        End(xml=_page(keys, name) if source == "page" else _shown(keys, name, source))
        for name in ("/talker", "/listener")
    ]
    with cyclone.network() as network:
        outcome = cyclone.talk(network, tmp_path / "run", *ends)
    assert outcome.works, outcome.writer_log[-2000:] + outcome.reader_log[-2000:]
    assert PLAIN_SAMPLE not in outcome.wire
    assert _AES_256_GCM in outcome.wire


@needs.file(Path("/usr/include/fastdds/dds/domain/DomainParticipant.hpp"), "libfastrtps-dev")
def test_fast_dds_is_secured_by_its_default_profile(keys: Path, tmp_path: Path) -> None:
    probe = dds_probes.build(tmp_path, "fastdds-probe")
    commands: list[list[str | Path]] = []
    for name, role in (("/talker", "publish"), ("/listener", "subscribe")):
        file = tmp_path / f"{role}.xml"
        file.write_text(_shown(keys, name, "fastdds"))
        own = ["env", f"FASTRTPS_DEFAULT_PROFILES_FILE={file}", probe, role, "--profiles"]
        commands.append([*own, "--count", "50", "--bytes", "64", "--timeout", "10"])
    pair = dds_probes.run(commands[0], commands[1], capture=tmp_path / "wire")
    assert pair.code == 0, pair.err
    assert pair.reports["subscribe"]["received"] == 50
    assert [one["secured"] for one in pair.reports.values()] == [True, True]
    assert MARK not in (tmp_path / "wire").read_bytes()
    assert (tmp_path / "wire").stat().st_size > 50 * 64
