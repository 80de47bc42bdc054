from enum import StrEnum


class PermissionKind(StrEnum):
    CONNECTION = "connection"
    REQUEST = "request"

    def __str__(self) -> str:
        return str(self.value)
