from enum import StrEnum


class Basis(StrEnum):
    APPLIED = "applied"
    PLANNED = "planned"
    PROBED = "probed"

    def __str__(self) -> str:
        return str(self.value)
