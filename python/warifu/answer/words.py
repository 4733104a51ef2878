# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The study's choices in the words of people."""

from __future__ import annotations

_SESSIONS = {
    "full": "a full handshake",
    "resumed": "resuming",
    "ticket": "resuming by ticket",
    "psk_dhe_ke": "resuming with (EC)DHE",
    "psk_ke": "resuming without (EC)DHE",
    "0-rtt": "0-RTT",
    "external_psk": "an external PSK",
}
_AUTHENTICATIONS = {"server": "authentication of the server alone", "psk": "a pre-shared key"}
_PLUGINS = {"none": "no security", "builtin": "the built-in plugin", "warifu": "the warifu plugin"}
_PROTOCOLS = {"https": "HTTPS", "coap": "CoAP", "coaps": "CoAPS", "mqtt": "MQTT", "dds": "DDS"}
_MIDDLEWARE = {"cyclonedds": "Cyclone DDS", "fastdds": "Fast DDS"}
#: Conditions that nobody chooses: they come after what can be chosen.
CONDITIONS = ("rtt", "loss", "jitter", "rate", "rate_up", "rate_down", "mtu", "queue_packets")


def key_of(path: str) -> str:
    """The last part of a path, or the section's where that would say `profile`."""
    section, _, last = path.rpartition(".")
    return section if last == "profile" else last


def noun(path: str, value: str) -> str:
    """A choice as a sentence's subject: `TLS 1.3`, `resuming`, `2 % loss`."""
    key = key_of(path)
    match key:
        case "tls":
            return "no TLS" if value == "none" else f"TLS {value}"
        case "session":
            return _SESSIONS.get(value, value)
        case "authentication":
            return _AUTHENTICATIONS.get(value, f"{value} authentication")
        case "rtt":
            return f"an RTT of {value}"
        case "loss":
            return "no loss" if value in {"0 %", "0", "0.0"} else f"{value} loss"
        case "protocol":
            return _PROTOCOLS.get(value, value)
        case "message_type" | "coap_type":
            return f"{value.upper()} messages"
        case "crypto" | "dds_crypto":
            return _PLUGINS.get(value, value)
        case "middleware" | "dds_middleware":
            return _MIDDLEWARE.get(value, value)
        case "certificate":
            return f"an {value} certificate"
        case "chain_length":
            return f"a chain of {value}"
        case "nagle":
            return "Nagle's algorithm" if value == "true" else "no Nagle's algorithm"
        case "response_body" | "request_body":
            return f"a {key.removesuffix('_body')} of {value}"
        case "concurrent":
            return "one connection" if value == "1" else f"{value} connections at once"
        case "session_open":
            return "an open card session" if value == "true" else "opening the card's session"
        case "device" | "server" | "key_store" | "link" | "group" | "aead" | "cipher_suite":
            return value
        case "stack" | "crypto_aead" | "dds_aead":
            return value
    return f"{key.replace('_', ' ')} {value}"


def plural(path: str, value: str) -> bool:
    """Whether `noun` is several things, whose verb has no `s`."""
    key = key_of(path)
    return key in {"message_type", "coap_type"} or (key == "concurrent" and value != "1")


def context(path: str, value: str) -> str:
    """The same as a circumstance: `with TLS 1.3`, `at 60 ms RTT`, `over nb-iot`."""
    key = key_of(path)
    match key:
        case "rtt":
            return f"at {value} RTT"
        case "device":
            return f"on {value}"
        case "server":
            return f"to server {value}"
        case "link" | "stack":
            return f"over {value}"
        case "session":
            return "resumed" if value == "resumed" else f"with {noun(path, value)}"
        case "loss" if noun(path, value) == "no loss":
            return "without loss"
    return f"with {noun(path, value)}"


def short(path: str, value: str) -> str:
    """A choice where its axis has just been named: `1.3` after `TLS 1.2`."""
    return value if key_of(path) != "session" else _SESSIONS.get(value, value)


def protocol(name: str) -> str:
    """A protocol as people write it."""
    return _PROTOCOLS.get(name, name)


def middleware(name: str) -> str:
    """A middleware as people write it."""
    return _MIDDLEWARE.get(name, name)


def capital(text: str) -> str:
    """The same with a capital, unless the first word is a name that has none of its own."""
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


def listed(words: list[str], last: str = "and") -> str:
    """`a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


#: Names of the stages for people, in the order of warifu_model::Stage.
STAGES = {
    "client_compute": "client computing",
    "client_system": "client system",
    "server_compute": "server computing",
    "server_system": "server system",
    "key_store": "key store",
    "resource_queue": "waiting for a busy resource",
    "propagation": "propagation",
    "serialisation": "serialisation",
    "link_queue": "link queue",
    "loss_recovery": "loss recovery",
    "send_wait": "send window",
    "idle": "idle",
}
