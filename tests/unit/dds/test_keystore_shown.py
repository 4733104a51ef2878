# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How a program is told of its enclave: `warifu dds keystore --show`."""

from __future__ import annotations

import datetime
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from support.commands import Run, one_line
from support.paths import ROOT
from warifu.cli.errors import OK, USAGE
from warifu.dds.configuration import cyclone
from warifu.dds.keystore import Enclave, make
from warifu.tools import find

NAMES = ["/talker", "/fleet/car_1"]
_CDDS = "{https://cdds.io/config}"
_FAST = "{http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles}"


@pytest.fixture
def keys(tmp_path: Path, elsewhere: None) -> Path:
    """With what XML and shells have to quote."""
    folder = Path("my <own> & keys")
    make(folder, NAMES, {}, now=datetime.datetime.now(datetime.UTC))
    return folder


def test_cyclones_configuration_names_files_that_are_there(warifu: Run, keys: Path) -> None:
    code, out, _ = warifu("dds", "keystore", str(keys), "-e", "/talker", "--show", "cyclonedds")
    assert code == OK
    root = ET.fromstring(out)
    security = root.find(f"{_CDDS}Domain/{_CDDS}Security")
    assert security is not None
    files = [one.text or "" for one in security.iter() if (one.text or "").startswith("file:")]
    assert len(files) == 6
    for file in files:
        path = Path(file.removeprefix("file:"))
        assert path.is_absolute()
        assert path.is_file()
        assert path.parent.name == "talker"


def test_our_plugin_takes_the_place_of_cyclones_cryptography_alone(warifu: Run, keys: Path) -> None:
    arguments = ("dds", "keystore", str(keys), "-e", "/talker", "--show")
    builtin = warifu(*arguments, "cyclonedds")[1].splitlines()
    ours = warifu(*arguments, "cyclonedds-warifu")[1].splitlines()
    (line,) = (one for one, other in zip(ours, builtin, strict=True) if one != other)
    assert str(find("libwarifu_dds_crypto.so")) in line


def test_fast_dds_gets_a_default_profile_with_its_properties(warifu: Run, keys: Path) -> None:
    _, out, _ = warifu("dds", "keystore", str(keys), "-e", "/fleet/car_1", "--show", "fastdds")
    found = {
        one.findtext(f"{_FAST}name"): one.findtext(f"{_FAST}value") or ""
        for one in ET.fromstring(out).iter(f"{_FAST}property")
    }
    assert found["dds.sec.crypto.plugin"] == "builtin.AES-GCM-GMAC"
    files = [value for value in found.values() if value.startswith("file://")]
    assert len(files) == 6
    for value in files:
        path = Path(value.removeprefix("file://"))
        assert path.is_file()
        assert path.parent == (keys / "enclaves" / "fleet" / "car_1").resolve()


def test_ros_2_gets_lines_that_a_shell_reads(warifu: Run, keys: Path) -> None:
    _, out, _ = warifu("dds", "keystore", str(keys), "--show", "ros2")
    variables = "$ROS_SECURITY_KEYSTORE|$ROS_SECURITY_ENABLE|$ROS_SECURITY_STRATEGY"
    done = subprocess.run(
        ["sh", "-c", f'{out}\necho "{variables}"'],
        text=True, capture_output=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == f"{keys.resolve()}|true|Enforce"
    assert "--ros-args --enclave /" in out


def test_showing_changes_nothing(warifu: Run, keys: Path) -> None:
    def state() -> dict[Path, tuple[int, bytes]]:
        files = (path for path in keys.rglob("*") if path.is_file())
        return {path: (path.stat().st_ino, path.read_bytes()) for path in files}

    before = state()
    for what in ("cyclonedds", "cyclonedds-warifu", "fastdds", "ros2"):
        assert warifu("dds", "keystore", str(keys), "-e", "/talker", "--show", what)[0] == OK
    assert state() == before


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("-e", "/nobody"), "has no enclave /nobody: it has /fleet/car_1, /talker"),
        ((), "has 2 enclaves: say which with --enclave"),
        (("-e", "/talker", "--data", "NONE"), "changes nothing, and --data does"),
        (("-e", "/talker", "--days", "3"), "changes nothing, and --days does"),
    ],
)
def test_what_cannot_be_shown_is_said(
    warifu: Run, keys: Path, more: tuple[str, ...], says: str
) -> None:
    code, out, err = warifu("dds", "keystore", str(keys), *more, "--show", "cyclonedds")
    assert (code, out) == (USAGE, "")
    assert says in one_line(err)


def test_folder_that_is_no_keystore_is_not_shown(warifu: Run, elsewhere: None) -> None:
    code, _, err = warifu("dds", "keystore", "nothing", "--show", "ros2")
    assert code == USAGE
    assert "nothing: is no keystore with enclaves" in one_line(err)


def test_path_that_middlewares_read_otherwise_is_refused(warifu: Run, elsewhere: None) -> None:
    make(Path("a$HOME"), ["/talker"], {}, now=datetime.datetime.now(datetime.UTC))
    code, _, err = warifu("dds", "keystore", "a$HOME", "--show", "fastdds")
    assert code == USAGE
    assert "move the keystore to another folder" in one_line(err)


def test_page_shows_what_the_command_prints() -> None:
    page = (ROOT / "docs" / "reference" / "dds.md").read_text(encoding="utf-8")
    enclave = Enclave(Path("/absolute/keys/enclaves/talker"))
    head, _, body = cyclone(enclave, "/talker").partition("<CycloneDDS ")
    assert "CYCLONEDDS_URI" in head
    folder = "/usr/lib/x86_64-linux-gnu/libddsc0debian/lib"
    text = f"<CycloneDDS {body}"
    if folder not in text:
        # Where Cyclone DDS is not Debian's, its libraries are known by their names.
        for name in ("auth", "ac", "crypto"):
            text = text.replace(f'"dds_security_{name}"', f'"{folder}dds_security_{name}.so"')
    assert f"```xml\n{text}```" in page
