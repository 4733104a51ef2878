# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How long an APDU takes to the virtual card and back, by each way in. JSON on stdout.

The timing model is off: what is left is the transport, the server and the card's own work. The
command is READ FILE of one byte's offset in an empty place, which the card refuses at once.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from warifu import tools
from warifu.doctor import pcsc
from warifu.doctor.modem import Modem

SELECT = bytes.fromhex("00A4040C07A0000005590010")
REFUSED = bytes.fromhex("80B0000003830102")
#: Above what a transport may take, ms (issue 3).
TARGET_MS = 0.2


@contextlib.contextmanager
def served(state: Path, **ways: object) -> Iterator[dict[str, Any]]:
    """A card that is served by these ways; where."""
    program = tools.find("warifu-card-server")
    child = subprocess.Popen([program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps({"state": str(state), **ways}, default=str).encode())
    child.stdin.close()
    line = child.stdout.readline()
    try:
        if not line:
            raise SystemExit(child.wait())
        yield json.loads(line)
    finally:
        child.terminate()
        child.wait()


def over_socket(path: Path) -> Callable[[bytes], bytes]:
    """Sends APDUs to the Unix socket."""
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(path))

    def transmit(apdu: bytes) -> bytes:
        client.sendall(struct.pack(">I", len(apdu)) + apdu)
        answer = client.recv(70_000)
        return answer[4:]

    return transmit


def timed(transmit: Callable[[bytes], bytes], count: int) -> dict[str, float]:
    """Statistics of the round trips, ms."""
    if transmit(SELECT) != b"\x90\x00":
        raise SystemExit("the card refuses SELECT")
    times_ms = []
    for _ in range(count):
        begin = time.perf_counter_ns()
        answer = transmit(REFUSED)
        times_ms.append((time.perf_counter_ns() - begin) / 1e6)
        if answer != b"\x69\x85":
            raise SystemExit(f"the card answered {answer.hex()}")
    percent = statistics.quantiles(times_ms, n=100, method="inclusive")
    return {
        "n": count,
        "p50_ms": percent[49],
        "p95_ms": percent[94],
        "p99_ms": percent[98],
        "max_ms": max(times_ms),
    }


def main() -> int:
    """Times every way in; PC/SC as root alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="round trips each")
    count = parser.parse_args().count
    result: dict[str, object] = {"target_ms": TARGET_MS}
    with tempfile.TemporaryDirectory(prefix="warifu-bench-") as folder:
        state, path = Path(folder) / "card.state", Path(folder) / "card.sock"
        request = json.dumps({"state": str(state)})
        program = tools.find("warifu-card-server")
        subprocess.run(
            [program, "create"], input=request, text=True, check=True, stdout=subprocess.DEVNULL
        )
        with served(state, socket=path, at=True) as ready:
            result["unix"] = timed(over_socket(path), count)
            with Modem(Path(ready["at"])) as modem:
                modem.command("ATE0")
                result["at"] = timed(modem.csim, count)
        if os.geteuid() == 0:
            os.environ["PCSCLITE_CSOCK_NAME"] = f"{folder}/pcscd/pcscd.comm"
            with (
                served(state, pcsc=True, pcscd_dir=f"{folder}/pcscd") as ready,
                pcsc.Pcsc() as service,
            ):
                card = service.connect(ready["reader"])
                result["pcsc"] = timed(card.transmit, count)
                card.disconnect()
    json.dump(result, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
