# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What was asked, in a line: device, server, key store, link and stack, and what none of them
holds."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from warifu.answer import words
from warifu.answer.axes import Axis, Grid, word
from warifu.compare.require import LONGEST_BODY_BYTES
from warifu.results import PREDICTED, Results, Setting

#: The machine that a study is about where it names no other (crates/core/model).
_THIS_HOST = "this-host"
#: Of so many values of a setting all are named.
_NAMED = 4
#: What the receive window that Linux begins with takes, whoever reads and when
#: (`tcp_select_initial_window`); the simulated TCP leaves out how it grows, and shrinks by what
#: the program has not read yet.
_RECEIVE_WINDOW_BYTES = 64_000


def question(results: Results, grid: Grid) -> str:
    """`HTTPS with TLS 1.2 or 1.3, mutual authentication; device gr-peach; ...`."""
    said = {words.key_of(path) for path in _said(results.manifest)}
    stand_in, _ = stands_in(results.manifest)
    varied = {words.key_of(axis.path): axis for axis in grid.axes}
    parts = [_stack(results, varied)]
    for name in ("device", "server"):
        shown = _values(results, name, varied)
        if shown:
            here = shown == stand_in
            why = " (stands in for this machine)" if here else _default(name, shown, said)
            parts.append(f"{name} {shown}{why}")
    store = _values(results, "key_store", varied)
    if store:
        parts.append(f"key store {store}")
    link = f"link {_values(results, 'link', varied)}"
    if rtt := _values(results, "rtt_ns", varied, "rtt"):
        link += f", RTT {rtt}"
    if (loss := _values(results, "loss_mean", varied, "loss")) and loss != "0 %":
        link += f", loss {loss}"
    parts.append(link)
    named = {"device", "server", "key_store", "link", "rtt", "loss"} | _OF_STACK
    rest = [axis for key, axis in varied.items() if key not in named]
    parts += [f"{words.key_of(axis.path)} {_either(list(axis.values))}" for axis in rest]
    parts += _other_settings(results.manifest, grid)
    return "; ".join(parts) + "."


def _other_settings(manifest: Mapping[str, Any], grid: Grid) -> list[str]:
    """What else the study or a flag sets that is not so by default."""
    varied = {axis.path for axis in grid.axes}
    settings = {path: value for path, value in _said(manifest).items() if path not in varied}
    shown = {"device", "server", "key_store", "link", "rtt", "loss"} | _OF_STACK
    parts = []
    for path, value in settings.items():
        key = words.key_of(path)
        if path == "stack" and value.startswith("dds/"):
            # `dds/warifu/AES-128-GCM`
            parts += [f"crypto_aead {one}" for one in value.split("/")[2:] if one != _DDS_AEAD]
        if path in _HEAD or path.partition(".")[0] in {"vary", "require"} or key in shown:
            continue
        if value and value not in _DEFAULTS.get(key, ()):
            parts.append(words.noun(path, value) if key in _SAID_BY_NOUN else f"{key} {value}")
    return parts


#: What a study sets that is no setting of a case.
_HEAD = {"name", "seed", "trials", "predict_trials"}
_DDS_AEAD = "AES-256-GCM"
#: What cases have where nobody says otherwise (crates/core/model), in the words of studies; a test
#: holds them to it.
_DEFAULTS: dict[str, tuple[str, ...]] = {
    "group": ("secp256r1", "P-256"),
    "certificate": ("ecdsa_secp256r1",),
    "chain_length": ("1",),
    "nagle": ("false",),
    "response_body": ("846 B",),
    "request_body": ("0 B",),
    "concurrent": ("1",),
    "session_open": ("true",),
    "key_share": ("fresh",),
    "workers": ("1",),
    "path": ("/",),
    "crypto_aead": (_DDS_AEAD,),
    "kind": ("request",),
}
_SAID_BY_NOUN = {"nagle", "session_open", "concurrent"}


def stands_in(manifest: Mapping[str, Any]) -> tuple[str, str]:
    """The machine that stands in for this one, and the warning that says so; empty where none."""
    found = manifest.get("stands_in")
    if not isinstance(found, dict):
        return "", ""
    return str(found.get("name", "")), str(found.get("warning", ""))


_OF_STACK = {"stack", "protocol", "tls", "session", "authentication", "message_type"}
_OF_STACK |= {"middleware", "crypto"}


def _stack(results: Results, varied: dict[str, Axis]) -> str:
    if "stack" in varied:
        return _either(list(varied["stack"].values))
    protocols = [words.protocol(str(one)) for one in _column(results, "protocol")]
    shown = _either(protocols)
    if middleware := _column(results, "dds_middleware"):
        names = [words.middleware(str(one)) for one in middleware]
        plugins = _values(results, "dds_crypto", varied, "crypto").replace("none", "no security")
        return f"{shown}, {_either(names)}, plugin {plugins}"
    if kinds := _values(results, "coap_type", varied, "message_type"):
        shown += f" {kinds}"
    if versions := _values(results, "tls", varied):
        shown += f" with TLS {versions}"
        sessions = _values(results, "session", varied)
        if "session" not in varied:
            # `resumed` is another in each version of TLS.
            sessions = _said(results.manifest).get("stack.session") or sessions
        if sessions and sessions != "full":
            shown += f", session {sessions}"
        if who := _values(results, "authentication", varied):
            shown += f", {who} authentication"
    return shown


def _default(name: str, shown: str, said: set[str]) -> str:
    if name in said:
        return " (this machine)" if shown == _THIS_HOST else ""
    return " (this machine, the default)" if shown == _THIS_HOST else " (the default)"


def _said(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The settings that the study or a flag speaks of, with their values as written; those that
    were varied without, unless all cases that are left have the same."""
    study = manifest.get("study") or {}
    try:
        table = tomllib.loads(str(study.get("text") or ""))
    except (tomllib.TOMLDecodeError, RecursionError):
        # A question without a file is its flags, which are looked at below.
        table = {}
    said = dict(_flat(table))
    said |= {str(path): str(value) for path, value in study.get("overrides") or []}
    chosen: dict[str, set[str]] = {}
    for case in manifest.get("cases") or []:
        for path, value in case["choices"]:
            chosen.setdefault(str(path), set()).add(str(value))
    for path, _ in manifest.get("vary") or []:
        values = chosen.get(str(path), set())
        said[str(path)] = values.pop() if len(values) == 1 else ""
    return said


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """The settings of a study by dotted path."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        elif isinstance(value, bool):
            yield f"{above}{key}", str(value).lower()
        else:
            yield f"{above}{key}", str(value)


def _values(results: Results, column: str, varied: dict[str, Axis], key: str | None = None) -> str:
    """What the cases have of a setting: as the study writes it where it was varied."""
    axis = varied.get(key or column)
    if axis is not None:
        return _either(list(axis.values))
    return _either([word(column, one) for one in _column(results, column)])


def _column(results: Results, column: str) -> list[Setting]:
    found = dict.fromkeys(settings.get(column) for settings in results.cases.values())
    known: list[Setting] = [one for one in found if one is not None]
    # A sweep's cases are stored in no order of their numbers.
    return sorted(known, key=_size) if all(map(math.isfinite, map(_size, known))) else known


def _size(value: Setting) -> float:
    """What a number is ordered by; not finite for what is none."""
    return float(value) if isinstance(value, int | float) else math.nan


def _either(found: list[str]) -> str:
    if len(found) > _NAMED:
        return f"{found[0]} to {found[-1]} ({len(found)} values)"
    return words.listed(found, "or")


def not_included(results: Results, names: Iterable[str]) -> list[str]:
    """What the links of these names leave out, as their profiles say it."""
    texts: dict[str, list[str]] = {}
    wanted = set(names)
    for profile in results.manifest.get("profiles") or []:
        if profile.get("kind") != "link" or profile.get("name") not in wanted:
            continue
        try:
            said = tomllib.loads(str(profile.get("text") or "")).get("not_included")
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
        said = said.get("value") if isinstance(said, dict) else said
        if isinstance(said, str) and said.strip():
            texts.setdefault(said.strip(), []).append(str(profile["name"]))
    return [f"Not included over {words.listed(links)}: {text}" for text, links in texts.items()]


def long_payloads(results: Results) -> list[str]:
    """What a prediction of long payloads leaves out."""
    if results.half != PREDICTED:
        return []
    https = [one for one in results.cases.values() if one.get("protocol") == "https"]
    said = []
    if any(_length(one, "request_body") > _RECEIVE_WINDOW_BYTES for one in https):
        said.append(
            "Less certain: requests of more than 64 kB. The server's receive window is not "
            "simulated, and where the server reads late they take a round trip more."
        )
    if any(_length(one, "response_body") > LONGEST_BODY_BYTES for one in https):
        said.append(
            "Not included: the end of responses of more than 128 KiB; times and bytes end with "
            "the first byte."
        )
    return said


def _length(settings: Mapping[str, Setting | None], column: str) -> int:
    value = settings.get(column)
    return value if isinstance(value, int) else 0
