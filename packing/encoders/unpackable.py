"""Why a model can't run as a flat stream."""


class Unpackable(Exception):  # noqa: N818, it is an answer, not an error: another way is taken
    """The model, or a part of it, is of a kind that isn't packed; the message says which."""
