"""An object of one part has the attributes of that part, and says why not otherwise."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, replace

import pytest

from muhat._delegation import Delegated


@dataclass(frozen=True)
class Inner:
    """A part."""

    size: int

    def larger(self, by: int) -> int:
        """A method."""
        return self.size + by

    @property
    def broken(self) -> int:
        """A fault of its own."""
        return self.size.nothing  # type: ignore[attr-defined, no-any-return]


@dataclass(frozen=True)
class Owner:
    """One part or more."""

    parts: tuple[Inner, ...]

    size = Delegated[int]("How large it is.")
    larger = Delegated[Callable[[int], int]]()
    broken = Delegated[int]()
    color = Delegated[str]()

    @property
    def _only(self) -> Inner:
        if len(self.parts) > 1:
            raise AttributeError("there are several parts")
        return self.parts[0]

    @property
    def _called(self) -> str:
        return "an inner"


ONE, TWO = Owner((Inner(3),)), Owner((Inner(3), Inner(4)))


def test_the_only_part_lends_its_attributes_and_methods() -> None:
    assert ONE.size == 3
    assert ONE.larger(2) == 5
    assert replace(ONE, parts=(Inner(7),)).size == 7
    assert pickle.loads(pickle.dumps(ONE)) == copy.deepcopy(ONE) == ONE


def test_what_the_part_lacks_is_an_attribute_error_in_words() -> None:
    assert not hasattr(ONE, "color")
    with pytest.raises(AttributeError, match="an inner has no color"):
        _ = ONE.color


def test_several_parts_lend_nothing() -> None:
    assert not hasattr(TWO, "size")
    with pytest.raises(AttributeError, match="several parts"):
        _ = TWO.size


def test_a_fault_inside_the_part_is_shown_as_it_is() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = ONE.broken


def test_lent_attributes_are_documented_and_cannot_be_set() -> None:
    assert Owner.size.__doc__ == "How large it is."
    assert isinstance(Owner.size, Delegated)
    with pytest.raises(FrozenInstanceError):
        ONE.size = 4
