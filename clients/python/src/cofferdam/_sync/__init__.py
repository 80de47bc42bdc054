# Made from _async/__init__.py by blocking.py; change that one.
"""The client that blocks."""

from .client import Client
from .execs import Exec
from .files import Files
from .network import Network, Ports
from .sandbox import Sandbox
from .shells import Shell
from .snapshots import Snapshots
from .terminals import Terminal

__all__ = [
    "Client",
    "Exec",
    "Files",
    "Network",
    "Ports",
    "Sandbox",
    "Shell",
    "Snapshots",
    "Terminal",
]
