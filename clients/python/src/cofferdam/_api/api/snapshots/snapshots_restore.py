from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...models.undo_report import UndoReport
from ...types import Response


def _get_kwargs(
    sandbox: str,
    snapshot: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/sandboxes/{sandbox}/snapshots/{snapshot}/restore".format(
            sandbox=quote(str(sandbox), safe=""),
            snapshot=quote(str(snapshot), safe=""),
        ),
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemReport | UndoReport:
    if response.status_code == 200:
        response_200 = UndoReport.from_dict(response.json())

        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ProblemReport | UndoReport]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    sandbox: str,
    snapshot: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[ProblemReport | UndoReport]:
    """Puts the workspace of a sandbox back to a snapshot, or to any point by its number. All its processes
    are
    ended.

    Args:
        sandbox (str):
        snapshot (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | UndoReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        snapshot=snapshot,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    sandbox: str,
    snapshot: str,
    *,
    client: AuthenticatedClient | Client,
) -> ProblemReport | UndoReport | None:
    """Puts the workspace of a sandbox back to a snapshot, or to any point by its number. All its processes
    are
    ended.

    Args:
        sandbox (str):
        snapshot (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | UndoReport
    """

    return sync_detailed(
        sandbox=sandbox,
        snapshot=snapshot,
        client=client,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    snapshot: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[ProblemReport | UndoReport]:
    """Puts the workspace of a sandbox back to a snapshot, or to any point by its number. All its processes
    are
    ended.

    Args:
        sandbox (str):
        snapshot (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | UndoReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        snapshot=snapshot,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    snapshot: str,
    *,
    client: AuthenticatedClient | Client,
) -> ProblemReport | UndoReport | None:
    """Puts the workspace of a sandbox back to a snapshot, or to any point by its number. All its processes
    are
    ended.

    Args:
        sandbox (str):
        snapshot (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | UndoReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            snapshot=snapshot,
            client=client,
        )
    ).parsed
