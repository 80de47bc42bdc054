from enum import StrEnum


class LayersDiffView(StrEnum):
    NAMES = "names"
    STAT = "stat"

    def __str__(self) -> str:
        return str(self.value)
