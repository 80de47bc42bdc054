from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...models.tool_list import ToolList
from ...types import Response


def _get_kwargs(
    pack: str,
) -> dict[str, Any]:

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/tools/{pack}".format(
            pack=quote(str(pack), safe=""),
        ),
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemReport | ToolList:
    if response.status_code == 200:
        response_200 = ToolList.from_dict(response.json())

        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ProblemReport | ToolList]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    pack: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[ProblemReport | ToolList]:
    """The tools of a pack: cofferdam, everruns, adk, fluers or openmanus. Every call names its sandbox.

    Args:
        pack (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | ToolList]
    """

    kwargs = _get_kwargs(
        pack=pack,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    pack: str,
    *,
    client: AuthenticatedClient | Client,
) -> ProblemReport | ToolList | None:
    """The tools of a pack: cofferdam, everruns, adk, fluers or openmanus. Every call names its sandbox.

    Args:
        pack (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | ToolList
    """

    return sync_detailed(
        pack=pack,
        client=client,
    ).parsed


async def asyncio_detailed(
    pack: str,
    *,
    client: AuthenticatedClient | Client,
) -> Response[ProblemReport | ToolList]:
    """The tools of a pack: cofferdam, everruns, adk, fluers or openmanus. Every call names its sandbox.

    Args:
        pack (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | ToolList]
    """

    kwargs = _get_kwargs(
        pack=pack,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    pack: str,
    *,
    client: AuthenticatedClient | Client,
) -> ProblemReport | ToolList | None:
    """The tools of a pack: cofferdam, everruns, adk, fluers or openmanus. Every call names its sandbox.

    Args:
        pack (str):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | ToolList
    """

    return (
        await asyncio_detailed(
            pack=pack,
            client=client,
        )
    ).parsed
