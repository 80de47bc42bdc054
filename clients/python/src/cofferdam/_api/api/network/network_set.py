from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.network_report import NetworkReport
from ...models.network_wish import NetworkWish
from ...models.problem_report import ProblemReport
from ...types import Response


def _get_kwargs(
    sandbox: str,
    *,
    body: NetworkWish,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/v1/sandboxes/{sandbox}/network".format(
            sandbox=quote(str(sandbox), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> NetworkReport | ProblemReport:
    if response.status_code == 200:
        response_200 = NetworkReport.from_dict(response.json())

        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[NetworkReport | ProblemReport]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: NetworkWish,
) -> Response[NetworkReport | ProblemReport]:
    """Makes these rules all there are, from the next connection on. What a caller allows is within what
    the
    operator of the server allows.

    Args:
        sandbox (str):
        body (NetworkWish): All rules of a sandbox, as they are to be.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NetworkReport | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: NetworkWish,
) -> NetworkReport | ProblemReport | None:
    """Makes these rules all there are, from the next connection on. What a caller allows is within what
    the
    operator of the server allows.

    Args:
        sandbox (str):
        body (NetworkWish): All rules of a sandbox, as they are to be.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NetworkReport | ProblemReport
    """

    return sync_detailed(
        sandbox=sandbox,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: NetworkWish,
) -> Response[NetworkReport | ProblemReport]:
    """Makes these rules all there are, from the next connection on. What a caller allows is within what
    the
    operator of the server allows.

    Args:
        sandbox (str):
        body (NetworkWish): All rules of a sandbox, as they are to be.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[NetworkReport | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: NetworkWish,
) -> NetworkReport | ProblemReport | None:
    """Makes these rules all there are, from the next connection on. What a caller allows is within what
    the
    operator of the server allows.

    Args:
        sandbox (str):
        body (NetworkWish): All rules of a sandbox, as they are to be.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        NetworkReport | ProblemReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            body=body,
        )
    ).parsed
