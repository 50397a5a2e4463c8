"""What people hand over as records, as floats; types decide what is refused, nothing is quoted."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muhat._arrays import Floats
from muhat.data.memory import real_number
from muhat.errors import InvalidInput

_NUMBERS = Real | Decimal | np.bool_ | None


def one_record(record: Any, dim: int) -> Floats:
    """One person's numbers, of shape (1, dim)."""
    values = _numbers(record)
    if values.ndim > 1 or values.size != dim:
        shape, wanted = _shape(values), _numbers_in_words(dim)
        raise InvalidInput(f"a record must be {wanted}, one a coordinate; got {shape}.")
    return values.reshape(1, dim)


def many_records(records: Any, dim: int) -> Floats:
    """Many people's numbers, of shape (people, dim)."""
    rows = _numbers(records)
    if rows.ndim == 1 and dim == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or rows.shape[1] != dim:
        raise InvalidInput(
            f"must be rows of {_numbers_in_words(dim)}, one a person",
            parameter="records",
            value=_shape(rows),
        )
    return rows


def _numbers(values: Any) -> Floats:
    """Numbers of any size as floats."""
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidInput("a record must not be a masked array. Fill it: .filled(numpy.nan).")
    array = _array(values)
    if array is None or array.dtype.kind not in "fiubO":
        raise InvalidInput(_NO_NUMBERS)
    if array.dtype.kind != "O":
        # A warning would depend on the record.
        with np.errstate(all="ignore"):
            return array.astype(np.float64, copy=False)
    if not all(isinstance(value, _NUMBERS) for value in array.flat):
        raise InvalidInput(_NO_NUMBERS)
    floats = [real_number(value) for value in array.flat]
    return np.array(floats, np.float64).reshape(array.shape)


def _array(values: Any) -> NDArray[Any] | None:
    """The values as an array, or None: errors of numpy, and of what makes an array itself, may
    quote them.

    What is no array yet becomes one of objects, whether a value is missing or not.
    """
    try:
        return np.asarray(values, None if isinstance(values, np.ndarray) else object)
    except Exception:
        return None


def _numbers_in_words(dim: int) -> str:
    return "1 number" if dim == 1 else f"{dim} numbers"


def _shape(array: Floats) -> str:
    return "a single number" if not array.ndim else f"shape {array.shape}"


_NO_NUMBERS = "a record must be made of numbers; None stands for a missing one."
