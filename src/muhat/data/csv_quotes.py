"""Which line breaks of a CSV text end a record, and which belong to a quoted cell (RFC 4180).

From where a record begins a text is tried as fields with well-formed quotes, over as many lines
as that takes: a quote opens a cell where a field begins, two of them stand for one inside of it,
and one before a delimiter or a line break closes it. Where quotes are not well formed, the record
is its first line alone, nothing of it can be read, and the next line begins another. So records
that a writer wrote are found as it wrote them, and a stray quote costs its own line.

A line with an even number of quotes ends in the state it began in, so a record of several lines
begins and ends at lines with an odd number: neighbours among the odd lines pair up, or do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint8]
Positions = NDArray[np.intp]
Mask = NDArray[np.bool_]
Words = NDArray[np.uint64]

_WORD_BITS = 64
QUOTE, BREAK, RETURN, SPACE = b'"\n\r '


@dataclass(frozen=True)
class Layout:
    """The whole records of a text: the first ends at `first`, the last at `end`.

    Where quotes are malformed `ends` are the ends of all records, one past the line break, and
    `bad` says of which nothing can be read. Else a record ends where a line break is not quoted.
    """

    first: int
    end: int
    count: int
    ends: Positions | None = None
    bad: Mask | None = None


@dataclass(frozen=True)
class Quotes:
    """The quotes of a text, and which of them may open a cell, or close one."""

    places: Positions
    opening: Mask
    closing: Mask


def layout(text: bytes, delimiter: bytes, *, final: bool) -> Layout | None:
    """The records of a text that begins with one; None if more of it is needed to tell.

    `final` says that nothing follows; else what comes after the last whole record is left over.
    """
    stop = len(text) if final else text.rfind(b"\n") + 1
    if text.find(b'"', 0, stop) < 0:
        return lines(text, stop)
    codes = np.frombuffer(text, np.uint8, stop)
    found = _well_formed(codes, delimiter)
    if found is not None and (found.end == stop or not final):
        return found if found.count else None
    breaks = _breaks(codes)
    before = np.searchsorted(np.flatnonzero(codes == QUOTE), breaks)
    ends, bad = _paired(quotes_in(codes, delimiter), breaks, before, final)
    return Layout(int(ends[0]), int(ends[-1]), len(ends), ends, bad) if len(ends) else None


def lines(text: bytes, stop: int) -> Layout | None:
    """Every line up to `stop`, where one ends, is a record; None if there is none."""
    if not stop:
        return None
    codes = np.frombuffer(text, np.uint8, stop)
    count = int(np.count_nonzero(codes == BREAK)) + int(codes[-1] != BREAK)
    return Layout(text.find(b"\n") + 1 or stop, stop, count)


def _well_formed(codes: Codes, delimiter: bytes) -> Layout | None:
    """The records, none of them if none ends, of quotes as a writer writes them; else None.

    Of every byte there is a bit, 64 a word: far fewer words than there are quotes.
    """
    quotes, breaks = (_bits(codes == code) for code in (QUOTE, BREAK))
    # Before the text is a line break, and behind it.
    breaks[-1] |= np.uint64(codes[-1] != BREAK) << np.uint64(len(codes) % _WORD_BITS)
    beside = quotes | breaks
    for code in delimiter:
        beside |= _bits(codes == code)
    opening, closing = beside << 1, beside | _bits(codes == RETURN)
    opening[1:] |= beside[:-1] >> _WORD_BITS - 1
    opening[0] |= 1
    carried = closing[1:] << _WORD_BITS - 1
    closing >>= 1
    closing[:-1] |= carried
    quoted = _odd(quotes)
    if (quotes & ((quoted & ~opening) | ~(quoted | closing))).any():
        return None
    ends = breaks & ~quoted
    words = np.flatnonzero(ends)
    if not len(words):
        return Layout(0, 0, 0)
    first, last = map(int, ends[words[[0, -1]]])
    stops = (first & -first).bit_length(), last.bit_length()
    first_stop, stop = (
        min(_WORD_BITS * int(word) + bits, len(codes))
        for word, bits in zip(words[[0, -1]], stops, strict=True)
    )
    return Layout(first_stop, stop, int(np.bitwise_count(ends).sum()))


def _bits(chosen: Mask) -> Words:
    """A mask as bits, the first the lowest, and at least one more."""
    words = np.zeros(len(chosen) // _WORD_BITS + 1, "<u8")
    packed = np.packbits(chosen, bitorder="little")
    words.view(np.uint8)[: len(packed)] = packed
    return words


def _odd(bits: Words) -> Words:
    """Whether an odd number of bits are set up to every bit, with it."""
    odd = bits.copy()
    for power in range(6):
        odd ^= odd << (1 << power)
    before = np.bitwise_xor.accumulate(odd >> _WORD_BITS - 1)[:-1]
    odd[1:] ^= np.negative(before)
    return odd


def quotes_in(codes: Codes, delimiter: bytes, before: int = BREAK, after: int = BREAK) -> Quotes:
    """The quotes of a text between a byte `before` it and one `after` it."""
    places = np.flatnonzero(codes == QUOTE)
    return Quotes(
        places,
        _may_open(codes, places, delimiter, before),
        _may_close(codes, places, delimiter, after),
    )


def _may_open(codes: Codes, places: Positions, delimiter: bytes, before: int = BREAK) -> Mask:
    opens = np.zeros(256, bool)
    opens[[*delimiter, BREAK, QUOTE]] = True
    # Moved to and fro in place: there may be nothing but quotes, and each takes eight bytes here.
    places -= 1
    preceding = codes[places]
    places += 1
    if len(places) and places[0] == 0:
        preceding[0] = before
    return opens[preceding]


def _may_close(codes: Codes, places: Positions, delimiter: bytes, after: int = BREAK) -> Mask:
    closes = np.zeros(256, bool)
    closes[[*delimiter, BREAK, QUOTE, RETURN]] = True
    places += 1
    following = codes.take(places, mode="clip")
    places -= 1
    if len(places) and places[-1] == len(codes) - 1:
        following[-1] = after
    return closes[following]


def _paired(
    quotes: Quotes, breaks: Positions, before: Positions, final: bool
) -> tuple[Positions, Mask]:
    """The ends of records among the ends of lines, and which are malformed."""
    counts = np.diff(before, prepend=0)
    later = np.zeros(len(quotes.places), bool)
    later[1::2] = True
    # Whether a quote is the first, third, … of its line.
    even = later == np.repeat((before - counts) % 2 == 1, counts)
    broken = _lines_of(~np.where(even, quotes.opening, quotes.closing), before)
    misfits = np.cumsum(_lines_of(~np.where(even, quotes.closing, quotes.opening), before))

    odd = np.flatnonzero(counts % 2)
    heads, tails = odd[:-1], odd[1:]
    fits = ~broken[heads] & (misfits[tails] == misfits[heads])
    # Pairs do not overlap: in a run of fits every other one is taken, from its first on.
    number = np.arange(len(fits))
    gap = np.maximum.accumulate(np.where(fits, -1, number))
    taken = fits & ((number - gap) % 2 == 1)

    steps = np.zeros(len(breaks) + 1, np.intp)
    steps[heads[taken]] += 1
    steps[tails[taken]] -= 1
    goes_on = np.cumsum(steps[:-1]) > 0
    bad = broken | (counts % 2 == 1)
    bad[goes_on] = False
    bad[tails[taken]] = False
    stop = len(breaks)
    if not final and len(odd) and bad[odd[-1]] and not broken[odd[-1]]:
        # What follows may still close it.
        stop = odd[-1] if misfits[-1] == misfits[odd[-1]] else stop
    keep = np.flatnonzero(~goes_on[:stop])
    return breaks[keep], bad[keep]


def _lines_of(chosen: Mask, before: Positions) -> Mask:
    """Which lines have a quote that is chosen; `before` counts the quotes up to their ends."""
    found = np.zeros(len(before), bool)
    found[np.searchsorted(before, np.flatnonzero(chosen), side="right")] = True
    return found


def cleaned(text: bytes, found: Layout) -> bytes:
    """The whole records of a text, spaces in place of those of which nothing can be read.

    These have malformed quotes, or a carriage return that neither ends a line nor is quoted.
    """
    body = text[: found.end]
    bad = found.bad
    if b"\r" in body:
        bad = _with_stray_returns(np.frombuffer(body, np.uint8), found)
    if bad is None or not bad.any():
        return body
    codes = np.frombuffer(body, np.uint8)
    ends = _ends(codes, found)
    which = np.flatnonzero(bad)
    edges = np.zeros(len(codes) + 1, np.int8)
    edges[np.append(0, ends)[which]] += 1
    edges[ends[which] - (codes[ends[which] - 1] == BREAK)] -= 1
    blank = np.add.accumulate(edges[:-1], dtype=np.int8) > 0
    return np.where(blank, np.uint8(SPACE), codes).tobytes()


def _with_stray_returns(codes: Codes, found: Layout) -> Mask | None:
    """Which records are bad if stray carriage returns are."""
    returns = np.flatnonzero(codes == RETURN)
    following = codes.take(returns + 1, mode="clip")
    stray = returns[(following != BREAK) & (returns < len(codes) - 1)]
    if not len(stray):
        return found.bad
    ends = _ends(codes, found)
    record = np.searchsorted(ends, stray, side="right")
    quotes = np.flatnonzero(codes == QUOTE)
    begun = np.searchsorted(quotes, np.append(0, ends)[record])
    outside = (np.searchsorted(quotes, stray) - begun) % 2 == 0
    bad = np.zeros(len(ends), bool) if found.bad is None else found.bad.copy()
    bad[record[outside]] = True
    return bad


def _ends(codes: Codes, found: Layout) -> Positions:
    if found.ends is not None:
        return found.ends
    breaks = _breaks(codes)
    ends: Positions = breaks[np.searchsorted(np.flatnonzero(codes == QUOTE), breaks) % 2 == 0]
    return ends


def _breaks(codes: Codes) -> Positions:
    """The ends of all lines."""
    breaks = np.flatnonzero(codes == BREAK) + 1
    whole = len(breaks) and breaks[-1] == len(codes)
    return breaks if whole else np.append(breaks, len(codes))
