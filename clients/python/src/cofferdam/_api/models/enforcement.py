from enum import StrEnum


class Enforcement(StrEnum):
    FULLYENFORCED = "FullyEnforced"
    PARTIAL = "Partial"
    UNAVAILABLE = "Unavailable"

    def __str__(self) -> str:
        return str(self.value)
