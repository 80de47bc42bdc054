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
    AsyncNetwork,
    AsyncPorts,
    AsyncSandbox,
    AsyncShell,
    AsyncSnapshots,
    AsyncTerminal,
)
from ._sync import Client, Exec, Files, Network, Ports, Sandbox, Shell, Snapshots, Terminal
from ._values import (
    Command,
    Edit,
    ExecOptions,
    GlobOptions,
    GrepOptions,
    Limits,
    OnFailure,
    Output,
    Path,
    Profile,
    Pull,
    Ran,
    RunOptions,
    SandboxOptions,
    Scope,
    SpecOptions,
    StartOptions,
    TerminalSize,
    WatchOptions,
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
    "AsyncNetwork",
    "AsyncPorts",
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
    "Network",
    "NotFoundError",
    "OnFailure",
    "Output",
    "Path",
    "Ports",
    "Profile",
    "Pull",
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
    "StartOptions",
    "Terminal",
    "TerminalSize",
    "TooLargeError",
    "UnavailableError",
    "UsageError",
    "WatchOptions",
    "api",
    "models",
]
