from enum import StrEnum


class TruncationReason(StrEnum):
    LINE_CAP = "line_cap"
    SIZE_CAP = "size_cap"

    def __str__(self) -> str:
        return str(self.value)
