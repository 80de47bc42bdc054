from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.copy_wish import CopyWish
from ...models.file_copied import FileCopied
from ...models.file_done import FileDone
from ...models.problem_report import ProblemReport
from ...types import Response


def _get_kwargs(
    sandbox: str,
    *,
    body: CopyWish,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/sandboxes/{sandbox}/files/copy".format(
            sandbox=quote(str(sandbox), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> FileCopied | FileDone | ProblemReport:
    if response.status_code == 200:
        response_200 = FileDone.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = FileCopied.from_dict(response.json())

        return response_201

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[FileCopied | FileDone | ProblemReport]:
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
    body: CopyWish,
) -> Response[FileCopied | FileDone | ProblemReport]:
    """Copies a file, whole or not at all; with `recursive` a directory with all that is in it.

     Links of a directory are copied as they are; pipes, sockets and devices are skipped and told.

    Args:
        sandbox (str):
        body (CopyWish): Something that is to be copied.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[FileCopied | FileDone | ProblemReport]
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
    body: CopyWish,
) -> FileCopied | FileDone | ProblemReport | None:
    """Copies a file, whole or not at all; with `recursive` a directory with all that is in it.

     Links of a directory are copied as they are; pipes, sockets and devices are skipped and told.

    Args:
        sandbox (str):
        body (CopyWish): Something that is to be copied.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        FileCopied | FileDone | ProblemReport
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
    body: CopyWish,
) -> Response[FileCopied | FileDone | ProblemReport]:
    """Copies a file, whole or not at all; with `recursive` a directory with all that is in it.

     Links of a directory are copied as they are; pipes, sockets and devices are skipped and told.

    Args:
        sandbox (str):
        body (CopyWish): Something that is to be copied.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[FileCopied | FileDone | ProblemReport]
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
    body: CopyWish,
) -> FileCopied | FileDone | ProblemReport | None:
    """Copies a file, whole or not at all; with `recursive` a directory with all that is in it.

     Links of a directory are copied as they are; pipes, sockets and devices are skipped and told.

    Args:
        sandbox (str):
        body (CopyWish): Something that is to be copied.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        FileCopied | FileDone | ProblemReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            body=body,
        )
    ).parsed
