# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A key in the virtual SIM: real TLS whose CertificateVerify the card signs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support import needs
from support.laboratory import make_case
from support.paths import ROOT
from warifu.lab.card import Card, StandIn
from warifu.lab.case import Cell
from warifu.lab.cell import Bench, Settings
from warifu.lab.drivers import why_not_measurable
from warifu.lab.errors import LabError
from warifu.lab.https.driver import make_pki
from warifu.lab.store import Part

pytestmark = needs.root

TIMING = ROOT / "profiles" / "cards" / "iot-safe-sakomoto.toml"
SIM, AGENT = StandIn(TIMING), StandIn(TIMING, agent=True)

#: No signature of the profile is faster: the least of its law for C_Sign alone, ms.
LEAST_SIGNATURE_MS = 454.2
#: Nor any opening of a session: the least of the laws of VERIFY, SELECT and GET DATA, ms.
LEAST_OPENING_MS = 35.4 + 22.0 + 9.1


def part(case: Cell, trials: int) -> Part:
    return Part(case.case_id, 0, trials, 5)


def establishments_ms(stand_in: StandIn, *, session_open: bool, trials: int = 2) -> list[float]:
    """Of connections with a key in the SIM."""
    case = make_case(key_store__profile="sim", key_store__session_open=session_open)
    with Bench(Settings(late_fraction_max=1.0), {"sim": stand_in}) as bench:
        result = bench.run(case, part(case, trials), lambda: False)
    assert result is not None
    assert not any(result.trials.columns["failed"])
    return [ns / 1e6 for ns in result.trials.columns["establishment_ns"]]


def test_card_session_per_connection() -> None:
    times = establishments_ms(SIM, session_open=False)
    assert min(times) > LEAST_SIGNATURE_MS + LEAST_OPENING_MS


def test_open_session_or_agent_leaves_the_signature_only() -> None:
    # The SIM's stalls lie in opening a session; a signature never took 600 ms.
    for stand_in, session_open in ((SIM, True), (AGENT, False)):
        times = establishments_ms(stand_in, session_open=session_open)
        assert min(times) > LEAST_SIGNATURE_MS


def test_resumed_connections_do_not_use_the_card() -> None:
    """The card is gone after the first connections; those that resume do not miss it."""
    case = make_case(key_store__profile="sim", tls__session="psk_dhe_ke")
    with Bench(Settings(late_fraction_max=1.0), {"sim": SIM}) as bench:
        result = bench.run(case, part(case, 3), lambda: False)
    assert result is not None
    times = [ns / 1e6 for ns in result.trials.columns["establishment_ns"]]
    assert max(times) < LEAST_SIGNATURE_MS


def test_card_and_agent_are_stopped(tmp_path: Path) -> None:
    make_pki(tmp_path / "pki", "ecdsa_secp256r1", 1)
    card = Card(tmp_path / "card", AGENT, tmp_path / "pki" / "client.key", 1)
    with card:
        card.check()
        pids = [process.pid for process in card.processes]
        assert len(pids) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_card_that_ends_during_a_run(tmp_path: Path) -> None:
    make_pki(tmp_path / "pki", "ecdsa_secp256r1", 1)
    with Card(tmp_path / "card", SIM, tmp_path / "pki" / "client.key", 1) as card:
        (process,) = card.processes
        os.kill(process.pid, 9)
        process.wait(5.0)
        with pytest.raises(LabError, match="warifu-card-server ended during the run"):
            card.check()


def test_key_store_without_stand_in_or_with_rsa() -> None:
    sim = make_case(key_store__profile="sim")
    assert "names no virtual card" in (why_not_measurable(sim) or "")
    assert why_not_measurable(sim, {"sim"}) is None
    rsa = make_case(key_store__profile="sim", tls__certificate="rsa-2048")
    assert "is on P-256" in (why_not_measurable(rsa, {"sim"}) or "")
