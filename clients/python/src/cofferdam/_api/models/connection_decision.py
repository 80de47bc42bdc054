from enum import StrEnum


class ConnectionDecision(StrEnum):
    ALLOWED = "allowed"
    ASKED = "asked"
    DENIED = "denied"
    FAILED = "failed"

    def __str__(self) -> str:
        return str(self.value)
