# SPDX-License-Identifier: Apache-2.0 OR MIT
"""OpenSC's own tests of a PKCS#11 module."""

from __future__ import annotations

import re

import programs
import pytest
from programs import PIN, Device, module, run


def pkcs11_tool(device: Device, *arguments: object) -> str:
    """What pkcs11-tool says on both streams."""
    command = ("pkcs11-tool", "--module", module(), "--login", "--pin", PIN, *arguments)
    done = run(*command, environment=device.environment, patience_s=120)
    return done.stdout + done.stderr


@pytest.fixture(autouse=True, scope="module")
def on_record() -> None:
    programs.version("OpenSC", ["opensc-tool", "--info"], r"[Oo]pen[Ss][Cc] (\d[\w.]*)")


@pytest.mark.parametrize("tests", ["--test", "--test-ec"])
def test_its_tests_are_clean(device: Device, tests: str) -> None:
    extra = ("--id", "99", "--key-type", "EC:secp256r1") if tests == "--test-ec" else ()
    said = pkcs11_tool(device, tests, *extra)
    assert not re.search(
        r"(?i)\berrors?\b(?! *:? *0)|fail|CKR_(?!OK)", said.replace("No errors", "")
    )
    assert device.signatures()
