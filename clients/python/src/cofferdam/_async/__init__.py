"""The client for asyncio."""

from .client import AsyncClient
from .execs import AsyncExec
from .files import AsyncFiles
from .network import AsyncNetwork, AsyncPorts
from .sandbox import AsyncSandbox
from .shells import AsyncShell
from .snapshots import AsyncSnapshots
from .terminals import AsyncTerminal

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
]
