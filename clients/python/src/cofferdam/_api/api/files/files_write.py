from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.file_done import FileDone
from ...models.problem_report import ProblemReport
from ...types import UNSET, File, Response, Unset


def _get_kwargs(
    sandbox: str,
    *,
    body: File,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    mode: str | Unset = UNSET,
    parents: bool | Unset = UNSET,
    if_match: None | str | Unset = UNSET,
    if_none_match: None | str | Unset = UNSET,
    content_digest: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    if not isinstance(content_digest, Unset):
        headers["content-digest"] = content_digest

    params: dict[str, Any] = {}

    params["path"] = path

    params["path_base64"] = path_base64

    params["mode"] = mode

    params["parents"] = parents

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/v1/sandboxes/{sandbox}/files".format(
            sandbox=quote(str(sandbox), safe=""),
        ),
        "params": params,
    }

    _kwargs["content"] = body.payload
    headers["Content-Type"] = "application/octet-stream"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> FileDone | ProblemReport:
    if response.status_code == 200:
        response_200 = FileDone.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = FileDone.from_dict(response.json())

        return response_201

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[FileDone | ProblemReport]:
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
    mode: str | Unset = UNSET,
    parents: bool | Unset = UNSET,
    if_match: None | str | Unset = UNSET,
    if_none_match: None | str | Unset = UNSET,
    content_digest: None | str | Unset = UNSET,
) -> Response[FileDone | ProblemReport]:
    """Writes a file, whole or not at all.

     `If-Match` with an ETag writes only where the file has that SHA-256, `If-Match: *` only where it is
    there, `If-None-Match: *` only where it is not. With a Content-Digest (or Repr-Digest) of sha-256
    the
    bytes are compared before the file is there. A body that breaks off leaves everything as it was.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        mode (str | Unset):
        parents (bool | Unset):
        if_match (None | str | Unset):
        if_none_match (None | str | Unset):
        content_digest (None | str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[FileDone | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        body=body,
        path=path,
        path_base64=path_base64,
        mode=mode,
        parents=parents,
        if_match=if_match,
        if_none_match=if_none_match,
        content_digest=content_digest,
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
    mode: str | Unset = UNSET,
    parents: bool | Unset = UNSET,
    if_match: None | str | Unset = UNSET,
    if_none_match: None | str | Unset = UNSET,
    content_digest: None | str | Unset = UNSET,
) -> FileDone | ProblemReport | None:
    """Writes a file, whole or not at all.

     `If-Match` with an ETag writes only where the file has that SHA-256, `If-Match: *` only where it is
    there, `If-None-Match: *` only where it is not. With a Content-Digest (or Repr-Digest) of sha-256
    the
    bytes are compared before the file is there. A body that breaks off leaves everything as it was.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        mode (str | Unset):
        parents (bool | Unset):
        if_match (None | str | Unset):
        if_none_match (None | str | Unset):
        content_digest (None | str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        FileDone | ProblemReport
    """

    return sync_detailed(
        sandbox=sandbox,
        client=client,
        body=body,
        path=path,
        path_base64=path_base64,
        mode=mode,
        parents=parents,
        if_match=if_match,
        if_none_match=if_none_match,
        content_digest=content_digest,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    mode: str | Unset = UNSET,
    parents: bool | Unset = UNSET,
    if_match: None | str | Unset = UNSET,
    if_none_match: None | str | Unset = UNSET,
    content_digest: None | str | Unset = UNSET,
) -> Response[FileDone | ProblemReport]:
    """Writes a file, whole or not at all.

     `If-Match` with an ETag writes only where the file has that SHA-256, `If-Match: *` only where it is
    there, `If-None-Match: *` only where it is not. With a Content-Digest (or Repr-Digest) of sha-256
    the
    bytes are compared before the file is there. A body that breaks off leaves everything as it was.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        mode (str | Unset):
        parents (bool | Unset):
        if_match (None | str | Unset):
        if_none_match (None | str | Unset):
        content_digest (None | str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[FileDone | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        body=body,
        path=path,
        path_base64=path_base64,
        mode=mode,
        parents=parents,
        if_match=if_match,
        if_none_match=if_none_match,
        content_digest=content_digest,
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
    mode: str | Unset = UNSET,
    parents: bool | Unset = UNSET,
    if_match: None | str | Unset = UNSET,
    if_none_match: None | str | Unset = UNSET,
    content_digest: None | str | Unset = UNSET,
) -> FileDone | ProblemReport | None:
    """Writes a file, whole or not at all.

     `If-Match` with an ETag writes only where the file has that SHA-256, `If-Match: *` only where it is
    there, `If-None-Match: *` only where it is not. With a Content-Digest (or Repr-Digest) of sha-256
    the
    bytes are compared before the file is there. A body that breaks off leaves everything as it was.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        mode (str | Unset):
        parents (bool | Unset):
        if_match (None | str | Unset):
        if_none_match (None | str | Unset):
        content_digest (None | str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        FileDone | ProblemReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            body=body,
            path=path,
            path_base64=path_base64,
            mode=mode,
            parents=parents,
            if_match=if_match,
            if_none_match=if_none_match,
            content_digest=content_digest,
        )
    ).parsed
