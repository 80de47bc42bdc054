from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...models.secret_report import SecretReport
from ...types import File, Response


def _get_kwargs(
    secret: str,
    *,
    body: File,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/v1/secrets/{secret}".format(
            secret=quote(str(secret), safe=""),
        ),
    }

    _kwargs["content"] = body.payload
    headers["Content-Type"] = "application/octet-stream"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemReport | SecretReport:
    if response.status_code == 200:
        response_200 = SecretReport.from_dict(response.json())

        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ProblemReport | SecretReport]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    secret: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
) -> Response[ProblemReport | SecretReport]:
    """Adds a secret, or gives one that is there another value. The body is the value, byte for byte, of at
    most
    65536 bytes; it is encrypted at rest and never told again.

    Args:
        secret (str):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | SecretReport]
    """

    kwargs = _get_kwargs(
        secret=secret,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    secret: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
) -> ProblemReport | SecretReport | None:
    """Adds a secret, or gives one that is there another value. The body is the value, byte for byte, of at
    most
    65536 bytes; it is encrypted at rest and never told again.

    Args:
        secret (str):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | SecretReport
    """

    return sync_detailed(
        secret=secret,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    secret: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
) -> Response[ProblemReport | SecretReport]:
    """Adds a secret, or gives one that is there another value. The body is the value, byte for byte, of at
    most
    65536 bytes; it is encrypted at rest and never told again.

    Args:
        secret (str):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | SecretReport]
    """

    kwargs = _get_kwargs(
        secret=secret,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    secret: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
) -> ProblemReport | SecretReport | None:
    """Adds a secret, or gives one that is there another value. The body is the value, byte for byte, of at
    most
    65536 bytes; it is encrypted at rest and never told again.

    Args:
        secret (str):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | SecretReport
    """

    return (
        await asyncio_detailed(
            secret=secret,
            client=client,
            body=body,
        )
    ).parsed
