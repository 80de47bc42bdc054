from enum import StrEnum


class KindWish(StrEnum):
    DEVICE = "device"
    DIRECTORY = "directory"
    FIFO = "fifo"
    FILE = "file"
    LINK = "link"
    SOCKET = "socket"

    def __str__(self) -> str:
        return str(self.value)
