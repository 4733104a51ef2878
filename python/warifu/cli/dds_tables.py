# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The tables of `warifu dds profile`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from warifu.dds.recording import PARTS, quantile_ns
from warifu.report.table import Column, Table

if TYPE_CHECKING:
    from warifu.dds.profiling import Process, Profile
    from warifu.dds.recording import Site

#: Operations in words, in the order of their rows.
_WORDS = {
    "encrypt": "encryptions",
    "decrypt": "decryptions",
    "mac": "MACs",
    "random": "random bytes",
    "sign": "signatures",
    "verify": "signatures checked",
}
#: Functions of a chain that are shown: the last of them says what was protected.
_SHOWN_FRAMES = 3


def tables(seen: Profile, top: int) -> list[Table]:
    """For each process the answer, its messages and its call sites."""
    if not seen.processes:
        return [_nothing(seen)]
    found = []
    for process in seen.processes:
        found.append(_answer(process, seen))
        if process.encrypts:
            if process.messages:
                found.append(_messages(process))
            found.append(_sites(process, top))
        if process.plugin:
            found.append(_functions(process))
    found[0].notes += seen.notes
    return found


def _nothing(seen: Profile) -> Table:
    if seen.loaded:
        why = (
            f"None of the {seen.loaded} processes loaded a DDS middleware that is known here, or "
            "encrypted anything by OpenSSL 3."
        )
    else:
        why = (
            "No process loaded the probe: programs that are linked statically, setuid programs and "
            "those of another architecture take no preloaded libraries."
        )
    table = Table(why, [Column("processes that were seen")], notes=list(seen.notes))
    table.add([str(seen.loaded)], {"says": why, "process": None, "processes": seen.loaded})
    return table


def _answer(process: Process, seen: Profile) -> Table:
    from warifu.dds.verdict import verdict

    says = verdict(process)
    if seen.code and not process.messages:
        # It may have ended before it came to what it was started for.
        says += f" The command ended with exit code {seen.code}."
    recording, numbers = process.recording, process.recording.numbers
    table = Table(f"{process.name}: {says}", [Column("messages"), *map(Column, _WORDS.values())])
    table.add(
        [f"{process.messages:,}", *(f"{process.count(kind):,}" for kind in _WORDS)],
        {
            "process": recording.name, "pid": numbers["pid"], "says": says,
            "middleware": process.middleware, "encrypts": process.encrypts,
            "messages": process.messages, "flushes": numbers["flushes"],
            **{kind: process.count(kind) for kind in _WORDS},
            "swap": recording.swap or None, "probe_build": recording.build,
            "probe_call_ns": numbers["call_cost_ps"] / 1000,
            "probe_call_inside_ns": numbers["call_inside_ps"] / 1000,
            "probe_message_ns": numbers["message_cost_ps"] / 1000,
            "probe_calls": numbers["calls"], "probe_ns": process.own_cost_ns,
        },
    )  # fmt: skip
    if recording.swap:
        table.notes.append(
            f"EXPERIMENT: {recording.swap} stood in the place of AES-GCM. This was not DDS "
            "Security; both sides must have the same swap, and sites name the cipher that was "
            "asked for."
        )
    table.notes.append(
        f"The probe's own cost: {numbers['call_cost_ps'] / 1000:.0f} ns a call of OpenSSL and "
        f"{numbers['message_cost_ps'] / 1000:.0f} ns a message, measured in this process before "
        f"it began; {process.own_cost_ns / 1e6:.1f} ms in all{_share(process, seen)}. Of each call "
        f"{numbers['call_inside_ps'] / 1000:.0f} ns are within the times below."
    )
    if recording.build != "release":
        table.notes.append("The probe is a development build: `make release` builds a faster one.")
    if numbers["sites_left_out"]:
        table.notes.append(f"{numbers['sites_left_out']:,} operations had no room among the sites.")
    return table


def _share(process: Process, seen: Profile) -> str:
    used_ns = process.recording.numbers["process_ns"]
    if used_ns:
        return f", {process.own_cost_ns / used_ns:.1%} of its processor time"
    if seen.cpu_seconds > 0:
        return f", {process.own_cost_ns / 1e9 / seen.cpu_seconds:.1%} of the command's"
    return ""


def _messages(process: Process) -> Table:
    heads = ("a message", "in its write", "elsewhere", "B a message", "us a message")
    columns = [Column("operations", number=False), *map(Column, heads)]
    table = Table(f"{process.name}: from the first message to the last", columns)
    messages = process.messages
    kept = process.recording.messages
    for kind, word in _WORDS.items():
        total = process.while_messages(kind)
        if not total["operations"]:
            continue
        inside = total["in_message"] / messages
        every = total["operations"] / messages
        size = (total["bytes"] + total["aad_bytes"]) / messages
        table.add(
            [word, f"{every:.2f}", f"{inside:.2f}", f"{every - inside:.2f}", f"{size:,.0f}",
             f"{total['ns'] / messages / 1000:,.2f}"],
            {"process": process.recording.name, "pid": process.recording.numbers["pid"],
             "operation": kind, "messages": messages, "operations": total["operations"],
             "in_write": total["in_message"], "bytes": total["bytes"],
             "aad_bytes": total["aad_bytes"], "ns": total["ns"],
             "in_write_ns": total["in_message_ns"]},
        )  # fmt: skip
    written = sorted(one["ns"] for one in kept)
    if written:
        middle, late = _at(written, 0.5), _at(written, 0.95)
        table.notes.append(
            f"A write took {middle / 1000:,.1f} us (P50; P95 {late / 1000:,.1f} us) of "
            f"{len(written):,} messages: until the call returned, not until the message was there. "
            "B are given to cryptography, not those on the link. What is done outside of writes, "
            "by other threads above all (discovery, heartbeats, acknowledgements, asynchronous "
            "sending), is elsewhere."
        )
    flushes = process.recording.numbers["flushes"]
    if flushes:
        table.notes.append(
            f"{flushes:,} flushes of what was batched are in the writes: each goes on with the "
            "message that its thread wrote last, and may send others as well: means hold."
        )
    inner = process.recording.numbers["inner_updates"]
    if inner:
        table.notes.append(
            f"For random bytes, OpenSSL's generator made {inner:,} calls of its block cipher; they "
            "are no encryptions of data, and a count of EVP calls that includes them is too high."
        )
    early = {kind: process.before_messages(kind) for kind in _WORDS}
    told = [f"{one['operations']:,} {_WORDS[kind]}" for kind, one in early.items()
            if one["operations"]]  # fmt: skip
    if told:
        spent = sum(one["ns"] for one in early.values()) / 1e6
        table.notes.append(
            f"Before the first message (discovery, handshake): {', '.join(told)}; {spent:.1f} ms."
        )
    failed = process.recording.numbers["messages_failed"]
    if failed:
        table.notes.append(f"{failed:,} writes failed.")
    return table


def _functions(process: Process) -> Table:
    columns = [
        Column("function", number=False), Column("calls"), Column("a message"), Column("B a call"),
        Column("us a call"), Column("refused"),
    ]  # fmt: skip
    table = Table(f"{process.name}: by function of Warifu's plugin", columns)
    for one in process.plugin:
        refused = sum(one.refused.values())
        table.add(
            [one.site, f"{one.calls:,}",
             f"{one.calls / process.messages:.2f}" if process.messages else "",
             f"{one.bytes / one.calls:,.0f}" if one.calls else "",
             _us(one.time_ns / one.calls) if one.calls else "", f"{refused:,}"],
            {"process": process.recording.name, "pid": one.process, "aead": one.aead,
             "function": one.site, "calls": one.calls, "bytes": one.bytes, "ns": one.time_ns,
             "refused": refused,
             **{f"refused_{cause}": count for cause, count in one.refused.items()}},
        )  # fmt: skip
        causes = [f"{count:,} {cause}" for cause, count in one.refused.items() if count]
        if causes:
            table.notes.append(f"{one.site} refused {', '.join(causes)}.")
    table.notes.append(
        "All of the process's domains, from their beginning to their end, discovery included; the "
        "plugin's own clock. Protected is signed or encrypted, as the governance says. "
        "A preprocess_secure_submsg looks for the key alone."
    )
    return table


def _at(ordered: Sequence[int], share: float) -> int:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _sites(process: Process, top: int) -> Table:
    columns = [
        Column("call site", number=False), Column("operation", number=False), Column("calls"),
        Column("a message"), Column("B a call"), Column("us, P50"), Column("us, P95"),
        *(Column(f"{part}, us") for part in PARTS),
    ]  # fmt: skip
    table = Table(f"{process.name}: by call site", columns)
    merged = _merged(process.sites)
    for one in merged[:top]:
        count, numbers = one["operations"], one
        middle, late = one.quantile(0.5), one.quantile(0.95)
        per_message = f"{count / process.messages:.2f}" if process.messages else ""
        size = (numbers["bytes"] + numbers["aad_bytes"]) / count
        table.add(
            [one.label, f"{_WORDS[one.operation]} {one.algorithm}", f"{count:,}", per_message,
             f"{size:,.0f}", _us(middle), _us(late),
             *(_us(numbers[f"{part}_ns"] / count) for part in PARTS)],
            {"process": process.recording.name, "pid": process.recording.numbers["pid"],
             "site": " < ".join(one.frames), "operation": one.operation,
             "algorithm": one.algorithm, "calls": count, "failed": numbers["failed"],
             "in_write": numbers["in_message"], "bytes": numbers["bytes"],
             "aad_bytes": numbers["aad_bytes"], "ns": numbers["ns"], "median_ns": middle,
             "p95_ns": late, "minimum_ns": numbers["minimum_ns"],
             "maximum_ns": numbers["maximum_ns"],
             **{f"{part}_{what}": numbers[f"{part}_{what}"]
                for part in PARTS for what in ("calls", "ns")}},
        )  # fmt: skip
    if len(merged) > top:
        table.notes.append(f"{len(merged) - top} more sites with less time: --top shows them.")
    ciphers = [one for one in merged if one.operation in {"encrypt", "decrypt", "mac"}]
    spent = {part: sum(one[f"{part}_ns"] for one in ciphers) for part in PARTS}
    whole = sum(spent.values())
    if whole:
        table.notes.append(
            f"Of {whole / 1e6:,.1f} ms of encryption, decryption and MACs, "
            f"{spent['init'] / whole:.0%} set cipher and key, {spent['context'] / whole:.0%} make "
            f"and free contexts, {spent['update'] / whole:.0%} are for the bytes."
        )
    table.notes.append(
        "A site is who called OpenSSL, for whom. The parts are means: the context made, cleared "
        "and freed; cipher, key and nonce set; bytes; the end; the tag."
    )
    return table


def _us(ns: float | None) -> str:
    return "" if ns is None else f"{ns / 1000:,.2f}"


class Merged(dict[str, int]):
    """Sites with the same names, such as two places of one function, as one."""

    def __init__(self, site: Site) -> None:
        """From its first."""
        super().__init__(site.numbers)
        self.frames = site.frames
        self.operation = site.operation
        self.algorithm = site.algorithm
        self._histogram = list(site.histogram)

    def join(self, site: Site) -> None:
        """One more."""
        extremes = {"minimum_ns": min, "maximum_ns": max}
        for name, value in site.numbers.items():
            pick = extremes.get(name)
            self[name] = pick(self[name], value) if pick else self[name] + value
        self._histogram = [a + b for a, b in zip(self._histogram, site.histogram, strict=True)]

    def quantile(self, share: float) -> float | None:
        """Of the time of an operation, ns."""
        return quantile_ns(self._histogram, share)

    @property
    def label(self) -> str:
        """The functions, as far as they differ, the caller of OpenSSL first."""
        names: list[str] = []
        for frame in self.frames:
            name = frame.split("!", 1)[-1].rsplit("::", 1)[-1]
            if name not in names:
                names.append(name)
        return " < ".join(names[-_SHOWN_FRAMES:])


def _merged(sites: Iterable[Site]) -> list[Merged]:
    found: dict[tuple[object, ...], Merged] = {}
    for site in sites:
        key = (site.operation, site.algorithm, site.frames)
        if key in found:
            found[key].join(site)
        else:
            found[key] = Merged(site)
    merged = [one for one in found.values() if one["operations"]]
    return sorted(merged, key=lambda one: -one["ns"])
