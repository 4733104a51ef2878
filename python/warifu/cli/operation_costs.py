# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu trace --costs`: what each operation of a case costs, and by what, as text."""

from __future__ import annotations

from typing import Any

_NAME = 34
"""Columns that an operation's name takes, or a primitive's with its indent."""
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))


def text(costs: list[dict[str, Any]]) -> str:
    """The costs of `warifu._core.operation_costs`, a line for each operation and each primitive
    that one was lowered to."""
    lines: list[str] = []
    device = None
    for cost in costs:
        role = cost["operation"].split(".")[0]
        if (role, cost["device"]) != device:
            device = role, cost["device"]
            lines += ["", f"{role} {cost['device']}"] if lines else [f"{role} {cost['device']}"]
        lines += _operation(cost)
    found = [cost for cost in costs if "error" not in cost]
    lowered = [cost for cost in found if cost["source"] == "recipe"]
    lines.append("")
    lines.append(
        f"{len(found) - len(lowered)} by a figure of their own, {len(lowered)} by a recipe, "
        f"{len(costs) - len(found)} without a cost"
    )
    lines.append("means with warm caches")
    lines += _to_add(costs)
    return "\n".join(lines) + "\n"


def _operation(cost: dict[str, Any]) -> list[str]:
    times = f" x{cost['count']}" if cost["count"] > 1 else ""
    name = f"  {cost['operation'].partition('.')[2]}{times}"
    if "error" in cost:
        missing = [f"    {primitive}" for primitive in cost["missing"]]
        why = "lacks" if missing else "no figure and no recipe"
        return [f"{name:{_NAME}}    no cost  {why}", *missing]
    by = {"own": "own figure", "primitive": "its primitive"}.get(cost["source"])
    lines = [_line(name, cost["warm_ns"], by or f"recipe of {cost['recipe']}")]
    if cost["source"] == "own":
        return lines
    for part in cost["parts"]:
        lines.append(_line(f"    {part['primitive']}", part["warm_ns"], _counted(part)))
    if cost["remainder_ns"]:
        share = cost["remainder_ns"] / cost["warm_ns"] if cost["warm_ns"] else 0.0
        lines.append(_line("    instructions", cost["remainder_ns"], f"{share:.1%} of it"))
    return lines


def _counted(part: dict[str, Any]) -> str:
    if part["figure"] == "instruction":
        return f"as {part['bytes']:,.0f} instructions"
    words = []
    if part["calls"]:
        words.append(f"{part['calls']:,} call{'s' if part['calls'] > 1 else ''}")
    if part["bytes"]:
        words.append(f"{part['bytes']:,.0f} B")
    if part["figure"] != part["primitive"]:
        # The algorithm stands at the beginning of the line already.
        family, _, algorithm = part["figure"].rpartition(".")
        same = part["primitive"].endswith(f".{algorithm}")
        words.append(f"by {family if same else part['figure']}")
    return ", ".join(words)


def _to_add(costs: list[dict[str, Any]]) -> list[str]:
    """What would give the rest a cost, whole."""
    lines = []
    for device in dict.fromkeys(cost["device"] for cost in costs):
        mine = [cost for cost in costs if cost["device"] == device and "error" in cost]
        primitives = dict.fromkeys(name for cost in mine for name in cost["missing"])
        if primitives:
            lines += ["", f"add to the profile of {device}:"]
            lines += [f'  [[primitive]] name = "{name}"' for name in primitives]
        others = [cost for cost in mine if not cost["missing"]]
        # One says what the matter is for all.
        lines += [f"\n{others[0]['error']}"] if others else []
    return lines


def _line(name: str, ns: float, what: str) -> str:
    return f"{name:{_NAME}} {_time(ns):>9}  {what}".rstrip()


def _time(ns: float) -> str:
    """Three significant digits."""
    scale, unit = next(((scale, unit) for scale, unit in _UNITS if ns >= scale), (1.0, "ns"))
    value = ns / scale
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f} {unit}"
