from enum import StrEnum


class PullName(StrEnum):
    ALWAYS = "always"
    MISSING = "missing"
    NEVER = "never"

    def __str__(self) -> str:
        return str(self.value)
