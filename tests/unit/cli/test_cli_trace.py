# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`warifu trace`: what happens in a case, without a file or of one in a study."""

from __future__ import annotations

from pathlib import Path

from support.commands import DEVICE, STUDY, Run, one_line
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
