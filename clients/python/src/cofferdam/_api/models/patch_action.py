from enum import StrEnum


class PatchAction(StrEnum):
    COPY = "copy"
    CREATE = "create"
    DELETE = "delete"
    MODIFY = "modify"
    RENAME = "rename"

    def __str__(self) -> str:
        return str(self.value)
