from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...models.run_report import RunReport
from ...models.run_wish import RunWish
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    body: RunWish,
    idempotency_key: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["idempotency-key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/run",
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemReport | RunReport:
    if response.status_code == 200:
        response_200 = RunReport.from_dict(response.json())

        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ProblemReport | RunReport]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: RunWish,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[ProblemReport | RunReport]:
    """Runs a command in a fresh sandbox, which is ended on every way out, and says what came of it. It
    ends
    too when its caller hangs up a connection that was not to be closed anyway.

    Args:
        idempotency_key (None | str | Unset):
        body (RunWish): A command in a sandbox of its own, as a request wants it.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | RunReport]
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
    body: RunWish,
    idempotency_key: None | str | Unset = UNSET,
) -> ProblemReport | RunReport | None:
    """Runs a command in a fresh sandbox, which is ended on every way out, and says what came of it. It
    ends
    too when its caller hangs up a connection that was not to be closed anyway.

    Args:
        idempotency_key (None | str | Unset):
        body (RunWish): A command in a sandbox of its own, as a request wants it.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | RunReport
    """

    return sync_detailed(
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    body: RunWish,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[ProblemReport | RunReport]:
    """Runs a command in a fresh sandbox, which is ended on every way out, and says what came of it. It
    ends
    too when its caller hangs up a connection that was not to be closed anyway.

    Args:
        idempotency_key (None | str | Unset):
        body (RunWish): A command in a sandbox of its own, as a request wants it.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | RunReport]
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
    body: RunWish,
    idempotency_key: None | str | Unset = UNSET,
) -> ProblemReport | RunReport | None:
    """Runs a command in a fresh sandbox, which is ended on every way out, and says what came of it. It
    ends
    too when its caller hangs up a connection that was not to be closed anyway.

    Args:
        idempotency_key (None | str | Unset):
        body (RunWish): A command in a sandbox of its own, as a request wants it.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | RunReport
    """

    return (
        await asyncio_detailed(
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
