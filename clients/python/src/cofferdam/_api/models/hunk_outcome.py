from enum import StrEnum


class HunkOutcome(StrEnum):
    ALREADY_APPLIED = "already_applied"
    AMBIGUOUS = "ambiguous"
    ANCHOR_NOT_FOUND = "anchor_not_found"
    FITS = "fits"
    NOT_FOUND = "not_found"
    NO_CONTEXT = "no_context"
    OUT_OF_ORDER = "out_of_order"
    TOO_LARGE = "too_large"

    def __str__(self) -> str:
        return str(self.value)
