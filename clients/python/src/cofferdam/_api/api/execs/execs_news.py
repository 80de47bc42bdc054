from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.exec_news import ExecNews
from ...models.problem_report import ProblemReport
from ...types import UNSET, Response, Unset


def _get_kwargs(
    sandbox: str,
    exec_: str,
    *,
    stdout: int | Unset = UNSET,
    stderr: int | Unset = UNSET,
    stops: int | Unset = UNSET,
    end: bool | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
    cofferdam_goes_on: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(cofferdam_goes_on, Unset):
        headers["cofferdam-goes-on"] = cofferdam_goes_on

    params: dict[str, Any] = {}

    params["stdout"] = stdout

    params["stderr"] = stderr

    params["stops"] = stops

    params["end"] = end

    params["timeout_ms"] = timeout_ms

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/sandboxes/{sandbox}/execs/{exec_}/news".format(
            sandbox=quote(str(sandbox), safe=""),
            exec_=quote(str(exec_), safe=""),
        ),
        "params": params,
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ExecNews | ProblemReport:
    if response.status_code == 200:
        response_200 = ExecNews.from_dict(response.json())

        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ExecNews | ProblemReport]:
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
    stops: int | Unset = UNSET,
    end: bool | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
    cofferdam_goes_on: None | str | Unset = UNSET,
) -> Response[ExecNews | ProblemReport]:
    """Waits until there is more of a command than is known, or the time is over, and says how it stands.

    Args:
        sandbox (str):
        exec_ (str):
        stdout (int | Unset):
        stderr (int | Unset):
        stops (int | Unset):
        end (bool | Unset):
        timeout_ms (int | Unset):
        cofferdam_goes_on (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ExecNews | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        exec_=exec_,
        stdout=stdout,
        stderr=stderr,
        stops=stops,
        end=end,
        timeout_ms=timeout_ms,
        cofferdam_goes_on=cofferdam_goes_on,
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
    stops: int | Unset = UNSET,
    end: bool | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
    cofferdam_goes_on: None | str | Unset = UNSET,
) -> ExecNews | ProblemReport | None:
    """Waits until there is more of a command than is known, or the time is over, and says how it stands.

    Args:
        sandbox (str):
        exec_ (str):
        stdout (int | Unset):
        stderr (int | Unset):
        stops (int | Unset):
        end (bool | Unset):
        timeout_ms (int | Unset):
        cofferdam_goes_on (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ExecNews | ProblemReport
    """

    return sync_detailed(
        sandbox=sandbox,
        exec_=exec_,
        client=client,
        stdout=stdout,
        stderr=stderr,
        stops=stops,
        end=end,
        timeout_ms=timeout_ms,
        cofferdam_goes_on=cofferdam_goes_on,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    exec_: str,
    *,
    client: AuthenticatedClient | Client,
    stdout: int | Unset = UNSET,
    stderr: int | Unset = UNSET,
    stops: int | Unset = UNSET,
    end: bool | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
    cofferdam_goes_on: None | str | Unset = UNSET,
) -> Response[ExecNews | ProblemReport]:
    """Waits until there is more of a command than is known, or the time is over, and says how it stands.

    Args:
        sandbox (str):
        exec_ (str):
        stdout (int | Unset):
        stderr (int | Unset):
        stops (int | Unset):
        end (bool | Unset):
        timeout_ms (int | Unset):
        cofferdam_goes_on (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ExecNews | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        exec_=exec_,
        stdout=stdout,
        stderr=stderr,
        stops=stops,
        end=end,
        timeout_ms=timeout_ms,
        cofferdam_goes_on=cofferdam_goes_on,
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
    stops: int | Unset = UNSET,
    end: bool | Unset = UNSET,
    timeout_ms: int | Unset = UNSET,
    cofferdam_goes_on: None | str | Unset = UNSET,
) -> ExecNews | ProblemReport | None:
    """Waits until there is more of a command than is known, or the time is over, and says how it stands.

    Args:
        sandbox (str):
        exec_ (str):
        stdout (int | Unset):
        stderr (int | Unset):
        stops (int | Unset):
        end (bool | Unset):
        timeout_ms (int | Unset):
        cofferdam_goes_on (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ExecNews | ProblemReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            exec_=exec_,
            client=client,
            stdout=stdout,
            stderr=stderr,
            stops=stops,
            end=end,
            timeout_ms=timeout_ms,
            cofferdam_goes_on=cofferdam_goes_on,
        )
    ).parsed
