"""The objects of requests and answers, generated from the server's document."""

from ._api.models import *  # noqa: F403
from ._api.models import __all__ as __all__
