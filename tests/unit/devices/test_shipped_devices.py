# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The devices and key stores that come with Warifu: sources, scaled parts, answers."""

from __future__ import annotations

import csv
import importlib.util
import io
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from support.commands import Run
from support.paths import ROOT
from warifu import _core, study
from warifu.cli.errors import OK
from warifu.devices import catalog, cores, shipped
from warifu.devices.judge import coverages, judged
from warifu.devices.profile import MARK, NEEDED

PROFILES = ROOT / "profiles"


def script() -> ModuleType:
    """The module of scripts/devices_page.py."""
    file = ROOT / "scripts" / "devices_page.py"
    spec = importlib.util.spec_from_file_location("devices_page", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = script()
TEXTS: dict[str, str] = SCRIPT.texts("devices")
SCALED = sorted(shipped.published(TEXTS))
KEY_STORES = sorted(SCRIPT.texts("key-stores"))
LIBRARIES = {file.stem for file in (PROFILES / "recipes").glob("*.toml")}


def test_there_are_enough_of_each_kind() -> None:
    assert len(SCALED) >= 14
    found = {tomllib.loads(TEXTS[name])["core"]["value"] for name in SCALED}
    assert found >= {
        "cortex-m0plus",
        "cortex-m4",
        "cortex-m33",
        "cortex-m7",
        "cortex-a53",
        "cortex-a7",
        "cortex-a9",
        "xtensa-lx6",
        "rv32imc",
    }
    assert found <= set(cores.KNOWN)
    for name in ("atecc608-m0", "se050", "optiga-trust-m", "stsafe-a100", "tpm-2.0"):
        assert name in KEY_STORES


@pytest.mark.parametrize("name", SCALED)
def test_scaled_part_is_current(name: str) -> None:
    """`scripts/devices_page.py` writes it."""
    others = shipped.corpus(TEXTS)
    assert shipped.completed(name, TEXTS[name], others) == TEXTS[name]


def test_a_published_price_of_an_instruction_prices_what_rests_on_it() -> None:
    """It may be finer than a nanosecond, and is not assumed a second time."""
    name = "nrf52840"
    head, _, scaled = TEXTS[name].partition(MARK)
    own = '[[primitive]]\nname = "instruction"\nwarm = "0.8 ns"\nsource = "s"\nkind = "published"\n'
    made = shipped.completed(name, f"{head}{own}\n{MARK}{scaled}", shipped.corpus(TEXTS))
    table = tomllib.loads(made)
    figures = {one["name"]: one["warm"] for one in [*table["primitive"], *table["operation"]]}
    assert figures["instruction"] == "0.8 ns"
    assert figures["x509.parse"]["quantiles"] == [round(10_536 * 0.8), round(18_996 * 0.8)]
    assert figures["client.system.connect"]["quantiles"] == [6_400, 32_000]
    assert figures["client.system.write"]["quantiles"] == [3_200, 16_000]


@pytest.mark.parametrize("name", SCALED)
def test_every_figure_says_where_it_is_from(name: str) -> None:
    table = tomllib.loads(TEXTS[name])
    head = tomllib.loads(TEXTS[name].partition(MARK)[0])
    assert table["name"] == name
    for key in ("library", "core", "clock", "code", "ram", "flash"):
        assert table[key].get("source") or table[key]["kind"] == "assumed", key
    for one in head.get("primitive", []):
        assert one["kind"] == "published"
        # The repository and its state, or the document; the library's version.
        assert len(one["source"]) > 30
        assert any(word in one["source"] for word in ("SSL ", "TLS ")), one["source"]
    published = {one["name"] for one in head.get("primitive", [])}
    for one in table["primitive"]:
        assert one["name"] in published or one["kind"] == "assumed", one["name"]
        if one["name"] not in published:
            assert one["note"]
    assert set(NEEDED) <= {one["name"] for one in table["primitive"]}


def test_published_figures_have_no_band_and_scaled_ones_have() -> None:
    for name in SCALED:
        one = catalog.device(name, TEXTS[name], f"{name}.toml")
        for primitive in NEEDED:
            known = one.primitives[primitive]
            is_band = known.high_ns > known.low_ns
            # What takes its time by the byte alone has none on its call.
            if known.call_ns:
                assert is_band == (known.kind == "assumed"), (name, primitive)


def test_bands_hold_by_the_judgement() -> None:
    """The figure in the docs; its table is in docs/reference/devices.md."""
    known = [catalog.device(name, TEXTS[name], name) for name in SCALED]
    for anchored in (True, False):
        rows = coverages(judged(known, anchored=anchored))
        assert rows[-1].count > 150
        assert [row.what for row in rows if row.verdict == "fail"] == []


STACKS = [
    (tls, certificate, group)
    for tls in ("1.2", "1.3")
    for certificate in ("ecdsa_secp256r1", "rsa-2048")
    for group in ("secp256r1", "x25519")
]


LIBRARY = {name: tomllib.loads(TEXTS[name])["library"]["value"] for name in SCALED}


def test_libraries_have_recipes() -> None:
    assert set(LIBRARY.values()) <= LIBRARIES


@pytest.mark.parametrize("name", SCALED)
def test_each_device_answers(name: str) -> None:
    """HTTPS over NB-IoT with both versions, certificates and groups, server-only and mutual."""
    choices = [
        ("device", name),
        ("server", "xeon-2-5-ghz-vm"),
        ("link", "nb-iot"),
        ("stack.protocol", "https"),
        ("vary.stack.tls", '["1.2", "1.3"]'),
        ("vary.stack.certificate", '["ecdsa_secp256r1", "rsa-2048"]'),
        ("vary.stack.group", '["secp256r1", "x25519"]'),
        ("vary.stack.authentication", '["server", "mutual"]'),
    ]
    loaded = study.load(None, choices, [PROFILES])
    assert len(loaded.study.cases) == 16
    for index in range(16):
        assert _core.missing_operations(loaded.study, index) == ([], [])


def ask(warifu: Run, folder: Path, key_store: str, *more: str) -> dict[str, str]:
    """The row of a connection of mcxw71 with its key there."""
    code, out, err = warifu(
        *("predict", "--device", "mcxw71", "--server", "xeon-2-5-ghz-vm", "--link", "loopback"),
        *("--key-store", key_store, "--stack", "https/tls1.3/mutual", "--set", "predict_trials=40"),
        *("--format", "csv", "--out", str(folder), *more),
    )
    assert code == OK, err
    (row,) = csv.DictReader(io.StringIO(out))
    return row


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("name", [one for one in KEY_STORES if one != "software"])
def test_each_key_store_is_used_by_a_prediction(warifu: Run, name: str, tmp_path: Path) -> None:
    """It takes the place of the device's own signature of 136 ms."""
    own = float(ask(warifu, tmp_path / "own", "software")["p50_ns"])
    row = ask(warifu, tmp_path / "store", name)
    assert row["key_store"] == name
    file = PROFILES / "key-stores" / f"{name}.toml"
    calls = _core.key_store(name, file.read_text(), str(file))["calls"]
    # Its session is open.
    signing = calls["C_SignInit"]["median_ns"] + calls["C_Sign"]["median_ns"]
    assert float(row["p50_ns"]) - own == pytest.approx(signing - 1e9 / 7.33, abs=40e6)


@pytest.mark.usefixtures("elsewhere")
def test_optiga_is_throttled(warifu: Run, tmp_path: Path) -> None:
    """Of two connections at once the second signature waits for 5 s."""
    two = ("--set", "pattern.concurrent=2")
    throttled = ask(warifu, tmp_path / "throttled", "optiga-trust-m", *two)
    free = ask(warifu, tmp_path / "free", "stsafe-a100", *two)
    longer = float(throttled["p99_ns"]) - float(free["p99_ns"])
    assert 3e9 < longer < 5.1e9


def test_page_of_devices_is_current() -> None:
    """`make golden` writes docs/reference/devices.md."""
    made = SCRIPT.page(TEXTS, SCRIPT.texts("key-stores"))
    assert made == (ROOT / "docs" / "reference" / "devices.md").read_text()


def test_the_form_that_the_page_shows_can_be_read() -> None:
    page = (ROOT / "docs" / "reference" / "devices.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    head = (
        'name = "own"\ndescription = "own"\nlibrary = { value = "mbedtls-3.6", kind = "assumed" }\n'
    )
    known = catalog.device("own", head + example, "own.toml").primitives
    assert known["aead.seal.AES_128_GCM"].call_ns == 7000
    assert known["aead.seal.AES_128_GCM"].byte_ns == 55
    # One of text, as it says.
    text = example.replace("[41.5, 55, 84.2]", '"41.5 55 84.2"')
    assert text != example
    assert catalog.device("own", head + text, "own.toml").primitives == known
