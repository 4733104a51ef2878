# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The first line of a profile: what a user of DDS Security wants to know of a process."""

from __future__ import annotations

from collections.abc import Sequence

from warifu.dds import counters, middlewares
from warifu.dds.counters import Count
from warifu.dds.profiling import Process

#: Fewer operations a message than every second are no protection of messages: discovery,
#: heartbeats, keys.
_OF_MESSAGES = 0.5
#: Discovery alone makes some dozens of submessages.
_FEW_MESSAGES = 100

_NOBODY = "its peers, if there were any, were not let in, or are not secured"
_REFUSED = "it refused its own files (it said so then), or met nobody whom it could let in"


def verdict(process: Process) -> str:
    """A sentence or two; an experiment says so before anything else."""
    swap = process.recording.swap
    experiment = f"EXPERIMENT, {swap} in the place of AES-GCM: " if swap else ""
    return experiment + _verdict(process)


def _verdict(process: Process) -> str:
    found = middlewares.found(process.libraries)
    if process.plugin:
        return _by_plugin(process, found[0] if found else "A middleware that is not known here")
    # What a program does beside its middleware, such as TLS, protects no message.
    if process.encrypts and (found is None or process.asked):
        return _secured(process, found[0] if found else None)
    if found is None:
        return "Loaded no DDS middleware that is known here, and encrypted nothing by OpenSSL 3."
    name, path = found
    published = _published(process.messages)
    if not middlewares.has_security(path):
        return (
            f"NO SECURITY: this {name} was built without DDS Security; {published}. Take a build "
            "that has it, such as Debian's or ROS 2's own packages."
        )
    other = middlewares.other_cryptography(process.libraries)
    if process.recording.numbers["foreign_calls"]:
        other = other or "an OpenSSL that is not OpenSSL 3"
    if other:
        return _unseen(name, other, process.messages)
    if process.asked:
        return _alone(name, process.messages)
    return (
        f"NO SECURITY: {name} could, and this program does not ask for it; {published}. Make keys "
        "with `warifu dds keystore`; for ROS 2 set ROS_SECURITY_ENABLE=true, "
        "ROS_SECURITY_STRATEGY=Enforce and ROS_SECURITY_KEYSTORE."
    )


def _nobody_yet(messages: int) -> str:
    """Fast DDS 2.9 counts a reader as matched before keys for it are there, and what is written
    then is neither encrypted nor sent."""
    return ", or nobody had keys to read these few yet" if messages < _FEW_MESSAGES else ""


def _published(messages: int) -> str:
    if not messages:
        return "no message of it was seen"
    return f"{_count(messages, 'message')} published in plain text"


def _alone(name: str, messages: int) -> str:
    """It asked for security and no more than that."""
    if messages:
        return (
            f"NOT PROTECTED: {name} asked for security and authenticated nobody; "
            f"{_count(messages, 'message')} published, and none encrypted or signed: {_NOBODY}."
        )
    return (
        f"SECURITY ASKED FOR, NOTHING PROTECTED: {name} authenticated nobody, and no message of it "
        f"was seen: {_REFUSED}."
    )


def _by_plugin(process: Process, name: str) -> str:
    """Of Warifu's own plugin, which asks nothing of OpenSSL."""
    aeads = process.plugin[0].aead
    counts = {one.site: one for one in process.plugin}
    protected = {what: counts[site] for site, what in counters.PROTECTS.items() if site in counts}
    refused = sum(sum(one.refused.values()) for one in process.plugin)
    experiment = any(not aead.startswith("AES-") for aead in aeads.split(", "))
    said = f"{'EXPERIMENT, ' if experiment else ''}{name} with Warifu's plugin ({aeads}"
    said += "), no standard of DDS Security" if experiment else ")"
    if not process.messages:
        read = sum(one.calls for site, one in counts.items() if site not in counters.PROTECTS)
        return (
            f"{said}: no message of it was seen; the plugin was called "
            f"{sum(one.calls for one in protected.values()):,} times to protect and {read:,} times "
            f"to read, and refused {refused:,}."
        )
    if not _protects_messages(protected, process.messages):
        return (
            f"NOT PROTECTED: {said} was called for discovery and keys alone, and of "
            f"{_number(process.messages, 'message')} none was encrypted or signed: its governance "
            "has none protected (change it with `warifu dds keystore`)"
            f"{_nobody_yet(process.messages)}."
        )
    each = [f"{one.calls / process.messages:.2f} {what}" for what, one in protected.items()]
    took_us = sum(one.time_ns for one in protected.values()) / process.messages / 1000
    doubt = ""
    if set(protected) <= {"writers' submessages", "readers' submessages"} and (
        process.messages < _FEW_MESSAGES
    ):
        doubt = (
            " Discovery has submessages as well: with fewer than "
            f"{_FEW_MESSAGES} messages it is not known whether these were protected."
        )
    return (
        f"{said}: {process.messages:,} messages, and for each {_and(each)} protected "
        f"in {took_us:.1f} us, discovery included; {refused:,} refused.{doubt}"
    )


def _protects_messages(protected: dict[str, Count], messages: int) -> bool:
    """Whether each message has a call of its own: readers' submessages are answers to others'."""
    own = (one.calls for what, one in protected.items() if what != "readers' submessages")
    return any(calls / messages >= _OF_MESSAGES for calls in own)


def _secured(process: Process, middleware: str | None) -> str:
    name = middleware or "No DDS middleware that is known here"
    if not process.messages:
        return (
            f"{name}: {process.count('encrypt'):,} encryptions, "
            f"{process.count('decrypt'):,} decryptions and {process.count('mac'):,} MACs; "
            "no message of its own was seen."
        )
    messages = process.messages
    flows = {kind: process.while_messages(kind) for kind in process.recording.totals["now"]}
    each = {kind: flow["operations"] / messages for kind, flow in flows.items()}
    if each["encrypt"] < _OF_MESSAGES and each["mac"] < _OF_MESSAGES:
        other = middlewares.other_cryptography(process.libraries)
        if other:
            return _unseen(name, other, messages)
        return (
            f"NOT PROTECTED: {name} authenticated its peers, and of {_number(messages, 'message')} "
            "none was encrypted or signed: its governance has none protected (change it with "
            f"`warifu dds keystore`){_nobody_yet(messages)}."
        )
    said = "" if each["encrypt"] >= _OF_MESSAGES else "SIGNED, NOT ENCRYPTED: "
    inside = sum(flow["in_message_ns"] for flow in flows.values())
    elsewhere = sum(flow["ns"] for flow in flows.values()) - inside
    written = process.recording.numbers["messages_ns"]
    share = f" ({inside / written:.0%})" if written else ""
    return (
        f"{said}{name}: {_number(messages, 'message')}, each {each['encrypt']:.2f} encryptions, "
        f"{each['mac']:.2f} MACs and {each['random']:.2f} requests for random bytes: "
        f"{inside / messages / 1000:.1f} us of the {written / messages / 1000:.1f} us that a write "
        f"takes{share}, and {max(elsewhere, 0) / messages / 1000:.1f} us outside of writes (means)."
    )


def _unseen(name: str, other: str, messages: int) -> str:
    published = f"{_count(messages, 'message')} published" if messages else "no message was seen"
    return (
        f"NOT SEEN: {name} encrypted no message by OpenSSL 3, and has loaded {other}, which the "
        f"probe does not see; {published}."
    )


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _number(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _count(number: int, what: str) -> str:
    return f"{_number(number, what)} {'was' if number == 1 else 'were'}"
