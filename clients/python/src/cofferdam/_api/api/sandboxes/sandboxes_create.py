from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...models.sandbox_wish import SandboxWish
from ...models.session_report import SessionReport
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: SandboxWish,
    idempotency_key: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["idempotency-key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/sandboxes",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemReport | SessionReport:
    if response.status_code == 201:
        response_201 = SessionReport.from_dict(response.json())

        return response_201

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
    *,
    client: AuthenticatedClient | Client,
    body: SandboxWish,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[ProblemReport | SessionReport]:
    """Makes a sandbox. A name that is taken is a conflict.

    Args:
        idempotency_key (None | str | Unset):
        body (SandboxWish): A sandbox as a request wants it. What is not said is as the operator
            decided; a sandbox that is there
            already keeps what of labels, `init`, times and checkpoints is not said.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | SessionReport]
    """

    kwargs = _get_kwargs(
        body=body,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    body: SandboxWish,
    idempotency_key: None | str | Unset = UNSET,
) -> ProblemReport | SessionReport | None:
    """Makes a sandbox. A name that is taken is a conflict.

    Args:
        idempotency_key (None | str | Unset):
        body (SandboxWish): A sandbox as a request wants it. What is not said is as the operator
            decided; a sandbox that is there
            already keeps what of labels, `init`, times and checkpoints is not said.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | SessionReport
    """

    return sync_detailed(
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: SandboxWish,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[ProblemReport | SessionReport]:
    """Makes a sandbox. A name that is taken is a conflict.

    Args:
        idempotency_key (None | str | Unset):
        body (SandboxWish): A sandbox as a request wants it. What is not said is as the operator
            decided; a sandbox that is there
            already keeps what of labels, `init`, times and checkpoints is not said.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | SessionReport]
    """

    kwargs = _get_kwargs(
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    body: SandboxWish,
    idempotency_key: None | str | Unset = UNSET,
) -> ProblemReport | SessionReport | None:
    """Makes a sandbox. A name that is taken is a conflict.

    Args:
        idempotency_key (None | str | Unset):
        body (SandboxWish): A sandbox as a request wants it. What is not said is as the operator
            decided; a sandbox that is there
            already keeps what of labels, `init`, times and checkpoints is not said.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | SessionReport
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
