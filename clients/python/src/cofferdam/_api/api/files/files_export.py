from http import HTTPStatus
from io import BytesIO
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...types import UNSET, File, Response, Unset


def _get_kwargs(
    sandbox: str,
    *,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    max_bytes: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["path"] = path

    params["path_base64"] = path_base64

    params["max_bytes"] = max_bytes

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/sandboxes/{sandbox}/files/archive".format(
            sandbox=quote(str(sandbox), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> File | ProblemReport:
    if response.status_code == 200:
        response_200 = File(payload=BytesIO(response.content))

        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[File | ProblemReport]:
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
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    max_bytes: int | Unset = UNSET,
) -> Response[File | ProblemReport]:
    """A tar archive of a directory or a file.

     What cannot be read, or changes meanwhile, is cut, filled up with zeros or left out: an archive that
    is
    not as the workspace was breaks off behind its end. More bytes than `max_bytes` are refused with 413
    where that
    is known within the first 64 KiB of the archive, and else the archive breaks off.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        max_bytes (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[File | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        path=path,
        path_base64=path_base64,
        max_bytes=max_bytes,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    max_bytes: int | Unset = UNSET,
) -> File | ProblemReport | None:
    """A tar archive of a directory or a file.

     What cannot be read, or changes meanwhile, is cut, filled up with zeros or left out: an archive that
    is
    not as the workspace was breaks off behind its end. More bytes than `max_bytes` are refused with 413
    where that
    is known within the first 64 KiB of the archive, and else the archive breaks off.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        max_bytes (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        File | ProblemReport
    """

    return sync_detailed(
        sandbox=sandbox,
        client=client,
        path=path,
        path_base64=path_base64,
        max_bytes=max_bytes,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    max_bytes: int | Unset = UNSET,
) -> Response[File | ProblemReport]:
    """A tar archive of a directory or a file.

     What cannot be read, or changes meanwhile, is cut, filled up with zeros or left out: an archive that
    is
    not as the workspace was breaks off behind its end. More bytes than `max_bytes` are refused with 413
    where that
    is known within the first 64 KiB of the archive, and else the archive breaks off.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        max_bytes (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[File | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        path=path,
        path_base64=path_base64,
        max_bytes=max_bytes,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    max_bytes: int | Unset = UNSET,
) -> File | ProblemReport | None:
    """A tar archive of a directory or a file.

     What cannot be read, or changes meanwhile, is cut, filled up with zeros or left out: an archive that
    is
    not as the workspace was breaks off behind its end. More bytes than `max_bytes` are refused with 413
    where that
    is known within the first 64 KiB of the archive, and else the archive breaks off.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        max_bytes (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        File | ProblemReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            path=path,
            path_base64=path_base64,
            max_bytes=max_bytes,
        )
    ).parsed
