from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.profile_name import ProfileName
from ..models.pull_name import PullName
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.limits_wish import LimitsWish
    from ..models.spec_wish_env import SpecWishEnv


T = TypeVar("T", bound="SpecWish")


@_attrs_define
class SpecWish:
    """What a sandbox may do, as a request wants it. What is not said is as the operator decided.

    Attributes:
        copy_on_write (bool | Unset): Whether what is written to that directory lands in a layer beside it. Default:
            False.
        deny_egress (list[str] | Unset): What it may not reach even though it is allowed, beside what the operator
            denies.
        egress (list[str] | None | Unset): What it may reach at first, as `HOST[:PORT]`: each within what the operator
            allows. What the operator
            allows, where it is not said; an empty list is no way out.
        env (SpecWishEnv | Unset): Variables for every command.
        image (None | str | Unset): The image that it lies on in place of the host's files, one of those that the
            operator allows, word
            for word.
        limits (LimitsWish | Unset): How much a sandbox may use.
        profile (None | ProfileName | Unset): What it may do.
        pull (None | PullName | Unset): When a registry is asked for that image. As the operator decided where it is not
            said.
        secrets (list[str] | Unset): Secrets of the caller that are put in toward one host each, as in
            `TOKEN@api.example`: by a key with
            the scope `secrets`, toward hosts that the operator allows. Inside is a placeholder.
        workspace (None | str | Unset): The directory of the host that it works in, one of those that the operator
            allows. Without one
            it has an empty directory of its own.
    """

    copy_on_write: bool | Unset = False
    deny_egress: list[str] | Unset = UNSET
    egress: list[str] | None | Unset = UNSET
    env: SpecWishEnv | Unset = UNSET
    image: None | str | Unset = UNSET
    limits: LimitsWish | Unset = UNSET
    profile: None | ProfileName | Unset = UNSET
    pull: None | PullName | Unset = UNSET
    secrets: list[str] | Unset = UNSET
    workspace: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        copy_on_write = self.copy_on_write

        deny_egress: list[str] | Unset = UNSET
        if not isinstance(self.deny_egress, Unset):
            deny_egress = self.deny_egress

        egress: list[str] | None | Unset
        if isinstance(self.egress, Unset):
            egress = UNSET
        elif isinstance(self.egress, list):
            egress = self.egress

        else:
            egress = self.egress

        env: dict[str, Any] | Unset = UNSET
        if not isinstance(self.env, Unset):
            env = self.env.to_dict()

        image: None | str | Unset
        if isinstance(self.image, Unset):
            image = UNSET
        else:
            image = self.image

        limits: dict[str, Any] | Unset = UNSET
        if not isinstance(self.limits, Unset):
            limits = self.limits.to_dict()

        profile: None | str | Unset
        if isinstance(self.profile, Unset):
            profile = UNSET
        elif isinstance(self.profile, ProfileName):
            profile = self.profile.value
        else:
            profile = self.profile

        pull: None | str | Unset
        if isinstance(self.pull, Unset):
            pull = UNSET
        elif isinstance(self.pull, PullName):
            pull = self.pull.value
        else:
            pull = self.pull

        secrets: list[str] | Unset = UNSET
        if not isinstance(self.secrets, Unset):
            secrets = self.secrets

        workspace: None | str | Unset
        if isinstance(self.workspace, Unset):
            workspace = UNSET
        else:
            workspace = self.workspace

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if copy_on_write is not UNSET:
            field_dict["copy_on_write"] = copy_on_write
        if deny_egress is not UNSET:
            field_dict["deny_egress"] = deny_egress
        if egress is not UNSET:
            field_dict["egress"] = egress
        if env is not UNSET:
            field_dict["env"] = env
        if image is not UNSET:
            field_dict["image"] = image
        if limits is not UNSET:
            field_dict["limits"] = limits
        if profile is not UNSET:
            field_dict["profile"] = profile
        if pull is not UNSET:
            field_dict["pull"] = pull
        if secrets is not UNSET:
            field_dict["secrets"] = secrets
        if workspace is not UNSET:
            field_dict["workspace"] = workspace

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.limits_wish import LimitsWish  # noqa: PLC0415
        from ..models.spec_wish_env import SpecWishEnv  # noqa: PLC0415

        d = dict(src_dict)
        copy_on_write = d.pop("copy_on_write", UNSET)

        deny_egress = cast(list[str], d.pop("deny_egress", UNSET))

        def _parse_egress(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                egress_type_0 = cast(list[str], data)

                return egress_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        egress = _parse_egress(d.pop("egress", UNSET))

        _env = d.pop("env", UNSET)
        env: SpecWishEnv | Unset
        if isinstance(_env, Unset):
            env = UNSET
        else:
            env = SpecWishEnv.from_dict(_env)

        def _parse_image(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        image = _parse_image(d.pop("image", UNSET))

        _limits = d.pop("limits", UNSET)
        limits: LimitsWish | Unset
        if isinstance(_limits, Unset):
            limits = UNSET
        else:
            limits = LimitsWish.from_dict(_limits)

        def _parse_profile(data: object) -> None | ProfileName | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                profile_type_0 = ProfileName(data)

                return profile_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ProfileName | Unset, data)

        profile = _parse_profile(d.pop("profile", UNSET))

        def _parse_pull(data: object) -> None | PullName | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                pull_type_0 = PullName(data)

                return pull_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PullName | Unset, data)

        pull = _parse_pull(d.pop("pull", UNSET))

        secrets = cast(list[str], d.pop("secrets", UNSET))

        def _parse_workspace(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        workspace = _parse_workspace(d.pop("workspace", UNSET))

        spec_wish = cls(
            copy_on_write=copy_on_write,
            deny_egress=deny_egress,
            egress=egress,
            env=env,
            image=image,
            limits=limits,
            profile=profile,
            pull=pull,
            secrets=secrets,
            workspace=workspace,
        )

        return spec_wish
