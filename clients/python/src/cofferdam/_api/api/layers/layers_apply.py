from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.applied_changes import AppliedChanges
from ...models.apply_wish import ApplyWish
from ...models.problem_report import ProblemReport
from ...models.problem_with_applied_changes import ProblemWithAppliedChanges
from ...types import Response


def _get_kwargs(
    sandbox: str,
    *,
    body: ApplyWish,
) -> dict[str, Any]:
    headers: dict[str, Any] = {}

    _kwargs: dict[str, Any] = {
        "method": "post",
        "url": "/v1/sandboxes/{sandbox}/apply".format(
            sandbox=quote(str(sandbox), safe=""),
        ),
    }

    _kwargs["json"] = body.to_dict()

    headers["Content-Type"] = "application/json"

    _kwargs["headers"] = headers
    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> AppliedChanges | ProblemReport | ProblemWithAppliedChanges:
    if response.status_code == 200:
        response_200 = AppliedChanges.from_dict(response.json())

        return response_200

    if response.status_code == 409:
        response_409 = ProblemWithAppliedChanges.from_dict(response.json())

        return response_409

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[AppliedChanges | ProblemReport | ProblemWithAppliedChanges]:
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
    body: ApplyWish,
) -> Response[AppliedChanges | ProblemReport | ProblemWithAppliedChanges]:
    """Lands what a copy-on-write sandbox changed in the real workspace.

     All that can land does, or with an error nothing. What changed in the workspace meanwhile, and what
    lands only if it is named, stays as it is there: then the answer is a conflict, whose document lists
    what landed and what did not, each with its `standing`.

    Args:
        sandbox (str):
        body (ApplyWish): What is to land.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AppliedChanges | ProblemReport | ProblemWithAppliedChanges]
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
    body: ApplyWish,
) -> AppliedChanges | ProblemReport | ProblemWithAppliedChanges | None:
    """Lands what a copy-on-write sandbox changed in the real workspace.

     All that can land does, or with an error nothing. What changed in the workspace meanwhile, and what
    lands only if it is named, stays as it is there: then the answer is a conflict, whose document lists
    what landed and what did not, each with its `standing`.

    Args:
        sandbox (str):
        body (ApplyWish): What is to land.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AppliedChanges | ProblemReport | ProblemWithAppliedChanges
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
    body: ApplyWish,
) -> Response[AppliedChanges | ProblemReport | ProblemWithAppliedChanges]:
    """Lands what a copy-on-write sandbox changed in the real workspace.

     All that can land does, or with an error nothing. What changed in the workspace meanwhile, and what
    lands only if it is named, stays as it is there: then the answer is a conflict, whose document lists
    what landed and what did not, each with its `standing`.

    Args:
        sandbox (str):
        body (ApplyWish): What is to land.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[AppliedChanges | ProblemReport | ProblemWithAppliedChanges]
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
    body: ApplyWish,
) -> AppliedChanges | ProblemReport | ProblemWithAppliedChanges | None:
    """Lands what a copy-on-write sandbox changed in the real workspace.

     All that can land does, or with an error nothing. What changed in the workspace meanwhile, and what
    lands only if it is named, stays as it is there: then the answer is a conflict, whose document lists
    what landed and what did not, each with its `standing`.

    Args:
        sandbox (str):
        body (ApplyWish): What is to land.

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        AppliedChanges | ProblemReport | ProblemWithAppliedChanges
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            client=client,
            body=body,
        )
    ).parsed
