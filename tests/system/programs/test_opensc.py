# SPDX-License-Identifier: Apache-2.0 OR MIT
"""OpenSC's own tests of a PKCS#11 module."""

from __future__ import annotations

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


def test_opensc_self_test(device: Device) -> None:
    check_test(device)


def test_opensc_curve_test(device: Device) -> None:
    check_test_ec(device)
    assert len(device.signatures()) == 2
