from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...models.snapshot_report import SnapshotReport
from ...models.snapshot_wish import SnapshotWish
from ...types import UNSET, Response, Unset


def _get_kwargs(
    sandbox: str,
    *,
    body: SnapshotWish,
    idempotency_key: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["idempotency-key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/sandboxes/{sandbox}/snapshots".format(
            sandbox=quote(str(sandbox), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemReport | SnapshotReport:
    if response.status_code == 201:
        response_201 = SnapshotReport.from_dict(response.json())

        return response_201

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ProblemReport | SnapshotReport]:
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
    body: SnapshotWish,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[ProblemReport | SnapshotReport]:
    """Keeps what a copy-on-write sandbox changed in its workspace as it is now.

    Args:
        sandbox (str):
        idempotency_key (None | str | Unset):
        body (SnapshotWish): A snapshot that is to be taken.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | SnapshotReport]
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
    body: SnapshotWish,
    idempotency_key: None | str | Unset = UNSET,
) -> ProblemReport | SnapshotReport | None:
    """Keeps what a copy-on-write sandbox changed in its workspace as it is now.

    Args:
        sandbox (str):
        idempotency_key (None | str | Unset):
        body (SnapshotWish): A snapshot that is to be taken.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | SnapshotReport
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
    body: SnapshotWish,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[ProblemReport | SnapshotReport]:
    """Keeps what a copy-on-write sandbox changed in its workspace as it is now.

    Args:
        sandbox (str):
        idempotency_key (None | str | Unset):
        body (SnapshotWish): A snapshot that is to be taken.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | SnapshotReport]
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
    body: SnapshotWish,
    idempotency_key: None | str | Unset = UNSET,
) -> ProblemReport | SnapshotReport | None:
    """Keeps what a copy-on-write sandbox changed in its workspace as it is now.

    Args:
        sandbox (str):
        idempotency_key (None | str | Unset):
        body (SnapshotWish): A snapshot that is to be taken.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | SnapshotReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
