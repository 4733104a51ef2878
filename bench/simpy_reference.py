# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The reference model in SimPy: what a general-purpose event library makes of it.

One establishment is a mutual TLS 1.3 handshake over TCP and one request: 30 ms one way, 2 % loss
in each direction, 476 ms of signing by the client. The recovery rules are simpler than
warifu-sim's (one retransmission timer that doubles, no acknowledgements as packets of their own),
so the comparison favours SimPy.

Prints one JSON object: establishments per second on one core, their mean in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Generator

import simpy

ONE_WAY_S = 0.030
LOSS = 0.02
SIGN_S = 0.476
SYN_TIMEOUT_S = 1.0  # RFC 6298 section 2.1
DATA_TIMEOUT_S = 0.260  # SRTT + 200 ms: Linux's least variance term at 60 ms RTT

# (from the client?, computing before it is sent in s, retransmission timeout in s)
FLIGHTS = (
    (True, 0.0, SYN_TIMEOUT_S),  # SYN
    (False, 0.0, SYN_TIMEOUT_S),  # SYN-ACK
    (True, 0.0002, DATA_TIMEOUT_S),  # ClientHello
    (False, 0.0006, DATA_TIMEOUT_S),  # ServerHello to Finished
    (True, SIGN_S + 0.0006, DATA_TIMEOUT_S),  # Certificate to Finished, request
    (False, 0.0005, DATA_TIMEOUT_S),  # tickets and response
)


def sender(
    env: simpy.Environment, wire: simpy.Store, rng: random.Random, timeout_s: float, arrived: simpy.Event
) -> Generator[simpy.Event]:
    """Sends one flight until it has arrived, doubling the timeout each time."""
    while not arrived.triggered:
        if rng.random() >= LOSS:
            env.process(deliver(env, wire, arrived))
        yield env.timeout(timeout_s) | arrived
        timeout_s *= 2.0


def deliver(env: simpy.Environment, wire: simpy.Store, arrived: simpy.Event) -> Generator[simpy.Event]:
    """Takes one packet across."""
    yield env.timeout(ONE_WAY_S)
    if not arrived.triggered:
        arrived.succeed()
        yield wire.put(env.now)


def establishment(
    env: simpy.Environment, wires: tuple[simpy.Store, simpy.Store], rng: random.Random
) -> Generator[simpy.Event]:
    """One connection, flight by flight."""
    for from_client, compute_s, timeout_s in FLIGHTS:
        if compute_s:
            yield env.timeout(compute_s)
        wire = wires[0] if from_client else wires[1]
        arrived = env.event()
        env.process(sender(env, wire, rng, timeout_s, arrived))
        yield wire.get()


def run(trials: int, seed: int) -> tuple[float, list[float]]:
    """Runs `trials` establishments one after the other; returns the seconds taken and each time in ms."""
    rng = random.Random(seed)
    times_ms: list[float] = []
    started = time.perf_counter()
    for _ in range(trials):
        env = simpy.Environment()
        wires = (simpy.Store(env), simpy.Store(env))
        done = env.process(establishment(env, wires, rng))
        env.run(until=done)
        times_ms.append(env.now * 1e3)
    return time.perf_counter() - started, times_ms


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    seconds, times_ms = run(arguments.trials, arguments.seed)
    print(
        json.dumps(
            {
                "engine": f"SimPy {simpy.__version__}",
                "establishments_per_s": arguments.trials / seconds,
                "mean_ms": statistics.fmean(times_ms),
                "p50_ms": statistics.median(times_ms),
                "trials": arguments.trials,
            }
        )
    )


if __name__ == "__main__":
    main()
