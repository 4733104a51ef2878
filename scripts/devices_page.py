#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Writes docs/reference/devices.md: the devices and key stores that come with Warifu, from their
profiles, and how far scaled figures are to be trusted."""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from warifu import _core
from warifu.devices import catalog, judge, shipped

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "devices.md"

_HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 OR MIT -->
<!-- Written by scripts/devices_page.py (make golden) from the profiles. -->
# Devices and key stores

What `--device` and `--key-store` take. `warifu devices` prints the same with your own profiles
beside them; [a board of your own](../how-to/own-device.md) needs the output of a benchmark, or
three figures of a data sheet.

A profile names its library, core and clock and states what primitives take: a signature, a
shared secret, a byte of AES-GCM. Recipes, counted in the library, say which of them each TLS
message calls for. What a benchmark did not publish is scaled from other devices and marked as
*assumed*; so is all of a device without a benchmark.
"""

_SCALING = """
## How far scaled figures are to be trusted

A figure that a device lacks comes from the nearest device that has it: first by the kind of
code (assembly, C, hardware), then by core, family and clock. Where the device has another
figure of the same group, such as a signature where a shared secret of that curve is wanted, the
ratio of the two is taken over; where it has none, the time goes with the clock.

Its band follows from how far such estimates were off for the other devices: the ceil(0.9 (n +
1))-th smallest error, a conformal prediction interval of 90 %. Of a device's figures of one
group the largest error counts, once; errors that were found in the same way count (group, way,
same code, same core or family), at least nine of them, and if there are fewer, less similar
ones. Nothing else decides its width.

The band is judged: each published figure is left out, scaled from the other devices, whose
errors alone make the band, and compared. `warifu devices --judge` repeats this, and exits with
1 if a family's share is surely below 90 %. Profiles of your own are neither scaled from nor judged:
a slip in one would widen the bands of all that come after it.

The band of a hash or a cipher is one factor for what a call takes and for a byte: it is judged on
a message of 1 KiB, most of whose time is by the byte. A trial draws one value of a band for all of
its calls and bytes, as a board has it.

An answer holds each board against itself. The same 51 trials of every case are simulated on 100
boards (5 on 40 in a study of more than 1,000 cases), spread evenly over every band, one figure
independently of another; the n-th board is the same in all cases. So `adds 342 ms (90 to 2110 ms
by the board)` gives the difference of all boards together, and in brackets what it is on 95 % of
the boards, each against itself, where that is a tenth of the difference or more. A difference is
called certain where it is on the same side of nothing on 95 % of the boards, whatever the trials
leave open. A bound is judged on each board as well, as far as it is off the one in the middle of
all bands, and undecided where it is met on some of those 95 % and missed on others. What is wrong
with a link's assumed values is in no range.

"""

_JUDGED = """
*by another figure*: the device's other figures of the group are known, as with most benchmarks;
*by the clock*: only core, clock and code. *n*: figures left out; *error*, *band*: medians, as
factors on either side. Figures of one device are not independent, so the intervals are narrower
than they should be.

What changed after the first judgement was seen: bands were first made from all primitives'
errors together, each counted by itself, and held 89 % by another figure and 84 % by the clock,
AES-GCM 73 %. Some libraries compute GHASH bit by bit and others with a table, which differs by
thirty, whatever the core. Since then errors are taken by group, and a device's figures of a
group count once.

The simulated Cortex-M3 and the Cortex-A7 came later and were not looked at before.
Since they did, a figure that only a stranger has is taken by its ratio to one that a
relative has.

X25519 by the clock stays below: few devices have it, too few for a band of their own, and their
code differs more than that of P-256. Random bytes differ by a hundred between generators; a
handshake takes some hundred of them.

## What else is assumed

- **An instruction** of a library's own code: from SHA-256 in C. On a simulated Cortex-M3 a byte
  of it takes as long as 33 instructions of other code (76 in Thumb alone), counted with `warifu
  m3 run` in Mbed TLS 2.28.3; taken to hold on every core.
- **Parsing a certificate**: 10,536 (RSA-2048) to 18,996 instructions (ECDSA P-256, its point
  checked), counted in the same way.
- **The TCP/IP stack**: 4,000 to 20,000 instructions for what is sent at once and for each
  packet that wakes the program, 8,000 to 40,000 to connect. Beside a signature that is little.
"""


_FORM = """
## The form of a figure

A profile of your own has a table for each primitive: what a call takes (`warm`) and what each byte
adds (`per_byte`), with the kind of what it rests on and a source, or a note where it is assumed.

```toml
[[primitive]]
name = "aead.seal.AES_128_GCM"
warm = { quantiles = [5, 7, 11], unit = "us" }
per_byte = { quantiles = [41.5, 55, 84.2], unit = "ns" }
kind = "assumed"
note = "scaled"

[[primitive]]
name = "instruction"
warm = "0.8 ns"
kind = "assumed"
```

Each is one value with its unit, such as `"45 ms"`, or a law: `{ quantiles = [..], unit = "ns" }`.
The quantiles ascend, evenly spaced from the least to the greatest value: three are the least, the
median and the greatest, eleven every tenth; values between two are equally likely. They may be one
text as well, `"41.5 55 84.2"`, and the unit is `ns`, `us`, `ms` or `s`.

A call's `warm` is of whole nanoseconds. `per_byte`, and the `warm` of an `instruction`, which is
the time of one, may be finer; their laws have 1 to 1000 values, each below 1 s. An `instruction`
has no `per_byte`.

The law of a measured figure is how calls differ: each call draws anew, and all bytes of a message
together. The law of an assumed one is what a board's one time may be: each trial draws one value,
which holds for all of its calls and bytes.
"""


def page(texts: dict[str, str], stores: dict[str, str]) -> str:
    """The page's text, of profiles by name."""
    known = [
        catalog.device(name, text, f"{name}.toml")
        for name, text in texts.items()
        if "\n[[primitive]]" in text
    ]
    lines = [_HEAD, *_devices(known, texts), "", *_sources(texts), "", *_stores(stores)]
    lines += [
        _SCALING.rstrip("\n"),
        "",
        *_judgement(known),
        _JUDGED.rstrip("\n"),
        _FORM.rstrip("\n"),
    ]
    return "\n".join(lines) + "\n"


def _devices(known: Iterable[catalog.Device], texts: dict[str, str]) -> Iterator[str]:
    yield "## Devices"
    yield ""
    yield (
        "| name | what | code | P-256 sign, verify, ECDH ms | RSA-2048 verify ms | "
        "AES-128-GCM kB/s | RAM, flash | rests on |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for one in known:
        if not one.core:
            continue
        names = ("sign.ecdsa_secp256r1", "verify.ecdsa_secp256r1", "ecdh.derive.secp256r1")
        p256 = ", ".join(_ms(one, name) for name in names)
        memory = ", ".join(_size(size) for size in (one.ram, one.flash))
        if one.stack_ram is not None:
            memory += f"; TLS takes {_size(one.stack_ram)} of RAM"
        yield (
            f"| `{one.name}` | {one.description} | {one.code} | {p256} | "
            f"{_ms(one, 'verify.rsa-2048')} | {_rate(one)} | {memory} | {one.evidence(names)} |"
        )
    yield ""
    yield "A figure in brackets is scaled; its band is in the profile."
    yield ""
    others = ", ".join(f"`{name}`" for name in texts if not _machine(texts[name]))
    yield (
        f"{others} state what whole messages take, or primitives of another protocol, and say so "
        "in their profiles."
    )


def _sources(texts: dict[str, str]) -> Iterator[str]:
    yield "### Sources"
    yield ""
    for name, text in texts.items():
        if not _machine(text):
            continue
        head = tomllib.loads(text.partition("# What follows")[0])
        sources = dict.fromkeys(one["source"] for one in head.get("primitive", []))
        said = "; ".join(sources) or "none: every figure is scaled"
        yield f"- `{name}`: {said}"


def _stores(stores: dict[str, str]) -> Iterator[str]:
    yield "## Key stores"
    yield ""
    yield "| name | what | C_Sign ms | limit | source of C_Sign |"
    yield "|---|---|---|---|---|"
    for name, text in stores.items():
        one = _core.key_store(name, text, f"{name}.toml")
        if one["software"]:
            continue
        sign = one["calls"]["C_Sign"]
        span = (
            _number(sign["min_ns"] / 1e6)
            if sign["min_ns"] == sign["max_ns"]
            else f"{_number(sign['min_ns'] / 1e6)} to {_number(sign['max_ns'] / 1e6)}"
        )
        throttle = one["throttle"]
        limit = f"{throttle[0]} in {throttle[1] / 1e9:g} s" if throttle else ""
        table = tomllib.loads(text)
        call = table["call"]["C_Sign"]
        source = call.get("source", table.get("source", "")) if isinstance(call, dict) else ""
        yield f"| `{name}` | {one['description']} | {span} | {limit} | {source} |"


def _judgement(known: list[catalog.Device]) -> Iterator[str]:
    yield "| scaled | figures | n | inside | share | 95 % interval | error | band | 90 % |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for anchored, way in ((True, "by another figure"), (False, "by the clock")):
        for row in judge.coverages(judge.judged(known, anchored=anchored)):
            yield (
                f"| {way} | {row.what} | {row.count} | {row.inside} | {row.share * 100:.0f} % | "
                f"{row.low * 100:.0f} to {row.high * 100:.0f} % | x{row.error_factor:.2f} | "
                f"x{row.band_factor:.3g} | {row.verdict} |"
            )


def _machine(text: str) -> bool:
    return "\ncore = " in text


def _ms(one: catalog.Device, primitive: str) -> str:
    known = one.primitives[primitive]
    said = _number(known.call_ns / 1e6)
    return said if known.is_firm else f"({said})"


def _rate(one: catalog.Device) -> str:
    known = one.primitives["aead.seal.AES_128_GCM"]
    said = _number(1024 / (known.call_ns + 1024 * known.byte_ns) * 1e6)
    return said if known.is_firm else f"({said})"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _size(size: int | None) -> str:
    if size is None:
        return "-"
    if size % (1 << 20) == 0:
        return f"{size >> 20} MiB"
    return f"{size >> 10} KiB" if size % (1 << 10) == 0 else f"{size / 1000:.3g} kB"


def texts(folder: str) -> dict[str, str]:
    """The profiles of a kind that are under version control, by name; others are somebody's own."""
    listed = subprocess.run(
        ["git", "ls-files", f"profiles/{folder}/*.toml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    files = (ROOT / name for name in sorted(listed.stdout.splitlines()))
    return {file.stem: file.read_text(encoding="utf-8") for file in files if file.exists()}


def main() -> None:
    """Scales the devices anew and writes the page."""
    devices = texts("devices")
    corpus = shipped.corpus(devices)
    for name in shipped.published(devices):
        made = shipped.completed(name, devices[name], corpus)
        (ROOT / "profiles" / "devices" / f"{name}.toml").write_text(made, encoding="utf-8")
    PAGE.write_text(page(texts("devices"), texts("key-stores")), encoding="utf-8")


if __name__ == "__main__":
    main()
