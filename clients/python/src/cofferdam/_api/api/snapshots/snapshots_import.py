from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...models.snapshot_imported import SnapshotImported
from ...types import UNSET, File, Response, Unset


def _get_kwargs(
    sandbox: str,
    *,
    body: File,
    label: str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["label"] = label

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/sandboxes/{sandbox}/snapshots/import".format(
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
) -> ProblemReport | SnapshotImported:
    if response.status_code == 201:
        response_201 = SnapshotImported.from_dict(response.json())

        return response_201

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ProblemReport | SnapshotImported]:
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
    label: str | Unset = UNSET,
) -> Response[ProblemReport | SnapshotImported]:
    """Makes a snapshot of an exported one, all of it or nothing. What gzip, xz or Zstandard compressed is
    unpacked.

     All of it is read and every SHA-256 compared before there is a snapshot. The sandbox goes on where
    it is
    until somebody restores it or forks from it.

    Args:
        sandbox (str):
        label (str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | SnapshotImported]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        body=body,
        label=label,
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
    label: str | Unset = UNSET,
) -> ProblemReport | SnapshotImported | None:
    """Makes a snapshot of an exported one, all of it or nothing. What gzip, xz or Zstandard compressed is
    unpacked.

     All of it is read and every SHA-256 compared before there is a snapshot. The sandbox goes on where
    it is
    until somebody restores it or forks from it.

    Args:
        sandbox (str):
        label (str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | SnapshotImported
    """

    return sync_detailed(
        sandbox=sandbox,
        client=client,
        body=body,
        label=label,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
    label: str | Unset = UNSET,
) -> Response[ProblemReport | SnapshotImported]:
    """Makes a snapshot of an exported one, all of it or nothing. What gzip, xz or Zstandard compressed is
    unpacked.

     All of it is read and every SHA-256 compared before there is a snapshot. The sandbox goes on where
    it is
    until somebody restores it or forks from it.

    Args:
        sandbox (str):
        label (str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | SnapshotImported]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        body=body,
        label=label,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
    label: str | Unset = UNSET,
) -> ProblemReport | SnapshotImported | None:
    """Makes a snapshot of an exported one, all of it or nothing. What gzip, xz or Zstandard compressed is
    unpacked.

     All of it is read and every SHA-256 compared before there is a snapshot. The sandbox goes on where
    it is
    until somebody restores it or forks from it.

    Args:
        sandbox (str):
        label (str | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | SnapshotImported
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            body=body,
            label=label,
        )
    ).parsed
