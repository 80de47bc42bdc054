from enum import StrEnum


class FailureName(StrEnum):
    DESTROY = "destroy"
    PRESERVE = "preserve"
    STOP = "stop"

    def __str__(self) -> str:
        return str(self.value)
