r"""JSON as the wire has it: strict UTF-8, finite numbers, bounded depth, and lone surrogates in strings.

Real texts hold lone surrogates (a UTF-16 string cut in the middle of a pair), written as `\udXXX` escapes.
The faster parsers refuse them, so this is the standard library's, with its looser sides made tight.
"""

import json
import re
from typing import Any, NoReturn

from schemas.unreadable import Unreadable

MAX_DEPTH = 64
"""How deep lists and objects may be nested; the outermost counts 1."""

MAX_INTEGER_DIGITS = 4300
"""CPython's own default limit (`sys.set_int_max_str_digits`), held to whatever an interpreter is set to."""

BYTE_ORDER_MARK = "\ufeff"

# Possessive, and the closing quote optional, so that no input takes more than linear time.
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)


def decode_text(value: bytes) -> str:
    """Decode strict UTF-8 and drop one leading byte order mark.

    Raises:
        Unreadable: the bytes are not UTF-8.
    """
    try:
        return value.decode("utf-8").removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        raise Unreadable("value", f"not UTF-8: {error.reason} at byte {error.start}") from None


def loads(value: bytes) -> Any:
    """Read one JSON value.

    Integers are exact, and of a repeated key the last value wins.

    Raises:
        Unreadable: the bytes are not UTF-8 or not JSON (NaN and Infinity aren't), are nested deeper than
            `MAX_DEPTH`, or hold a number too large for a double or an integer of more than
            `MAX_INTEGER_DIGITS` digits.
    """
    text = decode_text(value)
    if not text:
        raise Unreadable("value", "empty, expected JSON")
    if (levels := _brackets_depth(text)) > MAX_DEPTH:
        raise Unreadable("value", f"nested {levels} levels deep, at most {MAX_DEPTH} are read")
    try:
        return _DECODER.decode(text)
    except Unreadable:
        raise
    except ValueError as error:  # says where, and quotes nothing
        raise Unreadable("value", f"not JSON: {error}") from None


def dumps(value: Any) -> bytes:
    r"""Write one JSON value: compact, in UTF-8, lone surrogates as `\udXXX` escapes.

    A high surrogate that stands directly before a low one, both lone, is read back as the one character they
    encode: JSON can't tell the two apart. No text that was read from JSON or UTF-8 holds such a pair.

    Raises:
        ValueError: the value holds a NaN or an infinity.
    """
    return _ENCODER.encode(value).encode("utf-8", "backslashreplace")


def depth(value: object) -> int:
    """Return how deep the lists and objects of a value that was read are nested; 0 for any other."""
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def _brackets_depth(text: str) -> int:
    """Return how deep brackets outside strings nest, or some upper bound where that is allowed.

    The parser itself would recurse until it fell.
    """
    most = text.count("[") + text.count("{")
    if most <= MAX_DEPTH:
        return most
    open_ = most = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        first = text[token.start()]
        if first in "[{":
            open_ += 1
            most = max(most, open_)
        elif first in "]}":
            open_ -= 1
    return most


def _finite(literal: str) -> float:
    number = float(literal)
    if number in (float("inf"), float("-inf")):
        raise Unreadable("value", "a number is too large for a double")
    return number


def _exact_integer(literal: str) -> int:
    if len(literal.removeprefix("-")) > MAX_INTEGER_DIGITS:
        raise Unreadable("value", f"an integer has more than {MAX_INTEGER_DIGITS} digits")
    return int(literal)


def _no_constant(name: str) -> NoReturn:
    raise Unreadable("value", f"not JSON: {name} is no JSON number")


_DECODER = json.JSONDecoder(parse_float=_finite, parse_int=_exact_integer, parse_constant=_no_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
