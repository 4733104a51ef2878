# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The protocols that the lab runs, and which cases it can."""

from __future__ import annotations

from collections.abc import Collection

from warifu.lab.case import SOFTWARE, THIS_HOST, Cell
from warifu.lab.coap.driver import CoapDriver
from warifu.lab.dds.driver import DdsDriver
from warifu.lab.driver import Driver
from warifu.lab.errors import LabError
from warifu.lab.https.driver import HttpsDriver

DRIVERS: dict[str, Driver] = {"https": HttpsDriver(), "coap": CoapDriver(), "dds": DdsDriver()}
"""By the protocol of a stack."""

LEAST_MTU = 576
"""`Link::LEAST_MTU` of crates/core/model, which says why."""


def driver_of(cell: Cell) -> Driver:
    """The driver of a case. Raises LabError if there is none."""
    protocol = cell.case.stack.protocol
    if protocol not in DRIVERS:
        raise LabError(f"stack.protocol is {protocol}: the lab runs {', '.join(DRIVERS)}")
    return DRIVERS[protocol]


def why_not_measurable(cell: Cell, stand_ins: Collection[str] = ()) -> str | None:
    """Why the lab cannot run a case, with the fix; None if it can.

    The lab's two machines are both this one; its key store is the client's own or one that a
    virtual card stands in for.
    """
    case, key_store = cell.case, cell.case.key_store.profile
    for key, name in (("device", case.device.profile), ("server", case.server.profile)):
        if name != THIS_HOST:
            return (
                f"{key} is {name}: the lab's {key} is this machine; "
                f'only `{key} = "{THIS_HOST}"` can be measured here'
            )
    if key_store != SOFTWARE and key_store not in stand_ins:
        return (
            f"key_store is {key_store}: its profile names no virtual card that stands in for "
            f'it; add [stand_in] card = "NAME" to the profile, or choose key_store = "{SOFTWARE}"'
        )
    if case.pattern.concurrent != 1:
        return (
            f"pattern.concurrent is {case.pattern.concurrent}: the lab's connections do not wait "
            "for one another; only `concurrent = 1` can be measured"
        )
    if case.server.workers != 1:
        return (
            f"server.workers is {case.server.workers}: the lab's server has one worker on a "
            "processor of its own; only `server.workers = 1` can be measured"
        )
    if case.link.mtu < LEAST_MTU:
        return f"link.mtu is {case.link.mtu}: expected at least {LEAST_MTU}, as in a study"
    if case.stack.protocol not in DRIVERS:
        return f"stack.protocol is {case.stack.protocol}: the lab runs {', '.join(DRIVERS)}"
    return DRIVERS[case.stack.protocol].why_not_measurable(cell, stand_ins)
