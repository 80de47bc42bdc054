from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.answer_name import AnswerName

T = TypeVar("T", bound="AnswerWish")


@_attrs_define
class AnswerWish:
    """An answer to what waits.

    Attributes:
        answer (AnswerName): What somebody answers.

            - `once`: This time.
            - `session`: For the sandbox.
            - `profile`: For the user: on the machine of the server alone.
            - `deny`: No.
    """

    answer: AnswerName

    def to_dict(self) -> dict[str, Any]:
        answer = self.answer.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "answer": answer,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        answer = AnswerName(d.pop("answer"))

        answer_wish = cls(
            answer=answer,
        )

        return answer_wish
