from enum import StrEnum


class ManifestState(StrEnum):
    DONE = "done"
    PENDING = "pending"

    def __str__(self) -> str:
        return str(self.value)
