from enum import StrEnum


class CaseWish(StrEnum):
    INSENSITIVE = "insensitive"
    SENSITIVE = "sensitive"
    SMART = "smart"

    def __str__(self) -> str:
        return str(self.value)
