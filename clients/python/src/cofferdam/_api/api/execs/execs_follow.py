from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...types import UNSET, Response, Unset


def _get_kwargs(
    sandbox: str,
    exec_: str,
    *,
    stdout: int | Unset = UNSET,
    stderr: int | Unset = UNSET,
    last_event_id: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(last_event_id, Unset):
        headers["last-event-id"] = last_event_id

    params: dict[str, Any] = {}

    params["stdout"] = stdout

    params["stderr"] = stderr

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/sandboxes/{sandbox}/execs/{exec_}/stream".format(
            sandbox=quote(str(sandbox), safe=""),
            exec_=quote(str(exec_), safe=""),
        ),
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
    sandbox: str,
    exec_: str,
    *,
    client: AuthenticatedClient | Client,
    stdout: int | Unset = UNSET,
    stderr: int | Unset = UNSET,
    last_event_id: None | str | Unset = UNSET,
) -> Response[ProblemReport | str]:
    """What a command writes, as it comes: an event `output` with each part, and at last `end` with the
    command. The id of each event says how far both streams are told; sent back as `Last-Event-ID` it
    goes
    on there.

    Args:
        sandbox (str):
        exec_ (str):
        stdout (int | Unset):
        stderr (int | Unset):
        last_event_id (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | str]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        exec_=exec_,
        stdout=stdout,
        stderr=stderr,
        last_event_id=last_event_id,
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
    stdout: int | Unset = UNSET,
    stderr: int | Unset = UNSET,
    last_event_id: None | str | Unset = UNSET,
) -> ProblemReport | str | None:
    """What a command writes, as it comes: an event `output` with each part, and at last `end` with the
    command. The id of each event says how far both streams are told; sent back as `Last-Event-ID` it
    goes
    on there.

    Args:
        sandbox (str):
        exec_ (str):
        stdout (int | Unset):
        stderr (int | Unset):
        last_event_id (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | str
    """

    return sync_detailed(
        sandbox=sandbox,
        exec_=exec_,
        client=client,
        stdout=stdout,
        stderr=stderr,
        last_event_id=last_event_id,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    exec_: str,
    *,
    client: AuthenticatedClient | Client,
    stdout: int | Unset = UNSET,
    stderr: int | Unset = UNSET,
    last_event_id: None | str | Unset = UNSET,
) -> Response[ProblemReport | str]:
    """What a command writes, as it comes: an event `output` with each part, and at last `end` with the
    command. The id of each event says how far both streams are told; sent back as `Last-Event-ID` it
    goes
    on there.

    Args:
        sandbox (str):
        exec_ (str):
        stdout (int | Unset):
        stderr (int | Unset):
        last_event_id (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | str]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        exec_=exec_,
        stdout=stdout,
        stderr=stderr,
        last_event_id=last_event_id,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    exec_: str,
    *,
    client: AuthenticatedClient | Client,
    stdout: int | Unset = UNSET,
    stderr: int | Unset = UNSET,
    last_event_id: None | str | Unset = UNSET,
) -> ProblemReport | str | None:
    """What a command writes, as it comes: an event `output` with each part, and at last `end` with the
    command. The id of each event says how far both streams are told; sent back as `Last-Event-ID` it
    goes
    on there.

    Args:
        sandbox (str):
        exec_ (str):
        stdout (int | Unset):
        stderr (int | Unset):
        last_event_id (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | str
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            exec_=exec_,
            client=client,
            stdout=stdout,
            stderr=stderr,
            last_event_id=last_event_id,
        )
    ).parsed
