"""Attributes that an object of one part takes from that part, seen by type checkers as its own."""

from __future__ import annotations

from typing import Any, Generic, Protocol, Self, TypeVar, overload

Value = TypeVar("Value")


class Delegating(Protocol):
    """An object of one or more parts, which has the attributes of the only one as its own."""

    @property
    def _only(self) -> object:
        """The only part; AttributeError, in words, if there are several."""

    @property
    def _called(self) -> str:
        """What the only part is called: "a mean"."""


class Delegated(Generic[Value]):
    """An attribute of the owner's only part: `value = Delegated[Floats]("The answer.")`.

    It has the same name there, unless another one is given.

    Where there are several parts, or the part has no such attribute, it is an AttributeError that
    says so, and `hasattr` is false.
    """

    def __init__(self, doc: str | None = None, name: str | None = None) -> None:
        self.__doc__ = doc
        self.name = name or ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...

    @overload
    def __get__(self, owner: Delegating, kind: type) -> Value: ...

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self
        part = owner._only
        try:
            return getattr(part, self.name)
        except AttributeError:
            if self.name in dir(part):
                raise
        words = f"{owner._called} has no {self.name}"
        raise AttributeError(words, name=self.name, obj=owner)
