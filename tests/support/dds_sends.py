# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Messages as the profiler would have recorded them, of a host that does as the model says."""

from __future__ import annotations

from dataclasses import replace

from warifu.dds.recording import PARTS, Recording, Site
from warifu.dds.sending import Exchange, Sent
from warifu.reproduce.dds_sends import Sends, calls

_KINDS = ("encrypt", "decrypt", "mac", "sign", "verify", "random")
_NUMBERS = {"messages": 2, "calls": 10, "call_cost_ps": 1, "message_cost_ps": 1}


def sends_of(
    size: int,
    crypto_ns: int,
    *,
    encryptions: int | None = None,
    inner_updates: int | None = None,
    largest: int = 0,
    total_ns: int | None = None,
    heartbeats: int = 0,
) -> Sends:
    """Two messages that say what the model says, or other counts, with so many heartbeats in each
    write. Encryption has a third of the cryptography's time, MACs a sixth, nonces half."""
    model = calls(size)
    message = {
        "begun_ns": 0,
        "ns": 4 * crypto_ns if total_ns is None else total_ns,
        "crypto_ns": crypto_ns,
        "encryptions": (model.encryptions if encryptions is None else encryptions) + heartbeats,
        "macs": model.macs,
        "randoms": model.randoms + heartbeats,
        "inner_updates": 4 * (model.randoms + heartbeats)
        if inner_updates is None
        else inner_updates,
        "bytes": model.bytes + 32 * heartbeats,
        "largest": largest or min(size + 8, 64_608),
    }
    shares = {"encrypt": 1 / 3, "mac": 1 / 6, "random": 1 / 2}
    totals = {
        stand: {
            kind: {
                "operations": 3,
                "in_message": 0,
                "in_message_ns": round(times * 2 * crypto_ns * shares.get(kind, 0)),
            }
            for kind in _KINDS
        }
        for stand, times in (("now", 1), ("first_message", 0), ("last_message", 1))
    }
    parts = {f"{part}_ns": 10 for part in PARTS}
    of_samples = {**parts, "in_message": 2 * (message["encryptions"] - heartbeats)}
    site = Site("encrypt", "AES-256-GCM", ("libfastrtps.so!encode",), of_samples, ())
    frames = ("libfastrtps.so!A::encode", "libfastrtps.so!RTPSMessageGroup::add_heartbeat")
    beats = Site("encrypt", "AES-256-GCM", frames, {**parts, "in_message": 2 * heartbeats}, ())
    recording = Recording("probe", "", "", _NUMBERS, totals, (), (site, beats), (message, message))
    read = Site("decrypt", "AES-256-GCM", ("lib.so!A::decode_rtps_message",), {"ns": crypto_ns}, ())
    reader = replace(recording, sites=(read, site), messages=())
    times = {"minimum": 4 * crypto_ns, "median": 8 * crypto_ns}
    return Sends((Sent(Exchange(bytes=size, count=2), recording, 2, (), reader, times),))
