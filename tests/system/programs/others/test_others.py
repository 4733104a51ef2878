# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs from the registries of Python, Node.js and Go, and two of Debian that are large.

Each signs with the card's key. `make programs` runs them; versions are locked by hash.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support import needs
from support.foreign import Server, der, verified
from support.programs import (
    DEVICE,
    PIN,
    Authority,
    Device,
    module,
    run,
)

Record = Callable[..., None]
HERE = Path(__file__).parent
MINUTES_S = 600.0
#: Programs that sign with a token, of which nobody here has what they need.
NOT_HERE = {
    "pkcs11-provider": "neither Debian 12 nor a registry has it",
    "requests": "its TLS takes a token's key through pkcs11-provider alone",
}


def _builds() -> dict[str, str]:
    """What package managers need: their settings of this machine, beside what a program gets."""
    return dict(os.environ)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the locked packages."""
    folder = tmp_path_factory.mktemp("python")
    run(sys.executable, "-m", "venv", folder, environment=_builds(), patience_s=MINUTES_S)
    run(
        folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check",
        "--require-hashes", "--only-binary=:all:", "-r", HERE / "requirements.lock",
        environment=_builds(), patience_s=MINUTES_S,
    )  # fmt: skip
    return folder / "bin" / "python"


@pytest.mark.foreign("PyKCS11")
def test_pykcs11(device: Device, python: Path, on_record: Record) -> None:
    on_record([python, "-m", "pip", "show", "PyKCS11"], r"Version: (\S+)")
    said = run(python, HERE / "sign_pykcs11.py", module(), PIN, environment=device.environment)
    assert verified(device, der(bytes.fromhex(said.stdout.strip())))
    assert len(device.signatures()) == 1


@pytest.mark.foreign("awscrt")
def test_awscrt(
    device: Device,
    authority: Authority,
    operator: tuple[Path, Path],
    python: Path,
    on_record: Record,
) -> None:
    """The AWS IoT Device SDK's TLS, whose key lies in a PKCS#11 token."""
    on_record([python, "-m", "pip", "show", "awscrt"], r"Version: (\S+)")
    with Server(device, authority, operator) as server:
        said = run(
            python, HERE / "get_awscrt.py", module(), PIN, device.certificate,
            authority.certificate, server.port, environment=device.environment,
        )  # fmt: skip
        server.knows_device()
    assert said.stdout == "200\n"
    assert len(device.signatures()) == 1


@pytest.mark.foreign("Node.js")
@needs.program("npm")
def test_node(device: Device, tmp_path_factory: pytest.TempPathFactory, on_record: Record) -> None:
    """pkcs11js, which Node.js programs and graphene-pk11 sign with."""
    on_record(["node", "--version"], r"v(\S+)")
    folder = tmp_path_factory.mktemp("node")
    for name in ("package.json", "package-lock.json", "sign.js"):
        shutil.copy(HERE / name, folder)
    # Its C++ part is built against the headers that came with the interpreter.
    prefix = Path(shutil.which("node") or "/usr/bin/node").resolve().parents[1]
    environment = _builds() | {"npm_config_nodedir": str(prefix)}
    run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", environment=environment,
        folder=folder, patience_s=MINUTES_S)  # fmt: skip
    run("npm", "rebuild", environment=environment, folder=folder, patience_s=MINUTES_S)
    said = run("node", "sign.js", module(), PIN, environment=device.environment, folder=folder)
    assert verified(device, der(bytes.fromhex(said.stdout.strip())))
    assert len(device.signatures()) == 1


@pytest.mark.foreign("crypto11")
@needs.program("go")
def test_crypto11(
    device: Device, tmp_path_factory: pytest.TempPathFactory, on_record: Record
) -> None:
    """Go's crypto.Signer over PKCS#11."""
    locked = ["grep", "crypto11", HERE / "go.mod"]
    on_record(locked, r"ThalesIgnite/crypto11 v(\S+)")
    folder = tmp_path_factory.mktemp("go")
    for name in ("go.mod", "go.sum", "main.go"):
        shutil.copy(HERE / name, folder)
    run("go", "build", "-mod=readonly", "-o", "signs", ".", environment=_builds(), folder=folder,
        patience_s=MINUTES_S)  # fmt: skip
    said = run(folder / "signs", module(), PIN, environment=device.environment)
    assert said.stdout == "signed: true\n"
    assert len(device.signatures()) == 1


@pytest.mark.foreign("strongSwan")
@needs.program("pki")
def test_strongswan(device: Device, on_record: Record) -> None:
    """libstrongswan's plugin, which charon signs with; here its own pki program."""
    on_record(["pki", "--version"], r"strongSwan (\S+?)\)?\s")
    folder = device.folder
    (folder / "strongswan.conf").write_text(
        "pki {\nload = pkcs11 random nonce x509 pem pkcs1 pkcs8 openssl\n}\n"
        "libstrongswan {\nplugins {\npkcs11 {\nmodules {\ncard {\n"
        f"path = {module()}\n}}\n}}\n}}\n}}\n}}\n"
    )
    said = run(
        "setsid", "pki", "--self", "--keyid", "01", "--dn", f"CN={DEVICE}", "--outform", "pem",
        environment=device.environment | {"STRONGSWAN_CONF": str(folder / "strongswan.conf")},
        stdin=f"{PIN}\n",
    ).stdout  # fmt: skip
    (folder / "own.pem").write_text(said[said.index("-----BEGIN") :])
    checked = run("openssl", "verify", "-CAfile", folder / "own.pem", folder / "own.pem",
                  environment=device.environment)  # fmt: skip
    assert checked.stdout.rstrip().endswith("OK")
    assert len(device.signatures()) == 1


_JAVA = """
import java.security.*;
public class Sign {
    public static void main(String[] a) throws Exception {
        Provider p = Security.getProvider("SunPKCS11").configure(a[0]);
        KeyStore store = KeyStore.getInstance("PKCS11", p);
        store.load(null, a[1].toCharArray());
        Signature s = Signature.getInstance("SHA256withECDSA", p);
        s.initSign((PrivateKey) store.getKey("client", null));
        s.update("hello".getBytes());
        System.out.println(java.util.HexFormat.of().formatHex(s.sign()));
    }
}
"""


@pytest.mark.foreign("SunPKCS11")
@needs.program("java")
def test_sun_pkcs11(device: Device, on_record: Record) -> None:
    on_record(["java", "-version"], r'version "(\S+)"')
    (device.folder / "Sign.java").write_text(_JAVA)
    (device.folder / "card.cfg").write_text(f"name = card\nlibrary = {module()}\n")
    said = run(
        "java", "Sign.java", "card.cfg", PIN, environment=device.environment, folder=device.folder,
        patience_s=120,
    )  # fmt: skip
    assert verified(device, bytes.fromhex(said.stdout.strip()))
    assert len(device.signatures()) == 1
