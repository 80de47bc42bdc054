from enum import StrEnum


class PatchFormat(StrEnum):
    ENVELOPE = "envelope"
    UNIFIED = "unified"

    def __str__(self) -> str:
        return str(self.value)
