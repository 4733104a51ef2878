# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu trace`: what happens in a case, without a file or of one in a study."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commands import DEVICE, STUDY, Run, one_line
from warifu.cli import screen
from warifu.cli.errors import OK, USAGE


def test_a_trace_needs_no_file(warifu: Run) -> None:
    code, out, err = warifu("trace", *DEVICE, "--stack", "https/tls1.3", "--rtt", "60 ms")
    assert (code, err) == (OK, "")
    assert out.startswith("HTTPS, TLS 1.3")
    assert "ClientHello" in out
    code, request, _ = warifu("trace", *DEVICE, "--request")
    assert request.startswith("GET / HTTP/1.1")


def test_a_case_is_chosen_by_number_or_label(warifu: Run, tmp_path: Path) -> None:
    (tmp_path / "three.toml").write_text(STUDY)
    assert warifu("trace", "three.toml", "--case", "3")[0] == OK
    assert warifu("trace", "three.toml", "--case", "rtt 60 ms")[0] == OK
    code, _, err = warifu("trace", "three.toml", "--case", "rtt")
    assert code == USAGE
    assert "names several cases; labels are such as: rtt 0 ms; rtt 60 ms" in one_line(err)


@pytest.mark.parametrize(
    "what", [("--timeline",), ("--timeline", "--quantile", "0.99"), ("--costs",)]
)
def test_what_is_long_goes_on_below_in_a_terminal_alone(
    warifu: Run, monkeypatch: pytest.MonkeyPatch, what: tuple[str, ...]
) -> None:
    # No board is calibrated for CoAP, which the costs say in a long line.
    stack = "coap" if "--costs" in what else "https/tls1.3"
    ends = ("--device", "nrf52840", "--server", "xeon-2-5-ghz-vm", "--link", "lte-m")
    question = (*ends, "--stack", stack, "--set", "predict_trials=50")
    if "--timeline" in what:
        code, _, err = warifu("predict", *question)
        assert code == OK, err
    code, whole, err = warifu("trace", *question, *what)
    assert code == OK, err
    assert max(map(len, whole.splitlines())) > 120
    for width in (80, 120):
        monkeypatch.setattr(screen, "columns", lambda _, width=width: width)
        out = warifu("trace", *question, *what)[1]
        assert 60 < max(map(len, out.splitlines())) <= width
        assert out.split() == whole.split()
