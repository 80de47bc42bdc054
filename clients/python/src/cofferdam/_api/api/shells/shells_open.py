from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...models.shell_report import ShellReport
from ...types import Response


def _get_kwargs(
    sandbox: str,
    shell: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/v1/sandboxes/{sandbox}/shells/{shell}".format(
            sandbox=quote(str(sandbox), safe=""),
            shell=quote(str(shell), safe=""),
        ),
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemReport | ShellReport:
    if response.status_code == 200:
        response_200 = ShellReport.from_dict(response.json())

        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ProblemReport | ShellReport]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    sandbox: str,
    shell: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[ProblemReport | ShellReport]:
    """Opens a shell that keeps directory, variables and functions from command to command. One that lives
    is
    what was asked for.

    Args:
        sandbox (str):
        shell (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | ShellReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        shell=shell,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    sandbox: str,
    shell: str,
    *,
    client: AuthenticatedClient | Client,
) -> ProblemReport | ShellReport | None:
    """Opens a shell that keeps directory, variables and functions from command to command. One that lives
    is
    what was asked for.

    Args:
        sandbox (str):
        shell (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | ShellReport
    """

    return sync_detailed(
        sandbox=sandbox,
        shell=shell,
        client=client,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    shell: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[ProblemReport | ShellReport]:
    """Opens a shell that keeps directory, variables and functions from command to command. One that lives
    is
    what was asked for.

    Args:
        sandbox (str):
        shell (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | ShellReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        shell=shell,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    shell: str,
    *,
    client: AuthenticatedClient | Client,
) -> ProblemReport | ShellReport | None:
    """Opens a shell that keeps directory, variables and functions from command to command. One that lives
    is
    what was asked for.

    Args:
        sandbox (str):
        shell (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | ShellReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            shell=shell,
            client=client,
        )
    ).parsed
