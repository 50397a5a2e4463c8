"""Objects as plain data and back; what is malformed is refused in one way."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from muhat._plain import Key, Plain, by_name, from_plain, to_plain, well_described
from muhat.errors import InvalidInput


class Side(Enum):
    LEFT = "left"
    RIGHT = "right"


class Tool:
    name: ClassVar[str]


class Hammer(Tool):
    name = "hammer"


class Saw(Tool):
    name = "saw"


by_name(Tool, {tool.name: tool for tool in (Hammer(), Saw())})


@dataclass(frozen=True)
class Step(Plain):
    share: Fraction
    sides: tuple[Side, ...] = ()


@dataclass(frozen=True)
class Thing(
    Plain,
    keys=(
        "size",
        "twice",
        Key("steps", "number.steps"),
        Key("large", text=True),
        Key("reach", infinite=True),
        "step",
        "tool",
        "pair",
        "word",
        Key("note", optional=True),
        Key("loud", optional=True),
        "q",
        "table",
    ),
):
    size: int
    large: tuple[int, ...]
    reach: float
    step: Step
    tool: Tool
    pair: tuple[int, str]
    word: Literal["yes", "no"]
    note: str | None = None
    loud: bool = False
    q: float | tuple[float, ...] = 0.5
    table: Mapping[str, float | None] | None = None

    @property
    def twice(self) -> int:
        return 2 * self.size

    @property
    def number(self) -> Any:
        return type("Number", (), {"steps": range(self.size)})

    def __post_init__(self) -> None:
        if self.size > 100:
            raise InvalidInput("must be at most 100", parameter="size")


THING = Thing(
    2,
    (1 << 60, -3),
    math.inf,
    Step(Fraction(2, 3), (Side.RIGHT,)),
    Saw(),
    (1, "one"),
    "yes",
    table={"a": 1.5, "b": None},
)

WRITTEN = {
    "size": 2,
    "twice": 4,
    "steps": [0, 1],
    "large": [str(1 << 60), "-3"],
    "reach": "inf",
    "step": {"share": "2/3", "sides": ["right"]},
    "tool": "saw",
    "pair": [1, "one"],
    "word": "yes",
    "q": 0.5,
    "table": {"a": 1.5, "b": None},
}


def through_json(fields: dict[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(fields))
    return read


def test_keys_are_written_in_their_order():
    assert list(THING.to_dict()) == list(WRITTEN)
    assert THING.to_dict() == WRITTEN


def test_what_is_written_is_read():
    read = Thing.from_dict(through_json(THING.to_dict()))
    assert type(read.tool) is Saw
    assert read.to_dict() == WRITTEN
    assert read.step == THING.step
    assert read.large == THING.large
    assert read.reach == math.inf
    loud = Thing.from_dict({**WRITTEN, "loud": True, "note": "!", "q": [0.25, 1]})
    assert (loud.loud, loud.note, loud.q) == (True, "!", (0.25, 1.0))
    assert loud.to_dict() == {**WRITTEN, "note": "!", "loud": True, "q": [0.25, 1.0]}


def test_keys_that_only_say_something_may_be_lacking_and_are_not_believed():
    fields = {name: value for name, value in WRITTEN.items() if name not in ("twice", "steps", "q")}
    assert Thing.from_dict(fields).twice == 4
    assert Thing.from_dict({**WRITTEN, "twice": 7}).twice == 4


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("size", True),
        ("size", 2.0),
        ("size", "2"),
        ("size", None),
        ("size", 101),
        ("large", [1]),
        ("large", "12"),
        ("large", ["0x10"]),
        ("large", ["1_0"]),
        ("large", ["1\n"]),
        ("large", ["1" * 5000]),
        ("reach", "nan"),
        ("reach", "infinity"),
        ("reach", True),
        ("reach", math.inf),
        ("reach", 10**400),
        ("step", []),
        ("step", {}),
        ("step", {"share": 0.5}),
        ("step", {"share": "1/0"}),
        ("step", {"share": "1e999999999"}),
        ("step", {"share": "0.5"}),
        ("step", {"share": "1/2", "sides": ["up"]}),
        ("step", {"share": "1/2", "sides": "left"}),
        ("tool", "axe"),
        ("tool", ["saw"]),
        ("tool", None),
        ("pair", [1]),
        ("pair", [1, "one", 2]),
        ("pair", ["one", 1]),
        ("word", "perhaps"),
        ("word", {}),
        ("note", 3),
        ("loud", 1),
        ("q", "0.5"),
        ("q", [None]),
        ("q", {"0": 1}),
        ("table", {"a": "1"}),
        ("table", [1]),
        ("odd", 1),
    ],
)
def test_malformed_values_are_refused_as_invalid_input(name, wrong):
    with pytest.raises(InvalidInput) as caught:
        Thing.from_dict({**WRITTEN, name: wrong})
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("wrong", [None, 3, "text", [], ["size"], {}, {"size": 2}, {1: 2}])
def test_what_has_no_fields_is_refused(wrong):
    with pytest.raises(InvalidInput):
        Thing.from_dict(wrong)


def test_a_refusal_names_the_field_and_not_its_value():
    with pytest.raises(InvalidInput, match=r"^a step needs a field 'share'\.$"):
        Thing.from_dict({**WRITTEN, "step": {}})
    with pytest.raises(InvalidInput, match=r"^a step has no field 'odd'\.$"):
        Thing.from_dict({**WRITTEN, "step": {"share": "1", "odd": "canary"}})
    with pytest.raises(InvalidInput, match=r"^size of a thing must be a whole number\.$"):
        Thing.from_dict({**WRITTEN, "size": "canary"})
    with pytest.raises(InvalidInput, match=r"^share of a step must be a fraction as text\.$"):
        Thing.from_dict({**WRITTEN, "step": {"share": 0.5}})


class Shape(Plain, ABC, tag="shape", exact=True):
    kind: ClassVar[str]

    @abstractmethod
    def area(self) -> float:
        """The area."""


@dataclass(frozen=True, eq=False)
class Disc(Shape, keys=("radius", "center")):
    kind = "disc"
    radius: float
    dim: int
    center: NDArray[np.float64]

    @classmethod
    def built(cls, radius: float, center: NDArray[np.float64]) -> Disc:
        return cls(radius, len(center), center)

    def area(self) -> float:
        return self.radius**self.dim


@dataclass(frozen=True)
class Union(Shape):
    kind = "union"
    parts: tuple[Shape, ...]

    def area(self) -> float:
        return sum(part.area() for part in self.parts)


@dataclass(frozen=True, eq=False)
class Exact(Plain, exact=True):
    numbers: NDArray[np.float64]
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table(Plain):
    numbers: NDArray[np.float64]
    counts: NDArray[np.int64] | None = None


def test_a_family_is_read_by_its_kind():
    both = Union((Disc(0.1, 2, np.array([1.0, -0.5])), Union(())))
    fields = both.to_dict()
    disc = {"shape": "disc", "radius": (0.1).hex(), "center": ["0x1.0000000000000p+0", "-0x1.0p-1"]}
    assert fields["shape"] == "union"
    assert fields["parts"][1] == {"shape": "union", "parts": []}
    read = Shape.from_dict(through_json({"shape": "union", "parts": [disc, fields["parts"][1]]}))
    assert read.to_dict() == fields
    assert Disc.from_dict(disc).area() == pytest.approx(0.01)


@pytest.mark.parametrize(
    "wrong",
    [
        {"shape": "square"},
        {"shape": ["disc"]},
        {"shape": None},
        {"radius": "0x1p0", "center": []},
        {"shape": "disc", "radius": 1.0, "center": []},
        {"shape": "disc", "radius": "0x1p0", "center": [1.0]},
        {"shape": "disc", "radius": "nan", "center": ["0x1p0"]},
        {"shape": "disc", "radius": "0x1p0", "center": ["inf"]},
        {"shape": "disc", "radius": "0x1p0"},
        {"shape": "disc", "radius": "0x1p0", "center": [], "dim": 0},
        {"shape": "union", "parts": [{"shape": "disc"}]},
        {"shape": "union", "parts": {"shape": "disc"}},
    ],
)
def test_a_malformed_member_is_refused(wrong):
    with pytest.raises(InvalidInput):
        Shape.from_dict(wrong)


def test_a_member_is_not_read_as_another():
    with pytest.raises(InvalidInput, match="the kind of disc"):
        Disc.from_dict({"shape": "union", "parts": []})


def test_what_is_nested_beyond_reason_is_refused():
    fields: dict[str, Any] = {"shape": "union", "parts": []}
    for _ in range(5000):
        fields = {"shape": "union", "parts": [fields]}
    with pytest.raises(InvalidInput):
        Shape.from_dict(fields)


def test_arrays_are_lists():
    table = Table(np.array([[1.0, 2.5]]), np.array([3], np.int64))
    assert table.to_dict() == {"numbers": [[1.0, 2.5]], "counts": [3]}
    read = Table.from_dict(through_json(table.to_dict()))
    assert read.numbers.dtype == np.float64
    assert read.counts is not None
    assert read.counts.dtype == np.int64
    assert Table.from_dict({"numbers": [1, 2], "counts": []}).numbers.tolist() == [1.0, 2.0]


def test_exact_arrays_have_floats_as_text_and_whole_numbers_as_they_are():
    made = Exact(np.array([[0.1]]), np.array([7], np.int64))
    assert made.to_dict() == {"numbers": [[(0.1).hex()]], "counts": [7]}
    assert Exact.from_dict(through_json(made.to_dict())).to_dict() == made.to_dict()


@pytest.mark.parametrize(
    "wrong",
    [
        {"numbers": ["1.0"]},
        {"numbers": 1.0},
        {"numbers": [None]},
        {"numbers": [True]},
        {"numbers": [[1.0], [1.0, 2.0]]},
        {"numbers": [math.inf]},
        {"numbers": [math.nan]},
        {"numbers": [{}]},
        {"numbers": [1 << 70]},
        {"numbers": [1.0], "counts": [0.5]},
        {"numbers": [1.0], "counts": [1 << 63]},
    ],
)
def test_malformed_arrays_are_refused(wrong):
    with pytest.raises(InvalidInput):
        Table.from_dict(wrong)


def test_what_has_no_plain_form_is_a_mistake_of_the_program():
    with pytest.raises(TypeError):
        to_plain(object())
    assert from_plain(Any, [1]) == [1]


def test_what_goes_wrong_inside_is_told_in_one_way():
    said = r"^the letter is not well described\.$"
    with pytest.raises(InvalidInput, match=said), well_described("the letter"):
        raise KeyError("canary")
    with pytest.raises(MemoryError), well_described("the letter"):
        raise MemoryError
