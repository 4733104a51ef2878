# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu dds profile`: a program whose messages are known, and ddsperf with Cyclone's plugin."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path

import pytest

from support import cyclone, needs
from support.commands import Run, one_line
from support.cyclone import BUILTIN, End
from warifu import tools
from warifu.cli.errors import ENVIRONMENT, OK
from warifu.dds import profile
from warifu.dds.governance import Governance
from warifu.dds.keystore import create
from warifu.dds.profile import Site


@pytest.fixture(scope="module")
def sealing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("sealing") / "sealing"
    source = Path(__file__).with_name("sealing.c")
    subprocess.run(
        ["cc", "-O2", "-Wall", "-Wextra", "-rdynamic", source, "-lcrypto", "-o", program],
        check=True,
    )
    return program


def test_messages_are_counted_by_function_and_operation(
    sealing: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seen = profile.run([str(sealing)])
    assert capfd.readouterr().out == "5 opened\n", "the program does what it did"
    assert seen.exit_code == 9
    assert seen.processes == 1
    assert 0 < seen.probe_ns < 100_000
    found = {
        (site.function, site.operation): (
            site.calls,
            site.refused,
            site.bytes,
            site.associated_bytes,
        )
        for site in seen.sites
    }
    assert found == {
        ("seal_at_once", "encrypt"): (7, 0, 700, 0),
        ("open_it", "decrypt"): (6, 1, 600, 0),
        ("sign_in_two_steps", "sign"): (3, 0, 0, 180),
    }
    assert all(site.setup_ns > 0 and site.data_ns > 0 for site in seen.sites)


def test_the_command_shows_a_table_and_gives_the_programs_exit_code(
    warifu: Run, sealing: Path
) -> None:
    code, out, _ = warifu("dds", "profile", "--", str(sealing))
    assert code == 9
    assert "seal_at_once" in out
    assert "the program ended with 9" in out
    assert "are set-up of contexts and keys" in out
    assert "the probe itself adds" in out


def test_a_program_without_security_is_said_to_have_none(warifu: Run) -> None:
    code, out, _ = warifu("dds", "profile", "--", "true")
    assert code == OK
    assert "nothing was encrypted, decrypted or signed" in out
    assert "ROS_SECURITY_ENABLE" in out


def test_a_program_that_is_killed_leaves_nothing_and_that_is_said(warifu: Run) -> None:
    code, out, _ = warifu("dds", "profile", "--", sys.executable, "-c", "import os; os.abort()")
    assert code == 128 + 6
    assert "ended by SIGABRT" in out
    assert "no process has ended by itself" in out


def test_a_program_that_is_not_there_is_named_in_one_line(warifu: Run) -> None:
    code, _, err = warifu("dds", "profile", "--", "/no/such/program")
    assert code == ENVIRONMENT
    assert "/no/such/program" in one_line(err)


@needs.root
@needs.program("ddsperf")
def test_what_cyclones_plugin_sends_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.datetime.now(datetime.UTC)
    made = create(tmp_path / "keys", ["/writer", "/reader"], Governance(), now=now)
    config = tmp_path / "reader.xml"
    config.write_text(cyclone.configuration(End(made["/reader"], BUILTIN)))
    writer = tmp_path / "writer.xml"
    writer.write_text(cyclone.configuration(End(made["/writer"], BUILTIN)))
    with cyclone.network() as network:
        ddsperf = [str(tools.find("ddsperf")), "-D", "4", "-Qminmatch:1"]
        listening = cyclone.start(network, config, tmp_path / "reader.log", [*ddsperf, "sub"])
        monkeypatch.setenv("CYCLONEDDS_URI", f"file://{writer}")
        monkeypatch.setenv("LD_LIBRARY_PATH", str(cyclone.plugins()))
        enter = [str(tools.find("ip")), "netns", "exec", network]
        seen = profile.run([*enter, *ddsperf, "pub", "100Hz", "size", "256"])
        listening.wait(20)
    assert seen.exit_code == 0

    def total(operation: str) -> list[Site]:
        return [site for site in seen.sites if site.operation == operation]

    # Each sample is encrypted, and its submessage again; then the RTPS message is signed.
    assert sum(site.calls for site in total("encrypt")) >= 2 * 250
    assert sum(site.bytes for site in total("encrypt")) >= 2 * 250 * 256
    assert sum(site.calls for site in total("sign")) >= 250
    # Static functions, in a plugin that is unloaded before the program ends.
    assert all(site.function.startswith("libdds_security_crypto.so+0x") for site in seen.sites)
