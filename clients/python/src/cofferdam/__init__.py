"""A client of Cofferdam, which runs commands nobody has read in sandboxes.

    with Client() as client, client.sandbox() as box:
        print(box.run("echo hello").text)

`AsyncClient` is the same for asyncio.
"""

from . import models
from ._api import api
from ._async import (
    AsyncClient,
    AsyncExec,
    AsyncFiles,
    AsyncSandbox,
    AsyncShell,
    AsyncSnapshots,
    AsyncTerminal,
)
from ._sync import Client, Exec, Files, Sandbox, Shell, Snapshots, Terminal
from ._values import (
    Command,
    Edit,
    ExecOptions,
    GlobOptions,
    GrepOptions,
    Limits,
    Output,
    Path,
    Profile,
    Ran,
    RunOptions,
    SandboxOptions,
    Scope,
    SpecOptions,
    TerminalSize,
)
from .errors import (
    CofferdamError,
    CommandFailed,
    ConflictError,
    DeniedError,
    NotFoundError,
    RefusedError,
    ServerError,
    TooLargeError,
    UnavailableError,
    UsageError,
)

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "AsyncExec",
    "AsyncFiles",
    "AsyncSandbox",
    "AsyncShell",
    "AsyncSnapshots",
    "AsyncTerminal",
    "Client",
    "CofferdamError",
    "Command",
    "CommandFailed",
    "ConflictError",
    "DeniedError",
    "Edit",
    "Exec",
    "ExecOptions",
    "Files",
    "GlobOptions",
    "GrepOptions",
    "Limits",
    "NotFoundError",
    "Output",
    "Path",
    "Profile",
    "Ran",
    "RefusedError",
    "RunOptions",
    "Sandbox",
    "SandboxOptions",
    "Scope",
    "ServerError",
    "Shell",
    "Snapshots",
    "SpecOptions",
    "Terminal",
    "TerminalSize",
    "TooLargeError",
    "UnavailableError",
    "UsageError",
    "api",
    "models",
]
