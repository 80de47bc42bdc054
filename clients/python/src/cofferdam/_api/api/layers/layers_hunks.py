from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.hunk_list import HunkList
from ...models.problem_report import ProblemReport
from ...types import UNSET, Response, Unset


def _get_kwargs(
    sandbox: str,
    *,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    texts: bool | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["path"] = path

    params["path_base64"] = path_base64

    params["texts"] = texts

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/sandboxes/{sandbox}/diff/hunks".format(
            sandbox=quote(str(sandbox), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> HunkList | ProblemReport:
    if response.status_code == 200:
        response_200 = HunkList.from_dict(response.json())

        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[HunkList | ProblemReport]:
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
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    texts: bool | Unset = UNSET,
) -> Response[HunkList | ProblemReport]:
    """What a copy-on-write sandbox changed, part by part: `apply` lands those that are chosen. At most 16
    MiB
    of them.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        texts (bool | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[HunkList | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        path=path,
        path_base64=path_base64,
        texts=texts,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    texts: bool | Unset = UNSET,
) -> HunkList | ProblemReport | None:
    """What a copy-on-write sandbox changed, part by part: `apply` lands those that are chosen. At most 16
    MiB
    of them.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        texts (bool | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        HunkList | ProblemReport
    """

    return sync_detailed(
        sandbox=sandbox,
        client=client,
        path=path,
        path_base64=path_base64,
        texts=texts,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    texts: bool | Unset = UNSET,
) -> Response[HunkList | ProblemReport]:
    """What a copy-on-write sandbox changed, part by part: `apply` lands those that are chosen. At most 16
    MiB
    of them.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        texts (bool | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[HunkList | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        path=path,
        path_base64=path_base64,
        texts=texts,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    texts: bool | Unset = UNSET,
) -> HunkList | ProblemReport | None:
    """What a copy-on-write sandbox changed, part by part: `apply` lands those that are chosen. At most 16
    MiB
    of them.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        texts (bool | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        HunkList | ProblemReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            path=path,
            path_base64=path_base64,
            texts=texts,
        )
    ).parsed
