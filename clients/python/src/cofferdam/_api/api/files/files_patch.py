from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.file_patch import FilePatch
from ...models.problem_report import ProblemReport
from ...models.problem_with_file_patch import ProblemWithFilePatch
from ...types import UNSET, File, Response, Unset


def _get_kwargs(
    sandbox: str,
    *,
    body: File,
    dry_run: bool | Unset = UNSET,
    reverse: bool | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["dry_run"] = dry_run

    params["reverse"] = reverse

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/sandboxes/{sandbox}/files/patch".format(
            sandbox=quote(str(sandbox), safe=""),
        ),
        "params": params,
    }

    _kwargs["content"] = body.payload
    headers["Content-Type"] = "text/x-diff"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> FilePatch | ProblemReport | ProblemWithFilePatch:
    if response.status_code == 200:
        response_200 = FilePatch.from_dict(response.json())

        return response_200

    if response.status_code == 409:
        response_409 = ProblemWithFilePatch.from_dict(response.json())

        return response_409

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[FilePatch | ProblemReport | ProblemWithFilePatch]:
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
    dry_run: bool | Unset = UNSET,
    reverse: bool | Unset = UNSET,
) -> Response[FilePatch | ProblemReport | ProblemWithFilePatch]:
    """Applies a patch to the workspace, whole or not at all: a unified diff, or an envelope that begins
    with
    `*** Begin Patch`.

     A patch that was applied before changes nothing. One that does not fit is a conflict, whose document
    says hunk by hunk why.

    Args:
        sandbox (str):
        dry_run (bool | Unset):
        reverse (bool | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[FilePatch | ProblemReport | ProblemWithFilePatch]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        body=body,
        dry_run=dry_run,
        reverse=reverse,
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
    dry_run: bool | Unset = UNSET,
    reverse: bool | Unset = UNSET,
) -> FilePatch | ProblemReport | ProblemWithFilePatch | None:
    """Applies a patch to the workspace, whole or not at all: a unified diff, or an envelope that begins
    with
    `*** Begin Patch`.

     A patch that was applied before changes nothing. One that does not fit is a conflict, whose document
    says hunk by hunk why.

    Args:
        sandbox (str):
        dry_run (bool | Unset):
        reverse (bool | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        FilePatch | ProblemReport | ProblemWithFilePatch
    """

    return sync_detailed(
        sandbox=sandbox,
        client=client,
        body=body,
        dry_run=dry_run,
        reverse=reverse,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
    dry_run: bool | Unset = UNSET,
    reverse: bool | Unset = UNSET,
) -> Response[FilePatch | ProblemReport | ProblemWithFilePatch]:
    """Applies a patch to the workspace, whole or not at all: a unified diff, or an envelope that begins
    with
    `*** Begin Patch`.

     A patch that was applied before changes nothing. One that does not fit is a conflict, whose document
    says hunk by hunk why.

    Args:
        sandbox (str):
        dry_run (bool | Unset):
        reverse (bool | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[FilePatch | ProblemReport | ProblemWithFilePatch]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        body=body,
        dry_run=dry_run,
        reverse=reverse,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
    dry_run: bool | Unset = UNSET,
    reverse: bool | Unset = UNSET,
) -> FilePatch | ProblemReport | ProblemWithFilePatch | None:
    """Applies a patch to the workspace, whole or not at all: a unified diff, or an envelope that begins
    with
    `*** Begin Patch`.

     A patch that was applied before changes nothing. One that does not fit is a conflict, whose document
    says hunk by hunk why.

    Args:
        sandbox (str):
        dry_run (bool | Unset):
        reverse (bool | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        FilePatch | ProblemReport | ProblemWithFilePatch
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            body=body,
            dry_run=dry_run,
            reverse=reverse,
        )
    ).parsed
