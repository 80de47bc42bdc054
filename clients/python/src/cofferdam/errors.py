"""What goes wrong, as exceptions: one class a kind, with the words of the server."""

from __future__ import annotations

from typing import Any


class CofferdamError(Exception):
    """A request that failed. Its kind is stable; the message is for people."""

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        hint: str | None = None,
        retryable: bool = False,
        status: int | None = None,
        request_id: str | None = None,
        result: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        #: The stable name of what kind of failure it is, such as ``not_found``.
        self.kind = kind
        #: What to do about it.
        self.hint = hint
        #: Whether the same request may succeed later without any change.
        self.retryable = retryable
        #: The status of the answer, where there was one.
        self.status = status
        #: The number under which the server's log has more.
        self.request_id = request_id
        #: What was found or done all the same, for edits, patches and ``apply``.
        self.result = result

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(CofferdamError):
    """A request that makes no sense (``usage`` and ``config``)."""


class OptionNameError(UsageError, TypeError):
    """An option that there is not, or an argument that no request can hold. Nothing was asked."""


class OptionValueError(UsageError, ValueError):
    """A value that an option or an argument does not have. Nothing was asked."""


class DeniedError(CofferdamError):
    """What the key, or the operator, does not allow (``denied``)."""


class NotFoundError(CofferdamError):
    """What is not there, or is somebody else's (``not_found``)."""


class ConflictError(CofferdamError):
    """What is otherwise than the request takes it to be (``conflict``)."""


class TooLargeError(CofferdamError):
    """What is more than a limit allows (``too_large``)."""


class RefusedError(CofferdamError):
    """What cannot be done, or not safely (``path_escape``, ``unsupported``, ``unenforceable`` …)."""


class UnavailableError(CofferdamError):
    """What may go later (``unavailable``, ``timed_out``); also a server that does not answer."""


class WaitTimeout(UnavailableError, TimeoutError):
    """A command that has not ended within the time that it was waited for. It goes on."""


class ServerError(CofferdamError):
    """A fault of the server or of what stands before it; the server's log says more."""


class CommandFailed(Exception):
    """A command that did not exit with 0. Raised by ``Ran.check`` alone."""

    def __init__(
        self, ending: str, exit_code: int, stderr: bytes, detail: str | None = None
    ) -> None:
        self.ending = ending
        self.exit_code = exit_code
        self.stderr = stderr
        #: Why it never ran, where it did not.
        self.detail = detail
        last = detail or stderr.decode(errors="replace").strip().rpartition("\n")[2]
        said = f": {last}" if last else ""
        super().__init__(f"the command ended as {ending}, code {exit_code}{said}")


_CLASSES: dict[str, type[CofferdamError]] = {
    "usage": UsageError,
    "config": UsageError,
    "denied": DeniedError,
    "not_found": NotFoundError,
    "conflict": ConflictError,
    "too_large": TooLargeError,
    "path_escape": RefusedError,
    "not_a_file": RefusedError,
    "unsupported": RefusedError,
    "unenforceable": RefusedError,
    "setup_failed": RefusedError,
    "unavailable": UnavailableError,
    "timed_out": UnavailableError,
    "protocol": ServerError,
    "io": ServerError,
}


def error_of(problem: Any, status: int | None, request_id: str | None) -> CofferdamError:
    """The exception for a problem document; of an answer that is none, as far as it goes."""
    if not isinstance(problem, dict) or not isinstance(problem.get("kind"), str):
        message = f"the answer was {status}, without a reason"
        is_unavailable = status in (429, 502, 503, 504)
        problem = {"kind": "unavailable" if is_unavailable else "protocol", "message": message}
        problem["retryable"] = is_unavailable
    kind = problem["kind"]
    return _CLASSES.get(kind, CofferdamError)(
        str(problem.get("message") or problem.get("title") or kind),
        kind=kind,
        hint=problem.get("hint"),
        retryable=bool(problem.get("retryable")),
        status=problem.get("status") or status,
        request_id=request_id,
        result=problem.get("result"),
    )
