"""What a server answers, as it is read. What is no answer of it is an error of this client."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from .errors import CofferdamError, ServerError

#: What the generated part raises where something is missing, or is not what it should be.
MISREAD = (AttributeError, KeyError, TypeError, ValueError)


@contextmanager
def reading() -> Iterator[None]:
    """In here an answer is read, and nothing else is done."""
    try:
        yield
    except CofferdamError:
        raise
    except MISREAD as error:
        raise misread(error) from error


def misread(error: Exception) -> CofferdamError:
    """An answer that is none of this protocol."""
    what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
    return ServerError(
        f"the answer is not what a server of Cofferdam answers: {what}",
        kind="protocol",
        hint="Check the address, and that client and server are of versions that fit.",
    )


def is_of_answer(error: Exception) -> bool:
    """Whether the generated part failed when it read the answer, and not before it asked."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code.co_name == "_parse_response" for frame, _ in frames)
