from enum import StrEnum


class Difference(StrEnum):
    END_OF_FILE = "end_of_file"
    FINAL_NEWLINE = "final_newline"
    LINE_ENDING = "line_ending"
    TEXT = "text"
    WHITE_SPACE = "white_space"

    def __str__(self) -> str:
        return str(self.value)
