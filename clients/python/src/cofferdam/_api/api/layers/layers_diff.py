from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.change_list import ChangeList
from ...models.layers_diff_view import LayersDiffView
from ...models.problem_report import ProblemReport
from ...types import UNSET, Response, Unset


def _get_kwargs(
    sandbox: str,
    *,
    range_: str | Unset = UNSET,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    view: LayersDiffView | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["range"] = range_

    params["path"] = path

    params["path_base64"] = path_base64

    json_view: str | Unset = UNSET
    if not isinstance(view, Unset):
        json_view = view.value

    params["view"] = json_view

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/sandboxes/{sandbox}/diff".format(
            sandbox=quote(str(sandbox), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> ChangeList | ProblemReport:
    if response.status_code == 200:
        response_200 = ChangeList.from_dict(response.json())

        return response_200

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[ChangeList | ProblemReport]:
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
    range_: str | Unset = UNSET,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    view: LayersDiffView | Unset = UNSET,
) -> Response[ChangeList | ProblemReport]:
    """What a copy-on-write sandbox changed, or what changed between two points of its history.

     With `Accept: text/x-diff` it is a unified diff that `git apply` takes, otherwise an object as
    `view`
    says. The sandbox stands still while it is looked at.

    Args:
        sandbox (str):
        range_ (str | Unset):
        path (str | Unset):
        path_base64 (str | Unset):
        view (LayersDiffView | Unset): What is told of changes in JSON.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ChangeList | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        range_=range_,
        path=path,
        path_base64=path_base64,
        view=view,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    range_: str | Unset = UNSET,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    view: LayersDiffView | Unset = UNSET,
) -> ChangeList | ProblemReport | None:
    """What a copy-on-write sandbox changed, or what changed between two points of its history.

     With `Accept: text/x-diff` it is a unified diff that `git apply` takes, otherwise an object as
    `view`
    says. The sandbox stands still while it is looked at.

    Args:
        sandbox (str):
        range_ (str | Unset):
        path (str | Unset):
        path_base64 (str | Unset):
        view (LayersDiffView | Unset): What is told of changes in JSON.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ChangeList | ProblemReport
    """

    return sync_detailed(
        sandbox=sandbox,
        client=client,
        range_=range_,
        path=path,
        path_base64=path_base64,
        view=view,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    range_: str | Unset = UNSET,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    view: LayersDiffView | Unset = UNSET,
) -> Response[ChangeList | ProblemReport]:
    """What a copy-on-write sandbox changed, or what changed between two points of its history.

     With `Accept: text/x-diff` it is a unified diff that `git apply` takes, otherwise an object as
    `view`
    says. The sandbox stands still while it is looked at.

    Args:
        sandbox (str):
        range_ (str | Unset):
        path (str | Unset):
        path_base64 (str | Unset):
        view (LayersDiffView | Unset): What is told of changes in JSON.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ChangeList | ProblemReport]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        range_=range_,
        path=path,
        path_base64=path_base64,
        view=view,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    *,
    client: AuthenticatedClient | Client,
    range_: str | Unset = UNSET,
    path: str | Unset = UNSET,
    path_base64: str | Unset = UNSET,
    view: LayersDiffView | Unset = UNSET,
) -> ChangeList | ProblemReport | None:
    """What a copy-on-write sandbox changed, or what changed between two points of its history.

     With `Accept: text/x-diff` it is a unified diff that `git apply` takes, otherwise an object as
    `view`
    says. The sandbox stands still while it is looked at.

    Args:
        sandbox (str):
        range_ (str | Unset):
        path (str | Unset):
        path_base64 (str | Unset):
        view (LayersDiffView | Unset): What is told of changes in JSON.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ChangeList | ProblemReport
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            range_=range_,
            path=path,
            path_base64=path_base64,
            view=view,
        )
    ).parsed
