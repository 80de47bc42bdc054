from enum import StrEnum


class EndingKind(StrEnum):
    CANCELED = "canceled"
    DISK = "disk"
    EXITED = "exited"
    LEASE = "lease"
    LOST = "lost"
    NOT_STARTED = "not_started"
    OUTPUT = "output"
    OUT_OF_MEMORY = "out_of_memory"
    PIDS = "pids"
    SECRET_ALARM = "secret_alarm"
    SETUP_FAILED = "setup_failed"
    SIGNALED = "signaled"
    TIMED_OUT = "timed_out"

    def __str__(self) -> str:
        return str(self.value)
