# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu calibrate token`: times a token's calls and writes a key-store profile from them."""

from __future__ import annotations

import datetime
import json
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warifu.calibrate import build, environment, profile, statistics, tailed, token_bench
from warifu.calibrate.errors import CalibrateError
from warifu.calibrate.profile import ProfileText
from warifu.calibrate.statistics import Statistics
from warifu.calibrate.tailed import TailedLaw
from warifu.calibrate.token_bench import OPENING, SIGNING, Plan, Trials
from warifu.files import replace_text
from warifu.lab import interruption

FOLDER = Path("profiles", "key-stores")
"""Where a profile of a key store is written by default, from the current folder."""

_BY = "warifu calibrate token"
_MARK = f"# Written by `{_BY}`"
_OURS = "Warifu"
"""What our own module says of its maker (crates/iotsafe/pkcs11/src/info.rs)."""
_SOFTWARE_TPM = ["SW", "TPM"]
"""The vendor string of libtpms, which swtpm runs; tpm2-pkcs11 has it as the token's model."""


@dataclass(frozen=True)
class Outcome:
    """What a calibration found and wrote."""

    path: Path
    run_id: str
    kind: str
    why_kind: str
    token: dict[str, Any]
    statistics: dict[str, Statistics]
    """By mode."""
    calls: dict[str, dict[str, Statistics]]
    """By mode and call."""
    card: dict[str, dict[str, float]]
    """By mode, of a card on the virtual clock: what it takes by itself (`Trials.card`)."""
    warnings: list[str]


def calibrate_token(
    plan: Plan,
    *,
    name: str | None = None,
    out: Path | None = None,
    folder: Path = FOLDER,
    others: Sequence[ProfileText] = (),
    kind: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Outcome:
    """Times a token and writes its profile.

    `name` is the profile's (by default the token's label), `out` its file (by default in
    `folder`, where it may hide none of `others`, all profiles that there are). `kind` is *measured*
    or *emulated*; by default what the token says decides.

    Raises CalibrateError, ToolMissing or OSError; nothing is overwritten then.
    """
    if name is not None:
        path = _path(name, out, folder)
        profile.refuse_foreign(path, _BY, "choose another --name or --out", _MARK)
        if out is None:
            profile.refuse_hiding("key_store", path, others, _MARK)
    run_id = _new_run_id()
    with interruption.deferred():
        trials = token_bench.run(plan, progress or (lambda done, total: None))
    name = name or slug(str(trials.token.get("label", "")))
    path = _path(name, out, folder)
    if out is None:
        profile.refuse_hiding("key_store", path, others, _MARK)
    found_kind, why = kind_of(trials.token, plan) if kind is None else (kind, "--kind says so")
    laws, warnings = laws_of(trials)
    text = profile_text(path.stem, trials, laws, plan, run_id, found_kind)
    _write(path, text)
    return Outcome(
        path,
        run_id,
        found_kind,
        why,
        trials.token,
        {mode: statistics.of(trials.sums(mode)) for mode in trials.calls},
        {
            mode: {call: statistics.of(times) for call, times in calls.items()}
            for mode, calls in trials.calls.items()
        },
        trials.card,
        warnings,
    )


def kind_of(token: dict[str, Any], plan: Plan) -> tuple[str, str]:
    """The kind of a token's times, and why.

    Our own module may stand before a virtual card, whose times a model gives. A reader, a modem and
    an agent do not say what is behind them, so only a person can call those times measured.
    """
    if plan.card is not None:
        return "simulated", "the card's timing model gave every time"
    slot, module = str(token.get("slot", "")), token.get("module", [""])[0]
    if module != _OURS:
        if str(token.get("model", "")).split() == _SOFTWARE_TPM:
            return "emulated", "the TPM is a software TPM"
        return "measured", "another maker's module answered"
    if slot.startswith("unix:"):
        return "emulated", "the virtual card answered"
    return "emulated", (
        f"the card behind {slot or 'our module'} may be a virtual one; "
        "if it is real, say --kind measured"
    )


def laws_of(trials: Trials) -> tuple[dict[str, TailedLaw], list[str]]:
    """A law for each of the five calls, and what is to be known of them.

    The signature's calls are those of a session that is kept, the others those of a new one. What
    the first signature of a session takes longer is paid only with the others, so it goes to
    C_FindObjects, the last of them.
    """
    kept, new = trials.calls["sign_only"], trials.calls["total"]
    laws = {call: tailed.fit(new[call]) for call in OPENING}
    laws |= {call: tailed.fit(kept[call]) for call in SIGNING}
    first, later = (sum(calls[call] for call in SIGNING) for calls in (new, kept))
    extra = statistics.of(np.asarray(first) - float(np.median(later))).p50
    warnings = []
    if extra.low > 0:
        laws["C_FindObjects"] = laws["C_FindObjects"].shifted(extra.value)
        warnings.append(
            f"the first signature of a session takes {extra.value / 1e6:.3g} ms more than later "
            "ones; the profile counts that in C_FindObjects"
        )
    return laws, warnings


def profile_text(
    name: str, trials: Trials, laws: dict[str, TailedLaw], plan: Plan, run_id: str, kind: str
) -> str:
    """The profile, TOML."""
    token = trials.token
    what = " ".join(str(part) for part in (token["manufacturer"], token["model"]) if part)
    description = f"{what}, token {token['label']}, ECDSA P-256"
    maker, library, version = token["module"]
    here = environment.machine()
    machine = here.get("processor", "unknown processor")
    if here["build"] != build.RELEASE:
        machine += f", {here['build']} build"
    if plan.card is not None:
        where = f"on the virtual clock, card profile {plan.card.stem}, seed {plan.seed}"
    else:
        where = f"through {plan.module.name if plan.module else ''} ({maker} {library} {version})"
    source = f"warifu calibrate token, n = {plan.trials}, token {token['label']} {where}; {machine}"
    lines = [
        "# SPDX-License-Identifier: Apache-2.0 OR MIT",
        f"{_MARK}: ECDSA P-256 in a new session (C_OpenSession, C_Login,",
        "# C_FindObjects) and in one that is kept (C_SignInit, C_Sign).",
        f"name = {json.dumps(name)}",
        f"description = {json.dumps(description)}",
        f"source = {json.dumps(source)}",
        f"kind = {json.dumps(kind)}",
        f"run_id = {json.dumps(run_id)}",
        "",
        "[call]",
        *(f"{call} = {laws[call].toml()}" for call in (*OPENING, *SIGNING)),
    ]
    return "\n".join(lines) + "\n"


def slug(label: str) -> str:
    """A profile's name from a token's label.

    >>> slug("My Token (1)")
    'my-token-1'
    """
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-") or "token"


def _path(name: str, out: Path | None, folder: Path) -> Path:
    if out is None and slug(name) != name:
        raise CalibrateError(
            f"--name {name}: expected lower-case letters, digits and hyphens, such as {slug(name)}"
        )
    path = out or folder / f"{name}.toml"
    if path.suffix != ".toml":
        raise CalibrateError(f"{path}: expected a name that ends with .toml")
    return path


def _write(path: Path, text: str) -> None:
    profile.refuse_foreign(path, _BY, "choose another --name or --out", _MARK)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, text)


def _new_run_id() -> str:
    now = datetime.datetime.now(datetime.UTC)
    return f"token-{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
