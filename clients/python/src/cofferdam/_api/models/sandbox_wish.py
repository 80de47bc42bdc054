from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.profile_name import ProfileName
from ..models.pull_name import PullName
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.limits_wish import LimitsWish
    from ..models.manifest import Manifest
    from ..models.sandbox_wish_env import SandboxWishEnv
    from ..models.sandbox_wish_labels_type_0 import SandboxWishLabelsType0


T = TypeVar("T", bound="SandboxWish")


@_attrs_define
class SandboxWish:
    """A sandbox as a request wants it. What is not said is as the operator decided; a sandbox that is there
    already keeps what of labels, `init`, times and checkpoints is not said.

        Attributes:
            copy_on_write (bool | Unset): Whether what is written to that directory lands in a layer beside it. Default:
                False.
            deny_egress (list[str] | Unset): What it may not reach even though it is allowed, beside what the operator
                denies.
            egress (list[str] | None | Unset): What it may reach at first, as `HOST[:PORT]`: each within what the operator
                allows. What the operator
                allows, where it is not said; an empty list is no way out.
            env (SandboxWishEnv | Unset): Variables for every command.
            idle_pause_ms (int | None | Unset): It is paused after it was not in use for so long, in milliseconds.
            image (None | str | Unset): The image that it lies on in place of the host's files, one of those that the
                operator allows, word
                for word.
            init (list[str] | None | Unset): Lines of shell that prepare it, each list once.
            labels (None | SandboxWishLabelsType0 | Unset): What it is found by.
            limits (LimitsWish | Unset): How much a sandbox may use.
            manifest (Manifest | None | Unset): What its workspace is to hold before the lines of `init`: files with their
                bytes, directories and links.
                What names something of a host, as `from`, `url` and mounts do, is refused. It needs a `workspace`.
            name (None | str | Unset): Its name, unique among yours: 1 to 64 letters, digits, `-`, `_` or `.`.
            no_checkpoints (bool | None | Unset): Keeps no point of the history after each command of a copy-on-write
                sandbox.
            profile (None | ProfileName | Unset): What it may do.
            pull (None | PullName | Unset): When a registry is asked for that image. As the operator decided where it is not
                said.
            secrets (list[str] | Unset): Secrets of the caller that are put in toward one host each, as in
                `TOKEN@api.example`: by a key with
                the scope `secrets`, toward hosts that the operator allows. Inside is a placeholder.
            stay_awake (bool | Unset): It is never paused by itself. Default: False.
            ttl_ms (int | None | Unset): It is removed after this long, in milliseconds; at least 1000.
            workspace (None | str | Unset): The directory of the host that it works in, one of those that the operator
                allows. Without one
                it has an empty directory of its own.
    """

    copy_on_write: bool | Unset = False
    deny_egress: list[str] | Unset = UNSET
    egress: list[str] | None | Unset = UNSET
    env: SandboxWishEnv | Unset = UNSET
    idle_pause_ms: int | None | Unset = UNSET
    image: None | str | Unset = UNSET
    init: list[str] | None | Unset = UNSET
    labels: None | SandboxWishLabelsType0 | Unset = UNSET
    limits: LimitsWish | Unset = UNSET
    manifest: Manifest | None | Unset = UNSET
    name: None | str | Unset = UNSET
    no_checkpoints: bool | None | Unset = UNSET
    profile: None | ProfileName | Unset = UNSET
    pull: None | PullName | Unset = UNSET
    secrets: list[str] | Unset = UNSET
    stay_awake: bool | Unset = False
    ttl_ms: int | None | Unset = UNSET
    workspace: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.manifest import Manifest  # noqa: PLC0415
        from ..models.sandbox_wish_labels_type_0 import SandboxWishLabelsType0  # noqa: PLC0415

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

        idle_pause_ms: int | None | Unset
        if isinstance(self.idle_pause_ms, Unset):
            idle_pause_ms = UNSET
        else:
            idle_pause_ms = self.idle_pause_ms

        image: None | str | Unset
        if isinstance(self.image, Unset):
            image = UNSET
        else:
            image = self.image

        init: list[str] | None | Unset
        if isinstance(self.init, Unset):
            init = UNSET
        elif isinstance(self.init, list):
            init = self.init

        else:
            init = self.init

        labels: dict[str, Any] | None | Unset
        if isinstance(self.labels, Unset):
            labels = UNSET
        elif isinstance(self.labels, SandboxWishLabelsType0):
            labels = self.labels.to_dict()
        else:
            labels = self.labels

        limits: dict[str, Any] | Unset = UNSET
        if not isinstance(self.limits, Unset):
            limits = self.limits.to_dict()

        manifest: dict[str, Any] | None | Unset
        if isinstance(self.manifest, Unset):
            manifest = UNSET
        elif isinstance(self.manifest, Manifest):
            manifest = self.manifest.to_dict()
        else:
            manifest = self.manifest

        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        no_checkpoints: bool | None | Unset
        if isinstance(self.no_checkpoints, Unset):
            no_checkpoints = UNSET
        else:
            no_checkpoints = self.no_checkpoints

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

        stay_awake = self.stay_awake

        ttl_ms: int | None | Unset
        if isinstance(self.ttl_ms, Unset):
            ttl_ms = UNSET
        else:
            ttl_ms = self.ttl_ms

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
        if idle_pause_ms is not UNSET:
            field_dict["idle_pause_ms"] = idle_pause_ms
        if image is not UNSET:
            field_dict["image"] = image
        if init is not UNSET:
            field_dict["init"] = init
        if labels is not UNSET:
            field_dict["labels"] = labels
        if limits is not UNSET:
            field_dict["limits"] = limits
        if manifest is not UNSET:
            field_dict["manifest"] = manifest
        if name is not UNSET:
            field_dict["name"] = name
        if no_checkpoints is not UNSET:
            field_dict["no_checkpoints"] = no_checkpoints
        if profile is not UNSET:
            field_dict["profile"] = profile
        if pull is not UNSET:
            field_dict["pull"] = pull
        if secrets is not UNSET:
            field_dict["secrets"] = secrets
        if stay_awake is not UNSET:
            field_dict["stay_awake"] = stay_awake
        if ttl_ms is not UNSET:
            field_dict["ttl_ms"] = ttl_ms
        if workspace is not UNSET:
            field_dict["workspace"] = workspace

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.limits_wish import LimitsWish  # noqa: PLC0415
        from ..models.manifest import Manifest  # noqa: PLC0415
        from ..models.sandbox_wish_env import SandboxWishEnv  # noqa: PLC0415
        from ..models.sandbox_wish_labels_type_0 import SandboxWishLabelsType0  # noqa: PLC0415

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
        env: SandboxWishEnv | Unset
        if isinstance(_env, Unset):
            env = UNSET
        else:
            env = SandboxWishEnv.from_dict(_env)

        def _parse_idle_pause_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        idle_pause_ms = _parse_idle_pause_ms(d.pop("idle_pause_ms", UNSET))

        def _parse_image(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        image = _parse_image(d.pop("image", UNSET))

        def _parse_init(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                init_type_0 = cast(list[str], data)

                return init_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        init = _parse_init(d.pop("init", UNSET))

        def _parse_labels(data: object) -> None | SandboxWishLabelsType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                labels_type_0 = SandboxWishLabelsType0.from_dict(data)

                return labels_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SandboxWishLabelsType0 | Unset, data)

        labels = _parse_labels(d.pop("labels", UNSET))

        _limits = d.pop("limits", UNSET)
        limits: LimitsWish | Unset
        if isinstance(_limits, Unset):
            limits = UNSET
        else:
            limits = LimitsWish.from_dict(_limits)

        def _parse_manifest(data: object) -> Manifest | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                manifest_type_0 = Manifest.from_dict(data)

                return manifest_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Manifest | None | Unset, data)

        manifest = _parse_manifest(d.pop("manifest", UNSET))

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

        def _parse_no_checkpoints(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        no_checkpoints = _parse_no_checkpoints(d.pop("no_checkpoints", UNSET))

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

        stay_awake = d.pop("stay_awake", UNSET)

        def _parse_ttl_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        ttl_ms = _parse_ttl_ms(d.pop("ttl_ms", UNSET))

        def _parse_workspace(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        workspace = _parse_workspace(d.pop("workspace", UNSET))

        sandbox_wish = cls(
            copy_on_write=copy_on_write,
            deny_egress=deny_egress,
            egress=egress,
            env=env,
            idle_pause_ms=idle_pause_ms,
            image=image,
            init=init,
            labels=labels,
            limits=limits,
            manifest=manifest,
            name=name,
            no_checkpoints=no_checkpoints,
            profile=profile,
            pull=pull,
            secrets=secrets,
            stay_awake=stay_awake,
            ttl_ms=ttl_ms,
            workspace=workspace,
        )

        return sandbox_wish
