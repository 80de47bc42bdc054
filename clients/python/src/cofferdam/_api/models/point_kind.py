from enum import StrEnum


class PointKind(StrEnum):
    BETWEEN = "between"
    COMMAND = "command"
    SNAPSHOT = "snapshot"
    START = "start"

    def __str__(self) -> str:
        return str(self.value)
