from enum import StrEnum


class AnswerName(StrEnum):
    DENY = "deny"
    ONCE = "once"
    PROFILE = "profile"
    SESSION = "session"

    def __str__(self) -> str:
        return str(self.value)
