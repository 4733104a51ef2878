#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""One-way and ping-pong latency of plain ROS 2: two nodes of rclpy, std_msgs/String on `chatter`.

    python3 -m venv ros && ros/bin/pip install ros-kilted-rclpy ros-kilted-rmw-fastrtps-cpp \
        ros-kilted-std-msgs                       # Python 3.11; built without DDS Security
    sudo dds/probes/pair ros/bin/python dds/probes/ros2.py ping \
        --with ros/bin/python dds/probes/ros2.py pong

Messages, options and output are those of cyclonedds.c and fastdds.cpp; answers come on
`chatter_answer`. Over UDP alone, so that what is timed is on the wire. Exit code 1: nobody matched.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

STAMP = 15
"""The first characters of a message: CLOCK_MONOTONIC in ns as it was sent, hexadecimal."""
LEAST_BYTES, MOST_BYTES = 16, 8 << 20
SETTLE_SECONDS = 1.0
"""The other side may learn of the match a little later."""


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options, whose names and defaults are those of the other probes."""
    parser = argparse.ArgumentParser(description="latency of plain ROS 2")
    parser.add_argument("role", choices=["ping", "pong"])
    parser.add_argument("--bytes", type=int, default=16, help="of a message's string (16)")
    parser.add_argument("--count", type=int, default=1000, help="messages (1000)")
    parser.add_argument("--period-us", type=int, default=1000, help="after an answer (1000)")
    parser.add_argument("--topic", default="chatter")
    parser.add_argument("--samples", type=Path, help="a line each: when sent, latency, in ns")
    parser.add_argument("--timeout", type=float, default=20.0, help="give up after so many s (20)")
    options = parser.parse_args(arguments)
    if not LEAST_BYTES <= options.bytes <= MOST_BYTES:
        parser.error(f"--bytes is {options.bytes}: expected a number from 16 to {MOST_BYTES}")
    if options.count < 1 or options.timeout <= 0 or options.period_us < 0:
        parser.error("--count, --timeout: expected more than 0; --period-us: 0 or more")
    return options


class Probe:
    """A node with one publisher and one subscription."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Makes it; discovery begins."""
        import rclpy
        from rclpy.qos import QoSHistoryPolicy, QoSProfile, QoSReliabilityPolicy
        from std_msgs.msg import String

        self._rclpy, self._message = rclpy, String
        self.options = options
        self.latencies: list[tuple[int, int]] = []
        self.answered = 0
        self.stopped = False
        self.begun_ns = time.monotonic_ns()
        rclpy.init(args=[], signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
        self.node = rclpy.create_node(f"warifu_{options.role}")
        reliable = QoSProfile(
            depth=1000,
            history=QoSHistoryPolicy.KEEP_LAST,
            reliability=QoSReliabilityPolicy.RELIABLE,
        )
        there, back = options.topic, f"{options.topic}_answer"
        writes, reads = (there, back) if options.role == "ping" else (back, there)
        self.publisher = self.node.create_publisher(String, writes, reliable)
        self.subscription = self.node.create_subscription(String, reads, self._read, reliable)

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        """A signal ends a wait, and what was seen is reported."""
        self.stopped = True

    def _read(self, message: object) -> None:
        at_ns = time.monotonic_ns()
        text: str = message.data  # type: ignore[attr-defined]
        if self.options.role == "pong":
            self.publisher.publish(message)
        self.answered = int(text[:STAMP], 16)
        self.latencies.append((self.answered, at_ns - self.answered))

    def matched(self) -> bool:
        """Waits for the other end."""

        def there() -> bool:
            others = self.node.count_publishers(self.subscription.topic_name)
            return self.publisher.get_subscription_count() > 0 and others > 0

        return self._spin(there)

    def ping(self) -> int:
        """Sends, each message after the answer to the one before; how many there were."""
        sent = 0
        time.sleep(SETTLE_SECONDS)
        for _ in range(self.options.count):
            if self.stopped:
                break
            time.sleep(self.options.period_us / 1e6)
            sent_ns = time.monotonic_ns()
            filling = "x" * (self.options.bytes - 1 - STAMP)
            self.publisher.publish(self._message(data=f"{sent_ns:0{STAMP}x}{filling}"))
            sent += 1
            self._spin(lambda sent_ns=sent_ns: self.answered == sent_ns)
        return sent

    def pong(self) -> None:
        """Answers until all have come, or nothing does for the timeout."""
        while len(self.latencies) < self.options.count and not self.stopped:
            before = len(self.latencies)
            if not self._spin(lambda before=before: len(self.latencies) > before):
                break

    def _spin(self, done: object) -> bool:
        until = time.monotonic() + self.options.timeout
        while not done():  # type: ignore[operator]
            if self.stopped or time.monotonic() >= until:
                return False
            self._rclpy.spin_once(self.node, timeout_sec=0.1)
        return True

    def close(self) -> None:
        """Ends the node."""
        self.node.destroy_node()
        self._rclpy.shutdown()


def report(probe: Probe, sent: int, discovery_ns: int) -> None:
    """One JSON object, and the samples in their file."""
    options = probe.options
    if options.samples is not None:
        lines = (f"{at} {ns}\n" for at, ns in probe.latencies)
        options.samples.write_text("".join(lines))
    found = {
        "probe": "ros2", "role": options.role, "secured": False, "bytes": options.bytes,
        "discovery_ns": discovery_ns, "sent": sent, "received": len(probe.latencies),
    }  # fmt: skip
    if probe.latencies:
        ordered = sorted(ns for _, ns in probe.latencies)
        shares = {"minimum": 0.0, "median": 0.5, "p90": 0.9, "p99": 0.99, "maximum": 1.0}
        name = "round_trip_ns" if options.role == "ping" else "one_way_ns"
        last = len(ordered) - 1
        found[name] = {key: ordered[int(share * last + 0.5)] for key, share in shares.items()}
    print(json.dumps(found, separators=(",", ":")))


def main() -> int:
    """Runs a role; 0, 1 where nobody matched, 2 for a mistake."""
    options = parse(sys.argv[1:])
    # No shared memory, no profile of the folder's: see fastdds.cpp.
    for name in ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE"):
        os.environ.pop(name, None)
    os.environ |= {
        "SKIP_DEFAULT_XML_FILE": "1",
        "FASTDDS_BUILTIN_TRANSPORTS": "UDPv4",
        "RMW_IMPLEMENTATION": "rmw_fastrtps_cpp",
    }
    try:
        probe = Probe(options)
    except ImportError as error:
        hint = "install ROS 2's wheels, as the head of this file says"
        print(f"ros2.py: {error}: {hint}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, probe.stop)
    try:
        if not probe.matched():
            print(f"ros2.py: nobody matched within {options.timeout:g} s", file=sys.stderr)
            return 1
        discovery_ns = time.monotonic_ns() - probe.begun_ns
        sent = probe.ping() if options.role == "ping" else 0
        if options.role == "pong":
            probe.pong()
            time.sleep(0.5)  # the last answer is on its way
        report(probe, sent, discovery_ns)
        sys.stdout.flush()
    finally:
        probe.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
