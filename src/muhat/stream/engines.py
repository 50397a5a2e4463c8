"""What goes on inside a counter: all noise kept from the start, or a few buffers.

An engine takes terms in units and gives running sums with noise in units. It never looks back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import mul
from typing import Any, ClassVar

import numpy as np

from muhat._arrays import Floats, Integers
from muhat.mechanisms.queries.buffered import BufferedNoise, buffered_deviations
from muhat.mechanisms.queries.event_weights import Weights
from muhat.mechanisms.queries.running_laplace import LaplaceRunningNoise
from muhat.mechanisms.queries.running_optimum import OptimalRunningNoise
from muhat.mechanisms.queries.running_stairs import StairsRunningNoise
from muhat.mechanisms.queries.streaming import RunningNoise
from muhat.workloads.factorize import LONGEST_SOLVED

Noise = RunningNoise | LaplaceRunningNoise | StairsRunningNoise
NOISES: dict[str, type[Noise]] = {
    noise.mechanism: noise
    for noise in (RunningNoise, OptimalRunningNoise, LaplaceRunningNoise, StairsRunningNoise)
}
MOST_WEIGHED = LONGEST_SOLVED
"""Steps of streams whose events do not count the same in all sums after them."""


class Engine(ABC):
    """The secret half of a counter."""

    memory: ClassVar[str]

    @classmethod
    @abstractmethod
    def start(cls, plan: Noise) -> Engine:
        """An engine that has seen nothing."""

    @classmethod
    @abstractmethod
    def resume(cls, plan: Noise, pushed: int, state: Any, words: Integers) -> Engine:
        """The engine that `saved` described; ValueError and the like if it does not fit."""

    @abstractmethod
    def push(self, term: int) -> int:
        """The next sum of the only coordinate."""

    @abstractmethod
    def push_many(self, terms: list[Integers]) -> list[Integers]:
        """The next sums of every coordinate."""

    @abstractmethod
    def saved(self) -> tuple[Any, Integers]:
        """What has to be kept: JSON, and integers."""

    @staticmethod
    @abstractmethod
    def deviations(plan: Noise) -> Floats:
        """The standard deviations of all sums, of shape (n, d)."""


class KeptNoise(Engine):
    """The noise of all answers, drawn and rounded at the start: 8 bytes each."""

    memory = "full"

    def __init__(self, noise: Integers, sums: list[int]) -> None:
        self.sums = sums
        self._keep(noise)

    def _keep(self, noise: Integers) -> None:
        """Noise of the answers that come next."""
        self.noise = noise
        self.place = 0
        self._column = np.ascontiguousarray(noise).reshape(-1).data

    @classmethod
    def start(cls, plan: Noise) -> KeptNoise:
        return cls(plan.draw(), [0] * plan.dim)

    @classmethod
    def resume(cls, plan: Noise, pushed: int, state: Any, words: Integers) -> KeptNoise:
        sums = [int(x) for x in state]
        if len(sums) != plan.dim:
            raise ValueError
        return cls(words.reshape(plan.size - pushed, plan.dim), sums)

    def _draw(self) -> None:
        """What to do when there is no more: all was drawn at the start, and the horizon is near."""
        raise AssertionError("there is noise for every answer up to the horizon")

    def push(self, term: int) -> int:
        if self.place == len(self._column):
            self._draw()
        noise = self._column[self.place]
        self.place += 1
        self.sums[0] = exact = self.sums[0] + term
        return exact + noise

    def push_many(self, terms: list[Integers]) -> list[Integers]:
        count = len(terms[0])
        totals = []
        for j, column in enumerate(terms):
            sums = np.cumsum(column) + np.int64(self.sums[j])
            totals.append(sums + self.noise[self.place : self.place + count, j])
            if count:
                self.sums[j] = int(sums[-1])
        self.place += count
        return totals

    def saved(self) -> tuple[Any, Integers]:
        return list(self.sums), self.noise[self.place :]

    @staticmethod
    def deviations(plan: Noise) -> Floats:
        return plan.standard_deviations


class WeighedNoise(KeptNoise):
    """The same for sums of events that count for a while, or less and less."""

    def __init__(self, noise: Integers, sums: list[list[int]], weights: Weights) -> None:
        super().__init__(noise, [])
        self.terms = sums
        self.shift = weights.shift
        self.weights = [weight for weight in weights.whole(MOST_WEIGHED) if weight]

    @classmethod
    def start(cls, plan: Noise) -> WeighedNoise:
        return cls(plan.draw(), [[] for _ in range(plan.dim)], plan.events)

    @classmethod
    def resume(cls, plan: Noise, pushed: int, state: Any, words: Integers) -> WeighedNoise:
        terms = [[int(x) for x in column] for column in state]
        engine = cls(words.reshape(plan.size - pushed, plan.dim), terms, plan.events)
        if [len(column) for column in terms] != [min(pushed, len(engine.weights))] * plan.dim:
            raise ValueError
        return engine

    def push(self, term: int) -> int:
        return int(self.push_many([np.array([term])])[0][0])

    def push_many(self, terms: list[Integers]) -> list[Integers]:
        totals = []
        for j, column in enumerate(terms):
            kept, sums = self.terms[j], []
            for place, term in enumerate(column.tolist(), self.place):
                kept.insert(0, term)
                del kept[len(self.weights) :]
                total = sum(map(mul, self.weights, kept)) + int(self.noise[place, j])
                sums.append((total + (1 << self.shift >> 1)) >> self.shift)
            totals.append(np.array(sums, np.int64))
        self.place += len(terms[0])
        return totals

    def saved(self) -> tuple[Any, Integers]:
        return self.terms, self.noise[self.place :]


class FewBuffers(KeptNoise):
    """The noise of a block of answers, and a dozen integers from which the next is made."""

    memory = "few-buffers"

    def __init__(self, noise: Integers, sums: list[int], sources: list[BufferedNoise]) -> None:
        super().__init__(noise, sums)
        self.sources = sources

    @classmethod
    def start(cls, plan: Noise) -> FewBuffers:
        assert isinstance(plan, RunningNoise)
        sources = [BufferedNoise(plan, j) for j in range(plan.dim)]
        return cls(np.empty((0, plan.dim), np.int64), [0] * plan.dim, sources)

    @classmethod
    def resume(cls, plan: Noise, pushed: int, state: Any, words: Integers) -> FewBuffers:
        if not isinstance(plan, RunningNoise):
            raise ValueError
        sums = [int(x) for x in state["sums"]]
        sources = [BufferedNoise(plan, j, fields) for j, fields in enumerate(state["noise"])]
        left = words.reshape(-1, plan.dim)
        drawn = {one.drawn for one in sources}
        if len(sums) != plan.dim or len(sources) != plan.dim or drawn != {pushed + len(left)}:
            raise ValueError
        return cls(left, sums, sources)

    def push_many(self, terms: list[Integers]) -> list[Integers]:
        parts, taken, count = [], 0, len(terms[0])
        if not count:
            return terms
        while taken < count:
            if self.place == len(self.noise):
                self._draw()
            stop = min(taken + len(self.noise) - self.place, count)
            parts.append(super().push_many([column[taken:stop] for column in terms]))
            taken = stop
        return [np.concatenate(columns) for columns in zip(*parts, strict=True)]

    def _draw(self) -> None:
        self._keep(np.stack([one.draw() for one in self.sources], axis=1))

    def saved(self) -> tuple[Any, Integers]:
        state = {"sums": self.sums, "noise": [one.to_dict() for one in self.sources]}
        return state, self.noise[self.place :]

    @staticmethod
    def deviations(plan: Noise) -> Floats:
        assert isinstance(plan, RunningNoise)
        return buffered_deviations(plan)


def engine_of(noise: Noise, memory: str) -> type[Engine]:
    """What carries noise out."""
    return ENGINES[memory] if noise.events == Weights() else WeighedNoise


ENGINES: dict[str, type[Engine]] = {engine.memory: engine for engine in (KeptNoise, FewBuffers)}
