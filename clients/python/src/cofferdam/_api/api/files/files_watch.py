from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...types import UNSET, Response, Unset


def _get_kwargs(
    sandbox: str,
    *,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    depth: int | Unset = UNSET,
    glob: str | Unset = UNSET,
    max_directories: int | Unset = UNSET,
    max_pending: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["path"] = path

    params["path_base64"] = path_base64

    params["depth"] = depth

    params["glob"] = glob

    params["max_directories"] = max_directories

    params["max_pending"] = max_pending

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/sandboxes/{sandbox}/files/watch".format(
            sandbox=quote(str(sandbox), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ProblemReport | str:
    if response.status_code == 200:
        response_200 = response.text
        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ProblemReport | str]:
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
    depth: int | Unset = UNSET,
    glob: str | Unset = UNSET,
    max_directories: int | Unset = UNSET,
    max_pending: int | Unset = UNSET,
) -> Response[ProblemReport | str]:
    """Tells what happens to files, by server-sent events.

     The first event is `ready`: whatever happens from then on is told. Where events come faster than
    they
    are read, `overflow` says that some were lost: look at everything again. The sandbox does not fall
    asleep meanwhile. There is no replay; an event `problem` with a problem document is the last.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        depth (int | Unset):
        glob (str | Unset):
        max_directories (int | Unset):
        max_pending (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | str]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        path=path,
        path_base64=path_base64,
        depth=depth,
        glob=glob,
        max_directories=max_directories,
        max_pending=max_pending,
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
    depth: int | Unset = UNSET,
    glob: str | Unset = UNSET,
    max_directories: int | Unset = UNSET,
    max_pending: int | Unset = UNSET,
) -> ProblemReport | str | None:
    """Tells what happens to files, by server-sent events.

     The first event is `ready`: whatever happens from then on is told. Where events come faster than
    they
    are read, `overflow` says that some were lost: look at everything again. The sandbox does not fall
    asleep meanwhile. There is no replay; an event `problem` with a problem document is the last.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        depth (int | Unset):
        glob (str | Unset):
        max_directories (int | Unset):
        max_pending (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | str
    """

    return sync_detailed(
        sandbox=sandbox,
        client=client,
        path=path,
        path_base64=path_base64,
        depth=depth,
        glob=glob,
        max_directories=max_directories,
        max_pending=max_pending,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    depth: int | Unset = UNSET,
    glob: str | Unset = UNSET,
    max_directories: int | Unset = UNSET,
    max_pending: int | Unset = UNSET,
) -> Response[ProblemReport | str]:
    """Tells what happens to files, by server-sent events.

     The first event is `ready`: whatever happens from then on is told. Where events come faster than
    they
    are read, `overflow` says that some were lost: look at everything again. The sandbox does not fall
    asleep meanwhile. There is no replay; an event `problem` with a problem document is the last.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        depth (int | Unset):
        glob (str | Unset):
        max_directories (int | Unset):
        max_pending (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | str]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        path=path,
        path_base64=path_base64,
        depth=depth,
        glob=glob,
        max_directories=max_directories,
        max_pending=max_pending,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    depth: int | Unset = UNSET,
    glob: str | Unset = UNSET,
    max_directories: int | Unset = UNSET,
    max_pending: int | Unset = UNSET,
) -> ProblemReport | str | None:
    """Tells what happens to files, by server-sent events.

     The first event is `ready`: whatever happens from then on is told. Where events come faster than
    they
    are read, `overflow` says that some were lost: look at everything again. The sandbox does not fall
    asleep meanwhile. There is no replay; an event `problem` with a problem document is the last.

    Args:
        sandbox (str):
        path (str | Unset):
        path_base64 (str | Unset):
        depth (int | Unset):
        glob (str | Unset):
        max_directories (int | Unset):
        max_pending (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | str
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            path=path,
            path_base64=path_base64,
            depth=depth,
            glob=glob,
            max_directories=max_directories,
            max_pending=max_pending,
        )
    ).parsed
