# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Makes recipes of what `count.py` found: `profiles/recipes/NAME.toml`.

    .venv/bin/python bench/recipes/write.py mbedtls|openssl|wolfssl [--counts FILE] [--out FILE]

Messages of all variants that one recipe describes share it; a choice becomes a condition only
where counts or instructions differ by more than the tolerances below.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
KEYS = ("authentication", "certificate", "group", "aead", "chain_length")
FAMILIES = (
    "ecdh.keygen", "ecdh.derive", "sign", "verify", "hash", "hmac", "hkdf", "prf",
    "aead.seal", "aead.open", "x509.parse", "random",
)  # fmt: skip
WHOLE = ("hash", "aead.seal", "aead.open")
"""Primitives that work on the whole message, as RFC 8446 and RFC 5246 have it."""
EXACT_BYTES = 4.0
"""How much the lengths of messages with ECDSA signatures vary, B (X.690 section 8.3)."""
BYTES_APART, SHARE_APART = 32.0, 0.05
"""Lengths that one recipe stands for lie this near to its own, B or by share."""
INSTRUCTIONS_APART, INSTRUCTIONS_SHARE, INSTRUCTIONS_A_BYTE = 500.0, 0.05, 1.0
"""The same of instructions; of data longer than a packet by length, where its encryption takes tens
of instructions a byte and how it is copied changes with its length."""
PACKET_BYTES = 1_500
LIBRARIES = {
    "mbedtls": ("mbedtls-3.6", "Mbed TLS 3.6.5 with PSA, of the Rust package mbedtls-rs-sys 0.3.1"),
    "openssl": ("openssl-3", "OpenSSL 3.0 of Debian 12 (static libraries of libssl-dev)"),
    "wolfssl": ("wolfssl-5", "wolfSSL 5.5.4 of Debian 12, built from its source"),
}


@dataclass(frozen=True)
class Cell:
    """A message of a variant as it was counted."""

    choices: tuple[tuple[str, object], ...]
    chain: int
    bytes: float
    instructions: float
    calls: tuple[tuple[str, float, float], ...]

    def choice(self, key: str) -> object:
        """What the variant chose."""
        return dict(self.choices)[key]


@dataclass(frozen=True)
class Call:
    """A primitive's part in a recipe."""

    primitive: str
    count: float = 0.0
    per_certificate: float = 0.0
    per_record: float = 0.0
    bytes: float = 0.0
    per_message_byte: float = 0.0

    def toml(self) -> str:
        """Its table, without what is zero."""
        lines = [f'primitive = "{self.primitive}"']
        for key in ("count", "per_certificate", "per_record", "bytes", "per_message_byte"):
            value = getattr(self, key)
            if value:
                lines.append(f"{key} = {_number(value)}")
        return "[[recipe.call]]\n" + "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Recipe:
    """What a library does for a message."""

    instructions: float
    instructions_per_byte: float
    calls: tuple[Call, ...]


Condition = tuple[tuple[str, object], ...]


def _number(value: float) -> str:
    rounded = round(value, 3)
    return str(int(rounded)) if rounded == int(rounded) else str(rounded)


def recipe(cells: Sequence[Cell], every: Sequence[Cell]) -> Recipe | None:
    """One recipe for all of these, or None. Where they have chains of one length, how calls grow
    with it is that of all of the message's cells, if it is the same for all."""
    sizes = np.array([cell.bytes for cell in cells])
    chains = np.array([cell.chain for cell in cells], dtype=float)
    calls = []
    for family in FAMILIES:
        pairs = [
            next(((n, b) for name, n, b in cell.calls if name == family), (0.0, 0.0))
            for cell in cells
        ]
        counts, lengths = (np.array(column) for column in zip(*pairs, strict=True))
        if not counts.any() and not lengths.any():
            continue
        call = _call(family, counts, lengths, sizes, chains, _slopes(family, every))
        if call is None:
            return None
        calls.append(call)
    law = _instructions(np.array([cell.instructions for cell in cells]), sizes)
    return None if law is None else Recipe(law[0], law[1], tuple(calls))


def _count(cell: Cell, family: str) -> float:
    return next((count for name, count, _ in cell.calls if name == family), 0.0)


def _slopes(family: str, every: Sequence[Cell]) -> set[float]:
    """By how many calls a certificate more differs, over cells that differ in the chain alone."""
    found = set()
    for one in every:
        for other in every:
            same = all(
                one.choice(key) == other.choice(key) for key in KEYS if key != "chain_length"
            )
            if same and other.chain > one.chain:
                more = _count(other, family) - _count(one, family)
                found.add(more / (other.chain - one.chain))
    return found


def _call(
    family: str,
    counts: np.ndarray,
    lengths: np.ndarray,
    sizes: np.ndarray,
    chains: np.ndarray,
    slopes: set[float],
) -> Call | None:
    per_certificate = 0.0
    if np.ptp(chains):
        per_certificate = round(float(np.polyfit(chains, counts, 1)[0]))
    elif len(slopes) == 1:
        per_certificate = round(next(iter(slopes)))
    count = float(counts[0] - per_certificate * chains[0])
    if per_certificate < 0 or count < 0:
        return None
    if (count + per_certificate * chains != counts).any():
        return None
    calls = count + per_certificate * chains
    laws = list(_laws(family, lengths, sizes, calls))
    # One that is exact, if there is any; whole digests are whole.
    for apart, share in ((EXACT_BYTES, 0.0), (BYTES_APART, SHARE_APART)):
        if family == "prf" and apart > EXACT_BYTES:
            break
        for fixed, rate in laws:
            off = np.abs(fixed * calls + rate * sizes - lengths)
            if (off > np.maximum(apart, share * lengths)).any():
                continue
            if family.startswith("aead.") and count == 1 and rate == 1.0:
                return Call(family, 0.0, 0.0, 1.0, fixed, rate)
            return Call(family, count, per_certificate, 0.0, fixed, rate)
    return None


def _laws(
    family: str, lengths: np.ndarray, sizes: np.ndarray, calls: np.ndarray
) -> Iterable[tuple[float, float]]:
    """Bytes of a call and per byte of the message, the likelier first."""
    each = np.maximum(calls, 1.0)
    if family == "prf":
        yield float(np.mean(lengths / each)), 0.0
        return
    rest = lengths - sizes
    if family in WHOLE and (rest > -BYTES_APART).all():
        yield (max(0.0, float(np.mean(rest / each))) if calls.all() else 0.0), 1.0
    if calls.all() and np.ptp(lengths / each) <= 4.0:
        yield float(np.mean(lengths / each)), 0.0
    total = float(sizes @ sizes)
    if total:
        yield 0.0, float(sizes @ lengths) / total
    if calls.all() and np.ptp(sizes):
        from scipy.optimize import nnls

        (fixed, rate), _ = nnls(np.column_stack([calls, sizes]), lengths)
        yield float(fixed), float(rate)


def _instructions(found: np.ndarray, sizes: np.ndarray) -> tuple[float, float] | None:
    from scipy.optimize import nnls

    near = np.maximum(INSTRUCTIONS_APART, INSTRUCTIONS_SHARE * found)
    near = np.maximum(near, np.where(sizes > PACKET_BYTES, INSTRUCTIONS_A_BYTE * sizes, 0.0))
    middle = float((found.min() + found.max()) / 2)
    if (np.abs(found - middle) <= near).all():
        return float(found.mean()), 0.0
    (start, slope), _ = nnls(np.column_stack([np.ones_like(sizes), sizes]), found)
    if (np.abs(start + slope * sizes - found) <= near).all():
        return float(start), float(slope)
    return None


@cache
def leaves(
    cells: tuple[Cell, ...], keys: tuple[str, ...], every: tuple[Cell, ...]
) -> tuple[tuple[Condition, Recipe], ...] | None:
    """The fewest recipes that describe the cells, each with its conditions."""
    whole = recipe(cells, every)
    if whole is not None:
        return (((), whole),)
    best: tuple[tuple[Condition, Recipe], ...] | None = None
    for key in keys:
        groups: dict[object, list[Cell]] = defaultdict(list)
        for cell in cells:
            groups[cell.choice(key)].append(cell)
        if len(groups) == 1:
            continue
        others = tuple(other for other in keys if other != key)
        found: list[tuple[Condition, Recipe]] = []
        for value, group in groups.items():
            below = leaves(tuple(group), others, every)
            if below is None:
                break
            found += [(((key, value), *when), one) for when, one in below]
        else:
            if best is None or len(found) < len(best):
                best = tuple(found)
    return best


def with_own_tickets(rows: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    """The same with the true lengths of NewSessionTicket. A ticket holds what a library likes
    (RFC 5077 section 4, RFC 8446 section 4.6.1), while all other lengths, and those that the counts
    come with, are of the traces, whose tickets are OpenSSL's. What the client's AEAD opened is the
    message and a byte for its type (RFC 8446 section 5.2); TLS 1.2's is in the clear, and goes
    into the transcript as often as ServerHelloDone, whose length is known, does."""
    rows = list(rows)
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        calls: dict[str, list[float]] = row["calls"]  # type: ignore[assignment]
        of = found[json.dumps(row["variant"])]
        if row["operation"] == "client.receive.NewSessionTicket":
            of["opened"] = calls.get("aead.open", (0.0, 0.0))[1]
            of["hashed"] = calls.get("hash", (0.0, 0.0))[1]
        if row["operation"] == "client.receive.ServerHelloDone" and "hash" in calls:
            of["passes"] = calls["hash"][1] / float(row["bytes"])  # type: ignore[arg-type]
    for row in rows:
        of = found[json.dumps(row["variant"])]
        if str(row["operation"]).endswith(".NewSessionTicket"):
            if of["opened"]:
                row["bytes"] = of["opened"] - 1
            elif of.get("passes"):
                row["bytes"] = of["hashed"] / of["passes"]
    return rows


def cells_of(rows: Iterable[dict[str, object]]) -> dict[tuple[str, str, str], list[Cell]]:
    """By operation, TLS version and session; a signature, which another key store may make, apart
    from the message that holds it."""
    found: dict[tuple[str, str, str], list[Cell]] = defaultdict(list)
    for row in rows:
        variant: dict[str, object] = row["variant"]  # type: ignore[assignment]
        calls: dict[str, list[float]] = dict(row["calls"])  # type: ignore[call-overload]
        operation, tls, session = (
            str(row["operation"]),
            str(variant["tls"]),
            str(variant["session"]),
        )
        if operation.endswith((".Alert", ".HelloRequest")):
            continue
        choices = tuple((key, variant[key]) for key in KEYS)
        chain = int(variant["chain_length"])  # type: ignore[call-overload]
        if "sign" in calls:
            made = calls.pop("sign")
            if made[0]:
                role = operation.split(".")[0]
                cell = Cell(choices, chain, 0.0, 0.0, (("sign", made[0], made[1]),))
                found[f"{role}.sign", tls, session].append(cell)
        of = tuple((name, n, b) for name, (n, b) in sorted(calls.items()))
        cell = Cell(choices, chain, float(row["bytes"]), float(row["instructions"]), of)  # type: ignore[arg-type]
        found[operation, tls, session].append(cell)
    return found


def repeated(cells: Sequence[Cell]) -> list[Cell]:
    """Cells that were counted more than once, by their median. A handshake's message is counted
    again with each length of the response, on which it does not depend; in OpenSSL a count may
    stand apart from its like by a tenth."""
    instructions: dict[Cell, list[float]] = defaultdict(list)
    for cell in cells:
        instructions[replace(cell, instructions=0.0)].append(cell.instructions)
    return [replace(one, instructions=median(found)) for one, found in instructions.items()]


def recipes(rows: Iterable[dict[str, object]]) -> list[tuple[str, dict[str, object], Recipe]]:
    """All recipes, each with its operation and conditions; what sessions share stands once."""
    merged: dict[tuple[str, str, Condition, Recipe], list[str]] = {}
    for (operation, tls, session), cells in sorted(cells_of(with_own_tickets(rows)).items()):
        found = leaves(tuple(cells), KEYS, tuple(cells))
        if found is None:
            cells = repeated(cells)
            found = leaves(tuple(cells), KEYS, tuple(cells))
        if found is None:
            raise SystemExit(f"recipes: {operation} of TLS {tls}, {session}: counts differ where "
                             "no choice does")  # fmt: skip
        for when, one in found:
            merged.setdefault((operation, tls, when, one), []).append(session)
    result = []
    for (operation, tls, when, one), sessions in merged.items():
        condition: dict[str, object] = {"tls": tls}
        condition["session"] = sessions[0] if len(sessions) == 1 else sessions
        condition |= dict(when)
        if (
            operation == "client.send.ClientHello"
            and one.calls
            and any(call.primitive == "ecdh.keygen" for call in one.calls)
        ):
            ready = tuple(call for call in one.calls if call.primitive != "ecdh.keygen")
            result.append((operation, condition | {"key_share": "fresh"}, one))
            before = Recipe(one.instructions, one.instructions_per_byte, ready)
            result.append((operation, condition | {"key_share": "prepared"}, before))
        else:
            result.append((operation, condition, one))
    known = {(operation, str(when["tls"])) for operation, when, _ in result}
    return result + list(_counted_beside(known))


def _counted_beside(
    known: set[tuple[str, str]],
) -> Iterable[tuple[str, dict[str, object], Recipe]]:
    """ChangeCipherSpec, where a library's work for it is in the message beside it: TLS 1.3's, which
    is for show, and TLS 1.2's that OpenSSL receives: the keys' PRF is counted with that of the
    Finished that comes with it."""
    for tls in sorted({tls for _, tls in known}, reverse=True):
        for role in ("client", "server"):
            for verb in ("receive", "send"):
                operation = f"{role}.{verb}.ChangeCipherSpec"
                if (operation, tls) not in known:
                    yield operation, {"tls": tls}, Recipe(0.0, 0.0, ())


def toml(library: str, rows: Iterable[dict[str, object]]) -> str:
    """The file."""
    name, what = LIBRARIES[library]
    text = [
        "# SPDX-License-Identifier: Apache-2.0 OR MIT",
        f"# Written by bench/recipes/write.py of what bench/recipes/count.py {library} counted.",
        f'name = "{name}"',
        f'description = "Calls of cryptography of each TLS message in {what}"',
        f'source = "callgrind 3.19 and wrapped functions, x86-64: make recipes; {what}"',
        'kind = "measured"',
        "",
    ]
    for operation, when, one in recipes(rows):
        text += ["[[recipe]]", f'operation = "{operation}"', f"when = {_inline(when)}"]
        text.append(f"instructions = {round(one.instructions)}")
        if one.instructions_per_byte:
            text.append(f"instructions_per_byte = {_number(one.instructions_per_byte)}")
        text += [call.toml().rstrip() for call in one.calls]
        text.append("")
    return "\n".join(text)


def _inline(when: dict[str, object]) -> str:
    words = []
    for key, value in when.items():
        if isinstance(value, list):
            words.append(f"{key} = [{', '.join(json.dumps(one) for one in value)}]")
        else:
            words.append(f"{key} = {json.dumps(value)}")
    return "{ " + ", ".join(words) + " }"


def main() -> None:
    """Writes a library's recipes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=tuple(LIBRARIES))
    parser.add_argument("--counts", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    counts = arguments.counts or ROOT / "target" / "recipes" / f"{arguments.library}.ndjson"
    rows = [json.loads(line) for line in counts.read_text().splitlines()]
    name = LIBRARIES[arguments.library][0]
    out = arguments.out or ROOT / "profiles" / "recipes" / f"{name}.toml"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(toml(arguments.library, rows))
    print(out)


if __name__ == "__main__":
    main()
