# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The compiled core: studies, traces, predictions, observations (crates/py)."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Final, TypedDict, final, type_check_only

__version__: Final[str]
BUILD_PROFILE: Final[str]
"""`release`, or `development` with overflow checks and debug assertions, which is not timed."""
SCHEMA_VERSION: Final[int]
TLS_VERSIONS: Final[list[str]]
CERTIFICATES: Final[list[str]]
"""The key types of certificates."""
AEADS: Final[list[str]]

Profile = tuple[str, str, str, str]
"""Kind (`device`, `key_store`, `link`, `tcp`, `accelerator`), name, text, file."""

class WarifuError(Exception):
    """A mistake in a study or profile, or a file that cannot be written.

    Its text is one line that names file, key and fix.
    """

class StorageError(WarifuError):
    """Results that the file system does not take."""

@type_check_only
class LawSummary(TypedDict):
    """A law of durations, ns."""

    mean_ns: float
    min_ns: int
    median_ns: int
    max_ns: int

@type_check_only
class PrimitiveCost(LawSummary):
    """What a primitive takes."""

    per_byte_ns: float
    kind: str
    source: str
    code: str | None

@type_check_only
class DeviceView(TypedDict):
    """A device's profile; what it does not say is None."""

    name: str
    description: str
    library: str | None
    core: str | None
    clock_hz: float | None
    code: str | None
    ram: int | None
    flash: int | None
    stack_ram: int | None
    stack_flash: int | None
    primitives: dict[str, PrimitiveCost]

@type_check_only
class KeyStoreView(TypedDict):
    """A key store's profile: its calls by PKCS#11's names, none of a key in software; of a throttle
    its calls and window, ns."""

    name: str
    description: str
    software: bool
    calls: dict[str, LawSummary]
    throttle: tuple[int, int] | None
    sleeps: bool

def device(name: str, text: str, file: str) -> DeviceView:
    """A device's profile from its file's text. Raises WarifuError."""

def key_store(name: str, text: str, file: str) -> KeyStoreView:
    """A key store's profile from its file's text. Raises WarifuError."""

def duration_ns(text: str) -> int:
    """A duration such as `45 ms`, ns. Raises WarifuError."""

def clock_hz(text: str) -> float:
    """A clock such as `64 MHz`, Hz. Raises WarifuError."""

def byte_count(text: str) -> int:
    """A size such as `256 KiB`, B. Raises WarifuError."""

@final
class Study:
    """A study, checked as a whole: every case of it can be run."""

    @staticmethod
    def parse(
        text: str,
        file: str,
        profiles: Sequence[Profile],
        overrides: Sequence[tuple[str, str]] = ...,
    ) -> Study:
        """Reads a study.

        `file` is the name for errors; `overrides` are pairs of dotted path and value
        (`link.rtt`, `60 ms`) that take the place of what the text says. Raises WarifuError.
        """

    @staticmethod
    def from_choices(choices: Sequence[tuple[str, str]], profiles: Sequence[Profile]) -> Study:
        """A question that needs no file: settings as pairs, the rest by default.

        Raises WarifuError.
        """

    @property
    def name(self) -> str:
        """Its name, also of its results folder."""

    @property
    def seed(self) -> int:
        """What all randomness comes from."""

    @property
    def trials(self) -> int:
        """Measured trials a case."""

    @property
    def predict_trials(self) -> int:
        """Simulated trials a case."""

    @property
    def text_hash(self) -> str:
        """SHA-256 of the text and the overrides, hexadecimal."""

    @property
    def vary(self) -> list[tuple[str, list[str]]]:
        """Dotted path and values, as written, of what varies."""

    @property
    def require(self) -> list[tuple[str, str, str, float, str]]:
        """Metric, statistic, operator, bound (ns, B or 1) and text of each bound."""

    @property
    def cases(self) -> list[CaseView]:
        """The cases: the cartesian product of what varies, the first changing slowest."""

    def emulated(self) -> tuple[Study, list[tuple[str, str]]]:
        """The study of the cases that can be emulated, and the others' labels with the reasons;
        itself where that leaves none."""

    def only(self, indices: Sequence[int]) -> Study:
        """The study of some of its cases alone, by their indices; each keeps its label."""

    def inputs(self, index: int) -> list[dict[str, str]]:
        """Every figure that case `index` uses: name, value, unit, source, kind, evidence.

        `evidence` is empty for a condition that the study sets.

        Raises WarifuError, and IndexError beyond the last case.
        """

    def device_library(self, name: str) -> str | None:
        """The library whose recipes a device's messages may be lowered by, where there are any."""

    def device_calibration_cases(self, name: str) -> str:
        """The cases that a device profile's figures were found from, as a JSON list."""

    def device_run_ids(self, name: str) -> list[str]:
        """The calibration runs that a device profile's figures come from, sorted."""

@final
class CaseView:
    """One case of a study."""

    @property
    def id(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of `json`."""

    @property
    def json(self) -> str:
        """Its canonical form."""

    @property
    def columns(self) -> dict[str, str | bool | int | float | None]:
        """Its settings by column name; None where nothing applies."""

    @property
    def label(self) -> str:
        """What sets it apart from the study's other cases: `rtt 60 ms, tls 1.3`."""

    @property
    def kernels(self) -> list[tuple[str, str, tuple[int, int, int | None] | None]]:
        """The kernel that the TCP of each end is of: setting (`device.tcp`), profile, and release
        where the profile says it: 6, 18 and, if said, 5 of 6.18.5."""

def mistakes(
    text: str,
    file: str,
    profiles: Sequence[Profile],
    overrides: Sequence[tuple[str, str]] = ...,
) -> list[str]:
    """Every mistake of a study, one line each; none for a good one."""

def profile_mistake(profile: Profile) -> str | None:
    """The first mistake of a profile, one line that begins with the key; None for a good one.

    Raises WarifuError for a kind of profile that there is not.
    """

def accelerator(name: str, text: str, file: str) -> dict[str, Any]:
    """An accelerator's profile from its file's text.

    `name`, `description`, `needs`; `built_in`, whether it is part of a processor; `ciphers` by AEAD
    and `bus`, each with `set_up_ns` and `per_byte_ns`, which are pairs of the least and the most; a
    call costs the set-up and the bytes of both. A cipher has `inputs`, its figures as
    `Study.inputs` has them. Raises WarifuError.
    """

def dds_discovery(
    nodes: int, rtt_ns: int, *, secured: bool, device: tuple[str, str, str] | None = None
) -> tuple[int, int, int]:
    """How long DDS participants that start at once take until all endpoints have matched, ns: the
    least and the most; then how many handshakes there are.

    `device` is a profile's name, text and file, whose primitives authentication takes; without one
    it takes no time. Raises WarifuError for a profile without them, and ValueError for less than 2
    nodes or numbers beyond all use.
    """

def dds_path(study: Study, index: int) -> dict[str, Any]:
    """The way of a DDS sample from the write to the reader in case `index`, in parts.

    `steps`, the writer's and then the reader's, each with `step`: `work` (operation, writer, bytes,
    own_ns, own_per_byte_ns, protected_ns, which protection adds to a sample beside its layers, and
    cipher: None, or primitive, call_ns, per_byte_ns, tags_ns), `send` (message, bytes) or
    `receive` (message); `wake_ns` of the reader; `delay_ns` of the link and the interfaces; `rate`
    of the link, bit/s or None. `own_ns`, `call_ns` and `wake_ns` are tuples: the 5 % quantile, mean
    and 95 % quantile with warm caches, and what a pause adds to the mean.

    Raises WarifuError where a cost is missing, and IndexError beyond the last case.
    """

def kernel_release(text: str) -> tuple[int, int, int | None] | None:
    """The release of a kernel as `uname -r` says it; None for what is no release of Linux."""

def cipher_suite(tls: str, certificate: str, aead: str) -> str:
    """The suite of a version, certificate type and AEAD, by its IANA name. Raises WarifuError."""

def aead(cipher_suite: str) -> str:
    """The AEAD of a cipher suite. Raises WarifuError."""

def operation_costs(study: Study, index: int) -> list[dict[str, Any]]:
    """What each operation of a case costs and by what, the device's first.

    `operation`, `device`, `count` and `bytes`; then `source` (`own`, `recipe` or `primitive`),
    `recipe`, `warm_ns`, `cold_ns`, `parts` (`primitive`, `figure`, `calls`, `bytes`, `warm_ns`,
    `cold_ns`), `remainder_ns` and `remainder` (the share that is priced by the instruction); or
    `error` and `missing` (primitives) where the profile lacks a cost.

    Raises WarifuError, and IndexError beyond the last case.
    """

def cost_choices(
    operation: str, tls: list[str] = ..., session: list[str] = ...
) -> list[tuple[str, list[str]]]:
    """The choices that an operation's cost depends on in these versions of TLS and ways to begin
    it, each with all its words; an empty list stands for any.

    A device profile's entry that says nothing of one of them is refused where it is looked up.
    Raises WarifuError for a name that is no operation's.
    """

def resumptions(tls: str) -> list[dict[str, Any]]:
    """How connections of a version can resume a session, the usual way first: `name`, and
    `has_key_exchange`. Raises WarifuError."""

@type_check_only
class Metric(TypedDict):
    """An entry of the registry of metrics (crates/core/model/src/metric.rs)."""

    name: str
    """As observations and `[require]` have it: `https.establishment`."""
    unit: str
    """Of its values: ns, B, 1, mJ or mAh."""
    is_whole: bool
    """Whether it is a protocol's whole time, which stages divide."""
    is_phase: bool
    """Whether it is a part of that time."""
    is_failure: bool
    """Whether it says what failed: 1 for that, and no row for all else."""
    of_scenario: bool
    """Whether there is one value for all connections of a trial together, not one for each."""

def set_fs_user(user: int, group: int) -> None:
    """From now on, this thread reads and writes files as this user and group (setfsuid(2)), and so
    does each that it starts; root alone can ask for it.

    Raises OSError where the kernel keeps another user.
    """

def fs_user() -> tuple[int, int]:
    """Whose files this thread reads and writes: the user and the group."""

def modem_channel_opened(device: int, channel: int) -> None:
    """Writes down that this process has opened a channel of the card behind the line with this
    device number (`st_rdev`), so that the next program of the user closes it if this one is killed.
    The caller holds the line's lock.
    """

def modem_channel_closed(device: int, channel: int) -> None:
    """Writes down that the channel is closed."""

def metrics(protocol: str | None = None) -> list[Metric]:
    """The registry of metrics, of one protocol or of all, in the order of tables: those of a
    connection, and those of a scenario of several connections.

    Raises WarifuError for an unknown protocol.
    """

def trace_text(study: Study, index: int) -> str:
    """A case's trace as text that a person can read.

    Raises WarifuError, and IndexError beyond the last case.
    """

def request_text(case: CaseView) -> str:
    """The HTTP request as the device sends it."""

def missing_operations(study: Study, index: int) -> tuple[list[str], list[str]]:
    """The operations of case `index` that the device's profile and the server's have no cost for.

    Raises IndexError beyond the last case.
    """

def step_costs(study: Study, index: int) -> list[dict[str, Any]]:
    """Where the computing of case `index` goes, step by step, the device's program first: operation
    and bytes, `own_ns` and `own_cold_ns` of the operation's own cost (means, bytes included),
    `cipher_ns` and `cipher_cold_ns` of what its cipher takes beside that, and `primitive`, the
    cipher's call in the device's profile, or None. Waking and the link are not among them.

    Raises WarifuError where a cost is missing, and IndexError beyond the last case.
    """

def device_measures_ciphers(profile: Profile, aead: str | None = None) -> bool:
    """Whether a device's profile has figures of its own for encrypting with an AEAD of DDS, or with
    any of them: `[[primitive]]` `aead.seal.AES-256-GCM` or `aead.seal.AES-256-GCM.keyed`.

    Raises WarifuError where the profile cannot be read.
    """

def primitives() -> list[str]:
    """The names of all primitives that a device profile may have a cost for: hash.sha-512, .."""

def varying_messages(study: Study, index: int) -> list[tuple[int, bool, str, int, int, int]]:
    """The messages of a case whose lengths depend on chance, in the order of the trace: number,
    whether the client sends it, name, how many of that name this end sent before, shortest and
    longest length (B).

    Raises WarifuError for a case that is not one TCP connection.
    """

def replay(
    study: Study,
    index: int,
    trials: list[int],
    ends_ns: list[int],
    sizes: list[list[tuple[int, int]]],
    packets: dict[str, list[Any]],
    began: list[tuple[int, int, int, int] | None],
) -> dict[str, list[int | None]]:
    """Simulates measured connections of a case, each packet with the fate that it met on the link.

    `trials`, `ends_ns` (when the first response came, from connect() on) and `sizes` (number and
    length of each message that varies) have an entry a connection. `packets` has lists of equal
    length, ordered by trial: `trial`, `down`, `at_ns`, `seq`, `len`, `ack`, `flags`, and
    `delay_ns`, negative for a lost packet. `began` has the kernel's time at connect(), where it is
    known: the length of its ticks (ns), the jiffies of one, how long ago that began (ns), and its
    monotonic clock (ns).

    Returns, a connection each, None for one that came to nothing: `replayed_ns`, `client_bytes`
    and `server_bytes` (what each wrote until the response), `same_sequence` (1 where both halves
    sent the same segments again), and how many packets one half has and the other not:
    `only_simulated`, `only_logged`, `acknowledgements`. Raises WarifuError for a case that is not
    one TCP connection.
    """

def predict(
    study: Study,
    out_dir: str | PathLike[str],
    manifest_json: str,
    threads: int | None = None,
    keep: str = "distribution",
    progress: Callable[[int, int, int], object] | None = None,
    now: Callable[[], str] | None = None,
    tier: str = "events",
) -> dict[str, Any]:
    """Simulates every case of a study into a results folder.

    The folder appears under its name when all is done, in place of older results. What an
    interruption or an error cuts short is there as well if there was nothing before, else in
    `OUT_DIR.partial`; its manifest says that it is not complete.

    `manifest_json` becomes the manifest. `threads` is the number of workers (all cores for
    None); `keep` is `distribution` (weighted rows) or `trials` (every trial); `progress` gets
    cases done, cases in all, and trials done, some times a second; `now` gives the RFC 3339
    text of the end.

    `tier` is `events` (trials), `exact` (patterns of losses with their probabilities; a case that
    does not qualify is an error) or `auto` (exact where a case qualifies).

    Returns cases, trials, failed (connections), rows, complete, exact (cases of the exact tier) and
    residual (the largest probability that one of them leaves out). Raises WarifuError, and
    KeyboardInterrupt after the finished cases were stored.
    """

def write_observations(
    path: str | PathLike[str],
    study_name: str,
    case_json: str,
    run_id: str,
    method: str,
    evidence: str,
    rows: Mapping[str, Sequence[Any]],
) -> tuple[int, str]:
    """Writes the observations of one case as a Parquet file of its own, atomically.

    Returns its length in bytes and its SHA-256, as a manifest's `files` keeps them.

    `method` is `measured`, `emulated` or `simulated`; `evidence` is `measured`, `published` or
    `assumed`. `rows` has the columns connection, trial, metric, stage (None for the whole metric),
    value, unit, weight and seed, all of the same length. Raises WarifuError.
    """

def begin_manifest(study: Study, facts_json: str) -> str:
    """The manifest of a run of a study that is about to begin, JSON.

    `facts_json` is what the caller knows: half, run_id, started, text and file of the study,
    overrides, profiles (kind, name, text), calibration_run_ids, commit, dirty, machine, tools.
    Raises WarifuError.
    """

def read_manifest(text: str, file: str) -> str:
    """A manifest as the current version has it, JSON, whichever version wrote it.

    `file` is the name for errors. Raises WarifuError where it cannot be read.
    """

def replace_results(whole: str | PathLike[str], folder: str | PathLike[str]) -> None:
    """Puts a results folder that is whole in the place of another, which stays until then.

    Raises WarifuError, also where `folder` holds something else than results.
    """

def settings(case_json: str) -> dict[str, str | bool | int | float | None]:
    """A case's settings by column name, from its canonical form; None where nothing applies.

    Raises WarifuError.
    """

def write_manifest(folder: str | PathLike[str], manifest_json: str) -> None:
    """Writes `manifest.json` into a results folder, atomically, after checking it.

    Raises WarifuError.
    """

def columns() -> list[tuple[str, str, str, bool]]:
    """An observation's columns in their order: name, type, unit, and whether it may be null.

    The type is `text`, `bool`, `u16`, `u32`, `u64` or `f64`.
    """

def weakest_evidence(evidence: Sequence[str]) -> str:
    """The weakest of `measured`, `published` and `assumed`; `assumed` for none.

    Raises WarifuError for another word.
    """

M3_MAX_OUTPUT: int
"""Bytes of a program's output that are kept if there is no `output` callback."""

def m3_chip(name: str, file: str | None) -> str:
    """A chip's description as JSON: built in, or of its file's text."""

def m3_chips() -> list[str]:
    """The names of the chips whose memory maps are known."""

def m3_run(
    program: bytes, request: dict[str, Any], output: Callable[[bytes], object] | None = None
) -> dict[str, Any]:
    """Runs an ELF file on the simulated Cortex-M3.

    `request` has chip, max_instructions, wait_states (pairs), deliver_faults, low_reading, input
    and arguments (warifu.m3.Options). `output` receives the program's output as it is printed, line
    by line; without it the first M3_MAX_OUTPUT bytes are `output` of the result, and lost_output
    counts the others. The result has stop, code (None if the program did not exit), address,
    message (one line with registers), instructions, cycles (low, high), registers (R0 to R15),
    xpsr, output, lost_output, marks (name of at most 256 bytes, cycles, stack pointer) and
    lost_marks.

    Raises WarifuError if the program cannot be run, KeyboardInterrupt, and what `output` raises.
    """

class M3Debugger:
    """A program that waits for gdb at reset; the arguments are those of `m3_run`.

    Whoever has the connection says when a client connects and when it is gone, hands over what
    arrives, calls `run` again and again while the state is running or alone, and sends what there
    is to send.
    """

    def __init__(
        self,
        program: bytes,
        request: dict[str, Any],
        output: Callable[[bytes], object] | None = None,
    ) -> None: ...
    @property
    def state(self) -> str:
        """`halted`, `running`, `alone` (the client has detached) or `ended`."""

    @property
    def is_connected(self) -> bool:
        """Whether a client is served: not after a malformed packet."""

    def connected(self) -> None:
        """A client has connected; what the one before had set is gone."""

    def disconnected(self) -> None:
        """It is gone without a word: the program halts."""

    def receive(self, received: bytes) -> None:
        """Takes bytes of gdb's remote protocol."""

    def run(self) -> None:
        """Runs for some hundredths of a second, or not at all if the program is halted."""

    def take_output(self) -> bytes:
        """Bytes for the client, once."""

    def take_problem(self) -> str | None:
        """What was wrong with the client's packets, once."""

    def outcome(self) -> dict[str, Any]:
        """As `m3_run`, once the run has ended: `stop` is `killed` if the client ended it."""

def m3_trace(
    program: bytes,
    request: dict[str, Any],
    traced: dict[str, Any],
    write: Callable[[bytes], object],
    output: Callable[[bytes], object] | None = None,
) -> dict[str, Any]:
    """As `m3_run`, with a trace, which `write` receives; adds lines and cut.

    `traced` has since, until, call and limit (warifu.m3.Part).
    """

def m3_profile(
    program: bytes, request: dict[str, Any], output: Callable[[bytes], object] | None = None
) -> dict[str, Any]:
    """As `m3_run`, under the profiler: adds profile (JSON), folded and flame_graph."""

def m3_taint(
    program: bytes,
    request: dict[str, Any],
    secrets: Sequence[tuple[str, int | None]],
    from_function: str,
    output: Callable[[bytes], object] | None = None,
) -> dict[str, Any]:
    """As `m3_run`, with taint tracking: adds taint (JSON) and poisoned (bytes).

    `secrets` are names of variables, with their bytes if the file does not give them; they are
    secret from each start of `from_function` on.
    """

def m3_size(program: bytes, chip: str, chip_file: str | None) -> str:
    """Sizes of sections and symbols, and use of the chip's memories, JSON. Raises WarifuError."""
