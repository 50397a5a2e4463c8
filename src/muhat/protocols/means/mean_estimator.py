"""What means have in common, of known domains and unknown ones, whoever is trusted with what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import ArrayLike

from muhat import _check
from muhat._arrays import Floats
from muhat._words import BALL_OR_BOX, example_of_reals, rows
from muhat.domains import Domain, Reals
from muhat.ellipsoids.smallest import weight_vector
from muhat.errors import InvalidInput
from muhat.privacy import Privacy
from muhat.protocols.estimators.false_messages import false_messages
from muhat.protocols.randomizers.randomizer import MeanRandomizer
from muhat.protocols.roles.protocol import Estimator, Protocol
from muhat.release.release import Release
from muhat.release.vector_answer import VectorAnswer

CLIPPED = (
    "errors are about the records clipped to the domain, a missing value counting as its centre"
)


class MeanEstimator(Estimator):
    """The mean of n people's records."""

    learns: ClassVar[bool] = False
    """Whether where records lie is learnt from the messages."""

    if TYPE_CHECKING:  # fields

        @property
        def domain(self) -> Domain | Reals:
            """Where records lie."""

        @property
        def columns(self) -> tuple[str, ...] | None:
            """The names of the coordinates, if they have any."""

    def __post_init__(self) -> None:
        self._set("n", _check.count("n", self.n))
        self._set("columns", column_names(self.columns, self.domain.dim))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the coordinates: their numbers, if they have no other."""
        return self.columns or tuple(map(str, range(self.domain.dim)))

    def release(
        self,
        protocol: Protocol,
        users: int,
        assumptions: tuple[str, ...],
        told: tuple[str, ...] = (),
        **found: Any,
    ) -> Release:
        """The mean over so many users, as it was found; `told` is said after the turnout."""
        turnout = f"{users} of {protocol.users} planned users have answered; the mean is over them"
        late = () if users == protocol.users else (turnout,)
        answer = VectorAnswer(
            statistic="mean",
            columns=self.names,
            n=users,
            contributions=1,
            missing="center",
            assumptions=(*assumptions, *late, *told),
            learnt=self.learns,
            from_devices=True,
            **found,
        )
        return protocol.released(answer)

    def mean_randomizer(self, protocol: Protocol) -> MeanRandomizer:
        """What a round asks, which must be for a mean of such records."""
        asked = protocol.randomizer
        if not isinstance(asked, MeanRandomizer):
            raise InvalidInput("the round's randomizer does not estimate a mean.")
        if asked.record_dim != self.domain.dim:
            raise InvalidInput("the round's randomizer is about another domain than the mean.")
        return asked

    def false_answers(self, protocol: Protocol, people: int) -> str:
        """Of the round's randomizer: see `Estimator`."""
        return false_messages(protocol.randomizer, people, self.names)

    def _set(self, name: str, value: object) -> None:
        """While a frozen object is made."""
        object.__setattr__(self, name, value)


@dataclass(frozen=True)
class UnboundedMean(MeanEstimator):
    """The mean over n people whose records lie anywhere within a generous magnitude."""

    learns = True
    domain: Reals
    privacy: Privacy
    n: int

    def __post_init__(self) -> None:
        if self.domain.magnitude is None:
            raise InvalidInput(
                "must be given to learn centre and radius: a generous public bound on every "
                "coordinate, for instance ",
                example_of_reals(self.domain.dim),
                parameter="magnitude",
            )
        super().__post_init__()
        self.model.promise(self.privacy)

    @property
    def magnitude(self) -> float:
        """What bounds every coordinate."""
        assert self.domain.magnitude is not None
        return self.domain.magnitude

    def describe(self) -> str:
        return f"the mean of {self.n} people's records, wherever they lie in {self.domain!r}"


def too_few(n: int, least: int, dim: int, promise: Privacy) -> InvalidInput:
    """The refusal of so few people that nobody could learn where their records lie."""
    dimensions = "one column" if dim == 1 else f"{dim} columns"
    return InvalidInput(
        rows(n),
        f" is too small for {dimensions} and {promise.describe()}: "
        f"at least {least} people are needed to learn where their records lie.",
        hint=("Spend more, or bound the records (", BALL_OR_BOX, ")."),
    )


def weights_in_reals(
    weights: ArrayLike | Mapping[str, float] | None, dim: int
) -> tuple[float, ...] | None:
    """The weights of records that nobody has bounded; None if they are all 1."""
    if isinstance(weights, Mapping):
        raise InvalidInput(
            "must be numbers in Reals, one a column, not a dict of names", parameter="weights"
        )
    return unlike(None if weights is None else weight_vector(weights, dim))


def unlike(weights: Floats | None) -> tuple[float, ...] | None:
    """The weights; None if they are all 1."""
    return None if weights is None or (weights == 1).all() else tuple(weights.tolist())


def column_names(columns: Sequence[str] | None, dim: int) -> tuple[str, ...] | None:
    """The names of the coordinates, one each."""
    if columns is None:
        return None
    names = tuple(map(str, columns))
    if len(names) != dim or len(set(names)) != dim:
        raise InvalidInput(
            f"must be {dim} different names", parameter="columns", value=str(len(names))
        )
    return names
