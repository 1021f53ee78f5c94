"""How long the next forward will take, learnt from the forwards already run."""


class ForwardTimes:
    """A line `seconds = fixed + rate * tokens`, fitted to recent forwards by weighted least squares.

    Every observation multiplies the weight of the earlier ones by `memory`, so that the line follows a machine
    that gets slower or a model whose inputs change.

    Args:
        memory: weight left to an observation when the next one comes, in (0, 1).
    """

    def __init__(self, memory: float = 0.9) -> None:
        self._memory = memory
        self._weight = self._tokens = self._seconds = self._tokens_squared = self._tokens_seconds = 0.0

    def observe(self, tokens: int, seconds: float) -> None:
        """Add one finished forward of `tokens` tokens that took `seconds` seconds."""
        keep = self._memory
        self._weight = keep * self._weight + 1
        self._tokens = keep * self._tokens + tokens
        self._seconds = keep * self._seconds + seconds
        self._tokens_squared = keep * self._tokens_squared + tokens * tokens
        self._tokens_seconds = keep * self._tokens_seconds + tokens * seconds

    def predict(self, tokens: int) -> float:
        """Return the expected seconds of a forward of `tokens` tokens; 0.0 before the first observation."""
        if not self._weight:
            return 0.0
        mean_tokens = self._tokens / self._weight
        mean_seconds = self._seconds / self._weight
        variance = self._tokens_squared / self._weight - mean_tokens**2
        covariance = self._tokens_seconds / self._weight - mean_tokens * mean_seconds
        # Forwards of one size say nothing of the slope, and noise can turn it negative: then time is
        # taken as proportional to tokens.
        rate = covariance / variance if variance > 1e-6 * mean_tokens**2 else 0.0
        fixed = mean_seconds - rate * mean_tokens
        if rate <= 0 or fixed < 0:
            return mean_seconds / mean_tokens * tokens if mean_tokens else mean_seconds
        return fixed + rate * tokens
