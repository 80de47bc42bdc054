from enum import StrEnum


class EditOutcome(StrEnum):
    AMBIGUOUS = "ambiguous"
    APPLIES = "applies"
    NOT_FOUND = "not_found"

    def __str__(self) -> str:
        return str(self.value)
