# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Keystores for DDS Security in the layout of SROS2, made with openssl alone.

public/      certificates of the two CAs
private/     their keys
enclaves/    governance, and a folder for each enclave: its key and certificate, the CAs'
             certificates, signed governance and permissions
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from warifu import tools
from warifu.dds.governance import Governance, permissions

#: A path of names, as ROS 2 has them: letters, digits and underscores, beginning with no digit.
_ENCLAVE = re.compile(r"(/[A-Za-z_][A-Za-z0-9_]*)+")
_CAS = ("identity_ca", "permissions_ca")

#: An X.509 common name has 64 characters at most (RFC 5280, appendix A.1).
_LONGEST_ENCLAVE = 64


class KeystoreError(Exception):
    """openssl cannot make it; the text is one line."""


class KeystoreRefused(Exception):  # noqa: N818 - what happened, not what it is
    """A name or a folder that will not do; the text is one line that names it and the fix."""


@dataclass(frozen=True)
class Enclave:
    """The files of one enclave, as a DDS participant's properties name them."""

    folder: Path

    @property
    def key(self) -> Path:
        """Its private key."""
        return self.folder / "key.pem"

    @property
    def certificate(self) -> Path:
        """Its certificate, by the identity CA."""
        return self.folder / "cert.pem"

    @property
    def identity_ca(self) -> Path:
        """The certificate of the CA that peers' certificates are checked with."""
        return self.folder / "identity_ca.cert.pem"

    @property
    def permissions_ca(self) -> Path:
        """The certificate of the CA that signs governance and permissions."""
        return self.folder / "permissions_ca.cert.pem"

    @property
    def governance(self) -> Path:
        """What is protected, signed."""
        return self.folder / "governance.p7s"

    @property
    def permissions(self) -> Path:
        """What it may do, signed."""
        return self.folder / "permissions.p7s"


def create(
    folder: Path,
    enclaves: list[str],
    governance: Governance,
    *,
    now: datetime,
    days: int = 3650,
) -> dict[str, Enclave]:
    """Makes a keystore, or adds enclaves to one and signs its governance anew. `now`, in UTC, is
    when permissions begin; those and the certificates end after `days`.

    Raises KeystoreRefused, KeystoreError, ToolMissing and OSError.
    """
    for name in enclaves:
        _check(folder, name)
    public, private, root = (folder / name for name in ("public", "private", "enclaves"))
    if folder.is_dir() and any(folder.iterdir()) and not root.is_dir():
        raise KeystoreRefused(f"{folder}: is no keystore, and not empty: name another folder")
    for place in (public, private, root):
        place.mkdir(parents=True, exist_ok=True)
    private.chmod(0o700)
    for ca in _CAS:
        if not (private / f"{ca}.key.pem").exists():
            _authority(private / f"{ca}.key.pem", public / f"{ca}.cert.pem", ca, days)
    (root / "governance.xml").write_text(governance.xml(), encoding="utf-8")
    _sign(folder, root / "governance.xml")
    made = {name: _enclave(folder, name, now, days) for name in enclaves}
    for other in root.rglob("governance.p7s"):
        if other.parent != root:
            shutil.copyfile(root / "governance.p7s", other)
    return made


def _check(folder: Path, name: str) -> None:
    if not _ENCLAVE.fullmatch(name) or len(name) > _LONGEST_ENCLAVE:
        raise KeystoreRefused(
            f"enclave {name!r}: expected /NAME or /NAME/NAME of letters, digits and underscores, "
            f"{_LONGEST_ENCLAVE} characters at most"
        )
    if Enclave(folder / "enclaves" / name[1:]).key.exists():
        raise KeystoreRefused(f"{folder}: has enclave {name} already: leave it out, or remove it")


def _enclave(folder: Path, name: str, now: datetime, days: int) -> Enclave:
    enclave = Enclave(folder / "enclaves" / name[1:])
    enclave.folder.mkdir(parents=True)
    for ca in _CAS:
        shutil.copyfile(folder / "public" / f"{ca}.cert.pem", enclave.folder / f"{ca}.cert.pem")
    shutil.copyfile(folder / "enclaves" / "governance.p7s", enclave.governance)
    _key(enclave.key)
    request = _openssl("req", "-new", "-key", enclave.key, "-sha256", "-subj", _subject(name))
    _openssl(
        "x509", "-req", "-sha256", "-days", str(days),
        "-CA", folder / "public" / "identity_ca.cert.pem",
        "-CAkey", folder / "private" / "identity_ca.key.pem",
        # Random: the file that -CAcreateserial writes would lie among the certificates.
        "-set_serial", str(int.from_bytes(os.urandom(16)) >> 1),
        "-out", enclave.certificate,
        given=request,
    )  # fmt: skip
    document = enclave.folder / "permissions.xml"
    # An hour earlier: clocks of different machines are never quite the same.
    allowed = permissions(f"CN={name}", now - timedelta(hours=1), now + timedelta(days=days))
    document.write_text(allowed, encoding="utf-8")
    _sign(folder, document)
    return enclave


def _authority(key: Path, certificate: Path, name: str, days: int) -> None:
    _key(key)
    _openssl(
        "req", "-x509", "-new", "-key", key, "-sha256", "-days", str(days),
        "-subj", f"/CN={name}", "-out", certificate,
    )  # fmt: skip


def _key(path: Path) -> None:
    """A new private key, readable by nobody else from its first byte on."""
    text = _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text)


def _sign(folder: Path, document: Path) -> None:
    """S/MIME with the text in clear, which Cyclone and Fast DDS read (section 9.4.1.2)."""
    _openssl(
        "smime", "-sign", "-text", "-md", "sha256", "-in", document,
        "-signer", folder / "public" / "permissions_ca.cert.pem",
        "-inkey", folder / "private" / "permissions_ca.key.pem",
        "-out", document.with_suffix(".p7s"),
    )  # fmt: skip


def _subject(name: str) -> str:
    """As `-subj` takes it, which separates by slashes."""
    return "/CN=" + name.replace("/", "\\/")


def _openssl(*arguments: str | Path, given: bytes = b"") -> bytes:
    done = subprocess.run(
        [tools.find("openssl"), *arguments], input=given, capture_output=True, check=False
    )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise KeystoreError(f"openssl {arguments[0]} fails: {said[-1] if said else 'no reason'}")
    return done.stdout
