from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...models.shell_ran import ShellRan
from ...models.shell_run_wish import ShellRunWish
from ...types import UNSET, Response, Unset


def _get_kwargs(
    sandbox: str,
    shell: str,
    *,
    body: ShellRunWish,
    idempotency_key: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["idempotency-key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/sandboxes/{sandbox}/shells/{shell}/run".format(
            sandbox=quote(str(sandbox), safe=""),
            shell=quote(str(shell), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemReport | ShellRan:
    if response.status_code == 200:
        response_200 = ShellRan.from_dict(response.json())

        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ProblemReport | ShellRan]:
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
    body: ShellRunWish,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[ProblemReport | ShellRan]:
    """Runs a command in a shell, which is opened if there is none, and waits for its end. One that takes
    longer
    goes on, and is asked for again by `check`.

    Args:
        sandbox (str):
        shell (str):
        idempotency_key (None | str | Unset):
        body (ShellRunWish): A command for a shell.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | ShellRan]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        shell=shell,
        body=body,
        idempotency_key=idempotency_key,
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
    body: ShellRunWish,
    idempotency_key: None | str | Unset = UNSET,
) -> ProblemReport | ShellRan | None:
    """Runs a command in a shell, which is opened if there is none, and waits for its end. One that takes
    longer
    goes on, and is asked for again by `check`.

    Args:
        sandbox (str):
        shell (str):
        idempotency_key (None | str | Unset):
        body (ShellRunWish): A command for a shell.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | ShellRan
    """

    return sync_detailed(
        sandbox=sandbox,
        shell=shell,
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    shell: str,
    *,
    client: AuthenticatedClient | Client,
    body: ShellRunWish,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[ProblemReport | ShellRan]:
    """Runs a command in a shell, which is opened if there is none, and waits for its end. One that takes
    longer
    goes on, and is asked for again by `check`.

    Args:
        sandbox (str):
        shell (str):
        idempotency_key (None | str | Unset):
        body (ShellRunWish): A command for a shell.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | ShellRan]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        shell=shell,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    shell: str,
    *,
    client: AuthenticatedClient | Client,
    body: ShellRunWish,
    idempotency_key: None | str | Unset = UNSET,
) -> ProblemReport | ShellRan | None:
    """Runs a command in a shell, which is opened if there is none, and waits for its end. One that takes
    longer
    goes on, and is asked for again by `check`.

    Args:
        sandbox (str):
        shell (str):
        idempotency_key (None | str | Unset):
        body (ShellRunWish): A command for a shell.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | ShellRan
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            shell=shell,
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
