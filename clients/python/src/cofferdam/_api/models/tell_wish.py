from enum import StrEnum


class TellWish(StrEnum):
    COUNT = "count"
    LINES = "lines"
    NAME = "name"

    def __str__(self) -> str:
        return str(self.value)
