# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Which TLS variants are timed, and under which conditions each time then holds.

What a message costs does not depend on every choice. The conditions of an entry name the choices
that its cost was found to depend on; for one operation and session they are always the same
choices, so that exactly one entry fits any stack.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from warifu import _core
from warifu.calibrate.profile import Condition
from warifu.case import Tls

AEADS = tuple(_core.AEADS)
_WHO = (("server", "ecdsa_secp256r1"), ("mutual", "ecdsa_secp256r1"), ("mutual", "rsa-2048"))
"""What a resumed session's ticket holds: no client certificate, or one of either kind."""
PSK_IDENTITY_BYTES = 16
"""The identity that a key from outside is timed with; a longer one is more to hash, by 3 ns a
byte."""

RESUMPTIONS = {
    tls: {str(way["name"]): bool(way["has_key_exchange"]) for way in _core.resumptions(tls)}
    for tls in _core.TLS_VERSIONS
}
"""The ways to resume a session of each version, the usual one first, and whether each has a key
exchange."""


@dataclass(frozen=True, order=True)
class Variant:
    """The choices of a connection that its computing depends on."""

    tls: str = "1.3"
    session: str = "full"
    authentication: str = "mutual"
    group: str = "secp256r1"
    certificate: str = "ecdsa_secp256r1"
    chain_length: int = 1
    aead: str = "AES_128_GCM"
    psk_mode: str = ""
    """Of a key from outside, with authentication `psk`; else empty."""

    @staticmethod
    def of(tls: Tls) -> Variant:
        """The variant of a case's TLS."""
        return Variant(
            tls.version,
            tls.session,
            tls.authentication,
            tls.group,
            tls.certificate,
            tls.chain_length,
            _core.aead(tls.cipher_suite),
            tls.psk.mode if tls.psk is not None else "",
        )

    @staticmethod
    def of_json(value: dict[str, Any]) -> Variant:
        """From what `json` gave; KeyError, TypeError or WarifuError for anything else."""
        aead = _core.aead(value["cipher_suite"])
        apart = ("aead", "psk_mode")
        choices = {name: value[name] for name in Variant.__dataclass_fields__ if name not in apart}
        if value.get("psk"):
            choices["psk_mode"] = value["psk"]["mode"]
        if choices["session"] not in ("full", *RESUMPTIONS[choices["tls"]]):
            raise KeyError(choices["session"])
        return Variant(**choices, aead=aead)

    @property
    def cipher_suite(self) -> str:
        """The suite's IANA name."""
        if self.psk_mode and self.tls == "1.2":
            exchange = "PSK" if self.psk_mode == "psk_ke" else "ECDHE_PSK"
            digest = "SHA384" if self.aead == "AES_256_GCM" else "SHA256"
            return f"TLS_{exchange}_WITH_{self.aead}_{digest}"
        return _core.cipher_suite(self.tls, self.certificate, self.aead)

    @property
    def has_group(self) -> bool:
        """Whether a resumed session's handshake has a key exchange."""
        return RESUMPTIONS[self.tls][self.session]

    def json(self) -> dict[str, Any]:
        """As `warifu-calibrate-bench tls` takes it."""
        found: dict[str, Any] = {
            "tls": self.tls,
            "session": self.session,
            "authentication": self.authentication,
            "group": self.group,
            "certificate": self.certificate,
            "chain_length": self.chain_length,
            "cipher_suite": self.cipher_suite,
        }
        if self.psk_mode:
            found["psk"] = {"mode": self.psk_mode, "identity_bytes": PSK_IDENTITY_BYTES}
        return found

    @property
    def first_aead(self) -> str:
        """The AEAD that all but records of application data are timed with: the first that there is
        a suite with."""
        if self.psk_mode == "psk_dhe_ke" and self.tls == "1.2":
            return "CHACHA20_POLY1305"
        return AEADS[0]


def everything() -> list[Variant]:
    """What a profile needs to serve any study."""
    found = []
    for tls in _core.TLS_VERSIONS:
        base = Variant(tls=tls)
        for authentication, group, certificate in itertools.product(
            ("server", "mutual"), ("secp256r1", "x25519"), ("ecdsa_secp256r1", "rsa-2048")
        ):
            found.append(
                replace(base, authentication=authentication, group=group, certificate=certificate)
            )
        for chain_length, certificate in itertools.product((2, 3), _core.CERTIFICATES):
            found.append(replace(base, chain_length=chain_length, certificate=certificate))
        found += [replace(base, aead=aead) for aead in AEADS[1:]]
    for tls, mode in itertools.product(_core.TLS_VERSIONS, ("psk_dhe_ke", "psk_ke")):
        psk = Variant(tls=tls, authentication="psk", psk_mode=mode)
        found += [
            replace(psk, group=group, aead=psk.first_aead)
            for group in ("secp256r1", *(("x25519",) if mode == "psk_dhe_ke" else ()))
        ]
    for authentication, certificate in _WHO:
        who = Variant(authentication=authentication, certificate=certificate)
        for tls, ways in RESUMPTIONS.items():
            for session, has_group in ways.items():
                resumed = replace(who, tls=tls, session=session)
                found.append(resumed)
                if has_group:
                    found.append(replace(resumed, group="x25519"))
    return found


def needed(layers: list[Tls]) -> list[Variant]:
    """What the cases of a study need, and no more."""
    everything_needed: set[Variant] = set()
    for tls in layers:
        variant = Variant.of(tls)
        if variant.session != "full":
            # Entries of resumed sessions do not name what has no part in them.
            mutual = variant.authentication == "mutual"
            certificate = variant.certificate if mutual else "ecdsa_secp256r1"
            group = variant.group if variant.has_group else "secp256r1"
            variant = replace(variant, certificate=certificate, chain_length=1, group=group)
        if variant.psk_mode == "psk_ke":
            variant = replace(variant, group="secp256r1")
        found = [variant]
        if variant.chain_length > 1:
            found.append(replace(variant, chain_length=1))
        # Application data, and all else, which is timed with the first AEAD alone.
        found = [replace(one, aead=one.first_aead) for one in found]
        found.append(Variant(tls=variant.tls, aead=variant.aead))
        everything_needed.update(found)
    return sorted(everything_needed)


def missing(timed: Iterable[Variant], wanted: Iterable[Variant]) -> list[Variant]:
    """Those of the wanted variants that give a cost for which none of the timed ones does."""
    there = {cost for variant in timed for cost in _costs(variant)}
    return [variant for variant in wanted if not _costs(variant) <= there]


def _costs(variant: Variant) -> set[tuple[str, str]]:
    """What tells the costs that a variant gives from those of others: see `condition`."""
    found = set()
    for message in ("ApplicationData", "Certificate", "any other"):
        when = condition(message, variant)
        if when is not None:
            found.add((message, str(sorted(when.items()))))
    return found


def condition(message: str, variant: Variant) -> Condition | None:
    """When the time that a variant gave for a message holds; None if another variant gives it.

    - Records of application data depend on the AEAD; that of other messages is taken as alike,
      since their few hundred bytes cost less than a microsecond in any. Of Finished that is said.
    - Certificate chains longer than one were timed for the Certificate message alone.
    - A key from outside depends on its mode, and on the group where there is one.
    - A resumed session shows no certificate, but with mutual authentication the server's ticket
      holds the client's, which it must decode; without (EC)DHE or in TLS 1.2 there is no group.
    """
    if message == "ApplicationData":
        plain = Variant(tls=variant.tls, aead=variant.aead)
        return {"tls": variant.tls, "aead": variant.aead} if variant == plain else None
    when: Condition
    if variant.aead != variant.first_aead:
        return None
    if variant.psk_mode:
        when = {"tls": variant.tls, "authentication": "psk", "psk_mode": variant.psk_mode}
        if variant.tls == "1.3":
            # As a resumption's figure, which stands for it where there is no other.
            when["session"] = variant.psk_mode
        if variant.psk_mode == "psk_dhe_ke":
            when["group"] = variant.group
    else:
        when = {"tls": variant.tls, "session": variant.session}
    if message == "Finished":
        # It is encrypted and made with the suite's hash; said, since profiles leave nothing open.
        when["aead"] = AEADS
    if variant.psk_mode:
        return when
    if variant.session != "full":
        when["authentication"] = variant.authentication
        if variant.authentication == "mutual":
            when["certificate"] = variant.certificate
        if variant.has_group:
            when["group"] = variant.group
        return when
    if message == "Certificate":
        return when | {"certificate": variant.certificate, "chain_length": variant.chain_length}
    if variant.chain_length != 1:
        return None
    return when | {
        "authentication": variant.authentication,
        "group": variant.group,
        "certificate": variant.certificate,
    }
