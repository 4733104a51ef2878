# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How `warifu card` calls warifu-card-server: a request on its stdin, JSON lines back."""

from __future__ import annotations

import errno
import getpass
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import typer

from warifu import identity, tools
from warifu.cli import screen
from warifu.cli.errors import OK
from warifu.cli.formats import Format
from warifu.files import read_text

_PROGRAM = "warifu-card-server"
#: Letters that are read of a PIN's line: more than any PIN has.
_PIN_LETTERS = 1_000
_FAULTS_BYTES = 1_000_000


class CardError(Exception):
    """An error of warifu-card-server: its one line and its exit code."""

    def __init__(self, text: str, exit_code: int) -> None:
        """The line and the exit code of the program."""
        super().__init__(text)
        self.exit_code = exit_code


def state_path(given: Path | None) -> Path:
    """The state file of the SIM: as given, or the default of the calling user, also with sudo."""
    if given is not None:
        return given
    data = os.environ.get("XDG_DATA_HOME", "")
    caller = identity.caller()
    if not data and caller is not None:
        data = str(Path(caller.home) / ".local" / "share")
    folder = Path(data) if data else Path.home() / ".local" / "share"
    return folder / "warifu" / "card.state"


def default_socket() -> Path:
    """The default socket of the PKCS#11 module; its folder is created."""
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or "/run") / "warifu"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        why = "" if os.access(folder, os.W_OK | os.X_OK) else os.strerror(errno.EACCES)
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        unset = (
            "set XDG_RUNTIME_DIR to a folder of yours, usually with: "
            "export XDG_RUNTIME_DIR=/run/user/$(id -u); or "
            if not os.environ.get("XDG_RUNTIME_DIR")
            else ""
        )
        raise CardError(f"{folder}: {why}: {unset}choose a --socket", 3)
    return folder / "card.sock"


def pin(asked: bool, file: Path | None, *, new: bool) -> str | None:
    """A PIN from a prompt or a file's first line, never from the command line; None where none is
    wanted."""
    if file is not None:
        if str(file) == "-":
            first = sys.stdin.readline(_PIN_LETTERS).strip()
        else:
            # It may be a pipe, from a program that keeps passwords; what is no PIN the card says.
            with file.open(encoding="utf-8", errors="replace") as lines:
                first = lines.readline(_PIN_LETTERS).strip()
        if not first:
            # The card would count it as a wrong one.
            raise typer.BadParameter(f"--pin-file {file}: its first line is empty")
        return first
    if not asked:
        return None
    if not sys.stdin.isatty():
        raise typer.BadParameter("no terminal to ask for the PIN at: use --pin-file")
    first = getpass.getpass("PIN: ")
    if new and getpass.getpass("PIN again: ") != first:
        raise typer.BadParameter("the two PINs differ")
    return first


def new_pin(
    asked: bool, file: Path | None, scope: str | None, tries: int | None
) -> dict[str, object] | None:
    """The PIN of a new SIM with its policy; None for none."""
    digits = pin(asked, file, new=True)
    policy = {"scope": scope, "tries": tries}
    given = {name: value for name, value in policy.items() if value is not None}
    if digits is None:
        for name in given:
            raise typer.BadParameter(f"--pin-{name} without a PIN: add --pin or --pin-file")
        return None
    return {"digits": digits, **given}


def timing_profile(wanted: str, flag: str = "--timing") -> Path:
    """The file of a timing profile, by name from `profiles/cards`, or by path."""
    from warifu.study import profile_folders

    if wanted.endswith(".toml") or os.sep in wanted:
        return Path(wanted)
    known: list[str] = []
    for folder in profile_folders():
        for file in sorted((folder / "cards").glob("*.toml")):
            if file.stem == wanted:
                return file
            known.append(file.stem)
    names = ", ".join(dict.fromkeys(known)) or "none"
    raise typer.BadParameter(f"{flag} {wanted}: expected a file, or one of: {names}")


def faults(given: str | None) -> str | None:
    """The faults: as given, or the content of a file."""
    if given is None or "=" in given:
        return given
    return read_text(Path(given), _FAULTS_BYTES)


def ask(verb: str, request: dict[str, Any]) -> dict[str, Any]:
    """Runs a command of the program; its answer, or CardError."""
    done = subprocess.run(
        [tools.find(_PROGRAM), verb],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise CardError(_said(done.stderr), done.returncode)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def change(verb: str, state: Path | None, request: dict[str, Any], form: Format) -> int:
    """Creates, changes or reads a card, and shows its content."""
    path = state_path(state)
    if verb == "create" and state is None:
        # The default folder is created; a given one must exist.
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    listing = ask(verb, {"state": str(path), **request})
    if verb == "create":
        screen.say(f"{listing['state']}: a SIM for development; its keys are in this file")
    _show(listing, form)
    return OK


def serve(request: dict[str, Any], *, events: bool) -> int:
    """Serves until a signal ends it, or the program does."""
    child = subprocess.Popen(
        [tools.find(_PROGRAM), "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def pass_on(number: int, _: FrameType | None) -> None:
        # Ctrl-C reaches the whole group, `kill` only this process; a second signal is harmless.
        child.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(json.dumps({**request, "with_parent": True}))
        child.stdin.close()
    except BrokenPipeError:
        pass  # the reason is on stderr
    for line in child.stdout:
        if events:
            sys.stdout.write(line)
            sys.stdout.flush()
        else:
            _tell(json.loads(line))
    return child.wait()


def _tell(event: dict[str, Any]) -> None:
    if event["event"] == "ready":
        screen.say(f"serving {event['state']}: for development, its keys are in this file")
        if event["socket"]:
            screen.say(f"socket   {event['socket']}")
        if event["at"]:
            link = f" ({event['link']})" if event["link"] else ""
            screen.say(f"modem    {event['at']}{link}")
        if event["reader"]:
            screen.say(f"PC/SC    {event['reader']}")
        if event["pcscd"] and event["pcscd"] != "/run/pcscd/pcscd.comm":
            screen.say(f"         for programs with PCSCLITE_CSOCK_NAME={event['pcscd']}")
        _tell_of_module(event)
        if event["timing"]:
            screen.say(f"as slow as {event['timing']}")
        screen.say("Ctrl-C ends it")
    elif event["event"] == "stopped" and event["faults"]:
        counts = ", ".join(f"{name} {count}" for name, count in event["faults"].items())
        screen.say(f"faults: {counts}")


def _tell_of_module(event: dict[str, Any]) -> None:
    """Shows how programs use the card with PKCS#11."""
    addresses = (("unix:", event["socket"]), ("csim:", event["at"]), ("pcsc:", event["reader"]))
    scheme, path = next((one for one in addresses if one[1]), ("", None))
    try:
        module = tools.find("libwarifu_pkcs11.so")
    except tools.ToolMissing:
        return  # the card is served without it
    if path is not None:
        address = shlex.quote(f"{scheme}{Path(path).absolute() if scheme == 'unix:' else path}")
        screen.say(f"PKCS#11  {module}, with WARIFU_CARD={address}")


def _show(listing: dict[str, Any], form: Format) -> None:
    from warifu.report.table import Column, Table

    heads = ("kind", "id", "label", "type", "B", "subject")
    columns = [Column(head, number=head == "B") for head in heads]
    who = f"label {listing['label'] or 'none'}, serial number {listing['serial'] or 'none'}"
    table = Table(f"{listing['state']}, quirks {listing['quirks']}, {who}", columns)
    for one in listing["objects"]:
        keys = ("kind", "id", "label", "type", "bytes", "subject")
        values = [_text(one[key]) for key in keys]
        table.add(values, dict(zip(keys, values, strict=True)))
    pin = listing["pin"]
    if pin is None:
        table.notes.append("No PIN.")
    else:
        left = f"{pin['tries_left']} of {pin['tries_max']} tries left"
        table.notes.append(f"PIN for {pin['scope']}: {left}.")
    screen.show([table], form)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _said(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line.strip()]
    return (lines[-1] if lines else "it ended without a word").removeprefix(f"{_PROGRAM}: ")
