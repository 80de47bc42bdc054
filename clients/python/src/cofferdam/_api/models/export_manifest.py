from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.exported_workspace import ExportedWorkspace


T = TypeVar("T", bound="ExportManifest")


@_attrs_define
class ExportManifest:
    """What an exported snapshot says of itself. Format 1.

    Attributes:
        bytes_ (int): Bytes of its files, holes included.
        cofferdam (str): The version of Cofferdam that wrote it.
        content_bytes (int): Bytes of those, without holes.
        contents (int): How many contents follow.
        files (int): Files and directories in it.
        format_ (int): The format of the file.
        list_bytes (int): Bytes of the list.
        list_sha256 (str): The SHA-256 of the list.
        made_ms (int): When the snapshot was taken, in milliseconds since 1970.
        workspace (ExportedWorkspace): A workspace that a snapshot lay on.
        label (None | str | Unset): What somebody called it.
    """

    bytes_: int
    cofferdam: str
    content_bytes: int
    contents: int
    files: int
    format_: int
    list_bytes: int
    list_sha256: str
    made_ms: int
    workspace: ExportedWorkspace
    label: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        bytes_ = self.bytes_

        cofferdam = self.cofferdam

        content_bytes = self.content_bytes

        contents = self.contents

        files = self.files

        format_ = self.format_

        list_bytes = self.list_bytes

        list_sha256 = self.list_sha256

        made_ms = self.made_ms

        workspace = self.workspace.to_dict()

        label: None | str | Unset
        if isinstance(self.label, Unset):
            label = UNSET
        else:
            label = self.label

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "bytes": bytes_,
                "cofferdam": cofferdam,
                "content_bytes": content_bytes,
                "contents": contents,
                "files": files,
                "format": format_,
                "list_bytes": list_bytes,
                "list_sha256": list_sha256,
                "made_ms": made_ms,
                "workspace": workspace,
            }
        )
        if label is not UNSET:
            field_dict["label"] = label

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.exported_workspace import ExportedWorkspace  # noqa: PLC0415

        d = dict(src_dict)
        bytes_ = d.pop("bytes")

        cofferdam = d.pop("cofferdam")

        content_bytes = d.pop("content_bytes")

        contents = d.pop("contents")

        files = d.pop("files")

        format_ = d.pop("format")

        list_bytes = d.pop("list_bytes")

        list_sha256 = d.pop("list_sha256")

        made_ms = d.pop("made_ms")

        workspace = ExportedWorkspace.from_dict(d.pop("workspace"))

        def _parse_label(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        label = _parse_label(d.pop("label", UNSET))

        export_manifest = cls(
            bytes_=bytes_,
            cofferdam=cofferdam,
            content_bytes=content_bytes,
            contents=contents,
            files=files,
            format_=format_,
            list_bytes=list_bytes,
            list_sha256=list_sha256,
            made_ms=made_ms,
            workspace=workspace,
            label=label,
        )

        return export_manifest
