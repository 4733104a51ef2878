# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The server under measurement: libcoap's coap-server as Debian ships it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from warifu import tools
from warifu.lab.errors import LabError
from warifu.lab.processes import Process
from warifu.lab.server import START_SECONDS, Server


class CoapServer(Server):
    """One coap-server with a resource that answers a GET with a body of chosen length."""

    def __init__(
        self,
        folder: Path,
        *,
        address: str,
        port: int,
        path: str,
        response_body_bytes: int,
        namespace: str | None = None,
        processor: int | None = None,
    ) -> None:
        """Starts it on `address:port` and PUTs the body. Raises LabError with its own words."""
        folder.mkdir(parents=True)
        self._port = port
        self._namespace = namespace
        super().__init__(
            Process(
                "coap-server",
                # -d: a PUT may add a resource.
                [tools.find("coap-server-notls"), "-A", address, "-p", str(port), "-d", "1"],
                log=folder / "server.log",
                namespace=namespace,
                processor=processor,
            )
        )
        try:
            self.wait_until(lambda: _has_bound(self.pid, port))
            self._put(folder, f"coap://{address}:{port}{path}", response_body_bytes)
        except BaseException:
            self.stop()
            raise

    def _put(self, folder: Path, url: str, body_bytes: int) -> None:
        """From the server's own end, so that nothing of it is on the link."""
        body = folder / "body"
        body.write_bytes(b"w" * body_bytes)
        client = Process(
            "coap-client",
            [
                tools.find("coap-client-notls"), "-m", "put", "-f", body,
                "-B", str(round(START_SECONDS)), url,
            ],
            log=folder / "put.log",
            namespace=self._namespace,
        )  # fmt: skip
        try:
            code = client.wait(START_SECONDS + 1.0)
            # It prints the code of an error response, and exits with 0 all the same.
            said = client.log_tail()
            if code != 0 or said:
                raise LabError(
                    f"coap-server did not accept a body of {body_bytes} B at {url}: "
                    f"{said or f'coap-client ended with exit code {code}'}"
                )
        finally:
            client.stop()

    def words(self) -> str:
        """What it said last, to end a sentence with; empty if nothing."""
        words = self._process.log_tail(2)
        if "cannot create UDP endpoint" in words:
            return (
                f": it could not bind to port {self._port}: stop what listens there "
                f"(`ss -lunp sport = :{self._port}` names it), or choose another port"
            )
        return f": {words}" if words else ""


def udp_counters(namespace: str) -> dict[str, int]:
    """The UDP counters of a namespace, of which `RcvbufErrors` are datagrams that found a socket's
    buffer full (RFC 4113; Linux Documentation/networking/snmp_counter.rst)."""
    done = subprocess.run(
        [tools.find("ip"), "netns", "exec", namespace, "cat", "/proc/net/snmp"],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    rows = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("Udp:")]
    if len(rows) != 2:
        return {}
    return {name: int(value) for name, value in zip(*rows, strict=True)}


def _has_bound(pid: int, port: int) -> bool:
    """Whether a UDP socket of the process is bound to the port (proc_pid_net(5))."""
    try:
        rows = Path(f"/proc/{pid}/net/udp").read_text().splitlines()[1:]
        files = [path.readlink().name for path in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        # It has ended, or has closed a file meanwhile.
        return False
    fields = (row.split() for row in rows)
    inodes = {row[9] for row in fields if int(row[1].rpartition(":")[2], 16) == port}
    return any(f"socket:[{inode}]" in files for inode in inodes)
