# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A table of one's own: `primitive,value,unit`, a primitive a line.

primitive,value,unit
sign.ecdsa_secp256r1,45,ms
aead.seal.AES_128_GCM,1.2,MB/s
hash.sha-256,30.5,cycles/byte
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from warifu import _core
from warifu.devices.figures import Collected, Figure, Output, of_stream
from warifu.devices.quantities import NotUnderstood, byte_ns, call_ns, fine_ns
from warifu.devices.text import number

TOOL = "table of primitives"
#: Repetitions are bounded, so that no line takes long to be refused.
_BETWEEN = r" {0,20}[,;\t][ \t]{0,20}"
_ROW = re.compile(
    rf"^ *\"?([a-z][\w.-]{{0,60}})\"?{_BETWEEN}\"?([\d.]{{1,40}})\"?{_BETWEEN}"
    r"\"?([A-Za-z/µ]{1,20})\"?\s*$"
)
#: A row that names something and cannot be read otherwise: it is told, not skipped.
_OTHER = re.compile(r"^\s*\"?([a-z][\w-]*\.[\w.-]+)\"?\s*[,;\t]")
_HEAD = re.compile(rf"^ *\"?primitive\"?{_BETWEEN}\"?value\"?{_BETWEEN}\"?unit\"?", re.IGNORECASE)
#: What takes so long a byte.
_STREAMS = ("hash.", "hmac.", "aead.", "random")


def read(lines: Sequence[str], clock_hz: int | None) -> Output | None:
    """The table's figures; without its head no line is taken, since any CSV has three columns."""
    found = Collected()
    known = set(_core.primitives())
    inside = False
    for line in lines:
        if _HEAD.search(line):
            inside = True
            found.lines += 1
        elif inside and (match := _ROW.search(line)):
            name, value, unit = match.groups()
            if name not in known:
                found.leave(
                    name, "is no primitive (profiles/recipes/README.md lists them)", understood=True
                )
                continue
            try:
                found.add(_figure(name, value, unit, clock_hz), name)
            except NotUnderstood as error:
                found.leave(name, str(error), understood=True)
        elif inside and (other := _OTHER.match(line)):
            found.leave(other[1], "is no row of a primitive, a number above 0 and a unit")
    output = found.output(TOOL)
    return None if output is None else replace(output, clock_hz=clock_hz)


def _figure(name: str, value: str, unit: str, clock_hz: int | None) -> Figure:
    if number(value) is None:
        raise NotUnderstood(f"{value} is no number above 0")
    by_bytes = unit.endswith(("/s", "/byte"))
    if by_bytes and not name.startswith(_STREAMS):
        raise NotUnderstood(f"{unit} is for what takes bytes: expected a time such as ms")
    if unit in {"cycles", "cycles/byte"}:
        if clock_hz is None:
            raise NotUnderstood("cycles need the clock: add --clock, such as --clock 64MHz")
        ns = float(value) * 1e9 / clock_hz
        return of_stream(name, ns) if by_bytes else Figure(name, ns)
    if by_bytes:
        return of_stream(name, byte_ns(f"{value} {unit}"))
    if name == "instruction":
        return Figure(name, fine_ns(f"{value} {unit}"))
    return Figure(name, call_ns(f"{value} {unit}"))
