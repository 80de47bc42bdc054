from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.answer_wish import AnswerWish
from ...models.permission_report import PermissionReport
from ...models.problem_report import ProblemReport
from ...types import Response


def _get_kwargs(
    sandbox: str,
    approval: str,
    *,
    body: AnswerWish,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/sandboxes/{sandbox}/approvals/{approval}".format(
            sandbox=quote(str(sandbox), safe=""),
            approval=quote(str(approval), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> PermissionReport | ProblemReport:
    if response.status_code == 200:
        response_200 = PermissionReport.from_dict(response.json())

        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[PermissionReport | ProblemReport]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    sandbox: str,
    approval: str,
    *,
    client: AuthenticatedClient | Client,
    body: AnswerWish,
) -> Response[PermissionReport | ProblemReport]:
    """Answers something that waits, within what the operator of the server allows. A key has to have the
    scope
    `approve` for it: whoever may only run commands does not answer what these ask for.

    Args:
        sandbox (str):
        approval (str):
        body (AnswerWish): An answer to what waits.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PermissionReport | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        approval=approval,
        body=body,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    sandbox: str,
    approval: str,
    *,
    client: AuthenticatedClient | Client,
    body: AnswerWish,
) -> PermissionReport | ProblemReport | None:
    """Answers something that waits, within what the operator of the server allows. A key has to have the
    scope
    `approve` for it: whoever may only run commands does not answer what these ask for.

    Args:
        sandbox (str):
        approval (str):
        body (AnswerWish): An answer to what waits.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PermissionReport | ProblemReport
    """

    return sync_detailed(
        sandbox=sandbox,
        approval=approval,
        client=client,
        body=body,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    approval: str,
    *,
    client: AuthenticatedClient | Client,
    body: AnswerWish,
) -> Response[PermissionReport | ProblemReport]:
    """Answers something that waits, within what the operator of the server allows. A key has to have the
    scope
    `approve` for it: whoever may only run commands does not answer what these ask for.

    Args:
        sandbox (str):
        approval (str):
        body (AnswerWish): An answer to what waits.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[PermissionReport | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        approval=approval,
        body=body,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    approval: str,
    *,
    client: AuthenticatedClient | Client,
    body: AnswerWish,
) -> PermissionReport | ProblemReport | None:
    """Answers something that waits, within what the operator of the server allows. A key has to have the
    scope
    `approve` for it: whoever may only run commands does not answer what these ask for.

    Args:
        sandbox (str):
        approval (str):
        body (AnswerWish): An answer to what waits.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        PermissionReport | ProblemReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            approval=approval,
            client=client,
            body=body,
        )
    ).parsed
