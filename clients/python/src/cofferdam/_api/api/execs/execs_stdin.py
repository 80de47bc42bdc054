from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...types import UNSET, File, Response, Unset


def _get_kwargs(
    sandbox: str,
    exec_: str,
    *,
    body: File,
    close: bool | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    params: dict[str, Any] = {}

    params["close"] = close

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/sandboxes/{sandbox}/execs/{exec_}/stdin".format(
            sandbox=quote(str(sandbox), safe=""),
            exec_=quote(str(exec_), safe=""),
        ),
        "params": params,
    }

    _kwargs["content"] = body.payload
    headers["Content-Type"] = "application/octet-stream"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | ProblemReport:
    if response.status_code == 204:
        response_204 = cast(Any, None)
        return response_204

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Any | ProblemReport]:
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
    body: File,
    close: bool | Unset = UNSET,
) -> Response[Any | ProblemReport]:
    """Sends input to a command that reads it.

    Args:
        sandbox (str):
        exec_ (str):
        close (bool | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        exec_=exec_,
        body=body,
        close=close,
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
    body: File,
    close: bool | Unset = UNSET,
) -> Any | ProblemReport | None:
    """Sends input to a command that reads it.

    Args:
        sandbox (str):
        exec_ (str):
        close (bool | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ProblemReport
    """

    return sync_detailed(
        sandbox=sandbox,
        exec_=exec_,
        client=client,
        body=body,
        close=close,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    exec_: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
    close: bool | Unset = UNSET,
) -> Response[Any | ProblemReport]:
    """Sends input to a command that reads it.

    Args:
        sandbox (str):
        exec_ (str):
        close (bool | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        exec_=exec_,
        body=body,
        close=close,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    exec_: str,
    *,
    client: AuthenticatedClient | Client,
    body: File,
    close: bool | Unset = UNSET,
) -> Any | ProblemReport | None:
    """Sends input to a command that reads it.

    Args:
        sandbox (str):
        exec_ (str):
        close (bool | Unset):
        body (File):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | ProblemReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            exec_=exec_,
            client=client,
            body=body,
            close=close,
        )
    ).parsed
