from enum import StrEnum


class PatchOutcome(StrEnum):
    ALREADY_APPLIED = "already_applied"
    FITS = "fits"
    REFUSED = "refused"

    def __str__(self) -> str:
        return str(self.value)
