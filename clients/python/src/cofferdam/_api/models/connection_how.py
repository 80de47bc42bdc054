from enum import StrEnum


class ConnectionHow(StrEnum):
    CONNECT = "connect"
    DNS = "dns"
    HTTP = "http"
    SOCKS5 = "socks5"
    TRANSPARENT = "transparent"

    def __str__(self) -> str:
        return str(self.value)
