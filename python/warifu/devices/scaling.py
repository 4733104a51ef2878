# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A figure that a device lacks, from the nearest device that has it, with a band.

**Estimate.** Where the device has another figure of the same group (a signature where a shared
secret of that curve is wanted), the nearest device's ratio of the two is taken over. Where it has
none, its cycles are: the time times the ratio of the clocks. Nearest is first by the kind of code
(assembly, C, hardware), then by the core, its family, and the clock. Where a nearer device lacks
the figure and has another of its group, that one is scaled and the farther gives the ratio.

**Band.** The same is done for every figure of every other device, as if it were not known, and the
size of the logarithm of truth over estimate is kept; of a device's figures of one group the largest
counts, once, since they come from one program. Of the errors that were found in the same way (the
same group, from another figure or by the clock, the same code or not, the same core, family or
neither) the ceil(0.9 (n + 1))-th smallest is the band on either side: a conformal prediction
interval of 90 %, which assumes no law. Where fewer than nine are at hand, those found in less
similar ways are taken, one condition dropped after another.

Nothing else decides the width; `judge` says how often the truth lies inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from warifu.devices import cores
from warifu.devices.catalog import PUBLIC_KEY, Device, Known
from warifu.devices.figures import Code

#: A message of this length stands for what takes time by the byte, B.
MESSAGE = 1024
COVERAGE = 0.9
#: The fewest residuals of which one bounds nine tenths.
_FEWEST = 9

#: Primitives whose ratio is about the same on all cores, as the work is.
GROUPS = (
    (
        "ecdh.keygen.secp256r1",
        "ecdh.derive.secp256r1",
        "sign.ecdsa_secp256r1",
        "verify.ecdsa_secp256r1",
    ),
    ("ecdh.keygen.x25519", "ecdh.derive.x25519"),
    ("sign.rsa-2048", "verify.rsa-2048"),
    ("hash.sha-256", "hmac.sha-256"),
    ("hash.sha-384", "hash.sha-512", "hmac.sha-384", "hmac.sha-512"),
    (
        "aead.seal.AES_128_GCM",
        "aead.open.AES_128_GCM",
        "aead.seal.AES_256_GCM",
        "aead.open.AES_256_GCM",
    ),
    ("aead.seal.CHACHA20_POLY1305", "aead.open.CHACHA20_POLY1305"),
    ("random",),
)
SCALED = tuple(primitive for group in GROUPS for primitive in group)

_CORE, _FAMILY, _OTHER = range(3)


@dataclass(frozen=True)
class Way:
    """How an estimate was found, as far as its error depends on it."""

    anchored: bool
    same_code: bool
    relation: int
    group: int

    def pools(self) -> Iterator[tuple[object, ...]]:
        """Keys of the errors to take, the most alike first."""
        public = GROUPS[self.group][0].startswith(PUBLIC_KEY)
        yield ("group", self.group, self.anchored, self.same_code, self.relation)
        yield ("group", self.group, self.anchored, self.same_code)
        yield ("group", self.group, self.anchored)
        yield ("kind", public, self.anchored, self.same_code, self.relation)
        yield ("kind", public, self.anchored, self.same_code)
        yield ("kind", public, self.anchored)
        yield ("all", self.anchored)


@dataclass(frozen=True)
class Estimate:
    """A figure from another device."""

    primitive: str
    call_ns: float
    byte_ns: float
    origin: Device
    by: str
    """Which figure's ratio was taken, or `clock`."""
    way: Way
    code: Code | None
    factor: float = math.inf
    """The band: from the value over this to the value times this."""
    errors: int = 0
    """How many devices' errors the band rests on."""

    def band(self) -> str:
        """The band's ends, as factors of two digits."""
        factor = f"{float(f'{self.factor:.2g}'):g}"
        return f"/{factor} to x{factor}"

    def says(self) -> str:
        """What it was scaled from and how far to trust it, for a profile's note."""
        how = "by the clock" if self.by == "clock" else f"by {self.by}"
        band = (
            f"{self.band()}, a 90 % interval of {self.errors} errors"
            if math.isfinite(self.factor)
            else "no band: too few devices have it"
        )
        return f"scaled from {self.origin.name} {how}; {band}"


class Corpus:
    """The devices to scale from."""

    def __init__(self, devices: Sequence[Device]) -> None:
        """Of these, those whose core and clock are known."""
        self.devices = tuple(one for one in devices if one.core and one.clock_hz)

    def without(self, name: str) -> Corpus:
        """All but one."""
        return Corpus([one for one in self.devices if one.name != name])

    def estimate(
        self, target: Device, primitive: str, *, anchored: bool = True, code: Code | None = None
    ) -> Estimate | None:
        """A figure that the target lacks; its own figure of that name is not looked at. None where
        no device has it."""
        found = self._estimate(target, primitive, anchored=anchored, code=code)
        if found is None:
            return None
        for key in found.way.pools():
            sizes = sorted(self._errors.get(key, {}).values())
            if len(sizes) >= _FEWEST:
                at = math.ceil(COVERAGE * (len(sizes) + 1)) - 1
                return replace(found, factor=math.exp(sizes[at]), errors=len(sizes))
        return found

    def _estimate(
        self, target: Device, primitive: str, *, anchored: bool, code: Code | None = None
    ) -> Estimate | None:
        wanted = code or _code(target, primitive)
        anchors = _anchors(target, primitive, wanted) if anchored else []
        nearest = self._nearest(target, primitive, wanted, anchors)
        if nearest is None:
            return None
        differs, relation, other, by = nearest
        known = other.primitives[primitive]
        origin = other
        if by:
            ratio = _size(target.primitives[by], by) / _size(other.primitives[by], by)
        else:
            ratio = _clock_ratio(other, target)
            relative = self._relative(target, primitive, wanted, relation, other)
            if relative is not None:
                relation, origin, of = relative
                ratio = _size(origin.primitives[of], of) * _clock_ratio(origin, target)
                ratio /= _size(other.primitives[of], of)
        way = Way(bool(by), not differs, relation, _group(primitive))
        return Estimate(
            primitive,
            known.call_ns * ratio,
            known.byte_ns * ratio,
            origin,
            by or "clock",
            way,
            wanted or known.code,
        )

    def _nearest(
        self, target: Device, primitive: str, wanted: Code | None, anchors: Sequence[str]
    ) -> tuple[bool, int, Device, str] | None:
        """The nearest device that has a figure: whether its code is another, how it is related, and
        which of the anchors it has, or none."""
        best: tuple[tuple[bool, bool, int, float, str], Device, str] | None = None
        for other in self.devices:
            known = other.firm(primitive)
            if known is None or other.name == target.name:
                continue
            by = next((one for one in anchors if _comparable(target, other, primitive, one)), "")
            if not by and not target.clock_hz:
                continue
            differs = wanted is not None and known.code is not None and known.code != wanted
            away = abs(math.log(_clock_ratio(other, target)))
            rank = (differs, not by, _relation(target, other), round(away, 6), other.name)
            if best is None or rank < best[0]:
                best = (rank, other, by)
        if best is None:
            return None
        (differs, _, relation, *_), other, by = best
        return differs, relation, other, by

    def _relative(
        self,
        target: Device,
        primitive: str,
        wanted: Code | None,
        relation: int,
        stranger: Device,
    ) -> tuple[int, Device, str] | None:
        """A device that is nearer than the nearest with the figure and has another of the group,
        which the stranger has, too: its is scaled, and the stranger gives the ratio alone."""
        for of in GROUPS[_group(primitive)]:
            if of == primitive or stranger.firm(of) is None:
                continue
            found = self._nearest(target, of, wanted, ())
            if found is None or found[0] or found[1] >= relation:
                continue
            if stranger.primitives[of].code == stranger.primitives[primitive].code:
                return found[1], found[2], of
        return None

    @cached_property
    def _errors(self) -> dict[tuple[object, ...], dict[tuple[str, int], float]]:
        """The largest error of each device and group, under the keys of `Way.pools`."""
        found: dict[tuple[object, ...], dict[tuple[str, int], float]] = {}
        for target in self.devices:
            for primitive, truth in target.primitives.items():
                if primitive not in SCALED or not truth.is_firm:
                    continue
                for anchored in (True, False):
                    one = self._estimate(target, primitive, anchored=anchored, code=truth.code)
                    if one is None or one.way.anchored != anchored:
                        continue
                    size = abs(residual(truth, one))
                    for key in one.way.pools():
                        pool = found.setdefault(key, {})
                        of = (target.name, one.way.group)
                        pool[of] = max(size, pool.get(of, 0.0))
        return found


def residual(truth: Known, estimate: Estimate) -> float:
    """The logarithm of truth over estimate."""
    guess = Known(estimate.call_ns, estimate.byte_ns, "", "", None, 0, 0)
    return math.log(_size(truth, estimate.primitive) / _size(guess, estimate.primitive))


def _clock_ratio(origin: Device, target: Device) -> float:
    return (origin.clock_hz or 1) / (target.clock_hz or origin.clock_hz or 1)


def _size(known: Known, primitive: str) -> float:
    """A figure as one number: what a call takes, or a message of `MESSAGE` bytes."""
    return known.call_ns + (0 if primitive.startswith(PUBLIC_KEY) else MESSAGE * known.byte_ns)


def _group(primitive: str) -> int:
    return next(index for index, group in enumerate(GROUPS) if primitive in group)


def _anchors(target: Device, primitive: str, code: Code | None = None) -> list[str]:
    """What the target has of the same group, and of that code if it matters."""
    others = (one for one in GROUPS[_group(primitive)] if one != primitive)
    known = ((one, target.firm(one)) for one in others)
    return [
        one for one, of in known if of is not None and (of.code is None or code in {None, of.code})
    ]


def _comparable(target: Device, other: Device, primitive: str, anchor: str) -> bool:
    """Whether the other has the anchor too, of the same code as the figure."""
    theirs, ours = other.firm(anchor), target.firm(anchor)
    if theirs is None or ours is None:
        return False
    return theirs.code == other.primitives[primitive].code


def _code(target: Device, primitive: str) -> Code | None:
    """The code that a missing figure would be of: its group's, or of public keys the device's."""
    for anchor in _anchors(target, primitive):
        if target.primitives[anchor].code is not None:
            return target.primitives[anchor].code
    return target.code if primitive.startswith(PUBLIC_KEY) else Code.C


def _relation(one: Device, other: Device) -> int:
    if one.core is not None and one.core == other.core:
        return _CORE
    family = cores.family(one.core)
    return _FAMILY if family is not None and family == cores.family(other.core) else _OTHER
