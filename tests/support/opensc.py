# SPDX-License-Identifier: Apache-2.0 OR MIT
"""OpenSC's own tests of a PKCS#11 module."""

from __future__ import annotations

from support.programs import PIN, Device, module, run

#: The card's first empty place (warifu-card-server's `spare_pairs`).
PLACE = "10"


def pkcs11_tool(device: Device, *arguments: object) -> tuple[str, list[str]]:
    """What pkcs11-tool says, and its warnings and errors."""
    command = ("pkcs11-tool", "--module", module(), "--login", "--pin", PIN, *arguments)
    done = run(*command, environment=device.environment, patience_s=120)
    lines = (done.stdout + done.stderr).splitlines()
    # Complaints, and the return values that they quote.
    complaints = [
        line for line in lines if line.startswith(("warning:", "error:")) or "ERR" in line
    ]
    return done.stdout, complaints


def check_test(device: Device) -> None:
    """`--test` has nothing to complain of."""
    said, complaints = pkcs11_tool(device, "--test")
    assert complaints == []
    assert "seems to be OK" in said
    assert "all 4 digest functions seem to work" in said
    assert said.endswith("No errors\n")


def check_test_ec(device: Device) -> None:
    """`--test-ec` complains of nothing but the card's names."""
    options = ("--session-rw", "--id", PLACE, "--key-type", "EC:secp256r1")
    said, complaints = pkcs11_tool(device, "--test-ec", *options)
    # A card's names are what it was made with, and the standard lets a token refuse others.
    assert all("C_SetAttributeValue" in one and "0x1b" in one for one in complaints)
    assert "Deleting the private and the public key again" in said
    assert "==> OK" in said
