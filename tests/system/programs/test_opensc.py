# SPDX-License-Identifier: Apache-2.0 OR MIT
"""OpenSC's own tests of a PKCS#11 module."""

from __future__ import annotations

import subprocess

import pytest

from support import programs
from support.opensc import PLACE, check_test, check_test_ec
from support.programs import PIN, Device, module, run


@pytest.fixture(autouse=True, scope="module")
def on_record() -> None:
    programs.version("OpenSC", ["opensc-tool", "--info"], r"(?i)opensc (\d[\w.]*)")


def test_label_that_is_not_stored(device: Device) -> None:
    options = ("--keypairgen", "--key-type", "EC:secp256r1", "--id", PLACE)
    command = ("pkcs11-tool", "--module", module(), "--login", "--pin", PIN, *options)
    assert "label" not in run(*command, environment=device.environment).stderr
    command = (*command[:-1], "11", "--label", "éa")
    (line,) = run(*command, environment=device.environment).stderr.splitlines()[-1:]
    assert line.startswith("warifu-pkcs11: ")
    assert 'the label "éa" is not stored' in line


@pytest.mark.parametrize("quiet", [False, True])
def test_key_pair_without_an_empty_container_is_explained(device: Device, quiet: bool) -> None:
    command = ("pkcs11-tool", "--module", module(), "--login", "--pin", PIN, "--keypairgen")
    environment = device.environment | ({"WARIFU_PKCS11_QUIET": "1"} if quiet else {})
    # The device has none with this id; its own are 10 and 11.
    done = subprocess.run(
        [*command, "--key-type", "EC:secp256r1", "--id", "77"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if line.startswith("warifu-pkcs11: ")]
    if quiet:
        assert not said
        return
    (line,) = said
    assert "no empty persistent container with the id 77 for a key pair on secp256r1" in line
    assert "warifu card create --spare-pairs 4" in line
    assert "replace_keys = true" in line


def test_opensc_self_test(device: Device) -> None:
    check_test(device)


def test_opensc_curve_test(device: Device) -> None:
    check_test_ec(device)
    assert len(device.signatures()) == 2
