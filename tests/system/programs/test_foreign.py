# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Programs that the module was not made for, from Debian: each signs with the card's key."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import needs
from support.foreign import CARD, Server, verified
from support.holding import Agent
from support.programs import DEVICE, PIN, Authority, Device, Running, free_port, module, run

Record = Callable[..., None]
SIGNED = 'warifu_agent_signatures_total{card="card",kind="ok"}'


@contextlib.contextmanager
def through_agent(device: Device) -> Iterator[Agent]:
    """An agent that holds the device's card and its PIN; the device's programs go through it."""
    with Agent(device.folder, "--card", device.address) as started:
        device.address = f"agent:{started.socket}"
        yield started


@pytest.mark.foreign("GnuTLS")
@needs.program("gnutls-cli")
def test_gnutls(
    device: Device, authority: Authority, operator: tuple[Path, Path], on_record: Record
) -> None:
    get_with_gnutls(device, authority, operator, on_record)
    assert len(device.signatures()) == 1


@pytest.mark.foreign("GnuTLS, by the agent")
@needs.program("gnutls-cli")
def test_gnutls_through_the_agent(
    device: Device, authority: Authority, operator: tuple[Path, Path], on_record: Record
) -> None:
    with through_agent(device) as agent:
        get_with_gnutls(device, authority, operator, on_record)
        assert agent.metric(SIGNED) == 1
    assert device.signatures() == []


def get_with_gnutls(
    device: Device, authority: Authority, operator: tuple[Path, Path], on_record: Record
) -> None:
    on_record(["gnutls-cli", "--version"], r"gnutls-cli (\S+)")
    with Server(device, authority, operator) as server:
        said = run(
            "gnutls-cli", "--provider", module(), "--x509cafile", authority.certificate,
            "--x509certfile", device.certificate, "--x509keyfile", f"{CARD};pin-value={PIN}",
            "--sni-hostname", "localhost", "--verify-hostname", "localhost", "-p", server.port,
            "127.0.0.1", environment=device.environment, stdin="GET / HTTP/1.0\r\n\r\n",
        ).stdout  # fmt: skip
        server.knows_device()
    assert "- Handshake was completed" in said


@pytest.mark.foreign("p11-kit")
@needs.program("p11-kit")
@needs.program("pkcs11-tool")
def test_p11_kit(device: Device, on_record: Record) -> None:
    """Its server gives the card to programs elsewhere, which load its client."""
    on_record(["dpkg-query", "-W", "-f=${Version}", "p11-kit"], r"(\S+)")
    (text := device.folder / "text").write_bytes(hashlib.sha256(b"hello").digest())
    socket = device.folder / "p11-kit.sock"
    server = Running(
        "p11-kit", "server", "--foreground", "--provider", module(), "--name", socket,
        "pkcs11:token=warifu", environment=device.environment, log=device.folder / "p11-kit",
    )  # fmt: skip
    with server:
        server.until("P11_KIT_SERVER_ADDRESS")
        run(
            "pkcs11-tool", "--module", next(Path("/usr/lib").glob("*/pkcs11/p11-kit-client.so")),
            "--token-label", "warifu", "--login", "--pin", PIN, "--sign", "--mechanism", "ECDSA",
            "--label", "client", "--signature-format", "openssl", "--input-file", text,
            "--output-file", device.folder / "signature",
            environment=device.environment | {"P11_KIT_SERVER_ADDRESS": f"unix:path={socket}"},
        )  # fmt: skip
    assert verified(device, (device.folder / "signature").read_bytes())
    assert len(device.signatures()) == 1


@pytest.mark.foreign("NSS")
@needs.program("certutil")
@needs.program("modutil")
def test_nss(device: Device, on_record: Record) -> None:
    """What Firefox and Chromium load modules with."""
    request_with_nss(device, on_record)
    assert len(device.signatures()) == 1


@pytest.mark.foreign("NSS, by the agent")
@needs.program("certutil")
@needs.program("modutil")
def test_nss_through_the_agent(device: Device, on_record: Record) -> None:
    with through_agent(device) as agent:
        request_with_nss(device, on_record)
        assert agent.metric(SIGNED) == 1
    assert device.signatures() == []


def request_with_nss(device: Device, on_record: Record) -> None:
    on_record(["dpkg-query", "-W", "-f=${Version}", "libnss3-tools"], r"(?:\d+:)?(\S+)")
    folder, environment = f"sql:{device.folder}", device.environment
    pin, noise = device.folder / "pin", device.folder / "noise"
    pin.write_text(f"{PIN}\n")
    noise.write_bytes(bytes(range(100)))
    run("certutil", "-N", "-d", folder, "--empty-password", environment=environment)
    run(
        "modutil", "-force", "-dbdir", folder, "-add", "warifu", "-libfile", module(),
        environment=environment,
    )  # fmt: skip
    token = ("-d", folder, "-h", "warifu", "-f", pin)
    certificates = run("certutil", "-L", *token, environment=environment).stdout
    assert "warifu:client" in certificates
    request = device.folder / "request"
    run(
        "certutil", "-R", *token, "-k", "01", "-s", f"CN={DEVICE}", "-a", "-z", noise,
        "-o", request, environment=environment,
    )  # fmt: skip
    said = run("openssl", "req", "-in", request, "-verify", "-noout", environment=environment)
    assert "verify OK" in said.stdout + said.stderr


@pytest.mark.foreign("OpenSSH")
@needs.program("sshd")
@needs.program("ssh")
@needs.root
def test_openssh(device: Device, on_record: Record) -> None:
    """Logs in with the card's key; sshd asks for root here, and takes what the user has."""
    on_record(["ssh", "-V"], r"OpenSSH_(\S+)")
    folder, port = device.folder, free_port()
    environment = device.environment
    keys = run("ssh-keygen", "-D", module(), environment=environment).stdout.splitlines()
    own = next(line for line in keys if line.endswith(" client"))
    (folder / "authorized_keys").write_text(f"{own}\n")
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "host_key",
        environment=environment)  # fmt: skip
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"
    )
    (ask := folder / "ask").write_text(f"#!/bin/sh\necho {PIN}\n")
    ask.chmod(0o700)
    Path("/run/sshd").mkdir(exist_ok=True)
    server = Running(
        "/usr/sbin/sshd", "-D", "-e", "-f", folder / "sshd_config",
        environment=environment, log=folder / "sshd",
    )  # fmt: skip
    with server:
        server.until("Server listening")
        said = run(
            "ssh", "-F", "none", "-p", port, "-o", f"PKCS11Provider={module()}",
            "-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={folder}/known",
            "-o", "IdentitiesOnly=no", "-o", "PreferredAuthentications=publickey",
            f"{getpass.getuser()}@127.0.0.1", "echo logged in",
            environment=environment
            | {"SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":0"},
        ).stdout  # fmt: skip
        server.until("Accepted publickey .* ECDSA ")
    assert said == "logged in\n"
    assert len(device.signatures()) == 1


@pytest.mark.foreign("stunnel")
@needs.program("stunnel")
def test_stunnel(
    device: Device, authority: Authority, operator: tuple[Path, Path], on_record: Record
) -> None:
    on_record(["stunnel", "-version"], r"stunnel (\S+)")
    port, configuration = free_port(), device.folder / "stunnel.conf"
    with Server(device, authority, operator) as server:
        configuration.write_text(
            "foreground = yes\npid =\nengine = pkcs11\n"
            f"engineCtrl = MODULE_PATH:{module()}\nengineCtrl = PIN:{PIN}\nengineCtrl = INIT\n"
            f"[card]\nclient = yes\naccept = 127.0.0.1:{port}\nconnect = 127.0.0.1:{server.port}\n"
            f"engineId = pkcs11\nkey = {CARD}\ncert = {device.certificate}\n"
            f"CAfile = {authority.certificate}\nverifyChain = yes\n"
        )
        tunnel = Running(
            "stunnel", configuration, environment=device.environment, log=device.folder / "stunnel"
        )
        with tunnel:
            tunnel.until("Configuration successful")
            run("curl", "--fail", "--silent", "--show-error", f"http://127.0.0.1:{port}/",
                environment=device.environment)  # fmt: skip
        server.knows_device()
    assert len(device.signatures()) == 1


_HOSTAPD = """\
driver=none
logger_stdout=-1
eap_server=1
eap_user_file={folder}/users
ca_cert={ca}
server_cert={certificate}
private_key={key}
radius_server_clients={folder}/clients
radius_server_auth_port={port}
"""
_PEER = """\
pkcs11_engine_path={engine}
pkcs11_module_path={module}
network={{
    key_mgmt=WPA-EAP
    eap=TLS
    identity="{identity}"
    ca_cert="{ca}"
    client_cert="{certificate}"
    engine=1
    engine_id="pkcs11"
    key_id="{card}"
    pin="{pin}"
}}
"""


@pytest.fixture
def trusted_module() -> Iterator[Path]:
    """The module where wpa_supplicant takes modules from, and from nowhere else."""
    folder = Path(tempfile.mkdtemp(prefix="warifu-test-", dir="/usr/lib"))
    try:
        yield Path(shutil.copy(module(), folder))
    finally:
        shutil.rmtree(folder)


@pytest.mark.foreign("wpa_supplicant")
@needs.root
@needs.program("eapol_test")
@needs.program("hostapd")
def test_eap_tls(
    device: Device,
    authority: Authority,
    operator: tuple[Path, Path],
    trusted_module: Path,
    on_record: Record,
) -> None:
    """wpa_supplicant's own peer at hostapd's server: what a device does in WPA-Enterprise."""
    on_record(["dpkg-query", "-W", "-f=${Version}", "eapoltest"], r"([^:]+)$")
    certificate, key = operator
    folder, port = device.folder, free_port()
    (folder / "users").write_text("* TLS\n")
    (folder / "clients").write_text("127.0.0.1 secret\n")
    (folder / "hostapd.conf").write_text(
        _HOSTAPD.format(folder=folder, ca=authority.certificate, certificate=certificate, key=key,
                        port=port)
    )  # fmt: skip
    engine = next(Path("/usr/lib").glob("*/engines-3/pkcs11.so"))
    (folder / "peer.conf").write_text(
        _PEER.format(
            engine=engine, module=trusted_module, identity=DEVICE, ca=authority.certificate,
            certificate=device.certificate, card=CARD, pin=PIN,
        )
    )  # fmt: skip
    server = Running(
        "hostapd", folder / "hostapd.conf", environment=device.environment, log=folder / "hostapd"
    )
    with server:
        server.until("AP-ENABLED|RADIUS|eap_server|Completing interface")
        said = run(
            "eapol_test", "-c", folder / "peer.conf", "-a", "127.0.0.1", "-p", port, "-s", "secret",
            environment=device.environment,
        ).stdout  # fmt: skip
    assert said.rstrip().endswith("SUCCESS")
    assert len(device.signatures()) == 1
