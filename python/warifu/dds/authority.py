# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The two CAs of a keystore, and what they sign, by openssl; it writes no file itself."""

from __future__ import annotations

import os
import ssl
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from warifu import tools
from warifu.dds.keystore_files import KeystoreRefused, private, write

IDENTITY, PERMISSIONS = "identity_ca", "permissions_ca"
"""Their names: who may take part, and what they may do."""

#: What openssl reads from its standard input: a key is on no disk before it is complete.
_GIVEN = "/dev/stdin"


class KeystoreError(Exception):
    """openssl cannot make it; the text is one line."""


@dataclass(frozen=True)
class Authority:
    """A CA: its key and its certificate."""

    key: Path
    certificate: Path

    @property
    def there(self) -> bool:
        """Whether both exist."""
        return self.key.exists() and self.certificate.exists()

    @property
    def ends(self) -> datetime:
        """When its certificate expires, UTC. Raises KeystoreError."""
        return end_of(self.certificate)


def of(folder: Path, name: str) -> Authority:
    """Where a keystore has this CA."""
    key = folder / "private" / f"{name}.key.pem"
    return Authority(key, folder / "public" / f"{name}.cert.pem")


def check(ca: Authority, enclaves: int, now: datetime) -> None:
    """Raises KeystoreRefused for a CA that can sign nothing that others would accept; nothing is
    said where none has been made yet, and nothing needs it."""
    there, gone = ca.key, ca.certificate
    if not there.exists():
        there, gone = gone, there
    if not there.exists():
        if enclaves:
            raise KeystoreRefused(
                f"{ca.key}: is missing, and so is {ca.certificate}: restore both from a copy; a "
                f"new CA would not know the {enclaves} enclaves that are there"
            )
        return
    if not gone.exists():
        fix = (
            "restore it from a copy, or begin with another folder"
            if enclaves
            else f"restore it from a copy; or remove {there}, since no enclave needs it yet, and "
            "run this again"
        )
        raise KeystoreRefused(
            f"{gone}: is missing, while {there} is there, and half a CA is not made anew: {fix}"
        )
    private(ca.key)
    try:
        belongs = public_of_key(ca.key) == public_of_certificate(ca.certificate)
    except KeystoreError as error:
        raise KeystoreRefused(f"{error}: restore it from a copy") from None
    if not belongs:
        raise KeystoreRefused(
            f"{ca.key}: is not the key of {ca.certificate}: restore the one that belongs to it"
        )
    if ca.ends <= now:
        raise KeystoreRefused(
            f"{ca.certificate}: expired on {ca.ends:%Y-%m-%d}, and what it signs is refused by "
            "every participant: make a keystore in another folder, and give each program its "
            "new enclave"
        )


def make(ca: Authority, name: str, days: int) -> None:
    """A new CA, whose certificate ends after so many days."""
    key = new_key()
    certificate = openssl(
        "req", "-x509", "-new", "-key", _GIVEN, "-sha256", "-days", str(days),
        "-subj", f"/CN={name}",
        given=key,
    )  # fmt: skip
    write(ca.certificate, certificate)
    write(ca.key, key)


def certify(ca: Authority, key: bytes, name: str, days: int) -> bytes:
    """A certificate for the owner of a key, whose common name is the enclave's."""
    request = openssl("req", "-new", "-key", _GIVEN, "-sha256", "-subj", _subject(name), given=key)
    return openssl(
        "x509", "-req", "-sha256", "-days", str(days), "-CA", ca.certificate, "-CAkey", ca.key,
        # Random: the file that -CAcreateserial writes would lie among the certificates.
        "-set_serial", str(int.from_bytes(os.urandom(16)) >> 1),
        given=request,
    )  # fmt: skip


def sign(ca: Authority, document: str) -> bytes:
    """S/MIME with the text in clear, which Cyclone and Fast DDS read (section 9.4.1.2)."""
    return openssl(
        "smime", "-sign", "-text", "-md", "sha256", "-signer", ca.certificate, "-inkey", ca.key,
        given=document.encode(),
    )  # fmt: skip


def new_key() -> bytes:
    """A private key of P-256, as PEM."""
    return openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")


def end_of(certificate: Path) -> datetime:
    """When a certificate expires, UTC. Raises KeystoreError."""
    said = openssl("x509", "-in", certificate, "-noout", "-enddate").decode().strip()
    seconds = ssl.cert_time_to_seconds(said.removeprefix("notAfter="))
    return datetime.fromtimestamp(seconds, UTC)


def public_of_key(key: Path) -> bytes:
    """Its public half, as PEM."""
    return openssl("pkey", "-in", key, "-pubout")


def public_of_certificate(certificate: Path) -> bytes:
    """Whose it is."""
    return openssl("x509", "-in", certificate, "-noout", "-pubkey")


def openssl(*arguments: str | Path, given: bytes = b"") -> bytes:
    """What a command of openssl's prints. Raises KeystoreError, ToolMissing."""
    done = subprocess.run(
        [tools.find("openssl"), *arguments], input=given, capture_output=True, check=False
    )
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        files = [str(one) for one in arguments if isinstance(one, Path)]
        where = f"{', '.join(files)}: " if files else ""
        raise KeystoreError(
            f"{where}openssl {arguments[0]} fails: {said[-1] if said else 'no reason'}"
        )
    return done.stdout


def _subject(name: str) -> str:
    """As `-subj` takes it, which separates by slashes."""
    return "/CN=" + name.replace("/", "\\/")
