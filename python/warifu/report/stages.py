# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Where the time goes: one stacked bar a case, its parts in the order of a connection's life."""

from __future__ import annotations

from collections.abc import Sequence

from warifu.report.figures import ended_only, ms, number
from warifu.report.inputs import finest_ns
from warifu.report.markup import text
from warifu.results import Results, Setting, duration

#: Names for people, in the order of warifu_model::Stage.
STAGES = {
    "client_compute": "client computing",
    "client_system": "client system",
    "server_compute": "server computing",
    "server_system": "server system",
    "key_store": "key store",
    "resource_queue": "waiting for a busy resource",
    "propagation": "propagation",
    "serialisation": "serialisation",
    "link_queue": "link queue",
    "loss_recovery": "loss recovery",
    "send_wait": "send window",
    "idle": "idle",
}
_SHORT = {"client_compute": "client", "server_compute": "server", "resource_queue": "busy"}
#: A part narrower than this share of the widest bar has no room for a word.
_WORD_FROM = 0.17
_NUMBER_FROM = 0.05
#: A stage of a smaller share has no words below its bar.
_WORDS_FROM = 0.01


def waterfall(results: Results, cases: Sequence[str], slowest: bool) -> str:
    """Bars of mean stage times, grouped by round-trip time so that each group has its scale.

    With ``slowest`` of the slowest trials alone: where the tail's time goes.
    """
    found = {case_id: results.stages(case_id, slowest) for case_id in cases}
    found = {case_id: stages for case_id, stages in found.items() if stages}
    if not found:
        return ""
    groups: dict[Setting, list[str]] = {}
    for case_id in found:
        groups.setdefault(results.cases[case_id].get("rtt_ns"), []).append(case_id)
    parts = []
    for rtt, members in groups.items():
        scale = max(sum(found[case_id].values()) for case_id in members)
        several = len(groups) > 1
        title = f"RTT {duration(rtt)}, " if isinstance(rtt, int) and several else ""
        parts.append(f"<h3>{text(title)}full width {text(ms(scale))} ms</h3>")
        rows = "".join(
            _bar(
                results.label(case_id) or "the only case",
                found[case_id],
                scale,
                finest_ns(results.manifest, case_id),
                ended_only(results.failed_share(case_id)),
            )
            for case_id in members
        )
        parts.append(f'<table class="bars"><tbody>{rows}</tbody></table>')
    return "".join(parts)


def used_stages(results: Results, cases: Sequence[str]) -> list[str]:
    """The stages that take time in any of the cases, in their order."""
    seen = {stage for case_id in cases for stage, ns in results.stages(case_id).items() if ns > 0}
    return [stage for stage in STAGES if stage in seen]


def legend(stages: Sequence[str]) -> str:
    """Colour and hatching of each stage, with its name."""
    items = "".join(f'<li><i class="{one}"></i>{text(STAGES[one])}</li>' for one in stages)
    return f'<ul class="legend">{items}</ul>'


def _bar(label: str, stages: dict[str, float], scale: float, finest: float, hint: str) -> str:
    total = sum(stages.values())
    spans = []
    words = []
    small = 0.0
    for stage, name in STAGES.items():
        share = stages.get(stage, 0.0) / scale if scale else 0.0
        if share <= 0.0:
            continue
        amount = ms(stages[stage], finest_ns=finest)
        if not float(amount):
            amount = f"below {finest / 1e6:g}"
        percent = number(stages[stage] / total * 100, 0)
        said = f"{name} {amount} ms ({'below 1' if percent == '0' else percent} %)"
        if stages[stage] >= _WORDS_FROM * total:
            words.append(said)
        else:
            small += stages[stage]
        inside, style = "", stage
        if share >= _WORD_FROM:
            inside = f"{_SHORT.get(stage, name)} {amount}"
        elif share >= _NUMBER_FROM:
            inside = amount
        if not inside:
            style += " bare"
        title = text(said)
        spans.append(
            f'<span class="{style}" style="width:{share * 100:.2f}%" title="{title}">'
            f"{text(inside)}</span>"
        )
    if small > 0.0:
        words.append(f"others below 1 % each, together {number(small / total * 100, 1)} %")
    # The figures stand below the bar as well: who prints or taps cannot point at a part.
    of = f" ({hint})" if hint else ""
    alt = text(f"{label}{of}: {'; '.join(words)}")
    below = ", ".join(words) + of
    words_below = f'<div class="parts" aria-hidden="true">{text(below)}</div>'
    return (
        f'<tr><th scope="row">{text(label)}</th>'
        f'<td class="track"><div class="bar" role="img" aria-label="{alt}">{"".join(spans)}</div>'
        f"{words_below}</td>"
        f'<td class="total">{text(ms(total, finest_ns=finest))} ms</td></tr>'
    )
