# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Leaner governances: what each line may come down to, and what is given up with it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from warifu.dds.governance import Basic, Governance, Protection

#: The lines that each sample pays for.
LINES = ("data", "metadata", "rtps")

_BY_ORIGIN = "_WITH_ORIGIN_AUTHENTICATION"
#: Down, step by step; with origin authentication every receiver has a tag of its own.
_ORDER = ["NONE", "SIGN", f"SIGN{_BY_ORIGIN}", "ENCRYPT", f"ENCRYPT{_BY_ORIGIN}"]


@dataclass(frozen=True)
class Step:
    """One line of a governance brought down."""

    line: str
    before: str
    after: str
    governance: Governance
    gives_up: str
    loss: int
    """How much is given up, to put the least first."""

    @property
    def name(self) -> str:
        """`data ENCRYPT -> SIGN`."""
        return f"{self.line} {self.before} -> {self.after}"


def steps(governance: Governance, *, plain: bool = False) -> Iterator[Step]:
    """Every line brought down as far as it goes, one at a time. Samples stay protected by their own
    line or by that of submessages, unless ``plain`` says that they need not."""
    for line in LINES:
        before = str(getattr(governance, line))
        for after in _below(before):
            leaner = _with(governance, line, after)
            if leaner.data == Basic.NONE and leaner.metadata == Protection.NONE and not plain:
                continue
            loss, gives_up = _given_up(governance, leaner, line, before, after)
            yield Step(line, before, after, leaner, gives_up, loss)


def diff(before: Governance, after: Governance) -> list[str]:
    """The lines of the governance document that change, with - and + before them."""
    lines = difflib.ndiff(before.xml().splitlines(), after.xml().splitlines())
    return [f"{line[0]} {line[1:].strip()}" for line in lines if line[0] in "-+"]


def _with(governance: Governance, line: str, kind: str) -> Governance:
    match line:
        case "data":
            return replace(governance, data=Basic(kind))
        case "metadata":
            return replace(governance, metadata=Protection(kind))
    return replace(governance, rtps=Protection(kind))


def _below(kind: str) -> list[str]:
    below = _ORDER[: _ORDER.index(kind)]
    # To have it by origin instead of encrypted is another aim, not a leaner one.
    return [lower for lower in reversed(below) if _BY_ORIGIN not in lower]


def _encrypts(kind: str) -> bool:
    return kind.startswith("ENCRYPT")


def _given_up(
    before: Governance, after: Governance, line: str, was: str, is_: str
) -> tuple[int, str]:
    encrypting = [of for of in LINES if _encrypts(str(getattr(after, of)))]
    signing = [of for of in LINES if str(getattr(after, of)) != "NONE"]
    if not signing:
        return 9, "everything: whoever reaches the network reads, alters and forges samples"
    if not encrypting and any(_encrypts(str(getattr(before, of))) for of in LINES):
        return 7, "secrecy: whoever sees the network reads the samples; none can be altered unseen"
    if _BY_ORIGIN in was and was.removesuffix(_BY_ORIGIN) == is_:
        return 3, "origin: one receiver that has the key can forge what another one gets"
    remains = f"samples stay encrypted by {' and '.join(encrypting)}" if encrypting else (
        f"samples stay signed by {' and '.join(signing)}"
    )  # fmt: skip
    loss, what = _of_line(line, is_)
    return loss + (2 if _BY_ORIGIN in was else 0), f"{what}; {remains}"


def _of_line(line: str, is_: str) -> tuple[int, str]:
    match line, is_:
        case "data", "SIGN":
            return 0, (
                "payloads encrypted for themselves: what stores or relays samples (a persistence "
                "or routing service) sees their content"
            )
        case "data", _:
            return (
                3,
                "payloads protected for themselves: what stores or relays samples may alter them",
            )
        case "metadata", "SIGN":
            return 1, (
                "secrecy of submessages' headers: who writes to whom, sequence numbers, heartbeats"
            )
        case "metadata", _:
            return 4, (
                "protected submessages: headers, heartbeats and acknowledgements can be read, and "
                "forged as far as rtps does not sign them"
            )
        case "rtps", "SIGN":
            return (
                1,
                "secrecy of whole messages: headers and submessages outside the other two lines",
            )
        case _:
            return 2, (
                "protection of whole messages: one can be cut, replayed or joined from authentic "
                "submessages"
            )
