# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Signals wait until nothing is half done."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from warifu.lab import LabError, interruption


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def test_signal_is_raised_at_the_next_check() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), interruption.deferred():
        send(signal.SIGINT)
        done.append("what was under way")
        interruption.check()
        done.append("never")
    assert done == ["what was under way"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_exit_code_of_other_signals(number: signal.Signals) -> None:
    with pytest.raises(SystemExit) as ended, interruption.deferred():
        send(number)
        send(signal.SIGINT)
    assert ended.value.code == 128 + number


def test_failure_after_a_signal_reports_the_interruption() -> None:
    with pytest.raises(KeyboardInterrupt), interruption.deferred():
        send(signal.SIGINT)
        raise LabError("the client failed: Interrupted")


def test_handlers_are_restored() -> None:
    before = {number: signal.getsignal(number) for number in interruption.SIGNALS}
    with pytest.raises(KeyboardInterrupt), interruption.deferred():
        send(signal.SIGINT)
    assert {number: signal.getsignal(number) for number in interruption.SIGNALS} == before
    with interruption.deferred():
        interruption.check()


def test_nested_deferral() -> None:
    seen = []
    with pytest.raises(KeyboardInterrupt), interruption.deferred():
        with interruption.deferred():
            send(signal.SIGINT)
        seen.append("the inner one raises nothing")
    assert seen == ["the inner one raises nothing"]


def test_deferral_outside_the_main_thread() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def inside() -> None:
        with interruption.deferred():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [before]


def test_what_was_noted_is_told_once() -> None:
    with pytest.raises(SystemExit), interruption.deferred():
        os.kill(os.getpid(), signal.SIGHUP)
    interruption.check()
