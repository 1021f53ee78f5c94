"""How far ahead of its commits a worker reaches: as many records as keep the forwards busy. Pure.

The less it reaches, the fewer records are suspect when it dies.
"""

import math

LEAST = 32
"""Records that may always be in hand of a partition."""
BUDGETS = 6
"""Budgets of tokens under way at most: four micro-batches between closed and committed, two being made ready."""


class Reach:
    """Turns tokens into records, by what recent micro-batches held.

    Args:
        budget_tokens: token budget of a micro-batch.
        most: records from which on more are never needed.
    """

    def __init__(self, budget_tokens: int, most: int) -> None:
        self._budget_tokens = budget_tokens
        self._most = max(most, LEAST)
        self._tokens_each = 0.0

    def observe(self, tokens: int, records: int) -> None:
        """Take note of a micro-batch."""
        each = tokens / records
        self._tokens_each = 0.8 * self._tokens_each + 0.2 * each if self._tokens_each else each

    @property
    def ahead(self) -> int:
        """How many records of a partition may be in hand beyond its committed offset."""
        return min(max(self.records(BUDGETS * self._budget_tokens), LEAST), self._most)

    def records(self, tokens: int) -> int:
        """Return how many records hold about so many tokens, at least 1."""
        return max(1, math.ceil(tokens / self._tokens_each)) if self._tokens_each else LEAST
