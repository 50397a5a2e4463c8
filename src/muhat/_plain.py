"""Frozen objects as plain JSON data, and back: one declaration instead of two methods.

    @dataclass(frozen=True)
    class Search(Plain, keys=("cells", "rounds", Key("multiplier", text=True), "share")):
        cells: int
        multiplier: int
        share: Fraction | None = None
        rounds = property(lambda self: (self.cells - 1).bit_length())

    Search(8, 3).to_dict()      {"cells": 8, "rounds": 3, "multiplier": "3", "share": None}
    Search.from_dict({"cells": 8, "multiplier": "3"})      Search(8, 3, None)

`keys` are the keys in their order, each an attribute; without `keys` they are the parameters of
the constructor, so that a dataclass that is written field by field declares nothing at all. What is
written goes by values: fractions are text, enums their values, tuples, ranges and arrays lists,
laws of noise (all that `by_name` knows) their names, and whatever has a `to_dict` that. What is
read goes by the annotations of the class and by nothing else: a key that the constructor does not
take is written only. Keys that nobody knows, keys that are lacking without a default, and values
of another type are refused, always as InvalidInput; so is whatever the constructor stumbles over.

Classes that are read by their kind are a family. Its root names the key of the kind, and reads
all of its members that have been imported:

    class Domain(Plain, tag="domain", exact=True): ...      # exact: floats as hexadecimal text
    class Ball(Domain, keys=("radius", "center")): kind = "ball"; ...

    Ball(2, dim=1).to_dict()      {"domain": "ball", "radius": "0x1.0p+1", "center": ["0x0.0p+0"]}
    Domain.from_dict(…)           a Ball

A class whose constructor takes something else overrides `built`, whose annotated parameters are
then what is read; one whose data have another shape overrides `to_dict`, `from_dict` or both.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import inspect
import json
import math
import operator
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from muhat import _check
from muhat.errors import InvalidInput

MALFORMED = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    RecursionError,
)
"""What goes wrong where data are not what they should be."""


Made = TypeVar("Made", bound="Plain")


class Key(NamedTuple):
    """A key that needs more words than its name."""

    name: str
    attribute: str = ""
    """Where its value is, if not under its name: "protection.neighbors". """
    optional: bool = False
    """Left out where it is None or False."""
    text: bool = False
    """Whole numbers are text, since others read no more than 53 bits of a number."""
    infinite: bool = False
    """A float may be infinite, and is then the text "inf"."""


class Plain:
    """Something that is plain data in another form; see the top of this module."""

    _plain_keys: ClassVar[tuple[str | Key, ...]] = ()
    _plain_exact: ClassVar[bool] = False
    _plain_tag: ClassVar[str] = ""
    _plain_kinds: ClassVar[dict[str, type[Plain]]]

    def __init_subclass__(
        cls,
        *,
        keys: tuple[str | Key, ...] | None = None,
        exact: bool | None = None,
        tag: str = "",
        **keywords: Any,
    ) -> None:
        super().__init_subclass__(**keywords)
        if keys is not None:
            cls._plain_keys = keys
        if exact is not None:
            cls._plain_exact = exact
        if tag:
            cls._plain_tag, cls._plain_kinds = tag, {}
        if cls._plain_tag and isinstance(kind := vars(cls).get("kind"), str):
            cls._plain_kinds[kind] = cls

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        cls: Any = type(self)
        written = {cls._plain_tag: cls.kind} if cls._plain_tag else {}
        for key in _keys_of(cls):
            value = operator.attrgetter(key.attribute)(self)
            if not (key.optional and (value is None or value is False)):
                written[key.name] = to_plain(value, key, exact=self._plain_exact)
        return written

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """What `to_dict` described; InvalidInput if it is malformed."""
        with well_described(f"a {_noun(cls)}"):
            rest = dict(fields)
            if not cls._plain_tag:
                return _read(cls, rest)
            known = {kind: each for kind, each in cls._plain_kinds.items() if issubclass(each, cls)}
            kind = _check.one_of(f"the kind of {_noun(cls)}", rest.pop(cls._plain_tag, None), known)
            return _read(cls, rest) if known[kind] is cls else known[kind].from_dict(fields)

    @classmethod
    def built(cls, *_: Any, **values: Any) -> Self:
        """The object of what was read, by the names of its attributes."""
        return cls(**values)


class NotThat(ValueError):
    """A value is not what its annotation says; the text is what it must be."""


_NAMED: dict[type, Mapping[str, Any]] = {}

_JUST = Key("")

_NOTHING = inspect.Parameter.empty


def by_name(family: type, known: Mapping[str, Any]) -> None:
    """Write the members of a class by their `name`, and find them among these.

    A member may be a class whose `to_dict` has its name and more.
    """
    _NAMED[family] = known


@contextlib.contextmanager
def well_described(what: str) -> Iterator[None]:
    """InvalidInput in place of whatever malformed data make go wrong."""
    try:
        yield
    except InvalidInput:
        raise
    except MALFORMED:
        raise InvalidInput(f"{what} is not well described.") from None


def digest_of(fields: Mapping[str, Any]) -> str:
    """SHA-256 of plain data, written in one way only."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def to_plain(value: Any, key: Key = _JUST, *, exact: bool = False) -> Any:
    """A value as plain data."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, enum.Enum):
        return value.value
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return str(value) if key.text else value
    if isinstance(value, float):
        if key.infinite and math.isinf(value):
            return str(value)
        return value.hex() if exact else value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {name: to_plain(each, key, exact=exact) for name, each in value.items()}
    if isinstance(value, tuple | list | range):
        return [to_plain(each, key, exact=exact) for each in value]
    if hasattr(value, "tolist"):
        listed = value.tolist()
        return to_plain(listed, key, exact=exact) if exact or key.text or key.infinite else listed
    if any(isinstance(value, family) for family in _NAMED):
        return value.name
    raise TypeError(f"{type(value).__name__} has no plain form")


def from_plain(hint: Any, value: Any, key: Key = _JUST, *, exact: bool = False) -> Any:
    """A value of this type out of plain data; NotThat or InvalidInput if it is none."""
    read = functools.partial(from_plain, key=key, exact=exact)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _first(arguments, value, read)
    if origin is typing.Literal:
        return _that(value, value in arguments and type(value) is str, "a known word")
    if origin is tuple:
        _that(value, type(value) is list, "a list")
        each = arguments[:1] * len(value) if arguments[-1] is ... else arguments
        return tuple(read(hint, part) for hint, part in zip(each, value, strict=True))
    if origin in (dict, Mapping):
        _that(value, type(value) is dict and all(type(name) is str for name in value), "an object")
        return {name: read(arguments[1], each) for name, each in value.items()}
    if origin is not None:
        return _array(value, arguments, exact)
    if hint is Any:
        return value
    if hint is float:
        return _number(value, key, exact)
    if hint is int and key.text:
        return int(_that(value, _matches(r"-?[0-9]+", value), "a whole number as text"))
    if hint in _SCALARS:
        return _that(value, type(value) is hint, _SCALARS[hint])
    if hint is Fraction:
        # Fraction itself would also take "1e999999999", and never return.
        return Fraction(_that(value, _matches(r"-?[0-9]+(/[0-9]+)?", value), "a fraction as text"))
    if issubclass(hint, enum.Enum):
        return hint(value)
    if hasattr(hint, "from_dict"):
        return hint.from_dict(value)
    known = next(known for family, known in _NAMED.items() if issubclass(hint, family))
    found: Any = known.get(str(value.get("name")) if type(value) is dict else value)
    found = found.from_dict(value) if hasattr(found, "from_dict") else found
    return _that(found, isinstance(found, hint), "a known name")


_SCALARS = {
    int: "a whole number",
    bool: "true or false",
    str: "text",
    types.NoneType: "null",
}


def _that(value: Any, holds: bool, what: str) -> Any:
    if not holds:
        raise NotThat(what)
    return value


def _matches(pattern: str, value: Any) -> bool:
    return type(value) is str and re.fullmatch(pattern, value) is not None


def _first(hints: tuple[Any, ...], value: Any, read: Callable[[Any, Any], Any]) -> Any:
    """The first of several types that fits; where but one is left, its own refusal."""
    left = [hint for hint in hints if (hint is types.NoneType) == (value is None)] or hints
    for hint in left[:-1]:
        with contextlib.suppress(*MALFORMED):
            return read(hint, value)
    return read(left[-1], value)


def _number(value: Any, key: Key, exact: bool) -> float:
    if key.infinite and value in ("inf", "-inf"):
        return float(value)
    _that(value, type(value) is str if exact else type(value) in (int, float), "a number")
    number = float.fromhex(value) if exact else float(value)
    _that(number, math.isfinite(number), "a finite number")
    return number


def _array(value: Any, arguments: tuple[Any, ...], exact: bool) -> Any:
    """An array of the entries' type that its annotation names."""
    import numpy as np

    _that(value, type(value) is list, "a list of numbers")
    entries = typing.get_args(arguments[1])[0]
    whole = issubclass(entries, np.integer)
    made = np.array(_unhexed(value) if exact and not whole else value)
    fits = made.dtype.kind in ("i" if whole and made.size else "iuf") and np.isfinite(made).all()
    return _that(made, fits, "a list of numbers").astype(entries)


def _unhexed(value: Any) -> Any:
    return [_unhexed(each) for each in value] if type(value) is list else float.fromhex(value)


def _read(cls: type[Made], fields: dict[str, Any]) -> Made:
    own: Any = cls
    keys = {key.name: key for key in _keys_of(own)}
    if unknown := fields.keys() - keys.keys():
        raise InvalidInput(f"a {_noun(cls)} has no field {min(unknown)!r:.40}.")
    hints, parameters, values = _hints_of(own), _parameters_of(own), {}
    for name, key in keys.items():
        parameter = parameters.get(key.attribute)
        if parameter is None or (name not in fields and parameter.default is not _NOTHING):
            continue
        if name not in fields:
            raise InvalidInput(f"a {_noun(cls)} needs a field {name!r}.")
        try:
            read = from_plain(hints[key.attribute], fields[name], key, exact=cls._plain_exact)
        except NotThat as error:
            raise InvalidInput(f"{name} of a {_noun(cls)} must be {error}.") from None
        values[key.attribute] = read
    return cls.built(**values)


@functools.cache
def _parameters_of(cls: Any) -> Mapping[str, inspect.Parameter]:
    """What an object is made of: the parameters of its constructor, or those of `built`."""
    return inspect.signature(cls.built if _builds_itself(cls) else cls).parameters


@functools.cache
def _hints_of(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls.built if _builds_itself(cls) else cls)


def _builds_itself(cls: Any) -> bool:
    return cls.built.__func__ is not vars(Plain)["built"].__func__


@functools.cache
def _keys_of(cls: Any) -> tuple[Key, ...]:
    keys = [
        Key(key) if isinstance(key, str) else key for key in cls._plain_keys or _parameters_of(cls)
    ]
    return tuple(key._replace(attribute=key.attribute or key.name) for key in keys)


def _noun(cls: type) -> str:
    """NoisySearch is a noisy search."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", cls.__name__).lower()
