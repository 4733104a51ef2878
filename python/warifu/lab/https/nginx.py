# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The server under measurement: nginx as Debian ships it, set up for one stack."""

from __future__ import annotations

from pathlib import Path

from warifu import tools
from warifu.case import HttpsStack, Tls
from warifu.lab.https.psk import PreSharedKey
from warifu.lab.https.stack import is_mutual
from warifu.lab.processes import Process
from warifu.lab.server import Server

_LISTEN = "0A"
"""State TCP_LISTEN in /proc/net/tcp (include/net/tcp_states.h)."""

_OPENSSL_GROUPS = {"secp256r1": "prime256v1", "x25519": "X25519"}

_OPENSSL_CIPHERS = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_PSK_WITH_AES_128_GCM_SHA256": "PSK-AES128-GCM-SHA256",
    "TLS_PSK_WITH_AES_256_GCM_SHA384": "PSK-AES256-GCM-SHA384",
    "TLS_PSK_WITH_CHACHA20_POLY1305_SHA256": "PSK-CHACHA20-POLY1305",
    "TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-PSK-CHACHA20-POLY1305",
}
"""OpenSSL's names of the TLS 1.2 suites (openssl-ciphers(1))."""


class Nginx(Server):
    """One nginx with one worker, in a folder of its own."""

    def __init__(
        self,
        folder: Path,
        *,
        address: str,
        port: int,
        stack: HttpsStack | None,
        pki: Path | None,
        response_body_bytes: int,
        request_body_bytes: int = 0,
        psk: PreSharedKey | None = None,
        namespace: str | None = None,
        processor: int | None = None,
    ) -> None:
        """Starts nginx and waits until its worker serves `address:port`.

        Without `stack` and `pki` it speaks plain HTTP. With `psk` it takes that key, which it has
        no directive for, by a preloaded library (crates/lab/psk-preload). Raises LabError with
        nginx's own words.
        """
        folder.mkdir(parents=True)
        (folder / "body").write_bytes(b"w" * response_body_bytes)
        configuration = folder / "nginx.conf"
        configuration.write_text(
            _configuration(folder, address, port, stack, pki, request_body_bytes)
        )
        self.error_log = folder / "error.log"
        self._port = port
        super().__init__(
            Process(
                "nginx",
                [tools.find("nginx"), "-p", folder, "-c", configuration, "-e", self.error_log],
                log=folder / "start.log",
                namespace=namespace,
                processor=processor,
                # SIGTERM lets the master take its worker along; SIGKILL would orphan it.
                death_signal="TERM",
                environment=None if psk is None else _preload(psk),
            )
        )
        try:
            self.wait_until(
                lambda: bool(self._process.children()) and _is_listening(self.pid, port)
            )
        except BaseException:
            self.stop()
            raise

    @property
    def worker_pid(self) -> int:
        """Process id of the worker. Raises LabError if it is gone."""
        children = self._process.children()
        if not children:
            raise self.ended()
        return children[0]

    def words(self) -> str:
        """What it said last, to end a sentence with; empty if nothing."""
        words = ""
        if self.error_log.exists():
            lines = self.error_log.read_text(errors="replace").splitlines()
            words = " / ".join(lines[-2:])
        words = words or self._process.log_tail(2)
        if "98: " in words or "Address already in use" in words:
            return (
                f": port {self._port} is in use: stop what listens there "
                f"(`ss -ltnp sport = :{self._port}` names it), or choose another port"
            )
        return f": {words}" if words else ""


def _preload(psk: PreSharedKey) -> dict[str, str]:
    return {
        "LD_PRELOAD": str(tools.find("libwarifu_psk_preload.so")),
        "WARIFU_PSK_IDENTITY": psk.identity,
        "WARIFU_PSK_KEY": psk.key,
    }


_UPLOAD = (
    # nginx serves files to GET alone: "405" is what its static module says of a POST, here answered
    # with the same file. The mirror module has the body read whole before, as an application
    # behind nginx would; the subrequest that it makes of it ends in a location without content.
    "location / { mirror /mirror; error_page 405 =200 /body; try_files /body =404; }",
    "location = /body { internal; }",
    "location = /mirror { internal; return 204; }",
)


def _configuration(
    folder: Path,
    address: str,
    port: int,
    stack: HttpsStack | None,
    pki: Path | None,
    request_body_bytes: int,
) -> str:
    """nginx.conf. All that is not set is nginx's default, as a server in the field has it."""
    security = _security(stack.tls, pki) if stack is not None and pki is not None else []
    nagle = stack is not None and stack.tcp.nagle
    lines = [
        # Keys and folders belong to the one who runs the lab.
        "user root;",
        "daemon off;",
        "worker_processes 1;",
        f"pid {folder}/nginx.pid;",
        f"error_log {folder}/error.log warn;",
        "events { worker_connections 8192; }",
        "worker_rlimit_nofile 16384;",
        "http {",
        "access_log off;",
        # Headers whose length never changes: warifu-trace counts on them.
        "server_tokens off;",
        "etag off;",
        "types { }",
        "default_type application/octet-stream;",
        # On TLS connections nginx sets TCP_NODELAY before the handshake unless told not to
        # (ngx_http_ssl_handshake, nginx 1.22).
        f"tcp_nodelay {'off' if nagle else 'on'};",
        f"client_body_temp_path {folder}/temporary;",
        f"proxy_temp_path {folder}/temporary;",
        f"fastcgi_temp_path {folder}/temporary;",
        f"uwsgi_temp_path {folder}/temporary;",
        f"scgi_temp_path {folder}/temporary;",
        "server {",
        f"listen {address}:{port}{' ssl' if security else ''} backlog=4096;",
        *security,
        f"root {folder};",
        # In memory whatever its length, as where an application takes it: a temporary file's time
        # would be the disk's.
        *([f"client_body_buffer_size {request_body_bytes};"] if request_body_bytes else []),
        # Any path gives the same body.
        *(_UPLOAD if request_body_bytes else ("location / { try_files /body =404; }",)),
        "}",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _security(tls: Tls, pki: Path) -> list[str]:
    lines = [
        f"ssl_certificate {pki}/server-chain.pem;",
        f"ssl_certificate_key {pki}/server.key;",
        f"ssl_protocols TLSv{tls.version};",
        f"ssl_ecdh_curve {_groups(tls)};",
        # Tickets made ahead live as long as a run.
        "ssl_session_timeout 1d;",
    ]
    if tls.version == "1.2":
        lines.append(f"ssl_ciphers {_OPENSSL_CIPHERS[tls.cipher_suite]};")
    else:
        lines.append(f"ssl_conf_command Ciphersuites {tls.cipher_suite};")
    alone = tls.psk is not None and tls.psk.mode == "psk_ke" and tls.version == "1.3"
    if tls.session == "psk_ke" or alone:
        lines.append("ssl_conf_command Options AllowNoDHEKEX;")
    if tls.session == "0-rtt":
        lines.append("ssl_early_data on;")
    if is_mutual(tls):
        lines += [
            f"ssl_client_certificate {pki}/root.pem;",
            "ssl_verify_client on;",
            "ssl_verify_depth 3;",
        ]
    return lines


def _groups(tls: Tls) -> str:
    """The groups nginx offers, the wanted one first.

    TLS 1.2 holds the curve of an ECDSA certificate to the same list (RFC 8422 section 5.1), so
    P-256 stands in it as well.
    """
    own = _OPENSSL_GROUPS[tls.group]
    shows = tls.psk is None and tls.certificate == "ecdsa_secp256r1"
    needs_curve = tls.version == "1.2" and shows
    return f"{own}:prime256v1" if needs_curve and own != "prime256v1" else own


def _is_listening(pid: int, port: int) -> bool:
    """Whether a socket of the process's namespace listens on the port (proc_pid_net(5))."""
    try:
        rows = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    except OSError:
        return False
    fields = (row.split() for row in rows)
    return any(row[3] == _LISTEN and int(row[1].rpartition(":")[2], 16) == port for row in fields)
