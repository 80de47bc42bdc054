from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...models.tool_arguments import ToolArguments
from ...models.tool_outcome import ToolOutcome
from ...types import UNSET, Response, Unset


def _get_kwargs(
    pack: str,
    tool: str,
    *,
    body: ToolArguments,
    idempotency_key: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(idempotency_key, Unset):
        headers["idempotency-key"] = idempotency_key

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/tools/{pack}/{tool}".format(
            pack=quote(str(pack), safe=""),
            tool=quote(str(tool), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemReport | ToolOutcome:
    if response.status_code == 200:
        response_200 = ToolOutcome.from_dict(response.json())

        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ProblemReport | ToolOutcome]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pack: str,
    tool: str,
    *,
    client: AuthenticatedClient | Client,
    body: ToolArguments,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[ProblemReport | ToolOutcome]:
    """Calls a tool with the arguments in the body. It takes a key with every scope but `approve`, for
    tools do everything
    else.
    An error of the tool is an outcome, with `is_error`.

    Args:
        pack (str):
        tool (str):
        idempotency_key (None | str | Unset):
        body (ToolArguments): The arguments of a tool, as its own schema says.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | ToolOutcome]
    """

    kwargs = _get_kwargs(
        pack=pack,
        tool=tool,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pack: str,
    tool: str,
    *,
    client: AuthenticatedClient | Client,
    body: ToolArguments,
    idempotency_key: None | str | Unset = UNSET,
) -> ProblemReport | ToolOutcome | None:
    """Calls a tool with the arguments in the body. It takes a key with every scope but `approve`, for
    tools do everything
    else.
    An error of the tool is an outcome, with `is_error`.

    Args:
        pack (str):
        tool (str):
        idempotency_key (None | str | Unset):
        body (ToolArguments): The arguments of a tool, as its own schema says.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | ToolOutcome
    """

    return sync_detailed(
        pack=pack,
        tool=tool,
        client=client,
        body=body,
        idempotency_key=idempotency_key,
    ).parsed


async def asyncio_detailed(
    pack: str,
    tool: str,
    *,
    client: AuthenticatedClient | Client,
    body: ToolArguments,
    idempotency_key: None | str | Unset = UNSET,
) -> Response[ProblemReport | ToolOutcome]:
    """Calls a tool with the arguments in the body. It takes a key with every scope but `approve`, for
    tools do everything
    else.
    An error of the tool is an outcome, with `is_error`.

    Args:
        pack (str):
        tool (str):
        idempotency_key (None | str | Unset):
        body (ToolArguments): The arguments of a tool, as its own schema says.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | ToolOutcome]
    """

    kwargs = _get_kwargs(
        pack=pack,
        tool=tool,
        body=body,
        idempotency_key=idempotency_key,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pack: str,
    tool: str,
    *,
    client: AuthenticatedClient | Client,
    body: ToolArguments,
    idempotency_key: None | str | Unset = UNSET,
) -> ProblemReport | ToolOutcome | None:
    """Calls a tool with the arguments in the body. It takes a key with every scope but `approve`, for
    tools do everything
    else.
    An error of the tool is an outcome, with `is_error`.

    Args:
        pack (str):
        tool (str):
        idempotency_key (None | str | Unset):
        body (ToolArguments): The arguments of a tool, as its own schema says.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | ToolOutcome
    """

    return (
        await asyncio_detailed(
            pack=pack,
            tool=tool,
            client=client,
            body=body,
            idempotency_key=idempotency_key,
        )
    ).parsed
