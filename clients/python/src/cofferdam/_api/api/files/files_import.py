from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.file_imported import FileImported
from ...models.problem_report import ProblemReport
from ...types import UNSET, File, Response, Unset


def _get_kwargs(
    sandbox: str,
    *,
    body: File,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    replace: bool | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["path"] = path

    params["path_base64"] = path_base64

    params["replace"] = replace

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/v1/sandboxes/{sandbox}/files/archive".format(
            sandbox=quote(str(sandbox), safe=""),
        ),
        "params": params,
    }

    _kwargs["content"] = body.payload
    headers["Content-Type"] = "application/x-tar"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> FileImported | ProblemReport:
    if response.status_code == 200:
        response_200 = FileImported.from_dict(response.json())

        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[FileImported | ProblemReport]:
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
    body: File,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    replace: bool | Unset = UNSET,
) -> Response[FileImported | ProblemReport]:
    """Unpacks a tar archive in the workspace, whole or not at all. One that gzip, xz or Zstandard
    compressed
    is unpacked first.

     All of it is read and looked at first: at most 50000 things with 2 GiB of files. Refused, by their
    names, are absolute paths and those with `..`, what lies below a link or a file, devices and pipes.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        replace (bool | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[FileImported | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        body=body,
        path=path,
        path_base64=path_base64,
        replace=replace,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    replace: bool | Unset = UNSET,
) -> FileImported | ProblemReport | None:
    """Unpacks a tar archive in the workspace, whole or not at all. One that gzip, xz or Zstandard
    compressed
    is unpacked first.

     All of it is read and looked at first: at most 50000 things with 2 GiB of files. Refused, by their
    names, are absolute paths and those with `..`, what lies below a link or a file, devices and pipes.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        replace (bool | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        FileImported | ProblemReport
    """

    return sync_detailed(
        sandbox=sandbox,
        client=client,
        body=body,
        path=path,
        path_base64=path_base64,
        replace=replace,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    replace: bool | Unset = UNSET,
) -> Response[FileImported | ProblemReport]:
    """Unpacks a tar archive in the workspace, whole or not at all. One that gzip, xz or Zstandard
    compressed
    is unpacked first.

     All of it is read and looked at first: at most 50000 things with 2 GiB of files. Refused, by their
    names, are absolute paths and those with `..`, what lies below a link or a file, devices and pipes.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        replace (bool | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[FileImported | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        body=body,
        path=path,
        path_base64=path_base64,
        replace=replace,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    replace: bool | Unset = UNSET,
) -> FileImported | ProblemReport | None:
    """Unpacks a tar archive in the workspace, whole or not at all. One that gzip, xz or Zstandard
    compressed
    is unpacked first.

     All of it is read and looked at first: at most 50000 things with 2 GiB of files. Refused, by their
    names, are absolute paths and those with `..`, what lies below a link or a file, devices and pipes.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        replace (bool | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        FileImported | ProblemReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            body=body,
            path=path,
            path_base64=path_base64,
            replace=replace,
        )
    ).parsed
