"""A private running sum, released after every push.

A saved counter goes on, once.

Noise that is used twice is no noise: two continuations of one state, pushed different events,
differ by the events alone. So restoring claims the state's id: a file that names it is created
exclusively in the folder of claims, durably, before the counter exists. Of any number of
processes that race for it one wins.

There is one folder of claims for each user, so that a copy of the file is seen wherever it was put.
What this cannot see: a copy restored by another user, on another machine or against another folder,
and a folder that was itself put back to an earlier state, by a backup or a snapshot of the machine.
Where several restore, give all of them the same folder, and keep it out of backups.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic, NoReturn, TypedDict, TypeVar, Unpack, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from muhat._arrays import Floats
from muhat._user_folder import user_folder
from muhat.errors import InvalidInput
from muhat.ledger import LedgerLike, as_ledger
from muhat.planning.display import mechanism_text
from muhat.planning.plan import Plan
from muhat.planning.run import carried_out
from muhat.privacy import Neighbors, Privacy
from muhat.release.certificate import Certificate
from muhat.stream.engines import Engine
from muhat.stream.grid import as_floats
from muhat.stream.plan import plan_prefix_counter
from muhat.stream.state import create, locate, read, sync_folder
from muhat.stream.sums import RunningSums

Answer = TypeVar("Answer", bound=float | Floats)


class CounterOptions(TypedDict, total=False):
    """What counters of numbers and of vectors have, for type checkers."""

    window: int | None
    decay: float | None
    contributions: int
    apart: int
    neighbors: Neighbors | str | None
    memory: str
    ledger: LedgerLike
    p: float


class PrefixCounter(Generic[Answer]):
    """The sum of all pushes so far, with noise, after each of up to `horizon` pushes.

    Its `Answer` is a float, or an array of shape (d,) for vectors.

    Made by `prefix_counter` or `restore`. The noise of an answer is drawn once: asking again gives
    the same answer. Whoever holds the counter holds the exact sum; it is as secret as the data, can
    be neither copied nor pickled, and belongs to one process. Threads may share it.
    """

    def __init__(
        self,
        plan: RunningSums,
        engine: Engine,
        pushed: int,
        last: list[int],
        ledger_head: dict[str, Any] | None,
    ) -> None:
        """For `prefix_counter` and `restore`."""
        self._plan = plan
        self._engine = engine
        self._pushed = pushed
        self._last = last
        self._ledger_head = ledger_head
        self._horizon = plan.horizon
        self._grid = plan.grids[0] if plan.scalar else None
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._gone = ""

    def push(self, value: Any) -> Answer:
        """Add one event, clipped to its bounds, and return the new running sum with its noise.

        A float, or an array of shape (d,) for vectors. A missing or non-finite number counts as
        the middle of its bounds. Beyond the horizon nothing is added and nothing released.
        """
        grid = self._grid
        if grid is None:
            return cast(Answer, self._push_rows(as_floats([value], len(self._last)))[0])
        term = grid.place(value)
        with self._lock:
            self._take(1)
            total = self._last[0] = self._engine.push(term)
            counted = 0.0 if grid.origin is None else self._plan.weight_after(self._pushed)
        return cast(Answer, grid.answer(total, counted))

    def push_many(self, values: Any) -> Floats:
        """Push the events one after the other; all answers, of shape (k,) or (k, d)."""
        scalar = self._plan.scalar
        rows = as_floats(values, None if scalar else len(self._last))
        answers = self._push_rows(rows[:, None] if scalar else rows)
        return answers[:, 0] if scalar else answers

    def _push_rows(self, rows: Floats) -> Floats:
        terms = [grid.place_all(rows[:, j]) for j, grid in enumerate(self._plan.grids)]
        with self._lock:
            self._take(len(rows))
            pushed = np.arange(self._pushed - len(rows), self._pushed) + 1
            totals = self._engine.push_many(terms)
            if len(rows):
                self._last = [int(column[-1]) for column in totals]
        answers = np.empty(rows.shape)
        for j, grid in enumerate(self._plan.grids):
            answers[:, j] = grid.answers(totals[j], self._plan.weight_after(pushed))
        return answers

    def _take(self, count: int) -> None:
        """Reserve the next answers: what is taken is never given again."""
        if self._gone or os.getpid() != self._process:
            self._refuse()
        if self._pushed + count > self._horizon:
            raise InvalidInput(
                f"the horizon is {self._horizon} pushes, and {self._horizon - self._pushed} are "
                f"left; got {count}. Nothing was added."
            )
        self._pushed += count

    def _refuse(self) -> NoReturn:
        raise InvalidInput(
            self._gone
            or "a counter belongs to the process that made it: a fork would use its noise twice. "
            "Hand it over with save() and muhat.stream.restore()."
        )

    @property
    def value(self) -> Answer:
        """The last answer again, or 0 before the first push."""
        sums = zip(self._last, self._plan.grids, strict=True)
        counted = self._plan.weight_after(self._pushed)
        found = [grid.answer(total, counted) for total, grid in sums]
        return cast(Answer, found[0] if self._plan.scalar else np.array(found))

    @property
    def pushed(self) -> int:
        """How many events were pushed; this number is public."""
        return self._pushed

    @property
    def horizon(self) -> int:
        """How many events can be pushed in all."""
        return self._horizon

    @property
    def cost(self) -> Privacy:
        """The promise, kept by all answers together; paid when the counter was made."""
        return self._plan.privacy

    @property
    def privacy(self) -> Privacy:
        """The same."""
        return self._plan.privacy

    @property
    def ledger_head(self) -> dict[str, Any] | None:
        """The ledger's head after the charge, if there was one."""
        return self._ledger_head

    @property
    def standard_errors(self) -> Floats:
        """The standard deviations of all answers, of shape (horizon,) or (horizon, d)."""
        found = self._plan.deviations
        return found[:, 0] if self._plan.scalar else found

    @property
    def standard_error(self) -> Answer:
        """The standard deviation of the last answer; 0 before the first push."""
        if not self._pushed:
            return cast(Answer, 0.0 if self._plan.scalar else np.zeros(len(self._last)))
        found = self.standard_errors[self._pushed - 1]
        return cast(Answer, float(found) if self._plan.scalar else found)

    @property
    def expected_error(self) -> float:
        """(E‖noise on all answers‖_p²)^½, for p = 2 the root of the sum of all variances."""
        return self.certificate.error

    @property
    def certificate(self) -> Certificate:
        """The error of all answers together, beside what no mechanism can beat."""
        return self._plan.certificate

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the counter to a new file, readable by its owner alone, and hand it over.

        The file is as secret as the data. From here on this object refuses pushes; the stream goes
        on with `muhat.stream.restore(path)`, once.
        """
        from muhat.stream.state import State, write

        with self._lock:
            self._take(0)
            state = State(
                plan=self._plan,
                engine=self._engine,
                pushed=self._pushed,
                last=list(self._last),
                ledger_head=self._ledger_head,
            )
            location = write(state, path)
            self._gone = (
                f"the counter was handed over to {location}; go on with muhat.stream.restore(path)."
            )

    def describe(self) -> str:
        """The counter in words; no data."""
        return mechanism_text(self._plan, ["pushed", f"{self.pushed:,}"])

    def __repr__(self) -> str:
        return (
            f"<PrefixCounter: {self._pushed:,} of {self.horizon:,} pushed, "
            f"{self._plan.privacy.describe()}>"
        )

    def __reduce__(self) -> NoReturn:
        raise InvalidInput("a counter is not copied or pickled: its noise may be used once only.")

    def __copy__(self) -> NoReturn:
        self.__reduce__()

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        self.__reduce__()


AnyCounter = PrefixCounter[float] | PrefixCounter[Floats]


@overload
def prefix_counter(
    horizon: int,
    privacy: Privacy,
    lower: float = 0,
    upper: float = 1,
    **options: Unpack[CounterOptions],
) -> PrefixCounter[float]: ...


@overload
def prefix_counter(
    horizon: int,
    privacy: Privacy,
    lower: Sequence[float] | NDArray[Any],
    upper: Sequence[float] | NDArray[Any],
    **options: Unpack[CounterOptions],
) -> PrefixCounter[Floats]: ...


def prefix_counter(
    horizon: int,
    privacy: Privacy,
    lower: ArrayLike = 0,
    upper: ArrayLike = 1,
    *,
    window: int | None = None,
    decay: float | None = None,
    contributions: int = 1,
    apart: int = 1,
    neighbors: Neighbors | str | None = None,
    memory: str = "full",
    ledger: LedgerLike = None,
    p: float = 2.0,
) -> AnyCounter:
    """A private running sum of up to `horizon` events, released after every push.

    All answers together keep the promise for adding or removing one event (a person has at most
    `contributions` of them, no two less than `apart` steps apart): a step without an event is a
    push of 0, and the number of steps is public. With `neighbors="substitute"`, the ledger's
    relation if it has that one, every step has an event, which is public, and its value is hidden:
    the noise is in proportion to upper − lower, wherever the bounds are. Every push is clipped to
    [lower, upper]; for vectors these are arrays of shape (d,). The ledger is charged here, before
    anything is pushed.

    With `window=w` the sums are of the last w events, with `decay=g` an event counts g times as
    much with every step; both are for up to 1,024 steps.

    `memory` is "full" (8 bytes of noise for every answer, made at the start) or "few-buffers" (the
    noise of 2,048 answers at a time whatever the horizon; pushes take half as long again, and the
    error is 2·10⁻⁴ larger; normal noise alone). Pure privacy is for up to 65,536 steps.

    The answers are A·x + noise, the same as of a batch release: up to 1,024 steps (512 for p > 2)
    with the best factorisation, made with the plan, in a few seconds at most; then with the
    square-root factorisation, at a horizon of 10⁶ within 0.9 % of the least root mean square error
    (p = 2) of such noise.

    >>> import muhat as mh
    >>> counter = mh.stream.prefix_counter(horizon=365, privacy=mh.ZCDP(rho=0.5))
    >>> answer = counter.push(0.7)
    >>> counter.value == answer, counter.pushed
    (True, 1)
    """
    account = as_ledger(ledger)
    if neighbors is None and account is not None:
        neighbors = account.neighbors
    plan = plan_prefix_counter(
        horizon,
        privacy,
        lower,
        upper,
        window=window,
        decay=decay,
        contributions=contributions,
        apart=apart,
        neighbors=neighbors,
        memory=memory,
        p=p,
    )
    return start(plan, account)


def start(plan: Plan, ledger: LedgerLike = None) -> AnyCounter:
    """The counter of a plan; the ledger is charged here, before anything is pushed."""
    started, (engine,), head = carried_out(plan, None, None, ledger)
    (part,) = started.parts
    assert isinstance(part.mechanism, RunningSums)
    return PrefixCounter(part.mechanism, engine, 0, [0] * part.mechanism.noise.dim, head)


def restore(
    path: str | os.PathLike[str], *, claims: str | os.PathLike[str] | None = None
) -> AnyCounter:
    """The counter that was saved, with the same sum and the same noise; works once.

    `claims` is the folder where restored states are noted, by default one of the user's own
    (`muhat/claims` in $XDG_STATE_HOME, or in ~/.local/state). The file is removed once it is
    claimed. A second claim, of a copy too, is InvalidInput.
    """
    location = Path(os.path.realpath(locate(path)))
    folder = claims_of_user() if claims is None else locate(claims)
    state = read(location)
    claim = folder / f".muhat-claimed-{state.identity}"
    try:
        create(claim, b"")
    except FileExistsError:
        raise InvalidInput(
            f"{location} was restored already; its noise may be used once only."
        ) from None
    except OSError as error:
        raise InvalidInput(f"{claim} cannot be made: {error.strerror}.") from None
    sync_folder(folder)
    with contextlib.suppress(OSError):
        os.unlink(location)
    return PrefixCounter(state.plan, state.engine, state.pushed, state.last, state.ledger_head)


def claims_of_user() -> Path:
    """The folder where this user's restored states are noted; made if it is not there."""
    hint = "Name another folder, the same for all that restore: claims=…."
    return user_folder("claims", "restored states are noted", hint)
