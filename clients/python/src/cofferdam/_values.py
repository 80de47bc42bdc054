"""What goes into requests and comes out of answers, without any connection."""

from __future__ import annotations

import base64
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, Protocol, Self, TypedDict, TypeVar, cast, get_args, get_type_hints

from . import models
from ._api.types import UNSET, Unset
from .errors import CommandFailed, OptionNameError, OptionValueError, UsageError

T = TypeVar("T")
E = TypeVar("E", bound=Enum)


class _Body(Protocol):
    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self: ...


M = TypeVar("M", bound=_Body)

#: A path in a workspace. Bytes name a file whose name is not UTF-8.
Path = str | bytes
#: Bytes of any kind.
Bytes = bytes | bytearray | memoryview
#: A command: words, or a line for ``/bin/sh -c``.
Command = Sequence[str] | str
Profile = Literal["read-only", "repo-write", "no-network", "full-dev", "ci-only"]
Pull = Literal["missing", "always", "never"]
OnFailure = Literal["destroy", "stop", "preserve"]


class Limits(TypedDict, total=False):
    """How much a sandbox may use."""

    memory_bytes: int
    pids: int
    cpu_millis: int
    disk_bytes: int


class SpecOptions(TypedDict, total=False):
    """What a sandbox is made of. What is not said is as the operator decided."""

    profile: Profile
    workspace: str
    copy_on_write: bool
    #: What it lies on, in the words in which the operator allows it.
    image: str
    #: When a registry is asked for that.
    pull: Pull
    env: Mapping[str, str]
    limits: Limits
    #: Secrets of the caller that what it sends may hold: ``NAME@HOST``.
    secrets: Sequence[str]
    #: What it may reach at first, within what the operator allows: ``HOST[:PORT]``.
    egress: Sequence[str]
    #: What it may not reach, beside what the operator denies.
    deny_egress: Sequence[str]


class SandboxOptions(SpecOptions, total=False):
    """The same of one that stays."""

    labels: Mapping[str, str]
    #: What its workspace is to hold before `init`: ``{"version": 1, "entries": […]}``.
    manifest: Mapping[str, Any]
    init: Sequence[str]
    idle_pause_ms: int
    stay_awake: bool
    ttl_ms: int
    no_checkpoints: bool


class TerminalSize(TypedDict):
    """The size of a terminal."""

    rows: int
    columns: int


class StartOptions(TypedDict, total=False):
    """How the words of an image lead a command."""

    entrypoint: str


class ExecOptions(TypedDict, total=False):
    """How a command runs."""

    #: Its id, in place of one that is made. The same again starts nothing.
    id: str
    cwd: str
    env: Mapping[str, str]
    stdin: bool
    terminal: TerminalSize
    detached: bool
    keep_awake: bool
    timeout_ms: int
    max_output_bytes: int
    #: Puts the words of the sandbox's image around the command.
    start: StartOptions
    #: Secrets that it is given: ``NAME`` or ``NAME=FILE`` below ``/run/secrets``, and ``NAME=N``.
    secret_files: Sequence[str]
    secret_descriptors: Sequence[str]
    #: Looks at the workspace before it starts, for `receipt` of what it did.
    receipt: bool


class RunOptions(SpecOptions, total=False):
    """How a command in a sandbox of its own runs."""

    id: str
    cwd: str
    terminal: TerminalSize
    timeout_ms: int
    max_output_bytes: int
    start: StartOptions
    secret_files: Sequence[str]
    secret_descriptors: Sequence[str]
    preflight: Sequence[str]
    capture_bytes: int
    #: What becomes of the sandbox where the command fails. What is kept has its id in the report.
    on_failure: OnFailure


#: What of that is said of the sandbox, and what of the run; the rest is said of the command.
SPEC_WORDS = frozenset(get_type_hints(SpecOptions))
RUN_WORDS = frozenset({"preflight", "capture_bytes", "on_failure"})


class Scope(TypedDict, total=False):
    """What a search passes over."""

    include: Sequence[str]
    exclude: Sequence[str]
    hidden: bool
    no_ignore: bool


class GlobOptions(TypedDict, total=False):
    """Which names are found."""

    ignore_case: bool
    kinds: Sequence[Literal["file", "directory", "link", "fifo", "socket", "device"]]
    limit: int
    scope: Scope


class GrepOptions(TypedDict, total=False):
    """Which lines are found."""

    after: int
    before: int
    binary_as_text: bool
    case: Literal["sensitive", "insensitive", "smart"]
    fixed_strings: bool
    limit: int
    max_count: int
    max_file_bytes: int
    scope: Scope
    tell: Literal["lines", "count", "name"]
    word: bool


class WatchOptions(TypedDict, total=False):
    """What of files is told."""

    depth: int
    glob: str
    max_directories: int
    max_pending: int


class Edit(TypedDict):
    """A text of a file, and what is to stand in its place."""

    old: str
    new: str


def edit_of(edit: object, all: bool) -> dict[str, Any]:
    """An edit as a field of a request."""
    if not isinstance(edit, Mapping):
        raise OptionNameError(
            f"{edit!r} is no edit", kind="usage", hint="Give each as {'old': TEXT, 'new': TEXT}."
        )
    return {**edit, "all": all}


def labels_of(labels: Mapping[str, str] | None) -> str | None:
    """Labels as a list is asked for by them: a sign that means something there has a backslash before it."""
    sign = re.compile(r"[\\,=]")
    pairs = (
        "=".join(sign.sub(r"\\\g<0>", str(part)) for part in pair)
        for pair in (labels or {}).items()
    )
    return ",".join(pairs) or None


def checked(options: type, given: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The fields of a request. A name that there is not is an error here as on the server."""
    known = get_type_hints(options)
    for name, value in given.items():
        if name not in known:
            raise OptionNameError(
                f"there is no option {name!r}",
                kind="usage",
                hint=f"There are {', '.join(sorted(known))}.",
            )
        words = get_args(known[name])
        if getattr(known[name], "__origin__", None) is Literal and value not in words:
            raise not_one_of(name, value, words)
    fields = {**given, **more}
    return {name: value for name, value in fields.items() if value is not None}


def not_one_of(name: str, value: object, words: Iterable[str]) -> OptionValueError:
    """What is said of a word that is none of a closed set."""
    return OptionValueError(
        f"{name} is {value!r}, and not one of those it can be",
        kind="usage",
        hint=f"Give one of {', '.join(words)}.",
    )


def word(of: type[E], name: str, value: str) -> E:
    """A word of a closed set, as the generated part has it."""
    try:
        return of(value)
    except ValueError as error:
        raise not_one_of(name, value, [one.value for one in of]) from error


def wish_of(of: type[M], fields: Mapping[str, Any]) -> M:
    """The body of a request. Fields of other types than it has, and fields that it has not, are an error
    before anything is sent."""
    try:
        wish = of.from_dict(fields)
        _refuse_unknown(wish, fields)
        return wish
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise OptionNameError(
            f"the arguments do not fit: {error}",
            kind="usage",
            hint="See what types the options of this method have.",
        ) from error


def _refuse_unknown(wish: object, fields: object, at: str = "") -> None:
    """Refuses fields that a wish did not take, however deep. The generated part drops them, and what was
    asked for would not be there."""
    if isinstance(wish, list) and isinstance(fields, Sequence):
        for one, its_fields in zip(wish, fields, strict=True):
            _refuse_unknown(one, its_fields, at)
    if not hasattr(wish, "to_dict") or not isinstance(fields, Mapping):
        return
    # A name that is a word of Python has a line behind it there.
    known = {name.rstrip("_"): name for name in inspect.signature(type(wish)).parameters}
    more: Mapping[str, object] = getattr(wish, "additional_properties", {})
    for name, value in fields.items():
        if name in known:
            _refuse_unknown(getattr(wish, known[name]), value, f"{at}{name}.")
        elif name in more:
            _refuse_unknown(more[name], value, f"{at}{name}.")
        else:
            raise OptionNameError(
                f"there is no field {at + str(name)!r}",
                kind="usage",
                hint=f"There are {', '.join(sorted(known))}.",
            )


def signal_of(signal: int | str) -> int | str:
    """A signal as requests have it: its number, or its name."""
    try:
        return signal if isinstance(signal, str) else int(signal)
    except (TypeError, ValueError) as error:
        raise OptionValueError(
            f"{signal!r} is no signal", kind="usage", hint="Give its number, or its name."
        ) from error


def run_of(command: Command, options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a command in a sandbox of its own."""
    wish = checked(RunOptions, options)
    exec_wish = command_of(command)
    fields: dict[str, Any] = {"exec": exec_wish, "sandbox": {}}
    for word, value in wish.items():
        if word in RUN_WORDS:
            fields[word] = value
        elif word in SPEC_WORDS:
            fields["sandbox"][word] = value
        else:
            exec_wish[word] = value
    return fields


def command_of(command: Command) -> dict[str, Any]:
    """The fields of a command."""
    if isinstance(command, str):
        return {"shell": command}
    if not isinstance(command, Sequence) or not all(isinstance(part, str) for part in command):
        raise OptionNameError(
            f"{command!r} is no command",
            kind="usage",
            hint="Give a list of words, or a line of shell.",
        )
    return {"argv": list(command)}


def given(value: T | None) -> T | Unset:
    """A value as the generated part takes it."""
    return UNSET if value is None else value


def place(path: Path, name: str = "path") -> dict[str, str]:
    """A path as parameters or fields of a request."""
    if not isinstance(path, (str, bytes)):
        raise OptionNameError(
            f"{name} is {path!r}, and no path", kind="usage", hint="Give a text, or bytes."
        )
    if isinstance(path, bytes):
        try:
            return {name: path.decode()}
        except UnicodeDecodeError:
            return {f"{name}_base64": base64.b64encode(path).decode()}
    return {name: path}


def places(paths: Sequence[Path]) -> dict[str, list[str]]:
    """Several paths as fields of a request."""
    fields: dict[str, list[str]] = {}
    for path in paths:
        for name, value in place(path, "paths").items():
            fields.setdefault(name, []).append(value)
    return fields


def content_of(data: object, pieces: type | None = None) -> Any:
    """The body of a request: a text or bytes, or `pieces` of them where it may be such. Anything else is
    refused, for nothing would be a body, too, and make a file empty."""
    if isinstance(data, str):
        try:
            return data.encode()
        except UnicodeEncodeError as error:
            raise OptionValueError(
                f"the text cannot be sent: {error}", kind="usage", hint="Give it as bytes."
            ) from error
    if isinstance(data, Bytes):
        return bytes(data)
    # A mapping, or a set, has things in it and no order of bytes.
    if pieces and isinstance(data, pieces) and not isinstance(data, (Mapping, Set)):
        return data
    # It may be a secret: its type alone is shown.
    raise OptionNameError(
        f"a value of the type {type(data).__name__} is no content",
        kind="usage",
        hint='Give bytes, or a text; b"" for nothing.',
    )


def range_of(offset: int, length: int | None) -> str | None:
    """The field that asks for a part of a file; nothing for all of it. One that HTTP has not would be
    ignored, and all would come."""
    for name, value in (("offset", offset), ("length", 0 if length is None else length)):
        if not isinstance(value, int) or value < 0:
            raise OptionValueError(
                f"{name} is {value!r}, and no number of bytes",
                kind="usage",
                hint="Give 0 or more; `stat` has the size of a file, to count from its end.",
            )
    if length is None:
        return f"bytes={offset}-" if offset else None
    # There is no range without a byte. With one it is seen whether the file is there.
    return f"bytes={offset}-{offset + max(length, 1) - 1}"


def as_bytes(text: str | None | Unset, in_base64: str | None | Unset) -> bytes:
    """Bytes that came as text, or in base64 where they are none."""
    if isinstance(text, str):
        return text.encode()
    return base64.b64decode(in_base64) if isinstance(in_base64, str) else b""


@dataclass(frozen=True)
class Output:
    """A part of what a command wrote."""

    stream: Literal["stdout", "stderr"]
    #: The place of its first byte in the stream. A gap before it is output that is not kept any more.
    offset: int
    data: bytes

    @property
    def text(self) -> str:
        """The part as text; a character that is cut at its end, or no text, is replaced."""
        return self.data.decode(errors="replace")

    @classmethod
    def of(cls, part: models.LogPart) -> Output:
        """The part of an answer."""
        stream = cast(Literal["stdout", "stderr"], part.stream)
        return cls(stream, part.offset, as_bytes(part.text, part.base64))


@dataclass
class Ran:
    """A command that has ended, with what it wrote."""

    exit_code: int
    #: How it ended: ``exited``, ``signaled``, ``timed_out``, ``out_of_memory`` …
    ending: str
    stdout: bytes = b""
    stderr: bytes = b""
    #: How many bytes of each stream are not in here.
    omitted: dict[str, int] = field(default_factory=lambda: {"stdout": 0, "stderr": 0})
    #: All that the server says of it.
    report: models.ExecReport | models.RunReport | None = None

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.stdout.decode(errors="replace")

    def check(self) -> Ran:
        """The same, where it exited with 0; otherwise `CommandFailed`."""
        if self.exit_code != 0 or self.ending != "exited":
            raise CommandFailed(self.ending, self.exit_code, self.stderr, self._detail())
        return self

    def _detail(self) -> str | None:
        report = self.report
        told = report.ending if isinstance(report, models.RunReport) else report
        return told.detail if told and isinstance(told.detail, str) else None

    @classmethod
    def of(cls, report: models.RunReport) -> Ran:
        """What came of a command in a sandbox of its own."""
        return cls(
            exit_code=report.exit_code,
            ending=report.ending.kind.value,
            stdout=as_bytes(report.stdout, report.stdout_base64),
            stderr=as_bytes(report.stderr, report.stderr_base64),
            omitted={"stdout": report.omitted.stdout, "stderr": report.omitted.stderr},
            report=report,
        )


class Gathering:
    """Gathers output up to a limit a stream, and counts the rest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = {"stdout": bytearray(), "stderr": bytearray()}

    def take(self, part: Output) -> None:
        """Takes a part."""
        kept = self._kept[part.stream]
        kept += part.data[: max(0, self._most - len(kept))]

    def ran(self, report: models.ExecReport) -> Ran:
        """What came of a command that has ended."""
        stdout, stderr = bytes(self._kept["stdout"]), bytes(self._kept["stderr"])
        ending, exit_code = report.ending, report.exit_code
        return Ran(
            exit_code=exit_code if isinstance(exit_code, int) else -1,
            ending=ending.value if isinstance(ending, models.EndingKind) else "lost",
            stdout=stdout,
            stderr=stderr,
            omitted={
                "stdout": report.stdout.written - len(stdout),
                "stderr": report.stderr.written - len(stderr),
            },
            report=report,
        )
