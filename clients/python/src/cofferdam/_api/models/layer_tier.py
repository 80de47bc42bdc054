from enum import StrEnum


class LayerTier(StrEnum):
    COPY = "copy"
    OVERLAY = "overlay"
    REFLINK = "reflink"

    def __str__(self) -> str:
        return str(self.value)
