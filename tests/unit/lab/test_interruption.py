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


def test_a_signal_waits_for_the_check() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), interruption.deferred():
        send(signal.SIGINT)
        done.append("what was under way")
        interruption.check()
        done.append("never")
    assert done == ["what was under way"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_others_end_with_their_number(number: signal.Signals) -> None:
    with pytest.raises(SystemExit) as ended, interruption.deferred():
        send(number)
        send(signal.SIGINT)
    assert ended.value.code == 128 + number


def test_a_failure_after_a_signal_is_the_interruption() -> None:
    with pytest.raises(KeyboardInterrupt), interruption.deferred():
        send(signal.SIGINT)
        raise LabError("the client failed: Interrupted")


def test_handlers_are_put_back_and_nothing_is_remembered() -> None:
    before = {number: signal.getsignal(number) for number in interruption.SIGNALS}
    with pytest.raises(KeyboardInterrupt), interruption.deferred():
        send(signal.SIGINT)
    assert {number: signal.getsignal(number) for number in interruption.SIGNALS} == before
    with interruption.deferred():
        interruption.check()


def test_nested_it_is_the_outer_that_counts() -> None:
    seen = []
    with pytest.raises(KeyboardInterrupt), interruption.deferred():
        with interruption.deferred():
            send(signal.SIGINT)
        seen.append("the inner one raises nothing")
    assert seen == ["the inner one raises nothing"]


def test_another_thread_changes_no_handler() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def inside() -> None:
        with interruption.deferred():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [before]
