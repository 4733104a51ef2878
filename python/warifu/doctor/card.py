# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Which step fails on the way to an IoT SAFE SIM: over PC/SC, or behind a modem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from warifu import tools
from warifu.doctor import pcsc
from warifu.doctor.finding import Finding
from warifu.doctor.modem import LineBusy, Modem, ModemError, ModemSilent

#: The applet's identifiers that public clients select (GSMA IoT.04; crates/iotsafe/card).
AIDS = {
    "GSMA": bytes.fromhex("A0000005590010"),
    "Thales": bytes.fromhex("A00000003053F12401770101495341"),
    "NTT": bytes.fromhex("A0000001157000000000000049534102"),
}

_DONE = 0x9000
_NOT_FOUND = 0x6A82
_NO_CHANNEL = 0x6A81
#: What a card answers that has no logical channels (ISO 7816-4 section 5.6, tables 5 and 6).
_WITHOUT_CHANNELS = {0x6881, 0x6D00, 0x6E00}
_LOCKED = 0x6983
#: The applet's PIN (crates/iotsafe/client/src/card.rs: PIN_REFERENCE).
_PIN = 0x01
#: Those that MANAGE CHANNEL opens; the basic one is the modem's.
_CHANNELS = range(1, 20)
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
        hint = "`apt-get install pcscd`, then start it: `systemctl start pcscd.socket`"
        yield Finding(area, "pcscd", "missing", str(error), hint)
        return
    with service:
        yield Finding(area, "pcscd", "ok", "answers")
        try:
            readers = service.readers()
        except pcsc.PcscError as error:
            hint = f"plug in a reader, and check that `pcsc_scan` shows it; or {_VIRTUAL}"
            yield Finding(area, "reader", "missing", str(error), hint)
            return
        found = [name for name in readers if wanted is None or wanted in name]
        if not found:
            hint = f"use part of one of these names: {'; '.join(readers)}"
            yield Finding(area, "reader", "missing", f"no reader with {wanted!r} in its name", hint)
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
            yield Finding(area, "card", "missing", str(error), "insert it again, contacts first")
        finally:
            card.disconnect()
        return
    hint = f"insert a card, contacts first and the right side up; or {_VIRTUAL}"
    yield Finding(area, "card", "missing", said, hint)


def of_modem(device: Path, baud: int = 115200) -> Iterator[Finding]:
    """Each step to a SIM behind a modem, up to the first that fails."""
    area = "modem"
    device, baud = _address(device, baud)
    try:
        modem = Modem(device, baud)
    except LineBusy as error:
        hint = "nothing was sent, so nobody was disturbed: end that program, or ask the agent that "
        hint += "has it: `warifu agent status`"
        yield Finding(area, str(device), "missing", str(error), hint)
        return
    except OSError as error:
        said = error.strerror or str(error)
        yield Finding(area, str(device), "missing", said, _hint_for_line(error))
        return
    with modem:
        yield Finding(area, str(device), "ok", "can be opened")
        try:
            yield from _behind(area, modem)
        except (ModemError, ModemSilent, OSError) as error:
            yield Finding(area, "line", "missing", _one_line(error), "check that it is plugged in")


def _address(device: Path, baud: int) -> tuple[Path, int]:
    """The line and its rate; `csim:DEVICE[,BAUD]` of WARIFU_CARD is accepted too."""
    text = str(device)
    if not text.startswith("csim:"):
        return device, baud
    name, _, rate = text.removeprefix("csim:").partition(",")
    return Path(name), int(rate) if rate.isdecimal() else baud


def _hint_for_line(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "check the name: `ls /dev/ttyUSB* /dev/ttyACM*`"
    if isinstance(error, PermissionError):
        return "join its group: `sudo usermod -aG dialout $USER`, and log in again"
    if error.errno is None:
        return "use the rate of the line: --baud 115200"
    return "use the line of a modem: `ls /dev/ttyUSB* /dev/ttyACM*`"


def _behind(area: str, modem: Modem) -> Iterator[Finding]:
    try:
        answer = modem.command("AT", timeout_s=2.0)
    except (ModemSilent, ModemError) as error:
        hint = "try another port of the modem (ttyUSB2, ttyUSB3); check the baud "
        hint += "rate (--baud), and that no other program uses it (ModemManager)"
        yield Finding(area, "AT", "missing", _one_line(error), hint)
        return
    yield Finding(area, "AT", "ok", "OK")
    if answer.echoed:
        hint = "clients that take the echo as an answer fail: send ATE0 first (done now)"
        yield Finding(area, "echo", "warning", "on", hint)
        modem.command("ATE0")
    else:
        yield Finding(area, "echo", "ok", "off")
    refusal = _refusal(modem, "AT+CSIM=?")
    has_sessions = _refusal(modem, "AT+CCHO=?") is None
    if refusal is not None and not has_sessions:
        hint = "this modem has neither AT+CSIM nor AT+CCHO: ask its vendor for another firmware"
        yield Finding(area, "AT+CSIM", "missing", refusal, hint)
        return
    if refusal is not None:
        yield Finding(area, "AT+CCHO", "ok", "known, AT+CSIM is not")
        yield from _applet_of_session(area, modem)
        return
    yield Finding(area, "AT+CSIM", "ok", "known")
    if has_sessions and not _opens_channels(modem):
        yield Finding(area, "AT+CCHO", "ok", "known; AT+CSIM opens no channel")
        yield from _applet_of_session(area, modem)
        return
    try:
        yield from _applet(area, modem.csim, modem)
    except ModemError as error:
        hint = "the modem refuses SELECT: it may forward only some commands; ask its vendor "
        hint += "for AT+CSIM without a filter, or use a card reader"
        yield Finding(area, "SELECT", "missing", str(error), hint)


def _refusal(modem: Modem, command: str) -> str | None:
    """The modem's error; None: it accepts the command."""
    try:
        modem.command(command)
    except ModemError as error:
        return _one_line(error)
    return None


def _opens_channels(modem: Modem) -> bool:
    """Whether MANAGE CHANNEL works, or is refused only since no channel is free."""
    try:
        opened = modem.csim(_OPEN_CHANNEL)
    except ModemError:
        return False
    if _status(opened) == _DONE and len(opened) == 3:
        modem.opened(opened[0])
        modem.csim(bytes([0x00, 0x70, 0x80, opened[0]]))
        modem.closed(opened[0])
        return True
    return _status(opened) == _NO_CHANNEL


def _applet_of_session(area: str, modem: Modem) -> Iterator[Finding]:
    """The applet on a channel that the modem opens together with it."""
    refusal = ""
    for name, aid in AIDS.items():
        try:
            number = modem.open_session(aid)
        except ModemError as error:
            refusal = _one_line(error)
            continue
        modem.opened(number)
        try:
            yield Finding(area, "channel", "ok", f"{number} was free")
            yield Finding(area, "applet", "ok", f"{name}'s AID on channel {number}")
            yield from _pin(area, _status(modem.cgla(number, _pin_status(number))))
        finally:
            modem.settle()
            modem.close_session(number)
            modem.closed(number)
        return
    hint = "this SIM has no IoT SAFE applet, or no channel is free: end the programs that use the "
    hint += "card, and ask the SIM's operator for the applet's AID"
    yield Finding(area, "applet", "missing", f"AT+CCHO is refused: {refusal}", hint)


def _applet(
    area: str, transmit: Callable[[bytes], bytes], modem: Modem | None = None
) -> Iterator[Finding]:
    """Selects the applet on a channel of its own, as the basic one may be the modem's.

    Behind a modem nothing resets the card, so the channel is written down, and closed after an
    answer that came too late was read, for which the channel's end would be mistaken.
    """
    opened = transmit(_OPEN_CHANNEL)
    status = _status(opened)
    if status == _DONE and len(opened) == 3 and opened[0] in _CHANNELS:
        channel = opened[0]
        if modem is not None:
            modem.opened(channel)
        yield Finding(area, "channel", "ok", f"{channel} was free")
    elif modem is None and status in _WITHOUT_CHANNELS:
        channel = 0
        hint = 'this card has the basic channel alone: channel = "basic" in pkcs11.toml'
        yield Finding(area, "channel", "warning", f"the basic one only ({status:04X})", hint)
    elif status == _DONE:
        hint = "the card or the modem does not follow ISO 7816-4: ask its vendor"
        yield Finding(area, "channel", "missing", f"answered {opened.hex().upper()}", hint)
        return
    else:
        hint = "end the programs that use the card; behind a modem, channels of killed programs "
        hint += "are closed by the next program of the same user, or by the modem's restart"
        yield Finding(area, "channel", "missing", f"none is free ({status:04X})", hint)
        return
    status = _NOT_FOUND
    try:
        for name, aid in AIDS.items():
            answer = transmit(bytes([_class(channel), 0xA4, 0x04, 0x00, len(aid)]) + aid)
            status = _status(answer)
            if status == _DONE or status >> 8 == 0x61:
                yield Finding(area, "applet", "ok", f"{name}'s AID on channel {channel}")
                yield from _pin(area, _status(transmit(_pin_status(channel))))
                return
            if status != _NOT_FOUND:
                break
    finally:
        if channel:
            if modem is not None:
                modem.settle()
            transmit(bytes([0x00, 0x70, 0x80, channel]))
            if modem is not None:
                modem.closed(channel)
    if status == _NOT_FOUND:
        hint = "this SIM has no IoT SAFE applet, or one with another AID: ask its operator"
        yield Finding(area, "applet", "missing", "not found (6A82)", hint)
    else:
        hint = "the SIM refuses SELECT: see ISO 7816-4 for the status word"
        yield Finding(area, "applet", "missing", f"SELECT returned {status:04X}", hint)


def _class(channel: int) -> int:
    """The class byte of ISO 7816-4 section 5.4.1."""
    return channel if channel <= 3 else 0x40 | (channel - 4)


def _pin_status(channel: int) -> bytes:
    """VERIFY without a PIN, which asks how many tries are left and takes none (section 11.5.6)."""
    return bytes([_class(channel), 0x20, 0x00, _PIN])


def _pin(area: str, status: int) -> Iterator[Finding]:
    """What an applet says of its PIN; nothing where it has none, or tells nothing."""
    left = status & 0xF if status & 0xFFF0 == 0x63C0 else None
    if status == _LOCKED or left == 0:
        hint = "its maker's PUK, or the operator over the air, unlocks it; `warifu card reset "
        hint += "--unblock-pin` a virtual one"
        yield Finding(area, "PIN", "missing", "the applet's is locked", hint)
    elif left == 1:
        hint = "one more wrong one locks it: make sure of the PIN before any program gets it"
        yield Finding(area, "PIN", "warning", "the applet's has one try left", hint)
    elif left is not None:
        yield Finding(area, "PIN", "ok", f"wanted by the applet, {left} tries left")


def _status(answer: bytes) -> int:
    return int.from_bytes(answer[-2:], "big")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
