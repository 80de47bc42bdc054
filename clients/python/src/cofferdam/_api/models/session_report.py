from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.init_state import InitState
from ..models.layer_tier import LayerTier
from ..models.manifest_state import ManifestState
from ..models.phase import Phase
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.enforced import Enforced
    from ..models.init_failure import InitFailure
    from ..models.secret_alarm import SecretAlarm
    from ..models.session_report_labels import SessionReportLabels


T = TypeVar("T", bound="SessionReport")


@_attrs_define
class SessionReport:
    """A session. Format 1.

    Attributes:
        backend (str): The backend that keeps it.
        created_ms (int): When it was made, in milliseconds since 1970.
        id (str): Its id.
        incarnation (int): Which of its sandboxes is the present one, from 1.
        init (InitState): How far a session is prepared.

            - `done`: All commands of the list succeeded.
            - `pending`: Some did not run yet.
            - `failed`: One failed; the next ensure tries it again.
        labels (SessionReportLabels): What it is found by.
        phase (Phase): The state of a session. Every door shows the same.

            - `creating`: Its sandbox is being made, or was when somebody died.
            - `running`: It takes commands.
            - `pausing`: A pause was asked for and not yet confirmed.
            - `paused`: Everything in it stands still.
            - `resuming`: A resume was asked for and not yet confirmed.
            - `lost`: Its sandbox died. Home directory and workspace are kept.
            - `stopping`: Its sandbox is being ended; the session is kept.
            - `stopped`: Its sandbox was ended; the session is kept.
            - `failed`: Its sandbox could not be made.
            - `deleting`: All of it is being removed. Nothing leads back.
        profile (str): What it may do, by the name of a profile.
        updated_ms (int): When it was written last, in milliseconds since 1970.
        alarm (None | SecretAlarm | Unset): Why nothing runs in it until somebody resumes it: a secret that was used
            toward another host. Stays
            over a stop, and over the loss of its sandbox.
        cleanup_failed (None | str | Unset): What could not be removed and is tried again at every start.
        copy_on_write (bool | Unset): Whether what is written to the workspace lands in a layer beside that directory.
            Default: False.
        enforced (Enforced | None | Unset): How far its policy holds, while there is a sandbox.
        idle_pause_ms (int | None | Unset): It is paused after it was not in use for so long, in milliseconds.
        image (None | str | Unset): The image that it lies on, as it was named; null on the host's root.
        image_id (None | str | Unset): What tells that image from all others.
        init_error (InitFailure | None | Unset): What failed last while it was prepared.
        layer_left_out (list[str] | Unset): What of the workspace is not in the layer, or not as of one moment, each
            with the reason: the
            first of them.
        lease_until_ms (int | None | Unset): It is removed at this moment, in milliseconds since 1970.
        manifest (ManifestState | None | Unset): How far its manifest is carried out; absent where it has none.
        name (None | str | Unset): Its name, if it has one.
        owner (str | Unset): Whose it is: the name of a key; absent where it is the local user's.
        secrets (list[str] | Unset): The secrets that it is granted, as they are written: by name, host and place.
        tier (LayerTier | None | Unset): What makes such a layer; null where there is none.
        tier_why (None | str | Unset): Why that is no overlay; null where it is one, or a copy was asked for, or there
            is no layer.
        unreachable (None | str | Unset): Why its sandbox could not be asked how it stands; absent where it answered.
        workspace (None | str | Unset): The host's directory that it works in; null for one of its own.
        workspace_inside (None | str | Unset): Where the workspace is inside, while there is a sandbox.
    """

    backend: str
    created_ms: int
    id: str
    incarnation: int
    init: InitState
    labels: SessionReportLabels
    phase: Phase
    profile: str
    updated_ms: int
    alarm: None | SecretAlarm | Unset = UNSET
    cleanup_failed: None | str | Unset = UNSET
    copy_on_write: bool | Unset = False
    enforced: Enforced | None | Unset = UNSET
    idle_pause_ms: int | None | Unset = UNSET
    image: None | str | Unset = UNSET
    image_id: None | str | Unset = UNSET
    init_error: InitFailure | None | Unset = UNSET
    layer_left_out: list[str] | Unset = UNSET
    lease_until_ms: int | None | Unset = UNSET
    manifest: ManifestState | None | Unset = UNSET
    name: None | str | Unset = UNSET
    owner: str | Unset = UNSET
    secrets: list[str] | Unset = UNSET
    tier: LayerTier | None | Unset = UNSET
    tier_why: None | str | Unset = UNSET
    unreachable: None | str | Unset = UNSET
    workspace: None | str | Unset = UNSET
    workspace_inside: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.enforced import Enforced  # noqa: PLC0415
        from ..models.init_failure import InitFailure  # noqa: PLC0415
        from ..models.secret_alarm import SecretAlarm  # noqa: PLC0415

        backend = self.backend

        created_ms = self.created_ms

        id = self.id

        incarnation = self.incarnation

        init = self.init.value

        labels = self.labels.to_dict()

        phase = self.phase.value

        profile = self.profile

        updated_ms = self.updated_ms

        alarm: dict[str, Any] | None | Unset
        if isinstance(self.alarm, Unset):
            alarm = UNSET
        elif isinstance(self.alarm, SecretAlarm):
            alarm = self.alarm.to_dict()
        else:
            alarm = self.alarm

        cleanup_failed: None | str | Unset
        if isinstance(self.cleanup_failed, Unset):
            cleanup_failed = UNSET
        else:
            cleanup_failed = self.cleanup_failed

        copy_on_write = self.copy_on_write

        enforced: dict[str, Any] | None | Unset
        if isinstance(self.enforced, Unset):
            enforced = UNSET
        elif isinstance(self.enforced, Enforced):
            enforced = self.enforced.to_dict()
        else:
            enforced = self.enforced

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

        image_id: None | str | Unset
        if isinstance(self.image_id, Unset):
            image_id = UNSET
        else:
            image_id = self.image_id

        init_error: dict[str, Any] | None | Unset
        if isinstance(self.init_error, Unset):
            init_error = UNSET
        elif isinstance(self.init_error, InitFailure):
            init_error = self.init_error.to_dict()
        else:
            init_error = self.init_error

        layer_left_out: list[str] | Unset = UNSET
        if not isinstance(self.layer_left_out, Unset):
            layer_left_out = self.layer_left_out

        lease_until_ms: int | None | Unset
        if isinstance(self.lease_until_ms, Unset):
            lease_until_ms = UNSET
        else:
            lease_until_ms = self.lease_until_ms

        manifest: None | str | Unset
        if isinstance(self.manifest, Unset):
            manifest = UNSET
        elif isinstance(self.manifest, ManifestState):
            manifest = self.manifest.value
        else:
            manifest = self.manifest

        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        owner = self.owner

        secrets: list[str] | Unset = UNSET
        if not isinstance(self.secrets, Unset):
            secrets = self.secrets

        tier: None | str | Unset
        if isinstance(self.tier, Unset):
            tier = UNSET
        elif isinstance(self.tier, LayerTier):
            tier = self.tier.value
        else:
            tier = self.tier

        tier_why: None | str | Unset
        if isinstance(self.tier_why, Unset):
            tier_why = UNSET
        else:
            tier_why = self.tier_why

        unreachable: None | str | Unset
        if isinstance(self.unreachable, Unset):
            unreachable = UNSET
        else:
            unreachable = self.unreachable

        workspace: None | str | Unset
        if isinstance(self.workspace, Unset):
            workspace = UNSET
        else:
            workspace = self.workspace

        workspace_inside: None | str | Unset
        if isinstance(self.workspace_inside, Unset):
            workspace_inside = UNSET
        else:
            workspace_inside = self.workspace_inside

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "backend": backend,
                "created_ms": created_ms,
                "id": id,
                "incarnation": incarnation,
                "init": init,
                "labels": labels,
                "phase": phase,
                "profile": profile,
                "updated_ms": updated_ms,
            }
        )
        if alarm is not UNSET:
            field_dict["alarm"] = alarm
        if cleanup_failed is not UNSET:
            field_dict["cleanup_failed"] = cleanup_failed
        if copy_on_write is not UNSET:
            field_dict["copy_on_write"] = copy_on_write
        if enforced is not UNSET:
            field_dict["enforced"] = enforced
        if idle_pause_ms is not UNSET:
            field_dict["idle_pause_ms"] = idle_pause_ms
        if image is not UNSET:
            field_dict["image"] = image
        if image_id is not UNSET:
            field_dict["image_id"] = image_id
        if init_error is not UNSET:
            field_dict["init_error"] = init_error
        if layer_left_out is not UNSET:
            field_dict["layer_left_out"] = layer_left_out
        if lease_until_ms is not UNSET:
            field_dict["lease_until_ms"] = lease_until_ms
        if manifest is not UNSET:
            field_dict["manifest"] = manifest
        if name is not UNSET:
            field_dict["name"] = name
        if owner is not UNSET:
            field_dict["owner"] = owner
        if secrets is not UNSET:
            field_dict["secrets"] = secrets
        if tier is not UNSET:
            field_dict["tier"] = tier
        if tier_why is not UNSET:
            field_dict["tier_why"] = tier_why
        if unreachable is not UNSET:
            field_dict["unreachable"] = unreachable
        if workspace is not UNSET:
            field_dict["workspace"] = workspace
        if workspace_inside is not UNSET:
            field_dict["workspace_inside"] = workspace_inside

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.enforced import Enforced  # noqa: PLC0415
        from ..models.init_failure import InitFailure  # noqa: PLC0415
        from ..models.secret_alarm import SecretAlarm  # noqa: PLC0415
        from ..models.session_report_labels import SessionReportLabels  # noqa: PLC0415

        d = dict(src_dict)
        backend = d.pop("backend")

        created_ms = d.pop("created_ms")

        id = d.pop("id")

        incarnation = d.pop("incarnation")

        init = InitState(d.pop("init"))

        labels = SessionReportLabels.from_dict(d.pop("labels"))

        phase = Phase(d.pop("phase"))

        profile = d.pop("profile")

        updated_ms = d.pop("updated_ms")

        def _parse_alarm(data: object) -> None | SecretAlarm | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                alarm_type_0 = SecretAlarm.from_dict(data)

                return alarm_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SecretAlarm | Unset, data)

        alarm = _parse_alarm(d.pop("alarm", UNSET))

        def _parse_cleanup_failed(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        cleanup_failed = _parse_cleanup_failed(d.pop("cleanup_failed", UNSET))

        copy_on_write = d.pop("copy_on_write", UNSET)

        def _parse_enforced(data: object) -> Enforced | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                enforced_type_0 = Enforced.from_dict(data)

                return enforced_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Enforced | None | Unset, data)

        enforced = _parse_enforced(d.pop("enforced", UNSET))

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

        def _parse_image_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        image_id = _parse_image_id(d.pop("image_id", UNSET))

        def _parse_init_error(data: object) -> InitFailure | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                init_error_type_0 = InitFailure.from_dict(data)

                return init_error_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(InitFailure | None | Unset, data)

        init_error = _parse_init_error(d.pop("init_error", UNSET))

        layer_left_out = cast(list[str], d.pop("layer_left_out", UNSET))

        def _parse_lease_until_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        lease_until_ms = _parse_lease_until_ms(d.pop("lease_until_ms", UNSET))

        def _parse_manifest(data: object) -> ManifestState | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                manifest_type_0 = ManifestState(data)

                return manifest_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ManifestState | None | Unset, data)

        manifest = _parse_manifest(d.pop("manifest", UNSET))

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

        owner = d.pop("owner", UNSET)

        secrets = cast(list[str], d.pop("secrets", UNSET))

        def _parse_tier(data: object) -> LayerTier | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                tier_type_0 = LayerTier(data)

                return tier_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(LayerTier | None | Unset, data)

        tier = _parse_tier(d.pop("tier", UNSET))

        def _parse_tier_why(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        tier_why = _parse_tier_why(d.pop("tier_why", UNSET))

        def _parse_unreachable(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        unreachable = _parse_unreachable(d.pop("unreachable", UNSET))

        def _parse_workspace(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        workspace = _parse_workspace(d.pop("workspace", UNSET))

        def _parse_workspace_inside(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        workspace_inside = _parse_workspace_inside(d.pop("workspace_inside", UNSET))

        session_report = cls(
            backend=backend,
            created_ms=created_ms,
            id=id,
            incarnation=incarnation,
            init=init,
            labels=labels,
            phase=phase,
            profile=profile,
            updated_ms=updated_ms,
            alarm=alarm,
            cleanup_failed=cleanup_failed,
            copy_on_write=copy_on_write,
            enforced=enforced,
            idle_pause_ms=idle_pause_ms,
            image=image,
            image_id=image_id,
            init_error=init_error,
            layer_left_out=layer_left_out,
            lease_until_ms=lease_until_ms,
            manifest=manifest,
            name=name,
            owner=owner,
            secrets=secrets,
            tier=tier,
            tier_why=tier_why,
            unreachable=unreachable,
            workspace=workspace,
            workspace_inside=workspace_inside,
        )

        session_report.additional_properties = d
        return session_report

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
