from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.layer_file import LayerFile


T = TypeVar("T", bound="LayerChange")


@_attrs_define
class LayerChange:
    """A change of a copy-on-write session. Format 1.

    Attributes:
        kind (str): `added`, `modified` or `removed`.
        leads_out (bool): Whether it is a link out of the workspace.
        set_id (bool): Whether it has set-id bits, which do not land.
        standing (str): `lands`; a conflict: `changed`, `gone`, `directory_gone`, `directory_moved`, `not_empty`,
            `mounted`; or held back: `protected`, `special`, `too_large`, `directory`, `another`, `move`;
            `history` between two points.
        version (int): Changes with what the session has there; 0 between two points.
        after (LayerFile | None | Unset): What the session has, or had at the point `to`.
        before (LayerFile | None | Unset): What the workspace has, or the session had at the point `from`.
        lines_added (int | None | Unset): How many lines come, where they were counted.
        lines_removed (int | None | Unset): How many lines go, where they were counted.
        linked_to (None | str | Unset): Another path that is the same file; bytes that are not UTF-8 are replaced.
        moved_from (None | str | Unset): The path of a removed file with this content; bytes that are not UTF-8 are
            replaced.
        path (None | str | Unset): The path in the workspace, where it is UTF-8.
        path_base64 (None | str | Unset): The path in base64, where it is not UTF-8.
        remarks (list[str] | Unset): What a unified diff does not say of it, where its lines were counted or could not
            be.
    """

    kind: str
    leads_out: bool
    set_id: bool
    standing: str
    version: int
    after: LayerFile | None | Unset = UNSET
    before: LayerFile | None | Unset = UNSET
    lines_added: int | None | Unset = UNSET
    lines_removed: int | None | Unset = UNSET
    linked_to: None | str | Unset = UNSET
    moved_from: None | str | Unset = UNSET
    path: None | str | Unset = UNSET
    path_base64: None | str | Unset = UNSET
    remarks: list[str] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.layer_file import LayerFile  # noqa: PLC0415

        kind = self.kind

        leads_out = self.leads_out

        set_id = self.set_id

        standing = self.standing

        version = self.version

        after: dict[str, Any] | None | Unset
        if isinstance(self.after, Unset):
            after = UNSET
        elif isinstance(self.after, LayerFile):
            after = self.after.to_dict()
        else:
            after = self.after

        before: dict[str, Any] | None | Unset
        if isinstance(self.before, Unset):
            before = UNSET
        elif isinstance(self.before, LayerFile):
            before = self.before.to_dict()
        else:
            before = self.before

        lines_added: int | None | Unset
        if isinstance(self.lines_added, Unset):
            lines_added = UNSET
        else:
            lines_added = self.lines_added

        lines_removed: int | None | Unset
        if isinstance(self.lines_removed, Unset):
            lines_removed = UNSET
        else:
            lines_removed = self.lines_removed

        linked_to: None | str | Unset
        if isinstance(self.linked_to, Unset):
            linked_to = UNSET
        else:
            linked_to = self.linked_to

        moved_from: None | str | Unset
        if isinstance(self.moved_from, Unset):
            moved_from = UNSET
        else:
            moved_from = self.moved_from

        path: None | str | Unset
        if isinstance(self.path, Unset):
            path = UNSET
        else:
            path = self.path

        path_base64: None | str | Unset
        if isinstance(self.path_base64, Unset):
            path_base64 = UNSET
        else:
            path_base64 = self.path_base64

        remarks: list[str] | Unset = UNSET
        if not isinstance(self.remarks, Unset):
            remarks = self.remarks

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "leads_out": leads_out,
                "set_id": set_id,
                "standing": standing,
                "version": version,
            }
        )
        if after is not UNSET:
            field_dict["after"] = after
        if before is not UNSET:
            field_dict["before"] = before
        if lines_added is not UNSET:
            field_dict["lines_added"] = lines_added
        if lines_removed is not UNSET:
            field_dict["lines_removed"] = lines_removed
        if linked_to is not UNSET:
            field_dict["linked_to"] = linked_to
        if moved_from is not UNSET:
            field_dict["moved_from"] = moved_from
        if path is not UNSET:
            field_dict["path"] = path
        if path_base64 is not UNSET:
            field_dict["path_base64"] = path_base64
        if remarks is not UNSET:
            field_dict["remarks"] = remarks

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.layer_file import LayerFile  # noqa: PLC0415

        d = dict(src_dict)
        kind = d.pop("kind")

        leads_out = d.pop("leads_out")

        set_id = d.pop("set_id")

        standing = d.pop("standing")

        version = d.pop("version")

        def _parse_after(data: object) -> LayerFile | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                after_type_0 = LayerFile.from_dict(data)

                return after_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(LayerFile | None | Unset, data)

        after = _parse_after(d.pop("after", UNSET))

        def _parse_before(data: object) -> LayerFile | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                before_type_0 = LayerFile.from_dict(data)

                return before_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(LayerFile | None | Unset, data)

        before = _parse_before(d.pop("before", UNSET))

        def _parse_lines_added(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        lines_added = _parse_lines_added(d.pop("lines_added", UNSET))

        def _parse_lines_removed(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        lines_removed = _parse_lines_removed(d.pop("lines_removed", UNSET))

        def _parse_linked_to(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        linked_to = _parse_linked_to(d.pop("linked_to", UNSET))

        def _parse_moved_from(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        moved_from = _parse_moved_from(d.pop("moved_from", UNSET))

        def _parse_path(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        path = _parse_path(d.pop("path", UNSET))

        def _parse_path_base64(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        path_base64 = _parse_path_base64(d.pop("path_base64", UNSET))

        remarks = cast(list[str], d.pop("remarks", UNSET))

        layer_change = cls(
            kind=kind,
            leads_out=leads_out,
            set_id=set_id,
            standing=standing,
            version=version,
            after=after,
            before=before,
            lines_added=lines_added,
            lines_removed=lines_removed,
            linked_to=linked_to,
            moved_from=moved_from,
            path=path,
            path_base64=path_base64,
            remarks=remarks,
        )

        layer_change.additional_properties = d
        return layer_change

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
