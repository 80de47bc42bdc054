from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...models.receipt import Receipt
from ...types import Response


def _get_kwargs(
    sandbox: str,
    exec_: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/sandboxes/{sandbox}/execs/{exec_}/receipt".format(
            sandbox=quote(str(sandbox), safe=""),
            exec_=quote(str(exec_), safe=""),
        ),
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemReport | Receipt:
    if response.status_code == 200:
        response_200 = Receipt.from_dict(response.json())

        return response_200

    if response.status_code == 409:
        response_409 = ProblemReport.from_dict(response.json())

        return response_409

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ProblemReport | Receipt]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    sandbox: str,
    exec_: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[ProblemReport | Receipt]:
    """What a command did that has ended: what the host saw, apart from what was said inside. What it did
    to files
    is in it where it was started with `receipt`, as long as this server lives and for the last 64 of a
    caller;
    else `files.not_seen` says why not.

    Args:
        sandbox (str):
        exec_ (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | Receipt]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        exec_=exec_,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    sandbox: str,
    exec_: str,
    *,
    client: AuthenticatedClient | Client,
) -> ProblemReport | Receipt | None:
    """What a command did that has ended: what the host saw, apart from what was said inside. What it did
    to files
    is in it where it was started with `receipt`, as long as this server lives and for the last 64 of a
    caller;
    else `files.not_seen` says why not.

    Args:
        sandbox (str):
        exec_ (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | Receipt
    """

    return sync_detailed(
        sandbox=sandbox,
        exec_=exec_,
        client=client,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    exec_: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[ProblemReport | Receipt]:
    """What a command did that has ended: what the host saw, apart from what was said inside. What it did
    to files
    is in it where it was started with `receipt`, as long as this server lives and for the last 64 of a
    caller;
    else `files.not_seen` says why not.

    Args:
        sandbox (str):
        exec_ (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | Receipt]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        exec_=exec_,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    exec_: str,
    *,
    client: AuthenticatedClient | Client,
) -> ProblemReport | Receipt | None:
    """What a command did that has ended: what the host saw, apart from what was said inside. What it did
    to files
    is in it where it was started with `receipt`, as long as this server lives and for the last 64 of a
    caller;
    else `files.not_seen` says why not.

    Args:
        sandbox (str):
        exec_ (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | Receipt
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            exec_=exec_,
            client=client,
        )
    ).parsed
