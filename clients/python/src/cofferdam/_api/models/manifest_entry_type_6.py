from __future__ import annotations

from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ManifestEntryType6")


@_attrs_define
class ManifestEntryType6:
    """A clone of a git repository, with its `.git`, made by the host's git outside of the sandbox.
    One that this manifest brought before stays as it is; anything else at its path is a conflict.

        Attributes:
            path (str): Where.
            type_ (Literal['git']):
            url (str): `https://`, `ssh://`, or a directory of the host that is a repository; relative to the
                manifest. Without a password: a token has a variable.
            credential_env (None | str | Unset): The variable of the caller that holds a token for the server. The token is
                in nothing that
                is brought or kept.
            credential_user (None | str | Unset): The name of the user that goes with the token; without it `x-access-
                token`.
            depth (int | None | Unset): How many commits of a branch or tag are fetched. Without it all are.
            insecure_loopback (bool | Unset): Lets `http://` be used for an address of this machine.
            ref (None | str | Unset): The branch or tag that is checked out, or the id of a commit in full. Without it what
                the
                repository points to.
    """

    path: str
    type_: Literal["git"]
    url: str
    credential_env: None | str | Unset = UNSET
    credential_user: None | str | Unset = UNSET
    depth: int | None | Unset = UNSET
    insecure_loopback: bool | Unset = UNSET
    ref: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        path = self.path

        type_ = self.type_

        url = self.url

        credential_env: None | str | Unset
        if isinstance(self.credential_env, Unset):
            credential_env = UNSET
        else:
            credential_env = self.credential_env

        credential_user: None | str | Unset
        if isinstance(self.credential_user, Unset):
            credential_user = UNSET
        else:
            credential_user = self.credential_user

        depth: int | None | Unset
        if isinstance(self.depth, Unset):
            depth = UNSET
        else:
            depth = self.depth

        insecure_loopback = self.insecure_loopback

        ref: None | str | Unset
        if isinstance(self.ref, Unset):
            ref = UNSET
        else:
            ref = self.ref

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "path": path,
                "type": type_,
                "url": url,
            }
        )
        if credential_env is not UNSET:
            field_dict["credential_env"] = credential_env
        if credential_user is not UNSET:
            field_dict["credential_user"] = credential_user
        if depth is not UNSET:
            field_dict["depth"] = depth
        if insecure_loopback is not UNSET:
            field_dict["insecure_loopback"] = insecure_loopback
        if ref is not UNSET:
            field_dict["ref"] = ref

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        path = d.pop("path")

        type_ = cast(Literal["git"], d.pop("type"))
        if type_ != "git":
            raise ValueError(f"type must match const 'git', got '{type_}'")

        url = d.pop("url")

        def _parse_credential_env(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        credential_env = _parse_credential_env(d.pop("credential_env", UNSET))

        def _parse_credential_user(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        credential_user = _parse_credential_user(d.pop("credential_user", UNSET))

        def _parse_depth(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        depth = _parse_depth(d.pop("depth", UNSET))

        insecure_loopback = d.pop("insecure_loopback", UNSET)

        def _parse_ref(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        ref = _parse_ref(d.pop("ref", UNSET))

        manifest_entry_type_6 = cls(
            path=path,
            type_=type_,
            url=url,
            credential_env=credential_env,
            credential_user=credential_user,
            depth=depth,
            insecure_loopback=insecure_loopback,
            ref=ref,
        )

        return manifest_entry_type_6
