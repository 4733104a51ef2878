# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Scaling from other devices, its bands, and their judgement, which must be able to fail."""

from __future__ import annotations

import math
import random

import pytest

from warifu.devices.catalog import Device, Known
from warifu.devices.figures import Code
from warifu.devices.judge import coverages, judged
from warifu.devices.scaling import Corpus

SIGN, VERIFY, DERIVE = "sign.ecdsa_secp256r1", "verify.ecdsa_secp256r1", "ecdh.derive.secp256r1"


def known(ns: float, code: Code = Code.C, kind: str = "published") -> Known:
    return Known(ns, 0.0, kind, "a source", code, ns, ns)


def device(name: str, core: str, mhz: float, code: Code = Code.C, **cycles: float) -> Device:
    names = {"sign": SIGN, "verify": VERIFY, "derive": DERIVE}
    figures = {names[key]: known(value / mhz * 1e3, code) for key, value in cycles.items()}
    return Device(name, name, None, core, mhz * 1e6, code, primitives=figures)


def fleet(spread: float, count: int = 30, seed: int = 1) -> list[Device]:
    """Devices of one core whose cycles spread by a normal law of the logarithm."""
    chance = random.Random(seed)
    return [
        device(
            f"d{index:02}",
            "cortex-m4",
            32 + index,
            sign=1e6 * math.exp(chance.gauss(0, spread)),
            verify=3e6 * math.exp(chance.gauss(0, spread)),
        )
        for index in range(count)
    ]


def test_by_the_clock_from_the_same_core_and_code() -> None:
    corpus = Corpus(
        [
            device("m4", "cortex-m4", 100, sign=4e6),
            device("m4-asm", "cortex-m4", 64, Code.ASSEMBLY, sign=4e5),
            device("m7", "cortex-m7", 64, sign=3e6),
        ]
    )
    target = Device("t", "t", None, "cortex-m4", 50e6, Code.C)
    estimate = corpus.estimate(target, SIGN)
    assert estimate is not None
    assert (estimate.origin.name, estimate.by) == ("m4", "clock")
    assert estimate.call_ns == pytest.approx(4e6 / 50e6 * 1e9)
    asm = corpus.estimate(target, SIGN, code=Code.ASSEMBLY)
    assert asm is not None
    assert (asm.origin.name, asm.call_ns) == ("m4-asm", pytest.approx(4e5 / 50e6 * 1e9))


def test_another_figure_of_the_group_beats_the_clock() -> None:
    corpus = Corpus([device("m4", "cortex-m4", 100, sign=1e6, derive=3e6)])
    # Twice as slow as its clock says.
    target = device("t", "cortex-m33", 100, sign=2e6)
    estimate = corpus.estimate(target, DERIVE)
    assert estimate is not None
    assert (estimate.by, estimate.call_ns) == (SIGN, pytest.approx(6e6 / 100e6 * 1e9))
    assert "by sign.ecdsa_secp256r1" in estimate.says()


def test_family_before_strangers() -> None:
    corpus = Corpus(
        [device("esp", "xtensa-lx6", 64, sign=1e6), device("m7", "cortex-m7", 400, sign=2e6)]
    )
    found = corpus.estimate(Device("t", "t", None, "cortex-m4", 64e6, Code.C), SIGN)
    assert found is not None and found.origin.name == "m7"


def test_assumed_figures_are_no_base() -> None:
    scaled = device("s", "cortex-m4", 64)
    scaled.primitives[SIGN] = known(1.0, kind="assumed")
    assert (
        Corpus([scaled]).estimate(Device("t", "t", None, "cortex-m4", 64e6, Code.C), SIGN) is None
    )


def test_too_few_devices_give_no_band() -> None:
    found = Corpus(fleet(0.3, 5)).estimate(
        Device("t", "t", None, "cortex-m4", 64e6, Code.C), SIGN, anchored=False
    )
    assert found is not None and math.isinf(found.factor)
    assert "too few devices" in found.says()


@pytest.mark.parametrize("spread", [0.05, 0.3, 1.0])
def test_bands_hold_nine_tenths_whatever_the_spread(spread: float) -> None:
    """The width follows the spread between devices, so that coverage does not depend on it."""
    shares = []
    for seed in range(8):
        *_, every = coverages(judged(fleet(spread, seed=seed), anchored=False))
        shares.append(every.share)
        assert every.count == 60
        assert every.verdict == "pass"
        # An error is the difference of two devices'.
        assert 1.0 < math.log(every.band_factor) / spread < 4.0
    assert 0.86 <= sum(shares) / len(shares) <= 1.0


def test_judgement_fails_where_bands_are_too_narrow() -> None:
    """RSA spreads by a thousand between six devices; too few for a band of its own, it gets that of
    P-256, which hardly spreads."""
    devices = fleet(0.02, 60)
    for index, one in enumerate(devices[:6]):
        one.primitives["sign.rsa-2048"] = known(1e9 * 1000 ** (index % 2))
        one.primitives["verify.rsa-2048"] = known(1e9 * 1000 ** ((index + 1) % 2))
    rows = {one.what: one for one in coverages(judged(devices, anchored=False))}
    assert (rows["ECDSA P-256"].verdict, rows["RSA-2048"].verdict) == ("pass", "fail")
    assert rows["RSA-2048"].share < 0.5


def test_bands_of_the_judged_device_are_made_without_it() -> None:
    devices = fleet(0.1, 20)
    strange = devices[7]
    strange.primitives[SIGN] = known(strange.primitives[SIGN].call_ns * 1e4)
    row = next(
        one
        for one in judged(devices, anchored=False)
        if (one.device, one.primitive) == (strange.name, SIGN)
    )
    assert not row.inside
    assert row.estimate.factor < 2
