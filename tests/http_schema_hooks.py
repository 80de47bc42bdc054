"""What schemathesis cannot know of this server: bodies that are neither JSON nor plain bytes, and names of
what is there. Three of four requests go to the sandbox and the command that `http-schema.sh` made, for a
name that nobody has is answered before anything is looked at."""

import os
import zlib

import schemathesis

THERE = {
    "sandbox": os.environ["TEST_SCHEMA_SANDBOX"],
    "exec": os.environ["TEST_SCHEMA_EXEC"],
    "pack": "cofferdam",
    "tool": "shell_exec",
    "snapshot": "kept",
}
# They would end what the others need.
ENDING = {"sandboxes_delete", "sandboxes_stop", "snapshots_remove"}


@schemathesis.serializer("application/x-tar", "text/x-diff")
def serialize(context, value):
    """Bytes go as they are."""
    return {"data": value if isinstance(value, bytes) else str(value).encode()}


def operation_of(context):
    """The name of the operation that a value is for."""
    return (context.operation.definition.raw or {}).get("operationId") if context.operation else None


@schemathesis.hook
def map_query(context, query):
    """An archive that is more than it may be breaks off in the middle, as it should; no client likes that."""
    if query and operation_of(context) == "files_export":
        return {name: value for name, value in query.items() if name != "max_bytes"}
    return query


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    """Puts in names of what is there."""
    if not path_parameters or operation_of(context) in ENDING:
        return path_parameters
    # The same choice each time, for a run has to be like the one before.
    if zlib.crc32(repr(sorted(path_parameters.items())).encode()) % 4 == 0:
        return path_parameters
    return {name: THERE.get(name, value) for name, value in path_parameters.items()}
