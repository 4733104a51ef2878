# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The arithmetic of `warifu reproduce dds-offload`, the model of calls and the model of time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.dds_sends import sends_of
from support.paths import ROOT
from warifu import _core
from warifu.dds.sending import missing
from warifu.report.table import Format, render
from warifu.reproduce import dds_offload, dds_offload_tables, papers
from warifu.reproduce.dds_offload import Judges, Seen, fit, offloaded_ms, pays_from, saving
from warifu.reproduce.dds_sends import Sends, calls, summary

FIGURES = papers.load("dds_offload").published


def _accelerator(name: str) -> dict[str, Any]:
    path = ROOT / "profiles" / "accelerators" / f"{name}.toml"
    return _core.accelerator(name, path.read_text(), str(path))


def _seen(*terms: float) -> Seen:
    """A host that does as the model says."""
    model = dds_offload.Model(*(terms or (20_000, 9_000, 0.5)))
    secured = {size: sends_of(size, round(model.crypto_ns(size))) for size in dds_offload.PAYLOADS}
    return Seen(secured, secured)


def _words(seen: Seen) -> dict[str, str]:
    return {claim.id: str(word) for claim, word, _ in Judges(seen).verdicts().rows}


@pytest.mark.parametrize(
    ("size", "fragments", "encrypted"),
    # As Fast DDS 2.9.1 was seen to do it.
    [(16, 1, 128), (64_000, 1, 128_096), (65_000, 2, 130_200), (1_000_000, 16, 2_001_488)],
)
def test_calls_of_a_message(size: int, fragments: int, encrypted: int) -> None:
    found = calls(size)
    assert (found.fragments, found.encryptions, found.macs) == (fragments, 3 * fragments, fragments)
    assert found.bytes == encrypted
    assert found.with_generator == 11 * fragments


def test_the_page_has_the_models_counts() -> None:
    text = (ROOT / "docs" / "reference" / "dds.md").read_text()
    _, _, part = text.partition("\n### Offloading\n")
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if "B |" in line]
    assert len(rows) == 5
    for size, *cells in rows:
        found = calls(int(size.removesuffix(" B").replace(",", "")))
        model = (
            found.fragments, found.encryptions, found.macs, found.with_generator, found.bytes
        )  # fmt: skip
        assert cells == [f"{one:,}" for one in model], size


def test_the_page_has_what_the_papers_circuit_saves_behind_a_bus() -> None:
    known = {dds_offload.ON_BUS: _accelerator(dds_offload.ON_BUS)}
    verdicts = Judges(Seen(accelerators=known, missing={dds_offload.FAST: "-"})).verdicts()
    rows = {claim.id: outcome for claim, _, outcome in verdicts.rows}
    text = " ".join((ROOT / "docs" / "reference" / "dds.md").read_text().split())
    for claim, of in (("crypto.saving", "of the encryption"), ("node.saving", "of the whole")):
        low, high = rows[claim].predicted.removesuffix(" %").split(" to ")
        assert f"{float(low):.0f} to {float(high):.0f} % {of}" in text


def test_the_papers_own_figures_follow_but_for_the_range() -> None:
    words = _words(Seen(missing={dds_offload.FAST: "needs root"}))
    for claim in ("core", "crypto.saving", "node.saving", "node.ms"):
        assert words[claim] == "reproduced", claim
    assert words["range"] == "not reproduced"
    assert words["figure1"] == "not run here"


@pytest.mark.parametrize(
    ("key", "value", "claim"),
    [
        ("crypto_saving", 0.874, "crypto.saving"),
        ("node_saving", 0.420, "node.saving"),
        ("node_ms", 58.0, "node.ms"),
        ("core_mb_s", 190, "core"),
    ],
)
def test_a_figure_that_does_not_follow_is_found(key: str, value: float, claim: str) -> None:
    judges = Judges(Seen())
    judges.figures = {**FIGURES, key: value}
    outcome = judges.all()[claim]()
    assert isinstance(outcome, papers.Outcome)
    assert outcome.holds is False


def test_the_paper_recalculated_with_its_own_circuit() -> None:
    """Its profile without set-up and bus gives the paper's 87.2 and 41.0 %."""
    now = dds_offload.software(FIGURES)
    assert now.crypto == pytest.approx(44.39, abs=0.01)
    once = offloaded_ms(_accelerator("fpga-387-slices"), 1_000_000, 1, 1)
    assert saving(now.crypto, once)[0] == pytest.approx(0.872, abs=0.001)
    whole = (now.other + once[0], now.other + once[1])
    assert saving(now.total, whole)[0] == pytest.approx(0.410, abs=0.001)


def test_set_up_bus_and_passes_take_from_what_is_saved() -> None:
    now = dds_offload.software(FIGURES)
    found = calls(1_000_000)
    full = offloaded_ms(
        _accelerator("fpga-387-slices-axi"), 1_000_000, 3, found.encryptions + found.macs
    )
    low, high = saving(now.crypto, full)
    assert low < high < 0.872


def test_a_call_pays_from_where_its_set_up_is_gained_back() -> None:
    accelerator = {
        "ciphers": {dds_offload.AEAD: {"set_up_ns": (100, 300), "per_byte_ns": (1, 2)}},
        "bus": {"set_up_ns": (900, 1700), "per_byte_ns": (0, 1)},
    }
    assert pays_from(accelerator, 5) == (1000 / 4, 2000 / 2)
    assert pays_from(accelerator, 3) is None


def test_the_model_finds_its_terms_again() -> None:
    seen = _seen(12_340, 5_670, 0.75)
    model = fit(seen.secured)
    assert model.message_ns == pytest.approx(12_340, rel=1e-3)
    assert model.fragment_ns == pytest.approx(5_670, rel=1e-3)
    assert model.byte_ns == pytest.approx(0.75, rel=1e-3)
    assert max(dds_offload.errors(seen)) < 0.01


def test_no_term_of_the_model_is_below_zero() -> None:
    """A busy machine's times may want one that is."""
    seen = _with(_seen(), 1_000_000, sends_of(1_000_000, 500_000))
    model = fit(seen.secured)
    assert min(model.message_ns, model.fragment_ns, model.byte_ns) == 0


def test_a_step_by_calls_alone_would_be_seen() -> None:
    assert _words(_seen(1_000, 200_000, 0.01))["cause.time"] == "reproduced"
    assert _words(_seen(20_000, 9_000, 0.5))["cause.time"] == "not reproduced"


def test_a_host_as_the_model_says_comes_out_as_recorded() -> None:
    verdicts = Judges(_seen()).verdicts()
    assert verdicts.holds, verdicts.headline


def _with(seen: Seen, size: int, sends: Sends) -> Seen:
    return replace(seen, secured={**seen.secured, size: sends})


def test_one_encryption_for_a_large_message_is_seen() -> None:
    seen = _with(_seen(), 100_000, sends_of(100_000, 200_000, encryptions=3))
    assert _words(seen)["cause.fragments"] == "not reproduced"
    assert not Judges(seen).verdicts().holds


def test_fragments_as_the_paper_says_would_be_seen() -> None:
    seen = _with(_seen(), 1_000_000, sends_of(1_000_000, 2_000_000, largest=87_000))
    assert _words(seen)["cause.bytes"] == "reproduced"
    assert not Judges(seen).verdicts().holds


def test_an_unencrypted_message_is_seen() -> None:
    seen = _with(_seen(), 16, sends_of(16, 10_000, encryptions=0))
    assert _words(seen)["figure1"] == "not reproduced"


def test_tables_with_and_without_measurements() -> None:
    names = [path.stem for path in Path(ROOT / "profiles" / "accelerators").glob("*.toml")]
    known = {name: _accelerator(name) for name in names}
    full, holds = dds_offload_tables.tables(replace(_seen(), accelerators=known))
    assert holds
    assert len(full) == 5
    assert max(map(len, render(full, Format.TABLE, 80).splitlines())) <= 80
    bare, holds = dds_offload_tables.tables(Seen(missing={dds_offload.FAST: "needs root"}))
    assert not holds
    assert [one.title for one in bare] == [bare[0].title, "Where the paper's method is blind"]


_DEVICE = """
[[primitive]]
name = "aead.seal.AES-256-GCM"
warm = { quantiles = [2.0, 6.0], unit = "us" }
per_byte = "20 ns"
[[primitive]]
name = "aead.mac.AES-256-GCM"
warm = { quantiles = [2.0, 6.0], unit = "us" }
per_byte = "5 ns"
[[primitive]]
name = "aead.seal.AES-256-GCM.keyed"
warm = { quantiles = [1.0, 2.0], unit = "us" }
per_byte = "20 ns"
[[primitive]]
name = "sign"
warm = { value = 3, unit = "ms" }
"""


def test_the_papers_device_is_predicted_by_its_profile() -> None:
    known = dds_offload.terms(_DEVICE)
    assert set(known) == {"seal", "mac"}
    assert known["seal"] == dds_offload.Terms((2000, 6000), 20)
    seen = Seen(raspberry_pi=known, missing={dds_offload.FAST: "-"})
    rows = {claim.id: outcome for claim, _, outcome in Judges(seen).verdicts().rows}
    # 2 x 1 MB at 20 ns are 40 ms; 1 MB in a MAC 5 ms; calls add 0.1 to 0.4.
    assert rows["throughput"].predicted == "22.0 to 24.9 MB/s by its profile"
    other = dds_offload.terms(_DEVICE.replace('per_byte = "20 ns"', 'per_byte = "0.02 us"', 1))
    assert set(other) == {"mac"}


def test_both_ends_cryptography_is_in_the_share_from_node_to_node() -> None:
    sends = sends_of(16, 1000)
    # One message's writing, and of reading a site that took as much for two.
    assert (sends.read_ns, sends.one_way_ns) == (500, 8000)
    assert sends.node_share == 1500 / 8000


def test_what_a_run_lacks_is_said() -> None:
    why = missing(dds_offload.FAST, "reproduce dds-offload", Path("/nonexistent"))
    assert why is not None
    assert "need root" in why or "of a checkout" in why


def test_a_summary_counts_far_outliers() -> None:
    found = summary([10, 11, 12, 13, 14, 15, 16, 17, 18, 100])
    assert (found.n, found.minimum, found.maximum, found.outliers) == (10, 10, 100, 1)
    assert found.median == 14
    with pytest.raises(ValueError, match="no values"):
        summary([])
