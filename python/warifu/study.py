# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Finding profiles and loading studies, for the command line and for scripts.

from warifu import study
loaded = study.load("studies/first-loop.toml", overrides=[("link.rtt", "80 ms")])
for case in loaded.study.cases: ...
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warifu import _core, files
from warifu.printable import is_utf8, printable

if TYPE_CHECKING:
    from warifu._core import Study

#: Environment variable: folders of profiles that are searched before all others.
PROFILES_VARIABLE = "WARIFU_PROFILES"
#: Folder below `profiles/` and the kind of what is in it.
FOLDERS = {
    "devices": "device",
    "key-stores": "key_store",
    "links": "link",
    "tcp": "tcp",
    "accelerators": "accelerator",
    "recipes": "recipe",
}
#: What errors call choices without a file (`_core.Study.from_choices`).
COMMAND_LINE = "command line"
#: A setting's dotted path by its short name: a flag of the command line, a keyword of `warifu.ask`.
SHORT_NAMES = {
    "rtt": "link.rtt",
    "loss": "link.loss",
    "rate": "link.rate",
    "session": "stack.session",
    "authentication": "stack.authentication",
    "group": "stack.group",
    "certificate": "stack.certificate",
    "chain_length": "stack.chain_length",
    "cipher_suite": "stack.cipher_suite",
    "upload": "pattern.request_body",
    "download": "pattern.response_body",
    "nagle": "stack.nagle",
}

#: The machine that a study asks where it names none, and the one that stands in for it.
THIS_HOST, STAND_IN = "this-host", "xeon-2-5-ghz-vm"

ProfileText = tuple[str, str, str, str]


class StudyError(Exception):
    """A study that cannot be read; its text is one line that names file, key and fix."""


@dataclass(frozen=True)
class Loaded:
    """A study with what it was made from."""

    study: Study
    #: The text as run; for a question without a file the choices, one a line.
    text: str
    file: str
    #: Kind, name, text and file of every profile that the study could use.
    profiles: list[ProfileText]
    overrides: list[tuple[str, str]]
    #: What makes its predictions doubtful, a sentence each: results keep them.
    remarks: list[str] = field(default_factory=list)
    #: The remark that `STAND_IN` stands in for this machine; empty where it does not.
    stands_in: str = ""


def load(
    path: str | os.PathLike[str] | None = None,
    overrides: Sequence[tuple[str, str]] = (),
    profiles: Sequence[Path] | None = None,
    *,
    stand_in: bool = False,
) -> Loaded:
    """Reads a study, or makes one of ``overrides`` alone where there is no file.

    ``overrides`` are pairs of dotted path and value. ``profiles`` are folders, `profile_folders`
    by default. With ``stand_in`` a machine that comes with Warifu stands in for this one where
    this one was never calibrated, or not for what the study needs; `Loaded.remarks` says so.
    Raises StudyError, or `_core.WarifuError` for a mistake inside.
    """
    texts = list(profile_texts(profile_folders() if profiles is None else profiles))
    given = list(overrides)
    for key, value in given:
        if not is_utf8(key + value):
            raise StudyError(f"{COMMAND_LINE}: {key} is {value}: expected UTF-8 text")
    loaded = _stood_in(path, given, texts) if stand_in else None
    loaded = loaded or _loaded(path, given, texts)
    return dataclasses.replace(loaded, remarks=[*loaded.remarks, *_of_calibration(loaded)])


def _loaded(
    path: str | os.PathLike[str] | None,
    given: list[tuple[str, str]],
    texts: list[ProfileText],
) -> Loaded:
    if path is None:
        question = "".join(f"{key} = {value}\n" for key, value in given)
        study = _core.Study.from_choices(given, texts)
        return Loaded(study, question, COMMAND_LINE, texts, given)
    text = read_study(Path(path))
    # As it is written in messages and in the manifest.
    name = printable(str(path))
    study = _core.Study.parse(text, name, texts, given)
    return Loaded(study, text, name, texts, given)


def _stood_in(
    path: str | os.PathLike[str] | None,
    given: list[tuple[str, str]],
    texts: list[ProfileText],
) -> Loaded | None:
    """The study of `STAND_IN` where it asks this machine and this one cannot answer; else None.

    The other machine is named as the study's own choice, so every output names it, and the command
    for repetition gives the same anywhere.
    """
    shipped = next((one for one in texts if one[:2] == ("device", STAND_IN)), None)
    if shipped is None:
        return None
    known = any(one[:2] == ("device", THIS_HOST) for one in texts)
    aliased = list(texts)
    if not known:
        # Only to learn which ends are this machine; nothing is predicted by it.
        text = shipped[2].replace(f'name = "{STAND_IN}"', f'name = "{THIS_HOST}"', 1)
        aliased.append(("device", THIS_HOST, text, shipped[3]))
    loaded = _loaded(path, given, aliased)
    ends, lacking = _ends_and_lacking(loaded.study, known=known)
    varied = {key.partition(".")[0] for key, _ in loaded.study.vary}
    if not lacking or ends & varied:
        return loaded if known else None
    kept = [(key, value) for key, value in given if key.removesuffix(".profile") not in ends]
    other = [*kept, *((end, STAND_IN) for end in sorted(ends))]
    why = "was never calibrated"
    if known:
        why = f"was calibrated for other cases (it has no cost of {lacking[0]} for this one)"
    # Whatever is wrong with the study beside its machine is said here.
    stood = _loaded(path, other, texts)
    if known and _nothing_predictable(stood.study):
        # What is missing here says more than what is missing there.
        return loaded
    remark = (
        f"This machine {why}, so {STAND_IN}, which comes with Warifu, stands in for it; "
        "`warifu calibrate host` (as root) changes that."
    )
    return dataclasses.replace(stood, remarks=[remark], stands_in=remark)


def _ends_and_lacking(study: Study, known: bool) -> tuple[set[str], list[str]]:
    """Which ends of a study are this machine, and what its profile has no costs for."""
    ends: set[str] = set()
    lacking: dict[str, None] = {} if known else {"any case": None}
    for index, case in enumerate(study.cases):
        here = [end for end in ("device", "server") if case.columns.get(end) == THIS_HOST]
        ends.update(here)
        if known and here and not lacking:
            missing = dict(
                zip(("device", "server"), _core.missing_operations(study, index), strict=True)
            )
            lacking |= {name: None for end in here for name in missing[end]}
    return ends, list(lacking) if ends else []


def _nothing_predictable(study: Study) -> bool:
    """Whether no case has its costs."""
    return all(any(_core.missing_operations(study, at)) for at in range(len(study.cases)))


def _of_calibration(loaded: Loaded) -> list[str]:
    """What a calibration said of itself, where the study's cases use it: made beside other work,
    its costs stay too high however often they are used."""
    remarks = []
    for kind, name, _, file in _used_profiles(loaded):
        record = Path(file).with_suffix(".calibration.json")
        if kind != "device" or not record.is_file():
            continue
        try:
            details = json.loads(files.read_text(record, files.PROFILE_BYTES))["details"]
            said = details.get("warnings")
        except (
            OSError,
            ValueError,
            RecursionError,
            AttributeError,
            KeyError,
            TypeError,
            files.FileRefused,
        ):
            # Whoever needs the record says what is wrong with it.
            continue
        if isinstance(said, list):
            remarks += [f"The calibration of {name}: {printable(str(one))}." for one in said]
    return remarks


def bound(text: str) -> tuple[str, str] | None:
    """A requirement such as `https.establishment.p99 < 3 s` as an override: its key of `[require]`
    and its bound, parted where the operator begins; the core reads both. None for no such text."""
    at = min((text.index(sign) for sign in "<>=" if sign in text), default=len(text))
    subject, limit = text[:at].strip(), text[at:].strip()
    return (f"require.{subject}", limit) if subject and limit else None


def read_study(path: Path) -> str:
    """The text of a study's file. Raises StudyError."""
    return _read(path, files.STUDY_BYTES)


def name_in(text: str) -> str:
    """The name that a study's text has, without looking at the rest; empty where it has none that
    could be a folder's."""
    import tomllib

    try:
        name = tomllib.loads(text).get("name")
    except (tomllib.TOMLDecodeError, RecursionError):
        return ""
    plain = isinstance(name, str) and name[:1].isalnum() and name == Path(name).name
    return str(name) if plain else ""


def no_longer_varied(loaded: Loaded) -> list[str]:
    """The keys of `[vary]` in the study's file that the overrides took the place of."""
    if not loaded.overrides:
        return []
    import tomllib

    try:
        axes = tomllib.loads(loaded.text).get("vary", {})
    except tomllib.TOMLDecodeError:
        # A question without a file; and what the core reads and Python does not.
        return []
    varied = {path for path, _ in loaded.study.vary}
    return [path for path in _dotted(axes) if path not in varied]


def _dotted(table: dict[str, Any]) -> Iterator[str]:
    """The keys of a table and of those in it, with dots, as the core takes them."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from (f"{key}.{inner}" for inner in _dotted(value))
        else:
            yield key


def profile_folders() -> list[Path]:
    """Where profiles are looked for; of equal names the first found counts.

    $WARIFU_PROFILES (several folders as in PATH), `profiles` in the current folder, and those
    that came with Warifu.
    """
    folders = _given_folders()
    for folder in folders:
        if not folder.is_dir():
            raise StudyError(
                f"{PROFILES_VARIABLE}: {folder} is not a folder: name one, or unset it"
            )
    folders = [*folders, Path("profiles")]
    return [*(folder for folder in folders if folder.is_dir()), *shipped_folders()]


def shipped_folders() -> list[Path]:
    """Where the profiles are that came with Warifu: in the package, or beside it in a clone."""
    package = Path(__file__).resolve().parent
    folders = [package / "profiles", package.parents[1] / "profiles"]
    return [folder for folder in folders if folder.is_dir()]


def own_folder(name: str) -> Path:
    """Where a profile of the user's own is written, `name` being one of `FOLDERS`: below the first
    folder of $WARIFU_PROFILES, else below `profiles` in the current folder; so it is found, and
    never among those that came with Warifu."""
    return next(iter(_given_folders()), Path("profiles")) / name


def _given_folders() -> list[Path]:
    given = os.environ.get(PROFILES_VARIABLE, "")
    return [Path(part) for part in given.split(os.pathsep) if part]


def profile_texts(
    folders: Sequence[Path], refused: Callable[[StudyError], None] | None = None
) -> Iterator[ProfileText]:
    """Kind, name, text and file of every profile below ``folders``, the first of each name. One
    that cannot be read raises StudyError, or is passed over where ``refused`` takes it."""
    seen: set[tuple[str, str]] = set()
    for folder in folders:
        for name, kind in FOLDERS.items():
            for file in sorted((folder / name).glob("*.toml")):
                if (kind, file.stem) not in seen:
                    seen.add((kind, file.stem))
                    try:
                        text = _profile(file)
                    except StudyError as error:
                        if refused is None:
                            raise
                        refused(error)
                        continue
                    yield kind, printable(file.stem), text, printable(str(file))


def stand_ins(loaded: Loaded) -> dict[str, tuple[Path, bool]]:
    """The virtual cards that the study's key stores name: by key store, the card's timing profile
    and whether an agent keeps its session (crates/core/model, `StandIn`).

    Raises StudyError for a card that has no profile.
    """
    import tomllib

    found: dict[str, tuple[Path, bool]] = {}
    for kind, name, text, file in _used_profiles(loaded):
        stand_in = tomllib.loads(text).get("stand_in") if kind == "key_store" else None
        if stand_in is not None:
            card = str(stand_in["card"])
            found[name] = card_profile(card, f"{file}: stand_in.card"), bool(stand_in.get("agent"))
    return found


def card_profile(name: str, wanted_by: str) -> Path:
    """The file of a virtual card's timing profile, by name; `wanted_by` begins the error."""
    known: list[str] = []
    for folder in profile_folders():
        for file in sorted((folder / "cards").glob("*.toml")):
            if file.stem == name:
                return file
            known.append(file.stem)
    names = ", ".join(dict.fromkeys(known)) or "none"
    raise StudyError(f"{wanted_by} is {name}: expected one of {names}")


def manifest(
    loaded: Loaded, half: str, run_id: str, started: str, **known: object
) -> dict[str, Any]:
    """The manifest of a run of the study that is about to begin (crates/core/results/src/run.rs).

    ``half`` is `predicted` or `measured`, ``started`` RFC 3339 text; ``known`` may hold commit,
    dirty, machine and tools.
    """
    used = list(_used_profiles(loaded))
    facts = {
        "half": half,
        "run_id": run_id,
        "started": started,
        "text": loaded.text,
        "file": loaded.file,
        "overrides": loaded.overrides,
        "profiles": [(kind, name, text) for kind, name, text, _ in used],
        "calibration_run_ids": _calibration_run_ids(loaded.study, used),
        "calibration_cases": _calibration_cases(loaded.study, used),
        **known,
    }
    return dict(json.loads(_core.begin_manifest(loaded.study, json.dumps(facts))))


def sha256(text: str) -> str:
    """SHA-256 of a text, hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def _used_profiles(loaded: Loaded) -> Iterator[ProfileText]:
    named: set[tuple[str, str]] = set()
    columns = {"device": "device", "server": "device", "key_store": "key_store"}
    columns |= {"link": "link", "device_tcp": "tcp", "server_tcp": "tcp"}
    for case in loaded.study.cases:
        settings = case.columns
        named |= {(kind, str(settings[column])) for column, kind in columns.items()}
    devices = [name for kind, name in named if kind == "device"]
    named |= {("recipe", loaded.study.device_library(name) or "") for name in devices}
    return (text for text in loaded.profiles if (text[0], text[1]) in named)


def _calibration_cases(study: Study, profiles: Sequence[ProfileText]) -> list[dict[str, Any]]:
    """Every case whose runs the figures of the devices come from, each once."""
    found: dict[str, dict[str, Any]] = {}
    for kind, name, _, _ in profiles:
        if kind == "device":
            cases = json.loads(study.device_calibration_cases(name))
            found |= {case["case_id"]: case for case in cases}
    return list(found.values())


def _calibration_run_ids(study: Study, profiles: Sequence[ProfileText]) -> list[str]:
    """Every `run_id` anywhere in the profiles: the runs that these figures come from."""
    import tomllib

    found: set[str] = set()

    def walk(value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                if key == "run_id" and isinstance(inner, str):
                    found.add(inner)
                elif key == "run_ids" and isinstance(inner, list):
                    found.update(one for one in inner if isinstance(one, str))
                else:
                    walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    for kind, name, text, _ in profiles:
        if kind == "device":
            # Some hundred kilobytes, which the study has read already.
            found.update(study.device_run_ids(name))
        else:
            walk(tomllib.loads(text))
    return sorted(found)


def _profile(file: Path) -> str:
    try:
        return _read(file, files.PROFILE_BYTES)
    except StudyError:
        if file.is_symlink() and not file.exists():
            # It was listed a moment ago.
            raise StudyError(f"{file}: is a link to nothing: remove it") from None
        raise


def _read(path: Path, most: int) -> str:
    try:
        # Some editors begin a file with a byte order mark, and not every parser of TOML skips it.
        return files.read_text(path, most).removeprefix("\ufeff")
    except FileNotFoundError:
        raise StudyError(
            f"{path}: does not exist: name a study, or make one with `warifu init {path}`"
        ) from None
    except IsADirectoryError:
        raise StudyError(f"{path}: is a folder: name a study file inside it") from None
    except files.FileRefused as error:
        raise StudyError(str(error)) from None
    except OSError as error:
        raise StudyError(f"{path}: cannot be read: {error.strerror}: check its rights") from None
