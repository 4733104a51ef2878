# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The TCP settings that the lab pins in its namespaces, and those that it puts on record."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from warifu import _core
from warifu.lab.case import KernelRelease
from warifu.lab.errors import LabError

PINNED: dict[str, str] = {
    # A connection must not learn from the one before (ip-sysctl.rst).
    "tcp_no_metrics_save": "1",
    "tcp_fastopen": "0",
    # The defaults of Linux 6.18, spelled out so that a host's own tuning does not reach a result.
    "tcp_syn_linear_timeouts": "4",
    "tcp_syn_retries": "6",
    "tcp_synack_retries": "5",
    "tcp_early_retrans": "3",
    "tcp_recovery": "1",
    "tcp_frto": "2",
    "tcp_reordering": "3",
    "tcp_timestamps": "1",
    "tcp_sack": "1",
    "tcp_dsack": "1",
    "tcp_ecn": "2",
    "tcp_window_scaling": "1",
    "tcp_slow_start_after_idle": "1",
    "tcp_autocorking": "1",
    "tcp_thin_linear_timeouts": "0",
    "tcp_rto_min_us": "200000",
    "tcp_rto_max_ms": "120000",
    "tcp_pingpong_thresh": "1",
    "tcp_comp_sack_delay_ns": "1000000",
    "tcp_comp_sack_slack_ns": "100000",
    "tcp_comp_sack_nr": "44",
    "tcp_min_rtt_wlen": "300",
    "tcp_mtu_probing": "0",
    "tcp_retries2": "15",
    # Many connections a second from one address: as many ports as there are.
    "ip_local_port_range": "10000 65535",
}
"""sysctl `net.ipv4.NAME` of both namespaces. Names that a kernel lacks are left out."""

SEEN = (
    "tcp_congestion_control",
    "tcp_available_congestion_control",
    "tcp_rmem",
    "tcp_wmem",
    "tcp_limit_output_bytes",
    "tcp_pacing_ss_ratio",
    "tcp_pacing_ca_ratio",
    "tcp_tw_reuse",
    "tcp_moderate_rcvbuf",
)
"""Put on record beside the pinned ones. Congestion control is pinned by route, not by sysctl."""


def running() -> KernelRelease:
    """The release of the running kernel. Raises LabError for what is no Linux."""
    text = os.uname().release
    found = _core.kernel_release(text)
    if found is None:
        raise LabError(f"the kernel says release {text}: expected Linux's, such as 6.18.5")
    return KernelRelease(*found)


def pinned_differently(read: dict[str, str]) -> dict[str, str]:
    """The pinned settings that are not in force, with what is (`absent` if the kernel lacks it)."""
    return {
        name: read.get(name, "absent") for name, value in PINNED.items() if read.get(name) != value
    }


def machine(settings: dict[str, str]) -> dict[str, object]:
    """What a manifest says of this machine."""
    return {
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "kernel": os.uname().release,
        "architecture": platform.machine(),
        "clocksource": _word("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "tcp": settings,
    }


def processor_name() -> str:
    """The processor's name, from /proc/cpuinfo; the architecture where it has none."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2] for line in text.splitlines() if line.startswith("model name")]
    return names[0].strip() if names else platform.machine()


def _word(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
