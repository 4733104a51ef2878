# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What C_Sign costs beside the signature itself: in-process, through the agent. JSON on stdout.

The timing model is off. The signature's own time is what the virtual card takes in this process,
in the same run; SoftHSM2's whole call stands beside. Programs must be built for release.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from warifu import tools

ROOT = Path(__file__).resolve().parents[1]
SOFTHSM = Path("/usr/lib/softhsm/libsofthsm2.so")
PIN = "1234"
#: Above what an overhead may be, P50, ms (issue 3).
TARGETS_MS = {"in_process": 0.1, "agent": 0.4, "cached_token": 1.0}

ulong = ctypes.c_ulong
PRIVATE_KEY, CLASS, ECDSA, SERIAL_SESSION, USER = 3, 0, 0x1041, 4, 1


class Attribute(ctypes.Structure):
    """CK_ATTRIBUTE."""

    _fields_ = (("kind", ulong), ("value", ctypes.c_void_p), ("length", ulong))


class Mechanism(ctypes.Structure):
    """CK_MECHANISM."""

    _fields_ = (("kind", ulong), ("parameter", ctypes.c_void_p), ("length", ulong))


def signatures_ns(path: Path, count: int, pin: str | None) -> list[int]:
    """Times of C_SignInit and C_Sign of a module's first private key, ns."""
    module = ctypes.CDLL(str(path))

    def call(name: str, *arguments: object) -> None:
        rv = getattr(module, name)(*arguments)
        if rv != 0:
            raise SystemExit(f"bench: {path.name}: {name} gave {rv:#x}")

    call("C_Initialize", None)
    slots, number = (ulong * 8)(), ulong(8)
    call("C_GetSlotList", ctypes.c_ubyte(1), slots, ctypes.byref(number))
    session = ulong()
    call("C_OpenSession", ulong(slots[0]), ulong(SERIAL_SESSION), None, None, ctypes.byref(session))
    if pin is not None:
        call("C_Login", session, ulong(USER), pin.encode(), ulong(len(pin)))
    kind = ulong(PRIVATE_KEY)
    wanted = Attribute(CLASS, ctypes.cast(ctypes.pointer(kind), ctypes.c_void_p), 8)
    call("C_FindObjectsInit", session, ctypes.byref(wanted), ulong(1))
    key, found = ulong(), ulong()
    call("C_FindObjects", session, ctypes.byref(key), ulong(1), ctypes.byref(found))
    call("C_FindObjectsFinal", session)
    if found.value != 1:
        raise SystemExit(f"bench: {path.name} shows no private key")
    mechanism, room, length = Mechanism(ECDSA, None, 0), ctypes.create_string_buffer(64), ulong()
    times_ns = []
    for turn in range(count):
        digest = turn.to_bytes(32, "big")
        length.value = 64
        begin = time.perf_counter_ns()
        init = module.C_SignInit(session, ctypes.byref(mechanism), key)
        done = module.C_Sign(session, digest, ulong(32), room, ctypes.byref(length))
        times_ns.append(time.perf_counter_ns() - begin)
        if init or done:
            raise SystemExit(f"bench: {path.name}: C_Sign gave {init:#x} {done:#x}")
    call("C_Finalize", None)
    return times_ns


@contextlib.contextmanager
def process(*arguments: str, stdin: str | None = None) -> Iterator[None]:
    """A program that says on either stream that it is ready."""
    child = subprocess.Popen(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(stdin or "")
        child.stdin.close()
        line = child.stdout.readline()
        if "ready" not in line and "export" not in line:
            raise SystemExit(f"bench: {arguments[0]}: {line.strip()}")
        yield
    finally:
        child.terminate()
        child.wait()


def softhsm(folder: Path, count: int) -> list[int] | None:
    """SoftHSM2's whole calls, in a process of its own; None where it is not installed."""
    if not SOFTHSM.exists() or shutil.which("pkcs11-tool") is None:
        return None
    (folder / "tokens").mkdir()
    config = folder / "softhsm2.conf"
    config.write_text(f"directories.tokendir = {folder / 'tokens'}\nlog.level = ERROR\n")
    os.environ["SOFTHSM2_CONF"] = str(config)
    tool = ["pkcs11-tool", "--module", str(SOFTHSM)]
    login = ["--login", "--pin", PIN]
    for arguments in (
        ["--init-token", "--slot", "0", "--label", "bench", "--so-pin", PIN],
        ["--token-label", "bench", "--init-pin", "--login", "--so-pin", PIN, "--pin", PIN],
        ["--token-label", "bench", *login, "--keypairgen", "--key-type", "EC:prime256v1"],
    ):
        subprocess.run([*tool, *arguments], check=True, capture_output=True)
    return signatures_ns(SOFTHSM, count, PIN)


def cached_token_ns(socket: Path, count: int) -> list[int]:
    """Times of a kept token at the agent's socket, ns: a request that is sent again and again."""
    import socket as sockets

    # Version 2, number, card, 5 s, token: no key, audience "a", no iss, sub, kid; 3600 s; no more.
    body = bytes([2, 1, 0, 5, 0, 12, 0, 1, 1]) + b"a" + bytes([0, 0, 0, 0x90, 0x1C, 0])
    frame = len(body).to_bytes(4, "big") + body
    times_ns = []
    with sockets.socket(sockets.AF_UNIX) as caller:
        caller.connect(str(socket))
        for _ in range(1 + count):
            begin = time.perf_counter_ns()
            caller.sendall(frame)
            answer = caller.recv(4096)
            times_ns.append(time.perf_counter_ns() - begin)
            if b"eyJ" not in answer:
                raise SystemExit(f"bench: the agent gave no token: {answer.hex()}")
    return times_ns[1:]  # the card signed the first


def summary(times_ns: list[int]) -> dict[str, float]:
    """n and quantiles, ms."""
    percent = statistics.quantiles([time_ns / 1e6 for time_ns in times_ns], n=100)
    return {
        "n": len(times_ns),
        "p50_ms": round(percent[49], 4),
        "p95_ms": round(percent[94], 4),
        "p99_ms": round(percent[98], 4),
    }


def main() -> int:
    """Times each way; the overheads are differences of medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="signatures each")
    count = parser.parse_args().count
    own: dict[str, list[int]] = {"own": [], "in_process": []}
    example = ["cargo", "run", "--quiet", "--release", "--locked", "-p", "warifu-agent"]
    lines = subprocess.run(
        [*example, "--example", "overhead", str(count)],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    for line in lines:
        name, value = line.split()
        own[name].append(int(value))
    result: dict[str, object] = {"targets_ms": TARGETS_MS}
    times = dict(own)
    with tempfile.TemporaryDirectory(prefix="warifu-bench-") as name:
        folder = Path(name)
        state, card, socket = folder / "card.state", folder / "card.sock", folder / "agent.sock"
        server, agent = str(tools.find("warifu-card-server")), str(tools.find("warifu-agent"))
        module = tools.find("libwarifu_pkcs11.so")
        text = json.dumps({"state": str(state)})
        subprocess.run([server, "create"], input=text, text=True, check=True, capture_output=True)
        text = json.dumps({"state": str(state), "socket": str(card)})
        with (
            process(server, "serve", stdin=text),
            process(agent, "start", "--card", f"unix:{card}", "--socket", str(socket)),
        ):
            time.sleep(1)  # what the agent does ahead
            os.environ["WARIFU_CARD"] = f"agent:{socket}"
            times["agent"] = signatures_ns(module, count, None)
            os.environ["WARIFU_CARD"] = f"unix:{card}"
            times["socket"] = signatures_ns(module, count, None)
            result["cached_token"] = summary(cached_token_ns(socket, count))
        hsm = softhsm(folder, count)
        if hsm is not None:
            times["softhsm2"] = hsm
    medians = {name: statistics.median(values) / 1e6 for name, values in times.items()}
    result["whole_call"] = {name: summary(values) for name, values in times.items()}
    result["overhead_p50_ms"] = {
        name: round(medians[name] - medians["own"], 4) for name in ("in_process", "socket", "agent")
    }
    json.dump(result, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
