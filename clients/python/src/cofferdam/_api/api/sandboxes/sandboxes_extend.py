from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.extend_wish import ExtendWish
from ...models.problem_report import ProblemReport
from ...models.session_report import SessionReport
from ...types import UNSET, Response, Unset


def _get_kwargs(
    sandbox: str,
    *,
    body: ExtendWish,
    idempotency_key: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["idempotency-key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/sandboxes/{sandbox}/extend".format(
            sandbox=quote(str(sandbox), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemReport | SessionReport:
    if response.status_code == 200:
        response_200 = SessionReport.from_dict(response.json())

        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ProblemReport | SessionReport]:
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
    body: ExtendWish,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[ProblemReport | SessionReport]:
    """Gives a sandbox a longer lease. One without a lease is a conflict.

    Args:
        sandbox (str):
        idempotency_key (None | str | Unset):
        body (ExtendWish): How much longer a lease is to be.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | SessionReport]
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
    body: ExtendWish,
    idempotency_key: None | str | Unset = UNSET,
) -> ProblemReport | SessionReport | None:
    """Gives a sandbox a longer lease. One without a lease is a conflict.

    Args:
        sandbox (str):
        idempotency_key (None | str | Unset):
        body (ExtendWish): How much longer a lease is to be.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | SessionReport
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
    body: ExtendWish,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[ProblemReport | SessionReport]:
    """Gives a sandbox a longer lease. One without a lease is a conflict.

    Args:
        sandbox (str):
        idempotency_key (None | str | Unset):
        body (ExtendWish): How much longer a lease is to be.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | SessionReport]
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
    body: ExtendWish,
    idempotency_key: None | str | Unset = UNSET,
) -> ProblemReport | SessionReport | None:
    """Gives a sandbox a longer lease. One without a lease is a conflict.

    Args:
        sandbox (str):
        idempotency_key (None | str | Unset):
        body (ExtendWish): How much longer a lease is to be.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | SessionReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
