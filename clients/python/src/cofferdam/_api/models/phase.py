from enum import StrEnum


class Phase(StrEnum):
    CREATING = "creating"
    DELETING = "deleting"
    FAILED = "failed"
    LOST = "lost"
    PAUSED = "paused"
    PAUSING = "pausing"
    RESUMING = "resuming"
    RUNNING = "running"
    STOPPED = "stopped"
    STOPPING = "stopping"

    def __str__(self) -> str:
        return str(self.value)
