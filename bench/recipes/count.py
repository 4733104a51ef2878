# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Counts the calls of cryptography that a TLS library makes for each message, and the instructions
that it executes beside them, with callgrind on this machine.

    .venv/bin/python bench/recipes/count.py mbedtls|openssl|wolfssl [--out FILE]

Writes one JSON object a line for each message of each variant: what `write.py` makes recipes of.
The programs that it runs are built by `bench/recipes/build`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from warifu.calibrate.variants import AEADS, Variant, everything

ROOT = Path(__file__).resolve().parent.parent.parent
HOME = ROOT / "target" / "recipes"
BIN = Path(sys.executable).parent
ROUNDS = 3
RESPONSES = (256, 1_065, 8_192, 16_000)
"""Lengths of the response, B: one record each."""
REQUEST_BYTES = len("GET / HTTP/1.1\r\nHost: warifu.test\r\nConnection: close\r\n\r\n")
"""The lab's request, which all programs send."""
_THRESHOLD = "=1000000000"
_ENVIRONMENT = {
    "GLIBC_TUNABLES": f"glibc.cpu.x86_rep_movsb_threshold{_THRESHOLD}:"
    f"glibc.cpu.x86_rep_stosb_threshold{_THRESHOLD}"
}
"""glibc copies long blocks with one instruction, which callgrind counts once for each byte."""
_OTHER = {"client": "server", "server": "client"}
HEADER_BYTES = 5
"""Of a record (RFC 8446 section 5.1)."""


@dataclass
class Message:
    """What a library did for one message: the counts and bytes of primitives, and the rest."""

    role: str
    verb: str
    name: str
    taken: int = 0
    instructions: int = 0
    calls: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def operation(self) -> str:
        """Its name in device profiles."""
        return f"{self.role}.{self.verb}.{self.name}"

    def add(self, instructions: int, calls: dict[str, tuple[int, int]]) -> None:
        """More work for the same message."""
        self.instructions += instructions
        for name, (count, length) in calls.items():
            before = self.calls.get(name, (0, 0))
            self.calls[name] = (before[0] + count, before[1] + length)

    @property
    def bytes(self) -> int:
        """Its length: what an AEAD took, or the record that came, or what was hashed of it."""
        if "aead.seal" in self.calls:
            return self.calls["aead.seal"][1]
        if "aead.open" in self.calls:
            return self.calls["aead.open"][1]
        if self.taken:
            return self.taken - HEADER_BYTES
        return self.calls.get("hash", (0, 0))[1]


@dataclass(frozen=True)
class Counted:
    """A message of a variant, with the medians over all connections."""

    library: str
    variant: dict[str, object]
    operation: str
    per_connection: int
    bytes: float
    instructions: float
    calls: dict[str, tuple[float, float]]


def certificates(variant: Variant) -> Path:
    """The keys and certificates that a variant needs, made once."""
    pki = HOME / "pki" / f"{variant.certificate}-{variant.chain_length}"
    if not pki.is_dir():
        pki.parent.mkdir(parents=True, exist_ok=True)
        words = ["pki", "--out", str(pki), "--certificate", variant.certificate]
        words += ["--chain-length", str(variant.chain_length)]
        subprocess.run([str(BIN / "warifu-tls"), *words], check=True, stdout=subprocess.DEVNULL)
    return pki


def program(library: str, variant: Variant, response: int, rounds: int) -> list[str]:
    """The command that makes `rounds` connections."""
    pki = certificates(variant)
    if library == "openssl":
        words = [str(pki), json.dumps(variant.json())]
        return [str(HOME / library), *words, str(response), str(rounds)]
    choices = [variant.tls, variant.session, variant.authentication, variant.group, variant.aead]
    return [str(HOME / library), str(pki), *choices, variant.certificate, str(response),
            str(rounds)]  # fmt: skip


def connections(command: Sequence[str], aead: str) -> list[list[Message]]:
    """Runs it under callgrind; the messages of each connection in the order of their first work."""
    digest = {"RECIPES_DIGEST_BYTES": "48" if aead == "AES_256_GCM" else "32"}
    with tempfile.TemporaryDirectory() as folder:
        tool = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet",
                f"--callgrind-out-file={folder}/out"]  # fmt: skip
        run = subprocess.run([*tool, *command], capture_output=True, text=True, check=False,
                             env=os.environ | _ENVIRONMENT | digest)  # fmt: skip
        if run.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {run.stderr.strip()}")
        totals = [_total(Path(folder) / f"out.{part}") for part in range(1, _parts(folder) + 1)]
    return parse(run.stdout, totals)


def parse(output: str, totals: Sequence[int]) -> list[list[Message]]:
    """The messages of each connection from what a program printed and callgrind's counts."""
    lines = [line.split("\t") for line in output.splitlines()]
    if sum(len(words) > 1 for words in lines) != len(totals):
        raise SystemExit(f"recipes: {len(totals)} counts do not fit:\n{output}")
    left = iter(totals)
    counted = [(words, next(left) if len(words) > 1 else 0) for words in lines]
    if any(words[0] == "part" for words in lines):
        return list(_by_parts(counted))
    return list(_by_connection(counted))


def _parts(folder: str) -> int:
    return sum(1 for file in Path(folder).iterdir() if file.name.startswith("out."))


def _total(file: Path) -> int:
    match = re.search(r"^totals: (\d+)$", file.read_text(), re.MULTILINE)
    return int(match[1]) if match else 0


def _calls(words: Sequence[str]) -> dict[str, tuple[int, int]]:
    return {words[i]: (int(words[i + 1]), int(words[i + 2])) for i in range(0, len(words), 3)}


def _by_parts(lines: list[tuple[list[str], int]]) -> Iterator[list[Message]]:
    """Where the parts of the count come first, and then which of them each message has."""
    parts: list[tuple[int, dict[str, tuple[int, int]]]] = []
    messages: list[Message] = []
    begun = False
    for words, instructions in lines:
        if words[0] == "=":
            if begun:
                yield messages
            parts, messages, begun = [], [], True
        elif words[0] == "part":
            parts.append((instructions, _calls(words[3:])))
        elif begun and words[0].startswith("parts "):
            _, role, verb, name, numbers = words[0].split()
            message = Message(role, verb, name)
            for number in numbers.split(","):
                message.add(*parts[int(number)])
            messages.append(message)
    yield messages


def _by_connection(lines: list[tuple[list[str], int]]) -> Iterator[list[Message]]:
    """Where each part of the count says whose it is."""
    messages: list[Message] = []
    last: dict[str, Message] = {}
    begun = False
    for (role, label, taken, *words), instructions in lines:
        if role == "=":
            if begun:
                yield messages
            messages, last, begun = [], {}, True
            continue
        if role == "-":
            continue
        calls = _calls(words)
        if label in ("+", "-"):
            if role in last:
                last[role].add(instructions, calls)
            continue
        verb, name = label.split()
        before = last.get(role)
        if before is None or (before.verb, before.name) != (verb, name) or "Data" in name:
            before = last[role] = Message(role, verb, name, int(taken))
            messages.append(before)
        before.taken = max(before.taken, int(taken))
        before.add(instructions, calls)
    yield messages


def lengths(variant: Variant) -> dict[tuple[str, str], int]:
    """The length of each handshake message of a variant, by its sender: what a trace says, and so
    what a recipe's bytes are of. It is kept, since the certificates' sizes are always the same."""
    kept = HOME / "lengths" / (re.sub(r"\W+", "-", json.dumps(variant.json())) + ".json")
    if kept.exists():
        return {(one["from"], one["name"]): one["handshake_bytes"]
                for one in json.loads(kept.read_text())}  # fmt: skip
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(variant.json(), file)
        file.flush()
        run = subprocess.run([str(BIN / "warifu-tls"), "record", file.name], check=True,
                             capture_output=True, text=True)  # fmt: skip
    messages = json.loads(run.stdout)
    messages = messages if isinstance(messages, list) else messages["messages"]
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(messages))
    return {(one["from"], one["name"]): one["handshake_bytes"] for one in messages}


def count(library: str, variant: Variant, response: int) -> list[Counted]:
    """The messages of a variant."""
    by_operation: dict[str, list[Message]] = defaultdict(list)
    rounds = connections(program(library, variant, response, ROUNDS), variant.aead)
    sizes = lengths(variant)
    for messages in rounds:
        for message in messages:
            by_operation[message.operation].append(message)
    found = []
    if library == "wolfssl":
        for message in (one for messages in by_operation.values() for one in messages):
            _open_what_came(message)
    for operation, messages in by_operation.items():
        names = sorted({name for message in messages for name in message.calls})
        median = statistics.median
        calls = {
            name: tuple(
                float(median(message.calls.get(name, (0, 0))[part] for message in messages))
                for part in (0, 1)
            )
            for name in names
        }
        one = messages[0]
        sender = one.role if one.verb == "send" else _OTHER[one.role]
        length = float(median(message.bytes for message in messages))
        if one.name == "ApplicationData":
            length = float(response if sender == "server" else REQUEST_BYTES)
        else:
            length = float(sizes.get((sender, one.name), length))
        found.append(
            Counted(
                library,
                asdict(variant),
                operation,
                len(messages) // len(rounds),
                length,
                float(median(message.instructions for message in messages)),
                calls,  # type: ignore[arg-type]
            )
        )
    return found


def _open_what_came(message: Message) -> None:
    """ChaCha20 and Poly1305 are called apart and do not say whether a record is opened."""
    if message.verb == "receive" and "aead.seal" in message.calls:
        made, before = message.calls.pop("aead.seal"), message.calls.get("aead.open", (0, 0))
        message.calls["aead.open"] = (made[0] + before[0], made[1] + before[1])


def variants(library: str) -> list[tuple[Variant, int]]:
    """What is counted: all that a device profile can tell apart, of TLS 1.2 with each AEAD; and
    each AEAD with several lengths of data and with RSA."""
    # A key from outside is not counted: what it costs stands in the recipes of resumption.
    certified = [variant for variant in everything() if variant.authentication != "psk"]
    found = [(variant, RESPONSES[1]) for variant in certified]
    # TLS 1.2's PRF gives keys of the AEAD's lengths in whole digests of the suite's hash.
    found += [
        (replace(variant, aead=aead), RESPONSES[1])
        for variant in certified if variant.tls == "1.2"
        for aead in AEADS
    ]  # fmt: skip
    for tls in ("1.3", "1.2"):
        for aead in AEADS:
            plain = Variant(tls=tls, aead=aead)
            found += [(plain, response) for response in RESPONSES if response != RESPONSES[1]]
            found.append((replace(plain, certificate="rsa-2048", aead=aead), RESPONSES[1]))
    if library == "wolfssl":
        # Its server, as built here, ends a connection that begins with early data.
        found = [(variant, response) for variant, response in found if variant.session != "0-rtt"]
    return list(dict.fromkeys(found))


def main() -> None:
    """Counts a library's calls."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=("mbedtls", "openssl", "wolfssl"))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    library = arguments.library
    if shutil.which("valgrind") is None:
        raise SystemExit("recipes: valgrind is missing: run scripts/setup --with recipes")
    subprocess.run([str(ROOT / "bench" / "recipes" / "build"), library], check=True)
    out = arguments.out or HOME / f"{library}.ndjson"
    wanted = variants(library)
    for variant, _ in wanted:
        certificates(variant)
    # Counts do not depend on the time, so variants are counted beside each other.
    with out.open("w") as file, ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda one: count(library, *one), wanted)
        for number, of_variant in enumerate(found, start=1):
            print(f"\r{number} of {len(wanted)} variants", end="", file=sys.stderr)
            file.writelines(json.dumps(asdict(counted)) + "\n" for counted in of_variant)
    print(f"\n{out}", file=sys.stderr)


if __name__ == "__main__":
    main()
