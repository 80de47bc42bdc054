from enum import StrEnum


class PatchNote(StrEnum):
    HAD_MODE = "had_mode"
    KEPT_CRLF = "kept_crlf"
    KEPT_LF = "kept_lf"
    KEPT_MISSING_FINAL_NEWLINE = "kept_missing_final_newline"
    MADE = "made"

    def __str__(self) -> str:
        return str(self.value)
