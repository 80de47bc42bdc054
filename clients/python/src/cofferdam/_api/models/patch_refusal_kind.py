from enum import StrEnum


class PatchRefusalKind(StrEnum):
    BAD_LINK = "bad_link"
    CONTENT_DIFFERS = "content_differs"
    EXISTS = "exists"
    NOT_FOUND = "not_found"
    NO_DIRECTORY = "no_directory"
    TOO_LARGE = "too_large"
    WRONG_KIND = "wrong_kind"

    def __str__(self) -> str:
        return str(self.value)
