from http import HTTPStatus
from io import BytesIO
from typing import Any, cast
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...types import UNSET, File, Response, Unset


def _get_kwargs(
    sandbox: str,
    *,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    hash_: bool | Unset = UNSET,
    range_: None | str | Unset = UNSET,
    if_range: None | str | Unset = UNSET,
    if_match: None | str | Unset = UNSET,
    if_none_match: None | str | Unset = UNSET,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if not isinstance(range_, Unset):
        headers["range"] = range_

    if not isinstance(if_range, Unset):
        headers["if-range"] = if_range

    if not isinstance(if_match, Unset):
        headers["if-match"] = if_match

    if not isinstance(if_none_match, Unset):
        headers["if-none-match"] = if_none_match

    params: dict[str, Any] = {}

    params["path"] = path

    params["path_base64"] = path_base64

    params["hash"] = hash_

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/sandboxes/{sandbox}/files".format(
            sandbox=quote(str(sandbox), safe=""),
        ),
        "params": params,
    }

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Any | File | ProblemReport:
    if response.status_code == 200:
        response_200 = File(payload=BytesIO(response.content))

        return response_200

    if response.status_code == 206:
        response_206 = File(payload=BytesIO(response.content))

        return response_206

    if response.status_code == 304:
        response_304 = cast(Any, None)
        return response_304

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[Any | File | ProblemReport]:
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
    hash_: bool | Unset = UNSET,
    range_: None | str | Unset = UNSET,
    if_range: None | str | Unset = UNSET,
    if_match: None | str | Unset = UNSET,
    if_none_match: None | str | Unset = UNSET,
) -> Response[Any | File | ProblemReport]:
    """Reads a file, byte for byte.

     The SHA-256 of the whole file is the ETag and the Repr-Digest. One range can be asked for. A file
    that
    changes while it is sent breaks the answer off. What is in it is never shown by a browser.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        hash_ (bool | Unset):
        range_ (None | str | Unset):
        if_range (None | str | Unset):
        if_match (None | str | Unset):
        if_none_match (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | File | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        path=path,
        path_base64=path_base64,
        hash_=hash_,
        range_=range_,
        if_range=if_range,
        if_match=if_match,
        if_none_match=if_none_match,
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
    hash_: bool | Unset = UNSET,
    range_: None | str | Unset = UNSET,
    if_range: None | str | Unset = UNSET,
    if_match: None | str | Unset = UNSET,
    if_none_match: None | str | Unset = UNSET,
) -> Any | File | ProblemReport | None:
    """Reads a file, byte for byte.

     The SHA-256 of the whole file is the ETag and the Repr-Digest. One range can be asked for. A file
    that
    changes while it is sent breaks the answer off. What is in it is never shown by a browser.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        hash_ (bool | Unset):
        range_ (None | str | Unset):
        if_range (None | str | Unset):
        if_match (None | str | Unset):
        if_none_match (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | File | ProblemReport
    """

    return sync_detailed(
        sandbox=sandbox,
        client=client,
        path=path,
        path_base64=path_base64,
        hash_=hash_,
        range_=range_,
        if_range=if_range,
        if_match=if_match,
        if_none_match=if_none_match,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    hash_: bool | Unset = UNSET,
    range_: None | str | Unset = UNSET,
    if_range: None | str | Unset = UNSET,
    if_match: None | str | Unset = UNSET,
    if_none_match: None | str | Unset = UNSET,
) -> Response[Any | File | ProblemReport]:
    """Reads a file, byte for byte.

     The SHA-256 of the whole file is the ETag and the Repr-Digest. One range can be asked for. A file
    that
    changes while it is sent breaks the answer off. What is in it is never shown by a browser.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        hash_ (bool | Unset):
        range_ (None | str | Unset):
        if_range (None | str | Unset):
        if_match (None | str | Unset):
        if_none_match (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[Any | File | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        path=path,
        path_base64=path_base64,
        hash_=hash_,
        range_=range_,
        if_range=if_range,
        if_match=if_match,
        if_none_match=if_none_match,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    hash_: bool | Unset = UNSET,
    range_: None | str | Unset = UNSET,
    if_range: None | str | Unset = UNSET,
    if_match: None | str | Unset = UNSET,
    if_none_match: None | str | Unset = UNSET,
) -> Any | File | ProblemReport | None:
    """Reads a file, byte for byte.

     The SHA-256 of the whole file is the ETag and the Repr-Digest. One range can be asked for. A file
    that
    changes while it is sent breaks the answer off. What is in it is never shown by a browser.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        hash_ (bool | Unset):
        range_ (None | str | Unset):
        if_range (None | str | Unset):
        if_match (None | str | Unset):
        if_none_match (None | str | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Any | File | ProblemReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            path=path,
            path_base64=path_base64,
            hash_=hash_,
            range_=range_,
            if_range=if_range,
            if_match=if_match,
            if_none_match=if_none_match,
        )
    ).parsed
