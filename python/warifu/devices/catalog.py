# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The devices that there are, as their profiles say, for scaling and for lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from warifu import _core
from warifu.devices.figures import Code

ProfileText = tuple[str, str, str, str]
"""Kind, name, text and file, as `warifu._core` takes profiles."""

#: What a figure may rest on to be the base of another device's.
_FIRM = {"measured", "published", "emulated"}
PUBLIC_KEY = ("ecdh.", "sign.", "verify.")


@dataclass(frozen=True)
class Known:
    """A primitive of a device."""

    call_ns: float
    byte_ns: float
    kind: str
    source: str
    code: Code | None
    low_ns: float
    high_ns: float
    """The ends of its law, where it is a band."""

    @property
    def is_firm(self) -> bool:
        """Whether somebody measured it."""
        return self.kind in _FIRM


@dataclass(frozen=True)
class Device:
    """A device's profile."""

    name: str
    description: str
    library: str | None
    core: str | None
    clock_hz: float | None
    code: Code | None
    ram: int | None = None
    flash: int | None = None
    stack_ram: int | None = None
    stack_flash: int | None = None
    primitives: dict[str, Known] = field(default_factory=dict)

    def firm(self, primitive: str) -> Known | None:
        """A figure that somebody measured."""
        known = self.primitives.get(primitive)
        return known if known is not None and known.is_firm else None

    def evidence(self, primitives: Iterable[str]) -> str:
        """The weakest kind among these, or `none`."""
        kinds = [self.primitives[one].kind for one in primitives if one in self.primitives]
        order = ("assumed", "published", "simulated", "emulated", "measured")
        return min(kinds, key=order.index, default="none")


def devices(profiles: Iterable[ProfileText]) -> list[Device]:
    """Every device, in the order of the profiles. Raises `_core.WarifuError`."""
    return [device(name, text, file) for kind, name, text, file in profiles if kind == "device"]


def device(name: str, text: str, file: str) -> Device:
    """A device from its profile's text. Raises `_core.WarifuError`."""
    view = _core.device(name, text, file)
    code = Code(view["code"]) if view["code"] else None
    primitives = {
        primitive: _known(primitive, one) for primitive, one in view["primitives"].items()
    }
    return Device(
        view["name"],
        view["description"],
        view["library"],
        view["core"],
        view["clock_hz"],
        code,
        view["ram"],
        view["flash"],
        view["stack_ram"],
        view["stack_flash"],
        primitives,
    )


def _known(primitive: str, cost: _core.PrimitiveCost) -> Known:
    call_ns: float = cost["median_ns"]
    byte_ns = cost["per_byte_ns"]
    low_ns: float = cost["min_ns"]
    high_ns: float = cost["max_ns"]
    if primitive == "instruction":
        # The core has its time, which may be finer than 1 ns, as that of a byte.
        call_ns, byte_ns = byte_ns, 0.0
        low_ns = high_ns = call_ns
    code = Code(cost["code"]) if cost["code"] else None
    return Known(call_ns, byte_ns, cost["kind"], cost["source"], code, low_ns, high_ns)
