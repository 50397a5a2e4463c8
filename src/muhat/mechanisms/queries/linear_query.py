"""What integer answers to linear queries have in common, whatever their integers are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat._plain import Plain
from muhat.noise.laplace_sums import NoiseSums
from muhat.privacy import Neighbors
from muhat.workloads.factorization import Factorization
from muhat.workloads.linear_map import LinearMap


class LinearQuery(Plain, ABC):
    """Exact counts in, noisy answers out."""

    method: ClassVar[str | None] = None
    """What the strategy is called, where it is not that of the factorisation."""

    if TYPE_CHECKING:  # fields, or properties

        @property
        def sets(self) -> tuple[tuple[int, ...], ...]:
            """The marginal tables of counts that `release` needs."""

        @property
        def rows(self) -> int:
            """How many integers have noise."""

        @property
        def scales(self) -> Floats:
            """The scale of the noise on every answer, of shape (m,)."""

    @property
    def keeps_total(self) -> bool:
        """Whether the integers add up to the number of records that have a cell."""
        return False

    @abstractmethod
    def sensitivity(self, norm: float, neighbors: Neighbors, contributions: int) -> Fraction:
        """An upper bound on how far neighbours' integers lie apart, in units of 2^-54."""

    @abstractmethod
    def release(
        self,
        margins: Mapping[tuple[int, ...], NDArray[Any]],
        sample: Callable[[int], NDArray[Any]],
        total: int | None,
    ) -> Floats:
        """The noisy answers, of shape (m,); `total` is the number of records where public."""

    def decoded_by(self, factorization: Factorization) -> LinearMap | Floats | None:
        """What takes the noise to the answers, up to `unit`; None where no matrix is at hand."""
        return factorization.decoder

    def unit(self, factorization: Factorization) -> float:
        """The scale of the noise that the decoder takes to the answers."""
        deviations = factorization.standard_deviations
        return float(self.scales.max() / deviations.max()) if deviations.any() else 1.0

    def laplace_sums(self) -> NoiseSums | None:
        """Laplace noise on every answer as a sum of variables, where no matrix says it."""
        return None

    def total_noise(self) -> tuple[float, NoiseSums | None]:
        """The scale of the noise on the number of records, and its sum, where no matrix says it."""
        raise AssertionError("the decoder says what noise there is on the number of records")
