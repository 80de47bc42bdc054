from enum import StrEnum


class ProfileName(StrEnum):
    CI_ONLY = "ci-only"
    FULL_DEV = "full-dev"
    NO_NETWORK = "no-network"
    READ_ONLY = "read-only"
    REPO_WRITE = "repo-write"

    def __str__(self) -> str:
        return str(self.value)
