"""Score a finished model folder on held-out texts and put the figures and the card beside its weights."""

import json
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

from training import corpora, evaluate, model, model_card
from training.evaluate import Score

NAMES = {
    "wnut17": "WNUT-17 test: posts, rare names",
    "btc": "Broad Twitter Corpus test: posts",
    "wikigold": "wikigold, second half: encyclopedia",
    "sec_filings": "SEC filings test: contracts",
    "crossner/politics": "CrossNER politics",
    "crossner/science": "CrossNER science",
    "crossner/literature": "CrossNER literature",
    "crossner/ai": "CrossNER AI (never seen)",
    "crossner/music": "CrossNER music (never seen)",
}
"""Annotation scheme -> what its row is called."""


def write(
    folder: Path, data: Path, run: model_card.Run, trained_on: list[corpora.Text], say: Callable[[str], None]
) -> model_card.Metrics:
    """Choose a threshold on the development texts, score the test texts, write `metrics.json` and `README.md`.

    `trained_on` are the texts of the training split as read; `say` is told each line of progress.
    """
    gliner = model.load(folder)
    dev = []
    for file, texts in corpora.read_split(data, "dev").items():
        asked = evaluate.questions(texts)
        dev.append((asked, evaluate.answer(gliner, asked)))
        say(f"read {file} for the threshold, {len(asked)} texts")
    threshold = evaluate.choose_threshold(dev)
    say(f"threshold {threshold:.2f}")

    scores: dict[str, Score] = {}
    for texts in corpora.read_split(data, "test").values():
        for scheme, group in evaluate.by_scheme(texts).items():
            asked = evaluate.questions(group)
            scores[NAMES[scheme]] = evaluate.score(asked, evaluate.answer(gliner, asked), threshold)
            say(f"{NAMES[scheme]}: F1 {scores[NAMES[scheme]].f1:.3f}")
    crossner = [scores[name] for scheme, name in NAMES.items() if scheme.startswith("crossner")]
    scores["CrossNER, mean of the five domains"] = Score(
        fmean(s.precision for s in crossner),
        fmean(s.recall for s in crossner),
        fmean(s.f1 for s in crossner),
        sum(s.entities for s in crossner),
    )
    metrics = model_card.Metrics(
        run=run,
        corpora=model_card.corpora_used(trained_on),
        parameters=sum(weight.numel() for weight in gliner.parameters()),
        vocabulary=len(gliner.data_processor.transformer_tokenizer),
        folder_bytes=model_card.folder_bytes(folder),
        threshold=threshold,
        scores=scores,
    )
    (folder / "metrics.json").write_text(
        json.dumps(model_card.as_json(metrics), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    (folder / "README.md").write_text(model_card.write_card(metrics), encoding="utf-8")
    return metrics
