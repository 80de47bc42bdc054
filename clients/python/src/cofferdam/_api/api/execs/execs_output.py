from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.execs_output_stream import ExecsOutputStream
from ...models.log_part import LogPart
from ...models.problem_report import ProblemReport
from ...types import UNSET, Response, Unset


def _get_kwargs(
    sandbox: str,
    exec_: str,
    *,
    stream: ExecsOutputStream,
    offset: int | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    json_stream = stream.value
    params["stream"] = json_stream

    params["offset"] = offset

    params["limit"] = limit

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/sandboxes/{sandbox}/execs/{exec_}/output".format(
            sandbox=quote(str(sandbox), safe=""),
            exec_=quote(str(exec_), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> LogPart | ProblemReport:
    if response.status_code == 200:
        response_200 = LogPart.from_dict(response.json())

        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[LogPart | ProblemReport]:
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
    stream: ExecsOutputStream,
    offset: int | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> Response[LogPart | ProblemReport]:
    """A part of what a command wrote, from an offset on; empty where nothing is yet. Works after the
    command
    ended and its sandbox is gone.

    Args:
        sandbox (str):
        exec_ (str):
        stream (ExecsOutputStream):
        offset (int | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LogPart | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        exec_=exec_,
        stream=stream,
        offset=offset,
        limit=limit,
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
    stream: ExecsOutputStream,
    offset: int | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> LogPart | ProblemReport | None:
    """A part of what a command wrote, from an offset on; empty where nothing is yet. Works after the
    command
    ended and its sandbox is gone.

    Args:
        sandbox (str):
        exec_ (str):
        stream (ExecsOutputStream):
        offset (int | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        LogPart | ProblemReport
    """

    return sync_detailed(
        sandbox=sandbox,
        exec_=exec_,
        client=client,
        stream=stream,
        offset=offset,
        limit=limit,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    exec_: str,
    *,
    client: AuthenticatedClient | Client,
    stream: ExecsOutputStream,
    offset: int | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> Response[LogPart | ProblemReport]:
    """A part of what a command wrote, from an offset on; empty where nothing is yet. Works after the
    command
    ended and its sandbox is gone.

    Args:
        sandbox (str):
        exec_ (str):
        stream (ExecsOutputStream):
        offset (int | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[LogPart | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        exec_=exec_,
        stream=stream,
        offset=offset,
        limit=limit,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    exec_: str,
    *,
    client: AuthenticatedClient | Client,
    stream: ExecsOutputStream,
    offset: int | Unset = UNSET,
    limit: int | Unset = UNSET,
) -> LogPart | ProblemReport | None:
    """A part of what a command wrote, from an offset on; empty where nothing is yet. Works after the
    command
    ended and its sandbox is gone.

    Args:
        sandbox (str):
        exec_ (str):
        stream (ExecsOutputStream):
        offset (int | Unset):
        limit (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        LogPart | ProblemReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            exec_=exec_,
            client=client,
            stream=stream,
            offset=offset,
            limit=limit,
        )
    ).parsed
