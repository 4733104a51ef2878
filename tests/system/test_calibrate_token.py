# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Calibration of real tokens: SoftHSM2, a TPM, and the virtual card whose profile is known."""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from support import tokens
from support.paths import ROOT
from support.tokens import PIN, SOFTHSM
from warifu import study, tools
from warifu.calibrate import paper, token
from warifu.calibrate.errors import CalibrateError
from warifu.calibrate.profile import Law
from warifu.calibrate.tailed import TailedLaw
from warifu.calibrate.token_bench import Plan
from warifu.lab.card import Card, StandIn

CARD = ROOT / "profiles" / "cards" / "iot-safe-sakomoto.toml"


@pytest.fixture
def softhsm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A token of SoftHSM2 with one key on P-256."""
    for name, value in tokens.softhsm(tmp_path, {"test": {"k1": tokens.P256}}).items():
        monkeypatch.setenv(name, value)
    return tmp_path


@pytest.fixture
def tpm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A TPM 2.0 with one key on P-256."""
    with tokens.tpm() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield


def test_softhsm_profile_predicts(softhsm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = softhsm / "profiles" / "key-stores" / "soft.toml"
    plan = Plan(SOFTHSM, token="test", pin=PIN, trials=12, fresh=True)
    outcome = token.calibrate_token(plan, name="soft", out=out)
    assert outcome.kind == "measured"
    assert outcome.token["verified"] is True
    assert set(outcome.statistics) == {"local_sw", "sign_only", "total", "fresh"}
    assert all(found.n == 12 for found in outcome.statistics.values())
    written = tomllib.loads(out.read_text())
    assert written["run_id"] == outcome.run_id
    monkeypatch.setenv("WARIFU_PROFILES", str(softhsm / "profiles"))
    loaded = study.load(overrides=[("device", "xeon-2-5-ghz-vm"), ("server", "xeon-2-5-ghz-vm"),
                                   ("key_store", "soft"),
                                   ("stack.authentication", "mutual")])  # fmt: skip
    assert outcome.run_id in study.manifest(loaded, "predicted", "run-1", "")["calibration_run_ids"]


@pytest.mark.usefixtures("tpm")
def test_software_tpm_is_emulated(tmp_path: Path) -> None:
    plan = Plan(tokens.TPM, pin=PIN, trials=3, fresh=True)
    outcome = token.calibrate_token(plan, out=tmp_path / "tpm.toml", name="tpm")
    assert outcome.token["verified"] is True
    assert (outcome.kind, outcome.why_kind) == ("emulated", "the TPM is a software TPM")
    assert set(outcome.statistics) == {"local_sw", "sign_only", "total", "fresh"}
    assert tomllib.loads(outcome.path.read_text())["kind"] == "emulated"
    with pytest.raises(CalibrateError, match=r"refused the PIN .CKR_PIN_INCORRECT."):
        token.calibrate_token(
            Plan(tokens.TPM, pin="9999", trials=2), out=tmp_path / "x.toml", name="x"
        )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"pin": "9999"}, "refused the PIN .CKR_PIN_INCORRECT.: it was tried once"),
        ({}, "needs a PIN: use --pin-file"),
        ({"pin": PIN, "key": "other"}, "has no private key on P-256 with label other: it has k1"),
        ({"pin": PIN, "token": "other"}, "no token has the label other: choose one of these"),
        ({"module": Path("/nowhere/x.so")}, "name the token's PKCS#11 module with --module"),
    ],
)
def test_mistakes_are_one_line_with_the_fix(
    softhsm: Path, changes: dict[str, object], says: str
) -> None:
    arguments: dict[str, object] = {"module": SOFTHSM, "trials": 2, **changes}
    out = softhsm / "x.toml"
    with pytest.raises(CalibrateError, match=says) as caught:
        token.calibrate_token(Plan(**arguments), name="x", out=out)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert not out.exists()


def test_card_removed_during_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "sim.toml"
    with Card(tmp_path / "card", StandIn(CARD), None, 1) as sim:
        (server,) = sim.processes
        for name, value in sim.environment.items():
            monkeypatch.setenv(name, value)
        plan = Plan(tools.find("libwarifu_pkcs11.so"), pin=PIN, trials=1000)

        def pull(done: int, _: int) -> None:
            if done > 0:
                server.stop()

        with pytest.raises(CalibrateError, match="the token is gone; insert it") as caught:
            token.calibrate_token(plan, name="sim", out=out, progress=pull)
    assert "\n" not in str(caught.value)
    assert not out.exists()


def test_crashing_module(tmp_path: Path) -> None:
    source, module = tmp_path / "bad.c", tmp_path / "bad.so"
    source.write_text("#include <stdlib.h>\nint C_GetFunctionList(void *l) { abort(); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", module, source], check=True)
    with pytest.raises(CalibrateError, match=r"warifu-calibrate-bench was killed by SIGABRT: run"):
        token.calibrate_token(Plan(module, trials=2), name="x", out=tmp_path / "x.toml")


def test_wrong_pin_costs_one_try(softhsm: Path) -> None:
    def flags() -> str:
        shown = subprocess.run(
            ["pkcs11-tool", "--module", str(SOFTHSM), "--list-slots"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return shown.stdout

    with pytest.raises(CalibrateError):
        token.calibrate_token(
            Plan(SOFTHSM, token="test", pin="9999", trials=2), name="x", out=softhsm / "x.toml"
        )
    assert "locked" not in flags()
    outcome = token.calibrate_token(
        Plan(SOFTHSM, token="test", pin=PIN, trials=2), name="x", out=softhsm / "x.toml"
    )
    assert outcome.statistics["total"].n == 2


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> token.Outcome:
    """10,000 trials on the virtual clock."""
    out = tmp_path_factory.mktemp("virtual") / "virtual.toml"
    plan = Plan(None, card=CARD, trials=10_000)
    return token.calibrate_token(plan, name="virtual", out=out)


@pytest.mark.parametrize("mode", ["sign_only", "total"])
def test_virtual_clock_reproduces_table_3(calibrated: token.Outcome, mode: str) -> None:
    """The card's profile was fitted to Table 3; nothing here is."""
    found, row = calibrated.statistics[mode], paper.TABLE_3[mode]
    assert found.n == 10_000
    assert found.mean.value / 1e6 == pytest.approx(row.mean, rel=0.01)
    assert found.p99.value / 1e6 == pytest.approx(row.p99, rel=0.03)


@pytest.mark.parametrize("mode", ["sign_only", "total"])
def test_virtual_clock_reproduces_the_cards_law(calibrated: token.Outcome, mode: str) -> None:
    """What the timing model gives by itself, of another seed, for the commands that were sent."""
    found, own = calibrated.statistics[mode], calibrated.card[mode]
    assert found.mean.value == pytest.approx(own["mean_ns"], rel=0.01)
    assert found.p99.value == pytest.approx(own["p99_ns"], rel=0.03)


@pytest.mark.parametrize("mode", ["sign_only", "total"])
def test_written_profile_reproduces_the_timings(calibrated: token.Outcome, mode: str) -> None:
    calls = tomllib.loads(calibrated.path.read_text())["call"]
    names = ("C_SignInit", "C_Sign") if mode == "sign_only" else tuple(calls)
    rng = np.random.default_rng(5)
    sums = np.sum([law_of(calls[name]).draw(200_000, rng) for name in names], axis=0)
    found = calibrated.statistics[mode]
    assert sums.mean() == pytest.approx(found.mean.value, rel=0.01)
    assert np.quantile(sums, 0.99) == pytest.approx(found.p99.value, rel=0.03)


def law_of(value: object) -> TailedLaw:
    """A law of a profile."""
    if isinstance(value, str):
        return TailedLaw(Law.constant(float(value.removesuffix(" ns"))))
    assert isinstance(value, dict)
    body = Law(tuple(value["quantiles"]))
    if "tail" not in value:
        return TailedLaw(body)
    probability = float(value["tail"]["probability"].removesuffix(" %")) / 100
    return TailedLaw(body, probability, Law(tuple(value["tail"]["quantiles"])))
