from enum import StrEnum


class PermissionState(StrEnum):
    ALLOWED = "allowed"
    APPROVED = "approved"
    DENIED = "denied"
    GONE = "gone"
    TIMED_OUT = "timed_out"
    WAITING = "waiting"

    def __str__(self) -> str:
        return str(self.value)
