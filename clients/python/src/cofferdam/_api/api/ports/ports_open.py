from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.port_report import PortReport
from ...models.port_wish import PortWish
from ...models.problem_report import ProblemReport
from ...types import Response


def _get_kwargs(
    sandbox: str,
    *,
    body: PortWish,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/sandboxes/{sandbox}/ports".format(
            sandbox=quote(str(sandbox), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> PortReport | ProblemReport:
    if response.status_code == 200:
        response_200 = PortReport.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = PortReport.from_dict(response.json())

        return response_201

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[PortReport | ProblemReport]:
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
    body: PortWish,
) -> Response[PortReport | ProblemReport]:
    """Gives a port of a sandbox an address that a browser can open: every request for that host is passed
    to
    whoever listens on the port inside. A port that has one keeps it.

    Args:
        sandbox (str):
        body (PortWish): A port that is to have an address.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PortReport | ProblemReport]
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
    body: PortWish,
) -> PortReport | ProblemReport | None:
    """Gives a port of a sandbox an address that a browser can open: every request for that host is passed
    to
    whoever listens on the port inside. A port that has one keeps it.

    Args:
        sandbox (str):
        body (PortWish): A port that is to have an address.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PortReport | ProblemReport
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
    body: PortWish,
) -> Response[PortReport | ProblemReport]:
    """Gives a port of a sandbox an address that a browser can open: every request for that host is passed
    to
    whoever listens on the port inside. A port that has one keeps it.

    Args:
        sandbox (str):
        body (PortWish): A port that is to have an address.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PortReport | ProblemReport]
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
    body: PortWish,
) -> PortReport | ProblemReport | None:
    """Gives a port of a sandbox an address that a browser can open: every request for that host is passed
    to
    whoever listens on the port inside. A port that has one keeps it.

    Args:
        sandbox (str):
        body (PortWish): A port that is to have an address.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PortReport | ProblemReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            body=body,
        )
    ).parsed
