# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The generated Case: current with the Rust types, and strict about what it reads."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from support.laboratory import MUTUAL_13
from support.scripts import script
from warifu import _core, case, study
from warifu.case import Case, CoapStack, HttpsStack, NoLoss
from warifu.typed_json import JsonError


def generator() -> Any:  # noqa: ANN401
    """scripts/generate_case.py as a module."""
    return script("scripts/generate_case.py")


def test_generated_module_is_current() -> None:
    script = generator()
    assert script.MODULE.read_text() == script.module(json.loads(script.SCHEMA.read_text()))


def text(path: str = "", value: object = None) -> str:
    """A mutual TLS 1.3 case, with the value at a dotted path replaced."""
    whole = copy.deepcopy(MUTUAL_13)
    if path:
        *folders, last = path.split(".")
        place = whole
        for name in folders:
            place = place[name]
        place[last] = value
    return json.dumps(whole)


def test_case_of_https() -> None:
    read = Case.from_json(text())
    assert isinstance(read.stack, HttpsStack)
    assert (read.stack.tls.version, read.stack.tcp.initcwnd) == ("1.3", 10)
    assert (read.link.loss, read.link.jitter, read.link.rate_up) == (NoLoss("none"), (), None)
    assert read.server.workers == 1
    assert Case.from_json(text("server.workers", 8)).server.workers == 8


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("link.rtt", "60 ms", "link.rtt is '60 ms': expected int"),
        ("link.rtt", True, "link.rtt is True: expected int"),
        ("link.jitter", [0, 1.5], "link.jitter[1] is 1.5: expected int"),
        ("link.mtu", None, "link.mtu is None: expected int"),
        ("link.colour", "red", "link.colour is unknown: expected profile, rtt"),
        ("link.loss", {"kind": "bursts"}, "link.loss.kind is 'bursts': expected 'none' or"),
        ("link.loss", {"kind": "independent"}, "link.loss.probability is missing"),
        ("stack.protocol", "gopher", "stack.protocol is 'gopher': expected 'https' or"),
        ("stack.tls.version", "1.4", "stack.tls.version is '1.4': expected '1.2' or '1.3'"),
        ("version", 1, "version is 1: this program reads cases of version"),
    ],
)
def test_mistakes_name_the_key(path: str, value: object, words: str) -> None:
    with pytest.raises(JsonError) as caught:
        Case.from_json(text(path, value))
    assert str(caught.value).startswith(words)


def test_text_that_is_no_case() -> None:
    for wrong in ("", "[]", "{}", "null"):
        with pytest.raises(JsonError):
            Case.from_json(wrong)


STUDIES = """name = "every-kind"
device = "gr-peach"
server = "gr-peach"
[vary]
"link.loss" = [0, "2 %", { good_to_bad = 0.01, bad_to_good = 0.3, loss_good = 0, loss_bad = 0.5 }]
"stack.tls" = ["1.2", "1.3"]
"stack.session" = ["full", "resumed"]
"""


def test_cases_of_the_core_are_read() -> None:
    profiles = list(study.profile_texts(study.profile_folders()))
    views = _core.Study.parse(STUDIES, "every-kind.toml", profiles).cases
    kinds = {Case.from_json(view.json).link.loss.kind for view in views}
    assert kinds == {"none", "independent", "gilbert_elliott"}
    assert {json.loads(view.json)["version"] for view in views} == {case.VERSION}


def test_stack_without_tls() -> None:
    assert "tls" not in CoapStack.__dataclass_fields__
