from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from ...client import AuthenticatedClient, Client
from ...models.problem_report import ProblemReport
from ...models.told_type_0 import ToldType0
from ...models.told_type_1 import ToldType1
from ...models.told_type_2 import ToldType2
from ...models.told_type_3 import ToldType3
from ...models.told_type_4 import ToldType4
from ...models.told_type_5 import ToldType5
from ...models.told_type_6 import ToldType6
from ...models.told_type_7 import ToldType7
from ...models.told_type_8 import ToldType8
from ...types import UNSET, Response, Unset


def _get_kwargs(
    sandbox: str,
    shell: str,
    *,
    from_: int | Unset = UNSET,
) -> dict[str, Any]:

    params: dict[str, Any] = {}

    params["from"] = from_

    params = {k: v for k, v in params.items() if v is not UNSET and v is not None}

    _kwargs: dict[str, Any] = {
        "method": "get",
        "url": "/v1/sandboxes/{sandbox}/shells/{shell}/attach".format(
            sandbox=quote(str(sandbox), safe=""),
            shell=quote(str(shell), safe=""),
        ),
        "params": params,
    }

    return _kwargs


def _parse_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> (
    ProblemReport
    | ToldType0
    | ToldType1
    | ToldType2
    | ToldType3
    | ToldType4
    | ToldType5
    | ToldType6
    | ToldType7
    | ToldType8
):
    if response.status_code == 101:

        def _parse_response_101(
            data: object,
        ) -> (
            ToldType0
            | ToldType1
            | ToldType2
            | ToldType3
            | ToldType4
            | ToldType5
            | ToldType6
            | ToldType7
            | ToldType8
        ):
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_told_type_0 = ToldType0.from_dict(data)

                return componentsschemas_told_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_told_type_1 = ToldType1.from_dict(data)

                return componentsschemas_told_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_told_type_2 = ToldType2.from_dict(data)

                return componentsschemas_told_type_2
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_told_type_3 = ToldType3.from_dict(data)

                return componentsschemas_told_type_3
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_told_type_4 = ToldType4.from_dict(data)

                return componentsschemas_told_type_4
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_told_type_5 = ToldType5.from_dict(data)

                return componentsschemas_told_type_5
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_told_type_6 = ToldType6.from_dict(data)

                return componentsschemas_told_type_6
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_told_type_7 = ToldType7.from_dict(data)

                return componentsschemas_told_type_7
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            componentsschemas_told_type_8 = ToldType8.from_dict(data)

            return componentsschemas_told_type_8

        response_101 = _parse_response_101(response.json())

        return response_101

    if response.status_code == 426:
        response_426 = ProblemReport.from_dict(response.json())

        return response_426

    response_default = ProblemReport.from_dict(response.json())

    return response_default


def _build_response(
    *, client: AuthenticatedClient | Client, response: httpx.Response
) -> Response[
    ProblemReport
    | ToldType0
    | ToldType1
    | ToldType2
    | ToldType3
    | ToldType4
    | ToldType5
    | ToldType6
    | ToldType7
    | ToldType8
]:
    return Response(
        status_code=HTTPStatus(response.status_code),
        content=response.content,
        headers=response.headers,
        parsed=_parse_response(client=client, response=response),
    )


def sync_detailed(
    sandbox: str,
    shell: str,
    *,
    client: AuthenticatedClient | Client,
    from_: int | Unset = UNSET,
) -> Response[
    ProblemReport
    | ToldType0
    | ToldType1
    | ToldType2
    | ToldType3
    | ToldType4
    | ToldType5
    | ToldType6
    | ToldType7
    | ToldType8
]:
    """Talks to a shell that is open, over a WebSocket.

     Output comes as binary messages that say their place; whoever comes back gives that of the next byte
    as
    `from`. See Asked and Told for the others.

    Args:
        sandbox (str):
        shell (str):
        from_ (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | ToldType0 | ToldType1 | ToldType2 | ToldType3 | ToldType4 | ToldType5 | ToldType6 | ToldType7 | ToldType8]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        shell=shell,
        from_=from_,
    )

    response = client.get_httpx_client().request(
        **kwargs,
    )

    return _build_response(client=client, response=response)


def sync(
    sandbox: str,
    shell: str,
    *,
    client: AuthenticatedClient | Client,
    from_: int | Unset = UNSET,
) -> (
    ProblemReport
    | ToldType0
    | ToldType1
    | ToldType2
    | ToldType3
    | ToldType4
    | ToldType5
    | ToldType6
    | ToldType7
    | ToldType8
    | None
):
    """Talks to a shell that is open, over a WebSocket.

     Output comes as binary messages that say their place; whoever comes back gives that of the next byte
    as
    `from`. See Asked and Told for the others.

    Args:
        sandbox (str):
        shell (str):
        from_ (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | ToldType0 | ToldType1 | ToldType2 | ToldType3 | ToldType4 | ToldType5 | ToldType6 | ToldType7 | ToldType8
    """

    return sync_detailed(
        sandbox=sandbox,
        shell=shell,
        client=client,
        from_=from_,
    ).parsed


async def asyncio_detailed(
    sandbox: str,
    shell: str,
    *,
    client: AuthenticatedClient | Client,
    from_: int | Unset = UNSET,
) -> Response[
    ProblemReport
    | ToldType0
    | ToldType1
    | ToldType2
    | ToldType3
    | ToldType4
    | ToldType5
    | ToldType6
    | ToldType7
    | ToldType8
]:
    """Talks to a shell that is open, over a WebSocket.

     Output comes as binary messages that say their place; whoever comes back gives that of the next byte
    as
    `from`. See Asked and Told for the others.

    Args:
        sandbox (str):
        shell (str):
        from_ (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        Response[ProblemReport | ToldType0 | ToldType1 | ToldType2 | ToldType3 | ToldType4 | ToldType5 | ToldType6 | ToldType7 | ToldType8]
    """

    kwargs = _get_kwargs(
        sandbox=sandbox,
        shell=shell,
        from_=from_,
    )

    response = await client.get_async_httpx_client().request(**kwargs)

    return _build_response(client=client, response=response)


async def asyncio(
    sandbox: str,
    shell: str,
    *,
    client: AuthenticatedClient | Client,
    from_: int | Unset = UNSET,
) -> (
    ProblemReport
    | ToldType0
    | ToldType1
    | ToldType2
    | ToldType3
    | ToldType4
    | ToldType5
    | ToldType6
    | ToldType7
    | ToldType8
    | None
):
    """Talks to a shell that is open, over a WebSocket.

     Output comes as binary messages that say their place; whoever comes back gives that of the next byte
    as
    `from`. See Asked and Told for the others.

    Args:
        sandbox (str):
        shell (str):
        from_ (int | Unset):

    Raises:
        errors.UnexpectedStatus: If the server returns an undocumented status code and Client.raise_on_unexpected_status is True.
        httpx.TimeoutException: If the request takes longer than Client.timeout.

    Returns:
        ProblemReport | ToldType0 | ToldType1 | ToldType2 | ToldType3 | ToldType4 | ToldType5 | ToldType6 | ToldType7 | ToldType8
    """

    return (
        await asyncio_detailed(
            sandbox=sandbox,
            shell=shell,
            client=client,
            from_=from_,
        )
    ).parsed
