from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...types import Response


def _get_kwargs(
    sandbox: str,
    port: int,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/sandboxes/{sandbox}/ports/{port}/connect".format(
            sandbox=quote(str(sandbox), safe=""),
            port=quote(str(port), safe=""),
        ),
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | ProblemReport:
    if response.status_code == 101:
        response_101 = cast(Any, None)
        return response_101

    if response.status_code == 426:
        response_426 = ProblemReport.from_dict(response.json())

        return response_426

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Any | ProblemReport]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    sandbox: str,
    port: int,
    *,
    client: AuthenticatedClient | Client,
) -> Response[Any | ProblemReport]:
    """Connects to a port of a sandbox over a WebSocket: binary messages are the bytes of the connection,
    cut
    anywhere, in both directions. An empty one says that its side has said all; a close ends both.

    Args:
        sandbox (str):
        port (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        port=port,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    sandbox: str,
    port: int,
    *,
    client: AuthenticatedClient | Client,
) -> Any | ProblemReport | None:
    """Connects to a port of a sandbox over a WebSocket: binary messages are the bytes of the connection,
    cut
    anywhere, in both directions. An empty one says that its side has said all; a close ends both.

    Args:
        sandbox (str):
        port (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ProblemReport
    """

    return sync_detailed(
        sandbox=sandbox,
        port=port,
        client=client,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    port: int,
    *,
    client: AuthenticatedClient | Client,
) -> Response[Any | ProblemReport]:
    """Connects to a port of a sandbox over a WebSocket: binary messages are the bytes of the connection,
    cut
    anywhere, in both directions. An empty one says that its side has said all; a close ends both.

    Args:
        sandbox (str):
        port (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        port=port,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    port: int,
    *,
    client: AuthenticatedClient | Client,
) -> Any | ProblemReport | None:
    """Connects to a port of a sandbox over a WebSocket: binary messages are the bytes of the connection,
    cut
    anywhere, in both directions. An empty one says that its side has said all; a close ends both.

    Args:
        sandbox (str):
        port (int):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ProblemReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            port=port,
            client=client,
        )
    ).parsed
