# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Calibration: from the bench's times and loopback runs to a profile that serves any study."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Container, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.laboratory import make_case
from support.paths import ROOT
from warifu import _core, study, tools
from warifu.calibrate import (
    bench,
    build,
    environment,
    host,
    https,
    loopback,
    profile,
    rest,
    system,
    variants,
)
from warifu.calibrate.errors import CalibrateError
from warifu.calibrate.part import calibration_case
from warifu.calibrate.profile import Entry, Law, Profile, Record
from warifu.calibrate.system import PARAMETERS, SCALES, SHARES, Costs
from warifu.case import Case, HttpsStack, Tls
from warifu.lab.case import Cell
from warifu.lab.errors import LabUnavailable
from warifu.lab.quiet import Shares

PROFILES = ROOT / "profiles"

RTTS_BY_NAME = {"one": 0, "another": 0, "a third": 0, "contended": 0, "far": 20_000_000}
"""Cells of a made-up calibration, and their RTTs, ns."""

MESSAGES = (
    "ClientHello", "ServerHello", "EncryptedExtensions", "CertificateRequest", "Certificate",
    "CertificateVerify", "Finished", "EndOfEarlyData", "NewSessionTicket", "ServerKeyExchange",
    "ServerHelloDone", "ClientKeyExchange", "ChangeCipherSpec", "ApplicationData", "Alert",
)  # fmt: skip


def report_of(timed: list[variants.Variant]) -> dict[str, Any]:
    """A report as the bench gives it, in which every message takes 100 us, and a signature 60."""
    law = {"mean_cpu_ns": 100_000.0, "cpu_ns": [100_000] * 21, "n": 9}
    messages = [
        {
            "variant": index, "temperature": temperature, "side": side, "sent": sent,
            "message": message, **law,
        }
        for index, temperature, side, sent, message in itertools.product(
            range(len(timed)),
            ("warm", "cold", "rested"),
            ("client", "server"),
            (True, False),
            MESSAGES,
        )
    ]  # fmt: skip
    signature = {"mean_cpu_ns": 60_000.0, "cpu_ns": [60_000] * 21, "n": 9, "bytes": 0}
    primitives = [
        {"operation": "sign", "algorithm": name, "temperature": temperature, **signature}
        for name in ("ecdsa_secp256r1", "rsa-2048")
        for temperature in ("warm", "cold")
    ]
    primitives += [
        {
            "operation": "seal", "algorithm": aead, "temperature": "warm", "bytes": size,
            "mean_cpu_ns": size * 0.5, "cpu_ns": [size // 2] * 21, "n": 9,
        }
        for aead in variants.AEADS
        for size in (256, 16_384)
    ]  # fmt: skip
    return {"messages": messages, "primitives": primitives}


def profile_of(timed: list[variants.Variant]) -> Profile:
    entries = bench.entries(report_of(timed), timed, "a test")
    more = Costs.start().entries(Law.constant(1.0), "a test")
    return Profile("run-1", "a test", "a test", 5_000_000, (*entries, *more))


def parse(text: str, made: Profile) -> _core.Study:
    others = [
        item for item in study.profile_texts([PROFILES]) if item[:2] != ("device", profile.DEVICE)
    ]
    mine = ("device", profile.DEVICE, made.toml(), "this-host.toml")
    return _core.Study.parse(text, "test.toml", [*others, mine])


ANY_STUDY = """
name = "all"
seed = 1
trials = 1
device = "this-host"
server = "this-host"
key_store = "software"
link = "loopback"
[stack]
protocol = "https"
tls = "{tls}"
[vary]
"stack.session" = {sessions}
"stack.authentication" = ["server", "mutual"]
"stack.group" = ["secp256r1", "x25519"]
"stack.certificate" = ["ecdsa_secp256r1", "rsa-2048"]
"stack.chain_length" = [1, 2, 3]
"stack.aead" = ["AES_128_GCM", "AES_256_GCM", "CHACHA20_POLY1305"]
"""
SESSIONS = {"1.2": ["full", "ticket"], "1.3": ["full", "psk_dhe_ke", "psk_ke", "0-rtt"]}


@pytest.mark.parametrize("tls", ["1.2", "1.3"])
def test_full_profile_serves_every_stack(tls: str) -> None:
    made = profile_of(variants.everything())
    whole = parse(ANY_STUDY.format(tls=tls, sessions=json.dumps(SESSIONS[tls])), made)
    assert len(whole.cases) == len(SESSIONS[tls]) * 2 * 2 * 2 * 3 * 3
    for index in range(len(whole.cases)):
        names = {item["name"] for item in whole.inputs(index)}
        assert "this-host client.send.ClientHello" in names


def tls_of(canonical: str) -> Tls:
    """The TLS of a case of HTTPS."""
    stack = Case.from_json(canonical).stack
    assert isinstance(stack, HttpsStack)
    return stack.tls


def test_profile_of_one_variant_serves_its_stack() -> None:
    made = profile_of(variants.everything())
    text = ANY_STUDY.format(tls="1.3", sessions=json.dumps(SESSIONS["1.3"]))
    for view in parse(text, made).cases:
        tls = tls_of(view.json)
        narrow = profile_of(variants.needed([tls]))
        overrides = text.partition("[vary]")[0] + "\n".join(
            f"{key} = {json.dumps(value)}"
            for key, value in {
                "session": tls.session,
                "authentication": tls.authentication,
                "group": tls.group,
                "certificate": tls.certificate,
                "chain_length": tls.chain_length,
                "cipher_suite": tls.cipher_suite,
            }.items()
        )
        assert len(parse(overrides, narrow).inputs(0)) > 20


PSK_STUDY = """\
name = "psk"
[stack]
authentication = "psk"
tls = "{tls}"
psk_mode = "{mode}"
group = "{group}"
"""


@pytest.mark.parametrize("tls", ["1.2", "1.3"])
@pytest.mark.parametrize("mode", ["psk_dhe_ke", "psk_ke"])
@pytest.mark.parametrize("group", ["secp256r1", "x25519"])
def test_profile_serves_keys_from_outside(tls: str, mode: str, group: str) -> None:
    text = PSK_STUDY.format(tls=tls, mode=mode, group=group)
    view = parse(text, profile_of(variants.everything())).cases[0]
    narrow = profile_of(variants.needed([tls_of(view.json)]))
    assert len(parse(text, narrow).inputs(0)) > 15


def test_missing_variants_of_a_profile() -> None:
    every = variants.everything()
    assert [variants.Variant.of_json(one.json()) for one in every] == every
    assert len(set(every)) == len(every) == 46 + 6  # six by a key from outside
    unknown = every[0].json() | {"session": "ticket", "tls": "1.3"}
    with pytest.raises(KeyError):
        variants.Variant.of_json(unknown)
    text = ANY_STUDY.format(tls="1.3", sessions=json.dumps(SESSIONS["1.3"]))
    whole = parse(text, profile_of(every))
    layers = [tls_of(view.json) for view in whole.cases]
    # A chain of three with X25519 was never timed as such, and yet nothing of it is missing.
    assert variants.missing(every, variants.needed(layers)) == []
    narrow = variants.needed([tls for tls in layers if tls.group == "secp256r1"])
    other = variants.needed([tls for tls in layers if tls.group == "x25519"])
    lacking = variants.missing(narrow, other)
    assert lacking
    assert {one.group for one in lacking} == {"x25519"}
    assert variants.missing([*narrow, *lacking], other) == []
    assert variants.missing([], narrow) == narrow


def test_signature_is_subtracted_from_its_message_once() -> None:
    made = profile_of([variants.Variant(), variants.Variant(tls="1.2")])
    by_name = {(entry.operation, entry.when.get("tls")): entry for entry in made.entries}
    for role, tls in (("client", "1.3"), ("server", "1.3"), ("client", "1.2")):
        rest = by_name[f"{role}.send.CertificateVerify", tls]
        sign = by_name[f"{role}.sign", tls]
        assert rest.cold is not None
        assert sign.cold is not None
        assert rest.warm.mean_ns + sign.warm.mean_ns == pytest.approx(100_000)
        assert rest.cold.mean_ns + sign.cold.mean_ns == pytest.approx(100_000)
        assert rest.rested is not None
        assert sign.rested is not None
        assert rest.rested.mean_ns + sign.rested.mean_ns == pytest.approx(100_000)
    assert by_name["server.send.ServerKeyExchange", "1.2"].warm.mean_ns == pytest.approx(40_000)
    assert by_name["server.receive.CertificateVerify", "1.2"].warm.mean_ns == pytest.approx(1e5)
    assert by_name["client.send.ApplicationData", "1.3"].per_byte_ns == pytest.approx(0.5)


@given(st.lists(st.floats(1, 1e9), min_size=2, max_size=200))
def test_law_of_samples_is_ascending_with_their_mean(samples: list[float]) -> None:
    law = Law.of_samples(samples)
    assert list(law.quantiles_ns) == sorted(law.quantiles_ns)
    mean = float(np.mean(samples))
    # It cannot be below what the other quantiles give.
    assert law.mean_ns >= mean * (1 - 1e-9)
    if law.quantiles_ns[-1] > law.quantiles_ns[-2]:
        assert law.mean_ns == pytest.approx(mean)


def test_fit_recovers_costs_from_medians() -> None:
    chance = np.random.default_rng(3)
    start = Costs.start().values
    count = len(start)
    spread = np.array([0.4] * len(PARAMETERS) + [0.1] * (len(SCALES) + len(SHARES)))
    truth = start * np.exp(spread * chance.normal(0, 1, count))
    # More targets than costs, each a sum of some.
    weights = chance.integers(0, 4, (3 * count, count)).astype(float)
    weights[:, len(PARAMETERS) :] *= 300_000

    def predict(costs: Costs) -> dict[tuple[str, str], float]:
        return {("case", str(i)): float(row @ costs.values) for i, row in enumerate(weights)}

    goal = predict(Costs(truth))
    found = system.fit(goal, dict.fromkeys(goal, 50_000.0), predict)
    for target, value in goal.items():
        assert found.predicted_ns[target] == pytest.approx(value, rel=0.03)
    assert set(found.costs.named()) >= {"client.system.wake cold", "server computing warm"}


def test_costs_after_a_rest_are_found_from_medians() -> None:
    truth = rest.Rest((1.3, 0.8, 1.2, 2.2))
    entries = profile_of([variants.Variant()]).entries

    def predict(costs: rest.Rest) -> dict[tuple[str, str], float]:
        """Each phase as the sum of some of the costs after a rest."""
        found: dict[tuple[str, str], float] = {}
        for number, entry in enumerate(rest.all_rested(entries, costs)):
            key = ("case", str(number % 7))
            law = entry.rested or entry.warm
            found[key] = found.get(key, 0.0) + law.median_ns
        return found

    goal = predict(truth)
    found = rest.fit(goal, dict.fromkeys(goal, 2_000.0), predict)
    assert found.values == pytest.approx(truth.values, rel=0.05)
    # A call's rest is by its warm time; what the bench did not time after a rest has none.
    assert rest.Rest.start().applied(Entry("client.sign", {}, Law.constant(5.0))).rested is None
    wake = rest.Rest.start().applied(Entry("client.system.wake", {}, Law.constant(10.0)))
    assert wake.rested == Law.constant(15.0)


def test_accuracy_is_judged_by_cells_that_were_not_calibrated() -> None:
    made = profile_of(variants.everything())
    texts = [
        loopback.study_text(1, https.SETTINGS, https.VARIED),
        loopback.study_text(1, https.TICKETS, https.TICKETS_VARIED),
        https._uploads(1),
        loopback.study_text(1, https.RESTED, https.RESTED_VARIED, ("0 ms",)),
    ]
    cells = [Cell.of(view) for text in texts for view in parse(text, made).cases]
    used = [calibration_case(cell) for cell in cells if https.is_calibrated_on(cell.case)]
    measured = []
    for name in ("loss-free", "lossy", "lossy-without-delay"):
        text = (ROOT / "studies" / "accuracy" / f"{name}.toml").read_text()
        measured += [calibration_case(Cell.of(view)) for view in parse(text, made).cases]

    def choices(case: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        return tuple(sorted((key, value) for key, value in case.items() if key != "case_id"))

    assert len(used) == 14 + 2 + 4 + 2
    assert len(measured) == 24 + 12
    # Three without delay and three with it are measured to tell the machine's speed: not judged.
    calibrated = {choices(case) for case in used}
    assert len(calibrated & {choices(case) for case in measured}) == 3 + 3
    judged = [case for case in measured if choices(case) not in calibrated]
    assert len(judged) == 18 + 12
    # The one that is left out would have been one of them, whatever its curve.
    held = [calibration_case(cell) for cell in cells if not https.is_calibrated_on(cell.case)]
    assert {choices(case) for case in held} & {choices(case) for case in judged}


def test_law_between_warm_and_cold() -> None:
    # The other's 90 is the accident of three samples.
    warm, cold = Law((1.0, 2.0, 3.0)), Law((5.0, 6.0, 90.0))
    assert warm.towards(cold, 0.0) == warm
    assert warm.towards(cold, 1.0).quantiles_ns == (3.0, 6.0, 9.0)
    assert warm.towards(cold, 1.5).quantiles_ns == (4.0, 8.0, 12.0)
    assert Law.constant(1.0).towards(cold, 2.0) == Law.constant(11.0)
    assert Law.constant(0.0).towards(cold, 0.5) == Law.constant(3.0)
    assert Law.constant(8.0).towards(Law.constant(4.0), 2.0) == Law.constant(0.0)


def test_unidentifiable_costs_keep_their_start() -> None:
    goal = {("case", "tcp.connect"): 80_000.0}

    def predict(costs: Costs) -> dict[tuple[str, str], float]:
        return {("case", "tcp.connect"): float(costs.values[0])}

    found = system.fit(goal, {("case", "tcp.connect"): 1_000.0}, predict)
    start = Costs.start().values
    assert found.costs.values[0] == pytest.approx(80_000.0, rel=0.03)
    assert found.costs.values[1:] == pytest.approx(start[1:])


def test_median_errors_have_a_floor() -> None:
    still = loopback.Loopback({("case", "tcp.connect"): np.full(100, 5.0)}, 0)
    assert still.medians_ns() == {("case", "tcp.connect"): 5.0}
    assert still.errors_ns(7.0) == {("case", "tcp.connect"): 7.0}


def test_errors_of_medians_hold_what_moves_between_runs() -> None:
    key, other = ("a", "tcp.connect"), ("b", "tcp.connect")
    parts = {
        key: [np.full(50, 100.0), np.full(50, 140.0)],
        other: [np.full(50, 300.0), np.full(50, 300.0)],
    }
    times = {one: np.concatenate(some) for one, some in parts.items()}
    runs = loopback.Loopback(times, 0, parts_ns=parts)
    # The variance between two runs is 800 in one case and 0 in the other, 400 ns^2 for the metric.
    errors = runs.errors_ns(1.0)
    assert errors[other] == pytest.approx(np.sqrt(400.0 / 2))
    assert errors[key] > errors[other]


def test_the_form_of_system_calls_is_that_of_all_runs_without_delay() -> None:
    random = np.random.default_rng(1)
    cells = [replace(make_case(link__rtt=rtt), case_id=name) for name, rtt in RTTS_BY_NAME.items()]
    parts: dict[tuple[str, str], list[np.ndarray[Any, np.dtype[np.float64]]]] = {}
    for cell in cells:
        # Runs differ as wholes; the form is of what they have in common.
        runs = [pace * random.normal(100.0, 10.0, 400) for pace in (1.0, 1.5)]
        if cell.case_id == "contended":
            # In one run of many another program took the processor, for a fifth of connections.
            runs[1][:80] += 1_000.0
        parts[cell.case_id, "tcp.connect"] = runs
    parts["far", "tcp.connect"] = [random.normal(1_000.0, 500.0, 400)]
    law = https._shape(loopback.Loopback({}, 0, cells=cells, parts_ns=parts))
    assert law.median_ns == pytest.approx(1.0)
    quartiles = np.interp((0.25, 0.75), np.linspace(0, 1, len(law.quantiles_ns)), law.quantiles_ns)
    # A normal law's quartiles are 0.674 deviations from its median.
    assert quartiles == pytest.approx((0.933, 1.067), abs=0.02)


@pytest.mark.parametrize(("contended", "again"), [({3, 7}, 2), (range(1_000), 14)])
def test_runs_beside_other_work_are_made_again(
    contended: Container[int], again: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = itertools.count()

    def run(_bench: object, _case: Cell, trials: int) -> tuple[dict[str, Any], dict[str, Any]]:
        share = 0.4 if next(made) in contended else 0.01
        column = [share] * trials
        return {"ns": column}, {"processor_shares": {"others": share, "stolen": 0.0}}

    monkeypatch.setattr(loopback, "_run", run)
    monkeypatch.setattr(loopback, "Bench", lambda _: contextlib.nullcontext())
    text = loopback.study_text(40, https.SETTINGS, https.VARIED)
    cells = parse(text, profile_of(variants.everything()))
    said: list[str] = []
    found = loopback.run_all([cells], 40, said.append, {"time": "ns"}, 2, https.is_calibrated_on)
    assert len(found.shares) == 2 * 14, "each cell twice"
    assert found.rejections == again == sum("made again" in line for line in said)
    assert all(values.size == 40 for values in found.times_ns.values())
    # Where the machine was quiet in the end, nothing of what was contended is left.
    quiet = all(share.taken < 0.05 for share in found.shares)
    assert quiet == (again == 2)


def test_missing_rights_stop_before_timing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> str:
        raise LabUnavailable("cannot create a network namespace: run as root")

    timed: list[object] = []
    monkeypatch.setattr(host.workplace.Workplace, "namespace", refuse)
    monkeypatch.setattr(host.workplace, "sweep", list)
    monkeypatch.setattr(bench, "run", lambda *given: timed.append(given))
    with pytest.raises(LabUnavailable, match="run as root"):
        host.calibrate_host([], tmp_path / "this-host.toml")
    assert timed == []
    assert list(tmp_path.iterdir()) == []


def test_busy_machine_warning() -> None:
    calm, busy = Shares(0.02, 0.01), Shares(0.6, 0.3)
    assert host._noise([calm, calm]) == []
    (warning,) = host._noise([calm, busy, calm])
    assert "other work took up to 90% of the processors" in warning
    assert "calibrate again" in warning


def test_profile_and_record_are_written_atomically(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "devices" / "this-host.toml"
    made = profile_of([variants.Variant()])
    record = Record("run-1", environment.machine(), {"plan": "quick"})
    profile.write(made, record, path)
    before = path.read_text()
    assert profile.read_record(path) == record
    assert 'run_id = "run-1"' in before
    monkeypatch.setattr(Profile, "toml", lambda _: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        profile.write(made, Record("run-2", {}), path)
    assert path.read_text() == before
    assert [file.name for file in path.parent.iterdir() if file.name.startswith(".")] == []


def test_machine_differences() -> None:
    now = environment.machine()
    assert environment.differences(now) == []
    assert environment.differences(now | {"kernel": "2.4.0"}) == [
        f"kernel was 2.4.0, is {now['kernel']}"
    ]


def test_toml_whole_nanoseconds() -> None:
    entry = Entry("client.sign", {"tls": "1.3", "session": ("a", "b")}, Law((1.4, 2.6)))
    assert "quantiles = [1, 3]" in entry.toml()
    assert 'session = ["a", "b"]' in entry.toml()
    assert Law.constant(5.2).toml() == '"5 ns"'
    assert Law((0.0, 10.0, 20.0)).median_ns == 10.0
    assert Law((0.0, 10.0, 20.0)).mean_ns == 10.0


def test_development_build_is_refused_unless_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "BUILD_PROFILE", build.DEVELOPMENT)
    build.refuse_development()
    assert environment.machine()["build"] == "development"
    monkeypatch.delenv(build.VARIABLE)
    with pytest.raises(CalibrateError, match=r"is a development build.*setup --release`$"):
        build.refuse_development()


def test_programs_of_a_development_build_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(build.VARIABLE)
    monkeypatch.setattr(_core, "BUILD_PROFILE", build.RELEASE)
    builds = dict.fromkeys(build.TIMED, build.RELEASE)
    monkeypatch.setattr(build.tools, "build", builds.__getitem__)
    build.refuse_development()
    assert build.profile() == "release"
    builds["warifu-calibrate-bench"] = ""
    with pytest.raises(CalibrateError, match=r"^warifu-calibrate-bench does not say how it was"):
        build.refuse_development()
    builds["warifu-calibrate-bench"] = build.DEVELOPMENT
    with pytest.raises(CalibrateError, match=r"^warifu-calibrate-bench is a development build"):
        build.refuse_development()


@pytest.mark.parametrize("name", build.TIMED)
def test_timed_programs_say_their_build_as_the_core_does(name: str) -> None:
    assert tools.build(name) == _core.BUILD_PROFILE


@pytest.mark.parametrize("tls", ["1.2", "1.3"])
def test_calibration_for_one_version_times_what_its_own_runs_need(tls: str) -> None:
    """Its own runs are of both versions, whatever the study."""
    text = ANY_STUDY.format(tls=tls, sessions=json.dumps(["full"]))
    views = parse(text, profile_of(variants.everything())).cases
    timed = https.HttpsPart().needed([Case.from_json(view.json) for view in views])
    own = https.HttpsPart().needed([])
    assert own and https.HttpsPart().missing(timed, own) == []
    conditions = [variants.condition("ApplicationData", variants.Variant.of_json(of)) for of in own]
    assert {when["tls"] for when in conditions if when is not None} == {"1.2", "1.3"}
