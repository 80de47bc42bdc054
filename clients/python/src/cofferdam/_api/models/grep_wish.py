from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.case_wish import CaseWish
from ..models.tell_wish import TellWish
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.scope_wish import ScopeWish


T = TypeVar("T", bound="GrepWish")


@_attrs_define
class GrepWish:
    """Lines that are looked for.

    Attributes:
        after (int | Unset): So many lines behind each match, at most 1000. Default: 0.
        before (int | Unset): So many lines before each match, at most 1000. Default: 0.
        binary_as_text (bool | Unset): Searches files with zero bytes as if they were text. Default: False.
        case (CaseWish | Unset): What capital letters mean.

            - `sensitive`: They are other letters.
            - `insensitive`: They are the same letters.
            - `smart`: They are other letters where the pattern holds one.
        fixed_strings (bool | Unset): Takes the patterns for text as it stands. Default: False.
        limit (int | None | Unset): At most so many matches, and never more than 10000.
        max_count (int | None | Unset): At most so many matches of one file.
        max_file_bytes (int | None | Unset): Leaves out a file of more bytes, at most 64 MiB.
        paths (list[str] | Unset): The files and directories. Default: the workspace.
        paths_base64 (list[str] | Unset): Further ones in base64, which are not UTF-8.
        patterns (list[str] | Unset): Regular expressions, of which one has to match.
        scope (ScopeWish | Unset): What is passed over in a search. What is called `.git` is in any case.
        tell (TellWish | Unset): What is told of a file.

            - `lines`: Its lines that match.
            - `count`: How many match.
            - `name`: That one matches.
        word (bool | Unset): Finds whole words alone. Default: False.
    """

    after: int | Unset = 0
    before: int | Unset = 0
    binary_as_text: bool | Unset = False
    case: CaseWish | Unset = UNSET
    fixed_strings: bool | Unset = False
    limit: int | None | Unset = UNSET
    max_count: int | None | Unset = UNSET
    max_file_bytes: int | None | Unset = UNSET
    paths: list[str] | Unset = UNSET
    paths_base64: list[str] | Unset = UNSET
    patterns: list[str] | Unset = UNSET
    scope: ScopeWish | Unset = UNSET
    tell: TellWish | Unset = UNSET
    word: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        after = self.after

        before = self.before

        binary_as_text = self.binary_as_text

        case: str | Unset = UNSET
        if not isinstance(self.case, Unset):
            case = self.case.value

        fixed_strings = self.fixed_strings

        limit: int | None | Unset
        if isinstance(self.limit, Unset):
            limit = UNSET
        else:
            limit = self.limit

        max_count: int | None | Unset
        if isinstance(self.max_count, Unset):
            max_count = UNSET
        else:
            max_count = self.max_count

        max_file_bytes: int | None | Unset
        if isinstance(self.max_file_bytes, Unset):
            max_file_bytes = UNSET
        else:
            max_file_bytes = self.max_file_bytes

        paths: list[str] | Unset = UNSET
        if not isinstance(self.paths, Unset):
            paths = self.paths

        paths_base64: list[str] | Unset = UNSET
        if not isinstance(self.paths_base64, Unset):
            paths_base64 = self.paths_base64

        patterns: list[str] | Unset = UNSET
        if not isinstance(self.patterns, Unset):
            patterns = self.patterns

        scope: dict[str, Any] | Unset = UNSET
        if not isinstance(self.scope, Unset):
            scope = self.scope.to_dict()

        tell: str | Unset = UNSET
        if not isinstance(self.tell, Unset):
            tell = self.tell.value

        word = self.word

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if after is not UNSET:
            field_dict["after"] = after
        if before is not UNSET:
            field_dict["before"] = before
        if binary_as_text is not UNSET:
            field_dict["binary_as_text"] = binary_as_text
        if case is not UNSET:
            field_dict["case"] = case
        if fixed_strings is not UNSET:
            field_dict["fixed_strings"] = fixed_strings
        if limit is not UNSET:
            field_dict["limit"] = limit
        if max_count is not UNSET:
            field_dict["max_count"] = max_count
        if max_file_bytes is not UNSET:
            field_dict["max_file_bytes"] = max_file_bytes
        if paths is not UNSET:
            field_dict["paths"] = paths
        if paths_base64 is not UNSET:
            field_dict["paths_base64"] = paths_base64
        if patterns is not UNSET:
            field_dict["patterns"] = patterns
        if scope is not UNSET:
            field_dict["scope"] = scope
        if tell is not UNSET:
            field_dict["tell"] = tell
        if word is not UNSET:
            field_dict["word"] = word

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.scope_wish import ScopeWish  # noqa: PLC0415

        d = dict(src_dict)
        after = d.pop("after", UNSET)

        before = d.pop("before", UNSET)

        binary_as_text = d.pop("binary_as_text", UNSET)

        _case = d.pop("case", UNSET)
        case: CaseWish | Unset
        if isinstance(_case, Unset):
            case = UNSET
        else:
            case = CaseWish(_case)

        fixed_strings = d.pop("fixed_strings", UNSET)

        def _parse_limit(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        limit = _parse_limit(d.pop("limit", UNSET))

        def _parse_max_count(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_count = _parse_max_count(d.pop("max_count", UNSET))

        def _parse_max_file_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_file_bytes = _parse_max_file_bytes(d.pop("max_file_bytes", UNSET))

        paths = cast(list[str], d.pop("paths", UNSET))

        paths_base64 = cast(list[str], d.pop("paths_base64", UNSET))

        patterns = cast(list[str], d.pop("patterns", UNSET))

        _scope = d.pop("scope", UNSET)
        scope: ScopeWish | Unset
        if isinstance(_scope, Unset):
            scope = UNSET
        else:
            scope = ScopeWish.from_dict(_scope)

        _tell = d.pop("tell", UNSET)
        tell: TellWish | Unset
        if isinstance(_tell, Unset):
            tell = UNSET
        else:
            tell = TellWish(_tell)

        word = d.pop("word", UNSET)

        grep_wish = cls(
            after=after,
            before=before,
            binary_as_text=binary_as_text,
            case=case,
            fixed_strings=fixed_strings,
            limit=limit,
            max_count=max_count,
            max_file_bytes=max_file_bytes,
            paths=paths,
            paths_base64=paths_base64,
            patterns=patterns,
            scope=scope,
            tell=tell,
            word=word,
        )

        return grep_wish
