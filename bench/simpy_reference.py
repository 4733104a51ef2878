# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The reference model in SimPy: what a general-purpose event library makes of it.

One establishment is a mutual TLS 1.3 handshake over TCP and one request: 30 ms one way, 2 % loss
in each direction, 476 ms of signing by the client. The recovery rules are simpler than
warifu-sim's: one packet a flight, one retransmission timer that doubles, no acknowledgements as
packets of their own, one process a connection. So the comparison favours SimPy.

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

# (computing before the flight is sent in s, its retransmission timeout in s)
FLIGHTS = (
    (0.0, SYN_TIMEOUT_S),  # SYN
    (0.0, SYN_TIMEOUT_S),  # SYN-ACK
    (0.0002, DATA_TIMEOUT_S),  # ClientHello
    (0.0006, DATA_TIMEOUT_S),  # ServerHello to Finished
    (SIGN_S + 0.0006, DATA_TIMEOUT_S),  # Certificate to Finished, request
    (0.0005, DATA_TIMEOUT_S),  # tickets and response
)


def establishment(env: simpy.Environment, rng: random.Random) -> Generator[simpy.Event]:
    """One connection, flight by flight: each is sent again when its timer runs out, doubling it."""
    for compute_s, timeout_s in FLIGHTS:
        if compute_s:
            yield env.timeout(compute_s)
        while rng.random() < LOSS:
            yield env.timeout(timeout_s)
            timeout_s *= 2.0
        yield env.timeout(ONE_WAY_S)


def run(trials: int, seed: int) -> tuple[float, list[float]]:
    """Runs `trials` establishments one after the other; the seconds taken and each time in ms."""
    rng = random.Random(seed)
    times_ms: list[float] = []
    started = time.perf_counter()
    env = simpy.Environment()
    for _ in range(trials):
        begun = env.now
        env.run(until=env.process(establishment(env, rng)))
        times_ms.append((env.now - begun) * 1e3)
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
