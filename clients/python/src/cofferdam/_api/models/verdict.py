from enum import StrEnum


class Verdict(StrEnum):
    BROKEN = "broken"
    CONTROL_FAILED = "control_failed"
    HELD = "held"
    NOT_APPLICABLE = "not_applicable"
    NOT_TRIED = "not_tried"

    def __str__(self) -> str:
        return str(self.value)
