from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    after: int | Unset = UNSET,
    sandbox: str | Unset = UNSET,
    last_event_id: int | None | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(last_event_id, Unset):
        headers["last-event-id"] = last_event_id

    params: dict[str, Any] = {}

    params["after"] = after

    params["sandbox"] = sandbox

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/events/stream",
        "params": params,
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemReport | str:
    if response.status_code == 200:
        response_200 = response.text
        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ProblemReport | str]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    *,
    client: AuthenticatedClient | Client,
    after: int | Unset = UNSET,
    sandbox: str | Unset = UNSET,
    last_event_id: int | None | Unset = UNSET,
) -> Response[ProblemReport | str]:
    """The same as it comes: an event `event` each, whose id is its number. `Last-Event-ID` goes before
    `after`.

    Args:
        after (int | Unset):
        sandbox (str | Unset):
        last_event_id (int | None | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | str]
    """

    kwargs = _get_kwargs(
        after=after,
        sandbox=sandbox,
        last_event_id=last_event_id,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    *,
    client: AuthenticatedClient | Client,
    after: int | Unset = UNSET,
    sandbox: str | Unset = UNSET,
    last_event_id: int | None | Unset = UNSET,
) -> ProblemReport | str | None:
    """The same as it comes: an event `event` each, whose id is its number. `Last-Event-ID` goes before
    `after`.

    Args:
        after (int | Unset):
        sandbox (str | Unset):
        last_event_id (int | None | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | str
    """

    return sync_detailed(
        client=client,
        after=after,
        sandbox=sandbox,
        last_event_id=last_event_id,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    after: int | Unset = UNSET,
    sandbox: str | Unset = UNSET,
    last_event_id: int | None | Unset = UNSET,
) -> Response[ProblemReport | str]:
    """The same as it comes: an event `event` each, whose id is its number. `Last-Event-ID` goes before
    `after`.

    Args:
        after (int | Unset):
        sandbox (str | Unset):
        last_event_id (int | None | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | str]
    """

    kwargs = _get_kwargs(
        after=after,
        sandbox=sandbox,
        last_event_id=last_event_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    after: int | Unset = UNSET,
    sandbox: str | Unset = UNSET,
    last_event_id: int | None | Unset = UNSET,
) -> ProblemReport | str | None:
    """The same as it comes: an event `event` each, whose id is its number. `Last-Event-ID` goes before
    `after`.

    Args:
        after (int | Unset):
        sandbox (str | Unset):
        last_event_id (int | None | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | str
    """

    return (
        await asyncio_detailed(
            client=client,
            after=after,
            sandbox=sandbox,
            last_event_id=last_event_id,
        )
    ).parsed
