from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.exec_wish_env import ExecWishEnv
    from ..models.size_wish import SizeWish
    from ..models.start_wish import StartWish


T = TypeVar("T", bound="ExecWish")


@_attrs_define
class ExecWish:
    """A command as a request wants it: `argv`, or `shell`.

    Attributes:
        argv (list[str] | Unset): The program and its arguments.
        cwd (None | str | Unset): Where it starts, absolute inside. Without one it starts in the workspace.
        detached (bool | Unset): It does not count as use of the sandbox, and what it starts outlives it. Default:
            False.
        env (ExecWishEnv | Unset): Variables over those of the sandbox.
        id (None | str | Unset): Its id, in place of one that is made: 1 to 64 letters, digits, `-`, `_` or `.`. The
            same id again
            starts nothing and answers with the first one; with another command it is a conflict.
        keep_awake (bool | Unset): It counts as use though it is detached. Default: False.
        max_output_bytes (int | None | Unset): It is killed when a stream exceeds this many bytes.
        receipt (bool | Unset): Looks at the workspace before it starts, so that its receipt tells what it did to files.
            For a command
            in the foreground, by a key with the scope `files-read`. Default: False.
        secret_descriptors (list[str] | Unset): Secrets that it is given as open descriptors: `NAME=N`. Masked as those
            that are files.
        secret_files (list[str] | Unset): Secrets of the caller that it is given as files: `NAME`, or `NAME=FILE` for
            another name. Each is
            `/run/secrets/FILE`, which this command alone can read, until it ends. Their values are masked in what
            commands of the sandbox write from then on. By a key with the scope `secrets`.
        shell (None | str | Unset): A line for `/bin/sh -c`.
        start (None | StartWish | Unset): Puts the words of the sandbox's image around `argv`, which may then be empty.
            Without it `argv` is
            the command as it is.
        stdin (bool | Unset): Whether it reads what is sent to it; otherwise nothing. Default: False.
        terminal (None | SizeWish | Unset): A terminal of this size for all its streams.
        timeout_ms (int | None | Unset): It is killed after this long, in milliseconds. Without it there is no limit but
            that of a run; 0 is none
            that a command could keep, and refused.
    """

    argv: list[str] | Unset = UNSET
    cwd: None | str | Unset = UNSET
    detached: bool | Unset = False
    env: ExecWishEnv | Unset = UNSET
    id: None | str | Unset = UNSET
    keep_awake: bool | Unset = False
    max_output_bytes: int | None | Unset = UNSET
    receipt: bool | Unset = False
    secret_descriptors: list[str] | Unset = UNSET
    secret_files: list[str] | Unset = UNSET
    shell: None | str | Unset = UNSET
    start: None | StartWish | Unset = UNSET
    stdin: bool | Unset = False
    terminal: None | SizeWish | Unset = UNSET
    timeout_ms: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.size_wish import SizeWish  # noqa: PLC0415
        from ..models.start_wish import StartWish  # noqa: PLC0415

        argv: list[str] | Unset = UNSET
        if not isinstance(self.argv, Unset):
            argv = self.argv

        cwd: None | str | Unset
        if isinstance(self.cwd, Unset):
            cwd = UNSET
        else:
            cwd = self.cwd

        detached = self.detached

        env: dict[str, Any] | Unset = UNSET
        if not isinstance(self.env, Unset):
            env = self.env.to_dict()

        id: None | str | Unset
        if isinstance(self.id, Unset):
            id = UNSET
        else:
            id = self.id

        keep_awake = self.keep_awake

        max_output_bytes: int | None | Unset
        if isinstance(self.max_output_bytes, Unset):
            max_output_bytes = UNSET
        else:
            max_output_bytes = self.max_output_bytes

        receipt = self.receipt

        secret_descriptors: list[str] | Unset = UNSET
        if not isinstance(self.secret_descriptors, Unset):
            secret_descriptors = self.secret_descriptors

        secret_files: list[str] | Unset = UNSET
        if not isinstance(self.secret_files, Unset):
            secret_files = self.secret_files

        shell: None | str | Unset
        if isinstance(self.shell, Unset):
            shell = UNSET
        else:
            shell = self.shell

        start: dict[str, Any] | None | Unset
        if isinstance(self.start, Unset):
            start = UNSET
        elif isinstance(self.start, StartWish):
            start = self.start.to_dict()
        else:
            start = self.start

        stdin = self.stdin

        terminal: dict[str, Any] | None | Unset
        if isinstance(self.terminal, Unset):
            terminal = UNSET
        elif isinstance(self.terminal, SizeWish):
            terminal = self.terminal.to_dict()
        else:
            terminal = self.terminal

        timeout_ms: int | None | Unset
        if isinstance(self.timeout_ms, Unset):
            timeout_ms = UNSET
        else:
            timeout_ms = self.timeout_ms

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if argv is not UNSET:
            field_dict["argv"] = argv
        if cwd is not UNSET:
            field_dict["cwd"] = cwd
        if detached is not UNSET:
            field_dict["detached"] = detached
        if env is not UNSET:
            field_dict["env"] = env
        if id is not UNSET:
            field_dict["id"] = id
        if keep_awake is not UNSET:
            field_dict["keep_awake"] = keep_awake
        if max_output_bytes is not UNSET:
            field_dict["max_output_bytes"] = max_output_bytes
        if receipt is not UNSET:
            field_dict["receipt"] = receipt
        if secret_descriptors is not UNSET:
            field_dict["secret_descriptors"] = secret_descriptors
        if secret_files is not UNSET:
            field_dict["secret_files"] = secret_files
        if shell is not UNSET:
            field_dict["shell"] = shell
        if start is not UNSET:
            field_dict["start"] = start
        if stdin is not UNSET:
            field_dict["stdin"] = stdin
        if terminal is not UNSET:
            field_dict["terminal"] = terminal
        if timeout_ms is not UNSET:
            field_dict["timeout_ms"] = timeout_ms

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.exec_wish_env import ExecWishEnv  # noqa: PLC0415
        from ..models.size_wish import SizeWish  # noqa: PLC0415
        from ..models.start_wish import StartWish  # noqa: PLC0415

        d = dict(src_dict)
        argv = cast(list[str], d.pop("argv", UNSET))

        def _parse_cwd(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        cwd = _parse_cwd(d.pop("cwd", UNSET))

        detached = d.pop("detached", UNSET)

        _env = d.pop("env", UNSET)
        env: ExecWishEnv | Unset
        if isinstance(_env, Unset):
            env = UNSET
        else:
            env = ExecWishEnv.from_dict(_env)

        def _parse_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        id = _parse_id(d.pop("id", UNSET))

        keep_awake = d.pop("keep_awake", UNSET)

        def _parse_max_output_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_output_bytes = _parse_max_output_bytes(d.pop("max_output_bytes", UNSET))

        receipt = d.pop("receipt", UNSET)

        secret_descriptors = cast(list[str], d.pop("secret_descriptors", UNSET))

        secret_files = cast(list[str], d.pop("secret_files", UNSET))

        def _parse_shell(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        shell = _parse_shell(d.pop("shell", UNSET))

        def _parse_start(data: object) -> None | StartWish | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                start_type_0 = StartWish.from_dict(data)

                return start_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StartWish | Unset, data)

        start = _parse_start(d.pop("start", UNSET))

        stdin = d.pop("stdin", UNSET)

        def _parse_terminal(data: object) -> None | SizeWish | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                terminal_type_0 = SizeWish.from_dict(data)

                return terminal_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SizeWish | Unset, data)

        terminal = _parse_terminal(d.pop("terminal", UNSET))

        def _parse_timeout_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        timeout_ms = _parse_timeout_ms(d.pop("timeout_ms", UNSET))

        exec_wish = cls(
            argv=argv,
            cwd=cwd,
            detached=detached,
            env=env,
            id=id,
            keep_awake=keep_awake,
            max_output_bytes=max_output_bytes,
            receipt=receipt,
            secret_descriptors=secret_descriptors,
            secret_files=secret_files,
            shell=shell,
            start=start,
            stdin=stdin,
            terminal=terminal,
            timeout_ms=timeout_ms,
        )

        return exec_wish
