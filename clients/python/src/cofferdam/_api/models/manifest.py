from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.manifest_entry_type_0 import ManifestEntryType0
    from ..models.manifest_entry_type_1 import ManifestEntryType1
    from ..models.manifest_entry_type_2 import ManifestEntryType2
    from ..models.manifest_entry_type_3 import ManifestEntryType3
    from ..models.manifest_entry_type_4 import ManifestEntryType4
    from ..models.manifest_entry_type_5 import ManifestEntryType5
    from ..models.manifest_entry_type_6 import ManifestEntryType6


T = TypeVar("T", bound="Manifest")


@_attrs_define
class Manifest:
    """What a workspace is to hold. Format 1.

    Attributes:
        version (int): The format: 1.
        entries (list[ManifestEntryType0 | ManifestEntryType1 | ManifestEntryType2 | ManifestEntryType3 |
            ManifestEntryType4 | ManifestEntryType5 | ManifestEntryType6] | Unset): What it is to hold, in any order.
        known_as (None | str | Unset): What tells it from any other, 64 hexadecimal digits, where somebody made it of
            another one. Without
            it what it says.
    """

    version: int
    entries: (
        list[
            ManifestEntryType0
            | ManifestEntryType1
            | ManifestEntryType2
            | ManifestEntryType3
            | ManifestEntryType4
            | ManifestEntryType5
            | ManifestEntryType6
        ]
        | Unset
    ) = UNSET
    known_as: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.manifest_entry_type_0 import ManifestEntryType0  # noqa: PLC0415
        from ..models.manifest_entry_type_1 import ManifestEntryType1  # noqa: PLC0415
        from ..models.manifest_entry_type_2 import ManifestEntryType2  # noqa: PLC0415
        from ..models.manifest_entry_type_3 import ManifestEntryType3  # noqa: PLC0415
        from ..models.manifest_entry_type_4 import ManifestEntryType4  # noqa: PLC0415
        from ..models.manifest_entry_type_5 import ManifestEntryType5  # noqa: PLC0415

        version = self.version

        entries: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.entries, Unset):
            entries = []
            for entries_item_data in self.entries:
                entries_item: dict[str, Any]
                if isinstance(entries_item_data, ManifestEntryType0):
                    entries_item = entries_item_data.to_dict()
                elif isinstance(entries_item_data, ManifestEntryType1):
                    entries_item = entries_item_data.to_dict()
                elif isinstance(entries_item_data, ManifestEntryType2):
                    entries_item = entries_item_data.to_dict()
                elif isinstance(entries_item_data, ManifestEntryType3):
                    entries_item = entries_item_data.to_dict()
                elif isinstance(entries_item_data, ManifestEntryType4):
                    entries_item = entries_item_data.to_dict()
                elif isinstance(entries_item_data, ManifestEntryType5):
                    entries_item = entries_item_data.to_dict()
                else:
                    entries_item = entries_item_data.to_dict()

                entries.append(entries_item)

        known_as: None | str | Unset
        if isinstance(self.known_as, Unset):
            known_as = UNSET
        else:
            known_as = self.known_as

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "version": version,
            }
        )
        if entries is not UNSET:
            field_dict["entries"] = entries
        if known_as is not UNSET:
            field_dict["known_as"] = known_as

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.manifest_entry_type_0 import ManifestEntryType0  # noqa: PLC0415
        from ..models.manifest_entry_type_1 import ManifestEntryType1  # noqa: PLC0415
        from ..models.manifest_entry_type_2 import ManifestEntryType2  # noqa: PLC0415
        from ..models.manifest_entry_type_3 import ManifestEntryType3  # noqa: PLC0415
        from ..models.manifest_entry_type_4 import ManifestEntryType4  # noqa: PLC0415
        from ..models.manifest_entry_type_5 import ManifestEntryType5  # noqa: PLC0415
        from ..models.manifest_entry_type_6 import ManifestEntryType6  # noqa: PLC0415

        d = dict(src_dict)
        version = d.pop("version")

        _entries = d.pop("entries", UNSET)
        entries: (
            list[
                ManifestEntryType0
                | ManifestEntryType1
                | ManifestEntryType2
                | ManifestEntryType3
                | ManifestEntryType4
                | ManifestEntryType5
                | ManifestEntryType6
            ]
            | Unset
        ) = UNSET
        if _entries is not UNSET:
            entries = []
            for entries_item_data in _entries:

                def _parse_entries_item(
                    data: object,
                ) -> (
                    ManifestEntryType0
                    | ManifestEntryType1
                    | ManifestEntryType2
                    | ManifestEntryType3
                    | ManifestEntryType4
                    | ManifestEntryType5
                    | ManifestEntryType6
                ):
                    try:
                        if not isinstance(data, dict):
                            raise TypeError()
                        componentsschemas_manifest_entry_type_0 = (
                            ManifestEntryType0.from_dict(data)
                        )

                        return componentsschemas_manifest_entry_type_0
                    except (TypeError, ValueError, AttributeError, KeyError):
                        pass
                    try:
                        if not isinstance(data, dict):
                            raise TypeError()
                        componentsschemas_manifest_entry_type_1 = (
                            ManifestEntryType1.from_dict(data)
                        )

                        return componentsschemas_manifest_entry_type_1
                    except (TypeError, ValueError, AttributeError, KeyError):
                        pass
                    try:
                        if not isinstance(data, dict):
                            raise TypeError()
                        componentsschemas_manifest_entry_type_2 = (
                            ManifestEntryType2.from_dict(data)
                        )

                        return componentsschemas_manifest_entry_type_2
                    except (TypeError, ValueError, AttributeError, KeyError):
                        pass
                    try:
                        if not isinstance(data, dict):
                            raise TypeError()
                        componentsschemas_manifest_entry_type_3 = (
                            ManifestEntryType3.from_dict(data)
                        )

                        return componentsschemas_manifest_entry_type_3
                    except (TypeError, ValueError, AttributeError, KeyError):
                        pass
                    try:
                        if not isinstance(data, dict):
                            raise TypeError()
                        componentsschemas_manifest_entry_type_4 = (
                            ManifestEntryType4.from_dict(data)
                        )

                        return componentsschemas_manifest_entry_type_4
                    except (TypeError, ValueError, AttributeError, KeyError):
                        pass
                    try:
                        if not isinstance(data, dict):
                            raise TypeError()
                        componentsschemas_manifest_entry_type_5 = (
                            ManifestEntryType5.from_dict(data)
                        )

                        return componentsschemas_manifest_entry_type_5
                    except (TypeError, ValueError, AttributeError, KeyError):
                        pass
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_manifest_entry_type_6 = (
                        ManifestEntryType6.from_dict(data)
                    )

                    return componentsschemas_manifest_entry_type_6

                entries_item = _parse_entries_item(entries_item_data)

                entries.append(entries_item)

        def _parse_known_as(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        known_as = _parse_known_as(d.pop("known_as", UNSET))

        manifest = cls(
            version=version,
            entries=entries,
            known_as=known_as,
        )

        return manifest
