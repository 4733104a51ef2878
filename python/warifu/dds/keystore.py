# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Keystores for DDS Security in the layout of SROS2, made with openssl alone.

public/      certificates of the two CAs
private/     their keys
enclaves/    governance, and a folder for each enclave: its key and certificate, the CAs'
             certificates, signed governance and permissions
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from warifu.dds import authority
from warifu.dds.authority import IDENTITY, PERMISSIONS, Authority, KeystoreError
from warifu.dds.governance import (
    DocumentRefused,
    Governance,
    changed,
    doubt_of_permissions,
    kinds_of,
    permissions,
)
from warifu.dds.keystore_files import (
    KeystoreRefused,
    alone,
    directory,
    private,
    refuse_others,
    take,
    text_of,
    write,
)

__all__ = ["Enclave", "Keystore", "KeystoreError", "KeystoreRefused", "create", "enclaves", "make"]

#: A path of names, as ROS 2 has them: letters, digits and underscores, beginning with no digit.
_ENCLAVE = re.compile(r"(/[A-Za-z_][A-Za-z0-9_]*)+")

#: An X.509 common name has 64 characters at most (RFC 5280, appendix A.1).
_LONGEST_ENCLAVE = 64

#: openssl counts a certificate's validity in whole days, by a clock that has gone on meanwhile.
_LONGER_CA_DAYS = 1

_GOVERNANCE = "governance.xml"


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


@dataclass(frozen=True)
class Keystore:
    """What `make` has left."""

    folder: Path
    named: Mapping[str, Enclave]
    """Those that were asked for, by name."""
    new: frozenset[str]
    """Those of them that were not there before."""
    ends: Mapping[str, datetime]
    """When the certificates of `named` expire, UTC."""
    kinds: Mapping[str, tuple[str, ...]]
    """What governance says: `warifu.dds.governance.kinds_of`."""
    all: Sequence[str]
    """All enclaves there are, to whom governance was given."""
    notes: Sequence[str]
    """What somebody should look at, a line each."""


def create(
    folder: Path,
    enclaves: Sequence[str],
    governance: Governance,
    *,
    now: datetime,
    days: int = 3650,
) -> dict[str, Enclave]:
    """`make` with all of a governance's kinds; gives the enclaves alone."""
    return dict(make(folder, enclaves, governance.kinds(), now=now, days=days).named)


def make(
    folder: Path,
    names: Sequence[str],
    kinds: Mapping[str, StrEnum],
    *,
    now: datetime,
    days: int = 3650,
) -> Keystore:
    """Makes a keystore, or adds enclaves to one, and signs governance and permissions as they
    stand: in governance the kinds that are given here are changed first, and nothing else. What
    is there, above all keys, stays. `now`, in UTC, is when permissions begin; those and the new
    certificates end after `days`, or with their CA.

    Raises KeystoreRefused, KeystoreError, ToolMissing and OSError; FileRefused for a document
    that is no file, no text or too long.
    """
    for name in names:
        _check(name)
    root = folder / "enclaves"
    if folder.is_dir() and any(folder.iterdir()) and not root.is_dir():
        raise KeystoreRefused(f"{folder}: is no keystore, and not empty: name another folder")
    if not root.is_dir() and not names:
        raise KeystoreRefused(
            f"{folder}: is no keystore yet: name its first enclave, such as --enclave /talker"
        )
    directory(folder)
    with alone(folder):
        take(folder)
        refuse_others(folder)
        return _made(folder, list(dict.fromkeys(names)), kinds, now, days)


def _made(
    folder: Path, names: list[str], kinds: Mapping[str, StrEnum], now: datetime, days: int
) -> Keystore:
    # All that can be refused is, before anything is written.
    there = enclaves(folder)
    cas = {ca: authority.of(folder, ca) for ca in (IDENTITY, PERMISSIONS)}
    for ca in cas.values():
        authority.check(ca, len(there), now)
    text = _governance(folder / "enclaves", kinds, bool(there))
    notes = []
    documents = {}
    for name, enclave in there.items():
        _complete(enclave)
        documents[name], doubts = _permissions(name, enclave, now)
        notes += doubts
    new = [name for name in names if name not in there]
    ends = {name: _end(there[name]) for name in names if name in there}
    made = [ca for ca in cas.values() if ca.there]
    if new and made:
        days, said = _within(made, now, days)
        notes += said
    for place in ("public", "private", "enclaves"):
        directory(folder / place)
    private(folder / "private")
    for ca_name, ca in cas.items():
        if not ca.there:
            authority.make(ca, ca_name, days + _LONGER_CA_DAYS)
    for name in new:
        there[name] = Enclave(folder / "enclaves" / name[1:])
        documents[name] = _enclave(there[name], name, cas[IDENTITY], now, days)
    signed = authority.sign(cas[PERMISSIONS], text)
    write(folder / "enclaves" / _GOVERNANCE, text.encode())
    write(folder / "enclaves" / "governance.p7s", signed)
    for name, enclave in there.items():
        for ca_name, ca in cas.items():
            write(enclave.folder / f"{ca_name}.cert.pem", ca.certificate.read_bytes())
        write(enclave.governance, signed)
        document = documents[name]
        if document is not None:
            write(enclave.permissions, authority.sign(cas[PERMISSIONS], document))
    ends |= {name: _end(there[name]) for name in new}
    notes += [
        f"{there[name].certificate}: expired on {end:%Y-%m-%d}: remove {there[name].folder} and "
        "run this again for a new key and certificate"
        for name, end in ends.items()
        if end <= now
    ]
    return Keystore(
        folder, {name: there[name] for name in names}, frozenset(new), ends, kinds_of(text),
        sorted(there), notes,
    )  # fmt: skip


def enclaves(folder: Path) -> dict[str, Enclave]:
    """Those that a keystore has, by name; none where it is none. Raises KeystoreRefused for a
    folder whose name no enclave has."""
    root = folder / "enclaves"
    found = {path.parent for name in ("key.pem", "cert.pem") for path in root.rglob(name)}
    names = {f"/{place.relative_to(root)}": Enclave(place) for place in sorted(found - {root})}
    for name in names:
        _check(name)
    return names


def _check(name: str) -> None:
    if not _ENCLAVE.fullmatch(name) or len(name) > _LONGEST_ENCLAVE:
        raise KeystoreRefused(
            f"enclave {name!r}: expected /NAME or /NAME/NAME of letters, digits and underscores, "
            f"{_LONGEST_ENCLAVE} characters at most"
        )


def _complete(enclave: Enclave) -> None:
    """An enclave that is there has both halves: neither is made anew for the other."""
    for one, other in ((enclave.key, enclave.certificate), (enclave.certificate, enclave.key)):
        if not one.exists():
            raise KeystoreRefused(
                f"{one}: is missing, while {other} is there: restore it from a copy; or remove "
                f"{enclave.folder}, and have its enclave made anew with another key"
            )
    private(enclave.key)


def _end(enclave: Enclave) -> datetime:
    try:
        return authority.end_of(enclave.certificate)
    except KeystoreError as error:
        raise KeystoreRefused(f"{error}: restore it from a copy") from None


def _governance(root: Path, kinds: Mapping[str, StrEnum], needed: bool) -> str:
    """The document that is to be signed: the one that is there, with these kinds."""
    file = root / _GOVERNANCE
    if not file.exists():
        if needed or (root / "governance.p7s").exists():
            raise KeystoreRefused(
                f"{file}: is missing, and what it protected is not known: restore it from a copy "
                f"(`openssl smime -verify -noverify -text -in {root / 'governance.p7s'} -out "
                f"{file}` takes it from the signed one)"
            )
        text = Governance().xml()
    else:
        text = text_of(file)
    try:
        kinds_of(text)
        return changed(text, kinds)
    except DocumentRefused as error:
        raise KeystoreRefused(f"{file}: {error}") from None


def _permissions(name: str, enclave: Enclave, now: datetime) -> tuple[str | None, list[str]]:
    """The document of an enclave that is there, as it stands, and what is to be said of it."""
    file = enclave.folder / "permissions.xml"
    if not file.exists():
        if enclave.permissions.exists():
            return None, []
        raise KeystoreRefused(
            f"{file}: is missing, and so is {enclave.permissions.name}: restore one of them, or "
            f"remove {enclave.folder} and have the enclave made anew"
        )
    text = text_of(file)
    try:
        doubt = doubt_of_permissions(text, f"CN={name}", now)
    except DocumentRefused as error:
        raise KeystoreRefused(f"{file}: {error}: mend it, or restore it from a copy") from None
    return text, [] if doubt is None else [f"{file}: {doubt}"]


def _within(cas: Sequence[Authority], now: datetime, days: int) -> tuple[int, list[str]]:
    """How many days a new enclave may have: its CAs sign for none that outlives them."""
    ends, ca = min((ca.ends, str(ca.certificate)) for ca in cas)
    left = (ends - now) // timedelta(days=1)
    if left < 1:
        raise KeystoreRefused(
            f"{ca}: expires within a day ({ends:%Y-%m-%d %H:%M} UTC), and an enclave does not "
            "outlive its CA: make a keystore in another folder, and give each program its enclave"
        )
    if left >= days:
        return days, []
    return left, [
        f"{ca}: expires on {ends:%Y-%m-%d}, so the new enclaves do, after {left} days, not {days}"
    ]


def _enclave(enclave: Enclave, name: str, ca: Authority, now: datetime, days: int) -> str:
    """A new one; gives its permissions."""
    root = enclave.folder.parents[name.count("/") - 1]
    for above in reversed(enclave.folder.relative_to(root).parents):
        directory(root / above)
    directory(enclave.folder)
    key = authority.new_key()
    certificate = authority.certify(ca, key, name, days)
    # An hour earlier: clocks of different machines are never quite the same.
    allowed = permissions(f"CN={name}", now - timedelta(hours=1), now + timedelta(days=days))
    write(enclave.folder / "permissions.xml", allowed.encode())
    write(enclave.certificate, certificate)
    # Last: who has a key is an enclave.
    write(enclave.key, key)
    return allowed
