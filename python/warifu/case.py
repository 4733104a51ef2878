# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A case: one point of a study, every choice resolved.

Generated from the Rust types by scripts/generate_case.py: change those, then run `make golden`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from warifu.typed_json import JsonError, read

VERSION = 2
"""The version of the canonical form that this module reads."""

Authentication = Literal["server", "mutual", "psk"]
"""Who shows a certificate."""

BitsPerSecond = int
"""A data rate in bits per second; never zero."""

CertificateType = Literal["ecdsa_secp256r1", "rsa-2048"]
"""The key type of the certificates."""

CipherSuite = Literal[
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_PSK_WITH_AES_128_GCM_SHA256",
    "TLS_PSK_WITH_AES_256_GCM_SHA384",
    "TLS_PSK_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256",
]
"""Cipher suites by their IANA names."""

CoapMessageType = Literal["CON", "NON"]
"""The type of a request (RFC 7252 section 4.2, 4.3)."""

CongestionControl = Literal["cubic", "reno"]
"""Congestion control."""

DdsAead = Literal[
    "AES-128-GCM",
    "AES-256-GCM",
    "AEGIS-128L",
    "AEGIS-256",
    "Ascon-AEAD128",
    "Deoxys-II-128-128",
    "ChaCha20-Poly1305",
]
"""An AEAD of DDS Security's, or of Warifu's plugin (docs/reference/dds.md)."""

DdsCrypto = Literal["none", "builtin", "warifu"]
"""A cryptographic plugin of DDS Security."""

DdsMiddleware = Literal["cyclonedds", "fastdds"]
"""An implementation of DDS."""

DdsProtection = Literal[
    "NONE",
    "SIGN",
    "ENCRYPT",
    "SIGN_WITH_ORIGIN_AUTHENTICATION",
    "ENCRYPT_WITH_ORIGIN_AUTHENTICATION",
]
"""A kind of protection, by its name in governance documents (DDS Security 1.1, section
9.4.1.2.2)."""

Group = Literal["secp256r1", "x25519"]
"""An (EC)DHE group, by its IANA name."""


@dataclass(frozen=True)
class Host:
    """A machine, by the name of its device profile."""

    profile: str
    """Name of a file in `profiles/devices/`, without its ending."""


KeyShare = Literal["fresh", "prepared"]
"""When the client's key share is made."""


@dataclass(frozen=True)
class KeyStoreChoice:
    """A key store, by the name of its profile, and how its session is used."""

    profile: str
    """Name of a file in `profiles/key-stores/`, without its ending."""
    session_open: bool
    """Whether C_OpenSession, C_Login and C_FindObjects were done before the connection
    (`sign_only` in papers/1 Table 2) or belong to it (`total`)."""


Probability = float
"""A probability from 0 to 1."""


@dataclass(frozen=True)
class NoLoss:
    """No packet is lost."""

    kind: Literal["none"]


@dataclass(frozen=True)
class IndependentLoss:
    """Each packet is lost independently."""

    kind: Literal["independent"]
    probability: Probability
    """Probability that a packet is lost."""


@dataclass(frozen=True)
class GilbertElliottLoss:
    """Two-state Markov chain stepped at each packet, begun in its stationary state (Gilbert
    1960, Elliott 1963)."""

    kind: Literal["gilbert_elliott"]
    good_to_bad: Probability
    """Probability to enter the bad state, per packet."""
    bad_to_good: Probability
    """Probability to leave the bad state, per packet."""
    loss_good: Probability
    """Loss probability in the good state."""
    loss_bad: Probability
    """Loss probability in the bad state."""


Loss = NoLoss | IndependentLoss | GilbertElliottLoss
"""A law of packet loss."""

Nanos = int
"""A duration or an instant of virtual time, in nanoseconds."""


@dataclass(frozen=True)
class Link:
    """The network between device and server."""

    profile: str
    """Name of the file in `profiles/links/` that gave the values not set by the study."""
    rtt: Nanos
    """Propagation delay there and back, without jitter; half of it each way."""
    jitter: tuple[Nanos, ...]
    """Additional one-way delay as evenly spaced quantiles from 0 to 1 (the first is the minimum,
    the last the maximum), linearly interpolated between; empty for none."""
    keep_order: bool
    """Whether a packet may not overtake an earlier one of its direction."""
    queue_packets: int
    """How many packets each direction's queue holds before it drops the newest."""
    mtu: int
    """Largest IP packet, B."""
    loss: Loss
    """Loss, the same law in each direction, independently."""
    rate_down: BitsPerSecond | None = None
    """Rate from server to device; None for unlimited."""
    rate_up: BitsPerSecond | None = None
    """Rate from device to server; None for unlimited."""


PatternKind = Literal["request", "stream"]
"""The shape of the exchange."""


@dataclass(frozen=True)
class Pattern:
    """What the device does."""

    kind: PatternKind
    """The shape of the exchange."""
    path: str
    """The path of the request."""
    response_body: int
    """Length of the response's body, B."""
    concurrent: int
    """How many connections the device opens at the same moment; they share its loop, its key
    store and the link."""
    pause: Nanos | None = None
    """How long before the connection both ends have had none, ns, the mean where pauses vary;
    None, and not part of the canonical form, for one of many that follow one another within a
    tenth of a second, after which a device's costs are as they were calibrated."""
    rate: int | None = None
    """Samples a second of a stream; None, and not part of the canonical form, for other kinds."""
    request_body: int = 0
    """Length of the request's body, B: a POST, or a GET where it is 0, which is not part of the
    canonical form."""


PskMode = Literal["psk_dhe_ke", "psk_ke"]
"""How a connection by a key from outside comes to its keys: the words of TLS 1.3, whose
counterparts TLS 1.2 has as cipher suites."""


@dataclass(frozen=True)
class Psk:
    """A pre-shared key that both ends were given beforehand: no ticket of an earlier connection
    (RFC 8446 section 2.2, RFC 4279)."""

    mode: PskMode
    """Whether keys are agreed on beside it."""
    identity_bytes: int
    """Length of the identity by which the device names its key, B."""


@dataclass(frozen=True)
class Server:
    """A server, by the name of its device profile, and how many connections it computes for at
    once."""

    profile: str
    """Name of a file in `profiles/devices/`, without its ending."""
    workers: int = 1
    """Workers, each with a processor of its own; connections wait for a free one, first come,
    first served. Not part of the canonical form where it is 1."""


Session = Literal["full", "ticket", "psk_dhe_ke", "psk_ke", "0-rtt"]
"""Full handshake or the way of resumption. A study may also say `resumed`, which stands for
`ticket` with TLS 1.2 and `psk_dhe_ke` with TLS 1.3."""


@dataclass(frozen=True)
class Tcp:
    """TCP, each end with the implementation that it runs: a board may run lwIP where its server
    runs Linux."""

    device: str
    """Name of the transport profile of the device's TCP, for example `linux-6.18`."""
    server: str
    """Name of the transport profile of the server's TCP."""
    congestion_control: CongestionControl
    """Congestion control of both ends."""
    initcwnd: int
    """Initial congestion window of both ends, segments."""
    nagle: bool
    """Whether Nagle's algorithm is on (no TCP_NODELAY) on both ends."""


TlsVersion = Literal["1.2", "1.3"]
"""The TLS version."""


@dataclass(frozen=True)
class Tls:
    """TLS over a byte stream."""

    version: TlsVersion
    """The version."""
    session: Session
    """Full handshake or the way of resumption."""
    authentication: Authentication
    """Who shows a certificate."""
    group: Group
    """The (EC)DHE group."""
    certificate: CertificateType
    """The key type of the leaf certificates and of their issuers, on both sides."""
    chain_length: int
    """How many certificates each authenticated side sends, 1 to 3; the root is not sent."""
    server_certificate_bytes: tuple[int, ...]
    """DER sizes of the server's chain as sent, leaf first, B."""
    client_certificate_bytes: tuple[int, ...]
    """DER sizes of the client's chain as sent, leaf first, B; empty without client certificate."""
    cipher_suite: CipherSuite
    """The cipher suite, by IANA name."""
    key_share: KeyShare
    """Whether the client's key share is made during the handshake or beforehand."""
    psk: Psk | None = None
    """The pre-shared key from outside, where both ends prove to have one. Not part of the
    canonical form where there is none."""
    server_name: str | None = None
    """Server name indication (RFC 6066 section 3); None sends none."""


@dataclass(frozen=True)
class HttpsStack:
    """HTTP/1.1 over TLS over TCP."""

    protocol: Literal["https"]
    tls: Tls
    """Its security."""
    tcp: Tcp
    """Its transport."""


@dataclass(frozen=True)
class CoapStack:
    """CoAP over UDP (RFC 7252), without security."""

    protocol: Literal["coap"]
    message_type: CoapMessageType
    """Whether requests are confirmable."""
    ack_timeout: Nanos
    """ACK_TIMEOUT: the least first timeout of a confirmable message."""
    ack_random_factor_percent: int
    """ACK_RANDOM_FACTOR in percent: the first timeout is uniform from ACK_TIMEOUT to that times
    this factor."""
    max_retransmit: int
    """MAX_RETRANSMIT: how often a confirmable message is sent again."""


@dataclass(frozen=True)
class DdsStack:
    """DDS over RTPS over UDP."""

    protocol: Literal["dds"]
    crypto: DdsCrypto
    """Both ends' cryptographic plugin."""
    aead: DdsAead
    """What it encrypts with."""
    data_protection: DdsProtection
    """`data_protection_kind` of the governance: payloads."""
    metadata_protection: DdsProtection
    """`metadata_protection_kind`: submessages."""
    rtps_protection: DdsProtection
    """`rtps_protection_kind`: RTPS messages."""
    discovery_protection: DdsProtection
    """`discovery_protection_kind` and `liveliness_protection_kind`: announcements, signs of
    life."""
    middleware: DdsMiddleware = "cyclonedds"
    """Both ends' middleware. Not part of the canonical form where it is Cyclone DDS."""


Stack = HttpsStack | CoapStack | DdsStack
"""The protocols from the application down, each with its own settings, its security and its
transport. A new protocol is a variant here, a file for its settings, and nothing that another
protocol's code has to know."""


@dataclass(frozen=True)
class Case:
    """One point of a study, every choice resolved. It says *what* is asked; the figures come
    from the profiles that it names, so that both halves of the tally can take the same case."""

    device: Host
    """The device that connects."""
    server: Server
    """The server that accepts."""
    key_store: KeyStoreChoice
    """Where the device's private key lives."""
    link: Link
    """The network between the two."""
    stack: Stack
    """The protocols and their settings, layer by layer."""
    pattern: Pattern
    """What the device does, and how often at once."""

    @staticmethod
    def from_json(text: str) -> Case:
        """From the canonical form. Raises JsonError, which names the key, for anything else."""
        try:
            value = json.loads(text)
        except ValueError as error:
            raise JsonError(f"the case is not JSON: {error}") from None
        # The first version of the form did not say so.
        version = value.pop("version", 1) if isinstance(value, dict) else VERSION
        if version != VERSION:
            raise JsonError(
                f"version is {version!r}: this program reads cases of version {VERSION}; "
                "predict and measure the study again"
            )
        return read(Case, value)
