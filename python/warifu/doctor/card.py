# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Which step fails on the way to an IoT SAFE SIM: over PC/SC, or behind a modem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from warifu import tools
from warifu.doctor import pcsc
from warifu.doctor.finding import Finding
from warifu.doctor.modem import Modem, ModemError, ModemSilent

#: The applet's identifiers that public clients select (GSMA IoT.04; crates/iotsafe/card).
AIDS = {
    "GSMA": bytes.fromhex("A0000005590010"),
    "Thales": bytes.fromhex("A00000003053F12401770101495341"),
    "NTT": bytes.fromhex("A0000001157000000000000049534102"),
}

_DONE = 0x9000
_NOT_FOUND = 0x6A82
_OPEN_CHANNEL = bytes.fromhex("0070000001")
_VIRTUAL = f"try the virtual SIM: `warifu card create && {tools.as_root('card serve --pcsc')}`"


def of_reader(wanted: str | None = None) -> Iterator[Finding]:
    """Each step to a card in a PC/SC reader, up to the first that fails.

    `wanted` is part of a reader's name; None: the first reader with a card.
    """
    area = "PC/SC"
    try:
        service = pcsc.Pcsc()
    except pcsc.LibraryMissing:
        yield Finding(area, "libpcsclite", "missing", "not found", "`apt-get install libpcsclite1`")
        return
    except pcsc.PcscError as error:
        mend = "`apt-get install pcscd`, then start it: `systemctl start pcscd.socket`"
        yield Finding(area, "pcscd", "missing", str(error), mend)
        return
    with service:
        yield Finding(area, "pcscd", "ok", "answers")
        try:
            readers = service.readers()
        except pcsc.PcscError as error:
            mend = f"plug a reader in, and look whether `pcsc_scan` sees it; or {_VIRTUAL}"
            yield Finding(area, "reader", "missing", str(error), mend)
            return
        found = [name for name in readers if wanted is None or wanted in name]
        if not found:
            mend = f"name part of one of: {'; '.join(readers)}"
            yield Finding(area, "reader", "missing", f"none is called {wanted}", mend)
            return
        yield Finding(area, "reader", "ok", "; ".join(found))
        yield from _in_readers(service, area, found)


def _in_readers(service: pcsc.Pcsc, area: str, readers: list[str]) -> Iterator[Finding]:
    said = ""
    for reader in readers:
        try:
            card = service.connect(reader)
        except pcsc.PcscError as error:
            said = said or f"{reader}: {error}"
            continue
        yield Finding(area, "card", "ok", f"in {reader}")
        try:
            yield from _applet(area, card.transmit)
        except pcsc.PcscError as error:
            yield Finding(area, "card", "missing", str(error), "put it in again, contacts first")
        finally:
            card.disconnect()
        return
    mend = f"put a card in, contacts first and the right side up; or {_VIRTUAL}"
    yield Finding(area, "card", "missing", said, mend)


def of_modem(device: Path, baud: int = 115200) -> Iterator[Finding]:
    """Each step to a SIM behind a modem's AT+CSIM, up to the first that fails."""
    area = "modem"
    device, baud = _address(device, baud)
    try:
        modem = Modem(device, baud)
    except OSError as error:
        said = error.strerror or str(error)
        yield Finding(area, str(device), "missing", said, _mend_of_line(error))
        return
    with modem:
        yield Finding(area, str(device), "ok", "can be opened")
        try:
            yield from _behind(area, modem)
        except (ModemError, ModemSilent, OSError) as error:
            yield Finding(area, "line", "missing", _one_line(error), "is it still plugged in?")


def _address(device: Path, baud: int) -> tuple[Path, int]:
    """A line as WARIFU_CARD names it too: `csim:DEVICE` or `csim:DEVICE,BAUD`."""
    text = str(device)
    if not text.startswith("csim:"):
        return device, baud
    name, _, rate = text.removeprefix("csim:").partition(",")
    return Path(name), int(rate) if rate.isdecimal() else baud


def _mend_of_line(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "check the name: `ls /dev/ttyUSB* /dev/ttyACM*`"
    if isinstance(error, PermissionError):
        return "join its group: `sudo usermod -aG dialout $USER`, and log in again"
    if error.errno is None:
        return "give the line's own rate: --baud 115200"
    return "give a modem's line: `ls /dev/ttyUSB* /dev/ttyACM*`"


def _behind(area: str, modem: Modem) -> Iterator[Finding]:
    try:
        answer = modem.command("AT", timeout_s=2.0)
    except (ModemSilent, ModemError) as error:
        mend = "another port of the same modem may be the one (ttyUSB2, ttyUSB3); check the baud "
        mend += "rate (--baud), and that no other program holds it (ModemManager)"
        yield Finding(area, "AT", "missing", _one_line(error), mend)
        return
    yield Finding(area, "AT", "ok", "OK")
    if answer.echoed:
        mend = "clients that take the echo for an answer fail: send ATE0 first (this did)"
        yield Finding(area, "echo", "warning", "on", mend)
        modem.command("ATE0")
    else:
        yield Finding(area, "echo", "ok", "off")
    try:
        modem.command("AT+CSIM=?")
    except ModemError as error:
        mend = "this modem passes no APDUs on: its vendor may have it in another firmware"
        yield Finding(area, "AT+CSIM", "missing", str(error), mend)
        return
    yield Finding(area, "AT+CSIM", "ok", "known")
    try:
        yield from _applet(area, modem.csim)
    except ModemError as error:
        mend = "the modem refuses the SELECT: it may pass on few commands only; ask its vendor "
        mend += "for AT+CSIM without a filter, or use a card reader"
        yield Finding(area, "SELECT", "missing", str(error), mend)


def _applet(area: str, transmit: Callable[[bytes], bytes]) -> Iterator[Finding]:
    """Selects the applet on a channel of its own, as the basic one may be the modem's."""
    opened = transmit(_OPEN_CHANNEL)
    channel = opened[0] if _status(opened) == _DONE and len(opened) == 3 else 0
    status = _NOT_FOUND
    try:
        for name, aid in AIDS.items():
            answer = transmit(bytes([channel, 0xA4, 0x04, 0x00, len(aid)]) + aid)
            status = _status(answer)
            if status == _DONE or status >> 8 == 0x61:
                yield Finding(area, "applet", "ok", f"{name}'s AID on channel {channel}")
                return
            if status != _NOT_FOUND:
                break
    finally:
        if channel:
            transmit(bytes([0x00, 0x70, 0x80, channel]))
    if status == _NOT_FOUND:
        mend = "this SIM has no IoT SAFE applet (or one with another AID): ask its operator for one"
        yield Finding(area, "applet", "missing", "not found (6A82)", mend)
    else:
        mend = "the SIM refuses the SELECT: see ISO 7816-4 for the status word"
        yield Finding(area, "applet", "missing", f"SELECT answered {status:04X}", mend)


def _status(answer: bytes) -> int:
    return int.from_bytes(answer[-2:], "big")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
