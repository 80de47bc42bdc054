from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.edits_wish import EditsWish
from ...models.file_edit import FileEdit
from ...models.problem_report import ProblemReport
from ...models.problem_with_file_edit import ProblemWithFileEdit
from ...types import Response


def _get_kwargs(
    sandbox: str,
    *,
    body: EditsWish,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/sandboxes/{sandbox}/files/edit".format(
            sandbox=quote(str(sandbox), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> FileEdit | ProblemReport | ProblemWithFileEdit:
    if response.status_code == 200:
        response_200 = FileEdit.from_dict(response.json())

        return response_200

    if response.status_code == 409:
        response_409 = ProblemWithFileEdit.from_dict(response.json())

        return response_409

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[FileEdit | ProblemReport | ProblemWithFileEdit]:
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
    body: EditsWish,
) -> Response[FileEdit | ProblemReport | ProblemWithFileEdit]:
    """Replaces text in a file: all edits, or none.

     The old text has to stand in exactly one place, unless all are meant. An edit that is refused is a
    conflict, whose document says where the text stands.

    Args:
        sandbox (str):
        body (EditsWish): Texts of a file that are to be replaced.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[FileEdit | ProblemReport | ProblemWithFileEdit]
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
    body: EditsWish,
) -> FileEdit | ProblemReport | ProblemWithFileEdit | None:
    """Replaces text in a file: all edits, or none.

     The old text has to stand in exactly one place, unless all are meant. An edit that is refused is a
    conflict, whose document says where the text stands.

    Args:
        sandbox (str):
        body (EditsWish): Texts of a file that are to be replaced.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        FileEdit | ProblemReport | ProblemWithFileEdit
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
    body: EditsWish,
) -> Response[FileEdit | ProblemReport | ProblemWithFileEdit]:
    """Replaces text in a file: all edits, or none.

     The old text has to stand in exactly one place, unless all are meant. An edit that is refused is a
    conflict, whose document says where the text stands.

    Args:
        sandbox (str):
        body (EditsWish): Texts of a file that are to be replaced.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[FileEdit | ProblemReport | ProblemWithFileEdit]
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
    body: EditsWish,
) -> FileEdit | ProblemReport | ProblemWithFileEdit | None:
    """Replaces text in a file: all edits, or none.

     The old text has to stand in exactly one place, unless all are meant. An edit that is refused is a
    conflict, whose document says where the text stands.

    Args:
        sandbox (str):
        body (EditsWish): Texts of a file that are to be replaced.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        FileEdit | ProblemReport | ProblemWithFileEdit
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            body=body,
        )
    ).parsed
