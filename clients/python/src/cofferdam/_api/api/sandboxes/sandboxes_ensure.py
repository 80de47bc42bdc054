from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...models.sandbox_wish import SandboxWish
from ...models.session_report import SessionReport
from ...types import Response


def _get_kwargs(
    sandbox: str,
    *,
    body: SandboxWish,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "put",
        "url": "/v1/sandboxes/{sandbox}".format(
            sandbox=quote(str(sandbox), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemReport | SessionReport:
    if response.status_code == 200:
        response_200 = SessionReport.from_dict(response.json())

        return response_200

    if response.status_code == 201:
        response_201 = SessionReport.from_dict(response.json())

        return response_201

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ProblemReport | SessionReport]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: SandboxWish,
) -> Response[ProblemReport | SessionReport]:
    """The sandbox of this name, running and prepared: made, resumed or recovered if it has to be.

    Args:
        sandbox (str):
        body (SandboxWish): A sandbox as a request wants it. What is not said is as the operator
            decided; a sandbox that is there
            already keeps what of labels, `init`, times and checkpoints is not said.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | SessionReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: SandboxWish,
) -> ProblemReport | SessionReport | None:
    """The sandbox of this name, running and prepared: made, resumed or recovered if it has to be.

    Args:
        sandbox (str):
        body (SandboxWish): A sandbox as a request wants it. What is not said is as the operator
            decided; a sandbox that is there
            already keeps what of labels, `init`, times and checkpoints is not said.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | SessionReport
    """

    return sync_detailed(
        sandbox=sandbox,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: SandboxWish,
) -> Response[ProblemReport | SessionReport]:
    """The sandbox of this name, running and prepared: made, resumed or recovered if it has to be.

    Args:
        sandbox (str):
        body (SandboxWish): A sandbox as a request wants it. What is not said is as the operator
            decided; a sandbox that is there
            already keeps what of labels, `init`, times and checkpoints is not said.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | SessionReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    body: SandboxWish,
) -> ProblemReport | SessionReport | None:
    """The sandbox of this name, running and prepared: made, resumed or recovered if it has to be.

    Args:
        sandbox (str):
        body (SandboxWish): A sandbox as a request wants it. What is not said is as the operator
            decided; a sandbox that is there
            already keeps what of labels, `init`, times and checkpoints is not said.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | SessionReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            body=body,
        )
    ).parsed
