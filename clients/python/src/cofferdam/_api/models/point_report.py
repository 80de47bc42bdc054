from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.point_kind import PointKind
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.point_command import PointCommand
    from ..models.point_effects import PointEffects
    from ..models.point_import import PointImport
    from ..models.point_origin import PointOrigin


T = TypeVar("T", bound="PointReport")


@_attrs_define
class PointReport:
    """A point of the history of a session. Format 1.

    Attributes:
        bytes_ (int): Bytes of content in the layer.
        effects (PointEffects): What changed between two points.
        ended (list[str]): Other commands that ended since the point before and have no point of their own.
        files (int): Files and directories in the layer.
        kind (PointKind): What a point is the state after.

            - `start`: The making of the session.
            - `command`: A command.
            - `between`: Something that is no command that somebody waited for: changed files, detached commands.
            - `snapshot`: Nothing: somebody wanted to keep what was there.
        looked_before (bool): Whether somebody looked before the command began, so that nothing from before is in here.
        made_ms (int): When it was taken, in milliseconds since 1970.
        point (int): Its number in its session, from 0.
        shared_with (list[str]): Commands that ran meanwhile: what changed may be theirs.
        command (None | PointCommand | Unset): The command whose end it is.
        from_ (None | PointOrigin | Unset): For the beginning of a fork: the session that it was forked from, and the
            point of that.
        imported (None | PointImport | Unset): For a snapshot that came from a file: what that said.
        label (None | str | Unset): What somebody called it.
        not_kept (None | str | Unset): Why nobody can go to it. Its state was not kept.
        parent (int | None | Unset): The point that the session stood at before. It may have been dropped since.
        undone (bool | Unset): Whether the session went back behind it, and stands elsewhere. Default: False.
    """

    bytes_: int
    effects: PointEffects
    ended: list[str]
    files: int
    kind: PointKind
    looked_before: bool
    made_ms: int
    point: int
    shared_with: list[str]
    command: None | PointCommand | Unset = UNSET
    from_: None | PointOrigin | Unset = UNSET
    imported: None | PointImport | Unset = UNSET
    label: None | str | Unset = UNSET
    not_kept: None | str | Unset = UNSET
    parent: int | None | Unset = UNSET
    undone: bool | Unset = False
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.point_command import PointCommand  # noqa: PLC0415
        from ..models.point_import import PointImport  # noqa: PLC0415
        from ..models.point_origin import PointOrigin  # noqa: PLC0415

        bytes_ = self.bytes_

        effects = self.effects.to_dict()

        ended = self.ended

        files = self.files

        kind = self.kind.value

        looked_before = self.looked_before

        made_ms = self.made_ms

        point = self.point

        shared_with = self.shared_with

        command: dict[str, Any] | None | Unset
        if isinstance(self.command, Unset):
            command = UNSET
        elif isinstance(self.command, PointCommand):
            command = self.command.to_dict()
        else:
            command = self.command

        from_: dict[str, Any] | None | Unset
        if isinstance(self.from_, Unset):
            from_ = UNSET
        elif isinstance(self.from_, PointOrigin):
            from_ = self.from_.to_dict()
        else:
            from_ = self.from_

        imported: dict[str, Any] | None | Unset
        if isinstance(self.imported, Unset):
            imported = UNSET
        elif isinstance(self.imported, PointImport):
            imported = self.imported.to_dict()
        else:
            imported = self.imported

        label: None | str | Unset
        if isinstance(self.label, Unset):
            label = UNSET
        else:
            label = self.label

        not_kept: None | str | Unset
        if isinstance(self.not_kept, Unset):
            not_kept = UNSET
        else:
            not_kept = self.not_kept

        parent: int | None | Unset
        if isinstance(self.parent, Unset):
            parent = UNSET
        else:
            parent = self.parent

        undone = self.undone

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "bytes": bytes_,
                "effects": effects,
                "ended": ended,
                "files": files,
                "kind": kind,
                "looked_before": looked_before,
                "made_ms": made_ms,
                "point": point,
                "shared_with": shared_with,
            }
        )
        if command is not UNSET:
            field_dict["command"] = command
        if from_ is not UNSET:
            field_dict["from"] = from_
        if imported is not UNSET:
            field_dict["imported"] = imported
        if label is not UNSET:
            field_dict["label"] = label
        if not_kept is not UNSET:
            field_dict["not_kept"] = not_kept
        if parent is not UNSET:
            field_dict["parent"] = parent
        if undone is not UNSET:
            field_dict["undone"] = undone

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.point_command import PointCommand  # noqa: PLC0415
        from ..models.point_effects import PointEffects  # noqa: PLC0415
        from ..models.point_import import PointImport  # noqa: PLC0415
        from ..models.point_origin import PointOrigin  # noqa: PLC0415

        d = dict(src_dict)
        bytes_ = d.pop("bytes")

        effects = PointEffects.from_dict(d.pop("effects"))

        ended = cast(list[str], d.pop("ended"))

        files = d.pop("files")

        kind = PointKind(d.pop("kind"))

        looked_before = d.pop("looked_before")

        made_ms = d.pop("made_ms")

        point = d.pop("point")

        shared_with = cast(list[str], d.pop("shared_with"))

        def _parse_command(data: object) -> None | PointCommand | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                command_type_0 = PointCommand.from_dict(data)

                return command_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PointCommand | Unset, data)

        command = _parse_command(d.pop("command", UNSET))

        def _parse_from_(data: object) -> None | PointOrigin | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                from_type_0 = PointOrigin.from_dict(data)

                return from_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PointOrigin | Unset, data)

        from_ = _parse_from_(d.pop("from", UNSET))

        def _parse_imported(data: object) -> None | PointImport | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                imported_type_0 = PointImport.from_dict(data)

                return imported_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PointImport | Unset, data)

        imported = _parse_imported(d.pop("imported", UNSET))

        def _parse_label(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        label = _parse_label(d.pop("label", UNSET))

        def _parse_not_kept(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        not_kept = _parse_not_kept(d.pop("not_kept", UNSET))

        def _parse_parent(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        parent = _parse_parent(d.pop("parent", UNSET))

        undone = d.pop("undone", UNSET)

        point_report = cls(
            bytes_=bytes_,
            effects=effects,
            ended=ended,
            files=files,
            kind=kind,
            looked_before=looked_before,
            made_ms=made_ms,
            point=point,
            shared_with=shared_with,
            command=command,
            from_=from_,
            imported=imported,
            label=label,
            not_kept=not_kept,
            parent=parent,
            undone=undone,
        )

        point_report.additional_properties = d
        return point_report

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
