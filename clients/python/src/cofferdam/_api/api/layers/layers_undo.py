from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...models.undo_report import UndoReport
from ...models.undo_wish import UndoWish
from ...types import UNSET, Response, Unset


def _get_kwargs(
    sandbox: str,
    *,
    body: UndoWish,
    idempotency_key: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["idempotency-key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/sandboxes/{sandbox}/undo".format(
            sandbox=quote(str(sandbox), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
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
    *,
    client: AuthenticatedClient | Client,
    body: UndoWish,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[ProblemReport | UndoReport]:
    """Takes back what the last commands of a copy-on-write sandbox did to its workspace.

     What is in no point yet becomes one first. All processes of the sandbox are ended, unless nothing
    has
    to be changed.

    Args:
        sandbox (str):
        idempotency_key (None | str | Unset):
        body (UndoWish): Where a session goes back to.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | UndoReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: UndoWish,
    idempotency_key: None | str | Unset = UNSET,
) -> ProblemReport | UndoReport | None:
    """Takes back what the last commands of a copy-on-write sandbox did to its workspace.

     What is in no point yet becomes one first. All processes of the sandbox are ended, unless nothing
    has
    to be changed.

    Args:
        sandbox (str):
        idempotency_key (None | str | Unset):
        body (UndoWish): Where a session goes back to.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | UndoReport
    """

    return sync_detailed(
        sandbox=sandbox,
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: UndoWish,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[ProblemReport | UndoReport]:
    """Takes back what the last commands of a copy-on-write sandbox did to its workspace.

     What is in no point yet becomes one first. All processes of the sandbox are ended, unless nothing
    has
    to be changed.

    Args:
        sandbox (str):
        idempotency_key (None | str | Unset):
        body (UndoWish): Where a session goes back to.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | UndoReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: UndoWish,
    idempotency_key: None | str | Unset = UNSET,
) -> ProblemReport | UndoReport | None:
    """Takes back what the last commands of a copy-on-write sandbox did to its workspace.

     What is in no point yet becomes one first. All processes of the sandbox are ended, unless nothing
    has
    to be changed.

    Args:
        sandbox (str):
        idempotency_key (None | str | Unset):
        body (UndoWish): Where a session goes back to.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | UndoReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
