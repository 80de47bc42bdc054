from http import HTTPStatus
from typing import Any

import httpx

from ...client import AuthenticatedClient, Client
from ...models.event_list import EventList
from ...models.problem_report import ProblemReport
from ...types import UNSET, Response, Unset


def _get_kwargs(
    *,
    after: int | Unset = UNSET,
    sandbox: str | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["after"] = after

    params["sandbox"] = sandbox

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/events",
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> EventList | ProblemReport:
    if response.status_code == 200:
        response_200 = EventList.from_dict(response.json())

        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[EventList | ProblemReport]:
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
) -> Response[EventList | ProblemReport]:
    """What happened after the event of a number, at most 1000, in order.

    Args:
        after (int | Unset):
        sandbox (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[EventList | ProblemReport]
    """

    kwargs = _get_kwargs(
        after=after,
        sandbox=sandbox,
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
) -> EventList | ProblemReport | None:
    """What happened after the event of a number, at most 1000, in order.

    Args:
        after (int | Unset):
        sandbox (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        EventList | ProblemReport
    """

    return sync_detailed(
        client=client,
        after=after,
        sandbox=sandbox,
    ).parsed


async def asyncio_detailed(
    *,
    client: AuthenticatedClient | Client,
    after: int | Unset = UNSET,
    sandbox: str | Unset = UNSET,
) -> Response[EventList | ProblemReport]:
    """What happened after the event of a number, at most 1000, in order.

    Args:
        after (int | Unset):
        sandbox (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[EventList | ProblemReport]
    """

    kwargs = _get_kwargs(
        after=after,
        sandbox=sandbox,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    *,
    client: AuthenticatedClient | Client,
    after: int | Unset = UNSET,
    sandbox: str | Unset = UNSET,
) -> EventList | ProblemReport | None:
    """What happened after the event of a number, at most 1000, in order.

    Args:
        after (int | Unset):
        sandbox (str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        EventList | ProblemReport
    """

    return (
        await asyncio_detailed(
            client=client,
            after=after,
            sandbox=sandbox,
        )
    ).parsed
