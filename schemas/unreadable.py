"""Why something on the wire can't be read: the field and the reason, in words."""

from pydantic import ValidationError

_KINDS: dict[type, str] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a floating-point number",
    str: "a string",
    list: "a list",
    dict: "an object",
}

_EXPECTED = {
    "string_type": "a string",
    "int_type": "an integer",
    "float_type": "a number",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
}


class Unreadable(ValueError):  # noqa: N818 - it says what the value is, not what went wrong here
    """A value that can't be read, and why.

    The message never quotes the value: it ends up in logs and in the headers of a dead letter.

    Attributes:
        field: where the fault lies: a field (`labels`, `source.offset`), a header's name, or `value` for the
            whole.
        reason: what is wrong there.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


def kind(value: object) -> str:
    """Name a value's JSON type, with its article."""
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def first_fault(error: ValidationError) -> Unreadable:
    """Turn pydantic's first complaint into an `Unreadable`."""
    fault = error.errors(include_url=False)[0]
    field = ".".join(map(str, fault["loc"])) or "value"
    got = kind(fault["input"])
    match fault["type"]:
        case "missing":
            reason = "missing"
        case "literal_error":
            reason = f"expected {fault['ctx']['expected']}, got {got.replace('a string', 'another string')}"
        case "string_unicode":  # only a field with a fixed set of values is compared as UTF-8
            reason = "expected one of its fixed values, got a string with a lone surrogate"
        case known if known in _EXPECTED:
            reason = f"expected {_EXPECTED[known]}, got {got}"
        case _:
            reason = fault["msg"]
    return Unreadable(field, reason)
