# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Machine, versions, runs, how to repeat them, and what the results do not say."""

from __future__ import annotations

from typing import Any

from warifu.compare.gates import Verdict
from warifu.report import markup
from warifu.report.content import Content
from warifu.results import interruptions
from warifu.results.repeating import command as command_of


def provenance(content: Content) -> str:
    """Machine, versions, runs, and how to repeat them."""
    blocks = []
    for half in content.halves:
        rows = markup.definitions(_provenance(half.manifest))
        blocks.append(f"<div><h3>{half.half.capitalize()}</h3>{rows}</div>")
    study = content.main.manifest.get("study", {})
    commit = content.main.manifest.get("commit")
    before = f"git checkout {commit}\n" if commit else ""
    verb = "run" if len(content.halves) == 2 else "predict" if content.predicted else "measure"
    seed = content.main.manifest.get("seed")
    line = f"{before}{command(content, verb)}    # seed {seed}"
    body = (
        f'<pre>{markup.text(line)}</pre><div class="columns">'
        + "".join(blocks)
        + "</div>"
        + markup.folded(
            "The study as it was run", f"<pre>{markup.text(study.get('text', ''))}</pre>"
        )
    )
    return markup.section("repeat", "How to repeat this", body)


def command(content: Content, verb: str) -> str:
    """The command line that runs this study with a verb; what measures needs root."""
    return command_of(content.main.manifest, verb, content.program)


def _provenance(manifest: dict[str, Any]) -> dict[str, object]:
    machine = manifest.get("machine") or {}
    tcp = machine.get("tcp") or {}
    tools = manifest.get("tools") or {}
    dirty = " with changes" if manifest.get("dirty") else ""
    return {
        "run": manifest.get("run_id"),
        "began": manifest.get("started"),
        "ended": manifest.get("finished") or "not finished",
        "complete": "yes" if manifest.get("complete") else "no: some cases or trials are missing",
        "commit": f"{manifest.get('commit')}{dirty}" if manifest.get("commit") else "",
        "seed": manifest.get("seed"),
        "study SHA-256": manifest.get("study", {}).get("sha256"),
        "calibrated by": ", ".join(manifest.get("calibration_run_ids") or []),
        **{str(name): value for name, value in machine.items() if name != "tcp"},
        "TCP settings": ", ".join(f"{name} = {value}" for name, value in tcp.items()),
        # The namespace's default is not what the connections used: their routes pin it.
        "pinned by route": "; ".join(_routes(manifest)),
        **{str(name): value for name, value in tools.items()},
        "warnings": "; ".join(manifest.get("warnings") or []),
        "skipped": "; ".join(f"{k}: {v}" for k, v in (manifest.get("skipped") or {}).items()),
    }


def _routes(manifest: dict[str, Any]) -> list[str]:
    """What the routes of the measured cells pin, whatever the settings above say."""
    routes = [
        part.get("route") or {}
        for cell in (manifest.get("cells") or {}).values()
        for part in cell.get("parts") or []
    ]
    lines = [", ".join(f"{name} = {value}" for name, value in one.items()) for one in routes]
    return list(dict.fromkeys(line for line in lines if line))


def limits(content: Content) -> str:
    """What the result does not say."""
    items = []
    if content.predicted is None:
        items.append("There is no prediction, so nothing here says how close one comes.")
    if content.measured is None:
        items.append(
            "These simulated figures were not compared with a measurement: their error is unknown."
        )
    else:
        items.append(
            "Only the emulated link was between the two ends: no radio, no operator's network, no "
            "middlebox. Field error is unknown."
        )
        items.append(
            "Both ends ran on one machine: a device's own processor is represented by its profile "
            "alone."
        )
    items.append("Energy and memory are not predicted here, nor how a server behaves under load.")
    if content.evidence == "assumed":
        where = "see the table of inputs first."
        if not content.main.manifest["figures"]:
            where = (
                "a study of so many cases lists no inputs; predict one of its cases alone, and its "
                "report says which."
            )
        items.insert(0, f"Some inputs are assumed, without a source: {where}")
    comparison = content.comparison
    if comparison is not None and comparison.count(Verdict.UNDECIDED):
        items.append(
            "Undecided is neither good nor bad: the interval is wider than the gate. The table "
            "says about how many trials would decide."
        )
    items += interruptions(*content.halves)
    if skipped := (content.measured.manifest.get("skipped") if content.measured else None):
        items.append(f"{len(skipped)} cases were not measured; the machine table says why.")
    return markup.section("limits", "What this does not say", markup.bullets(items))
