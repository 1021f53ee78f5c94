"""Documents -> entities, the whole path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from packing.documents import Document, Entity, Result
from packing.errors import WindowTooLong
from packing.forward import Forward, Row
from packing.overlap import Candidate, select
from packing.prompts import CHUNK_LABELS, TEXT_SHARE, CacheCounts, Prompt, Prompts
from packing.tokenizer import SubTokenizer
from packing.windows import WINDOW_WORDS, Window, merge, sentence_ends, split
from packing.words import Split, Words, read_words


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of the loaded model.

    Attributes:
        name: Its name on the hub, or the name of its folder.
        revision: The revision asked for, else `content_hash`.
        content_hash: 16 hexadecimal digits over its configuration, tokenizer and weights.
        architecture: The model library's class and the encoder's type.
        device: Where it runs, as torch names it: `cpu`, `cuda` (the current one), `cuda:1`.
        dtype: The dtype of its weights, such as `float32`.
        backend: `packed` (no padding anywhere), `packed heads` (the encoder pads within buckets of like length) or
            `padded` (the library's own forward, likewise).
        why: Why this backend and this dtype, in a line.
        steps: Why not the faster ones, a line each; what the self-test at the start found.
        max_words: Most words that it reads at once.
        max_tokens: Most sub-tokens that it reads at once, prompt and special tokens included.
        max_width: Longest entity in words; of a token-level model, the longest that windows are laid out for.
    """

    name: str
    revision: str
    content_hash: str
    architecture: str
    device: str
    dtype: str
    backend: str
    why: str
    steps: tuple[str, ...]
    max_words: int
    max_tokens: int
    max_width: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document, tokenised and split into windows.

    Attributes:
        document: As it came.
        tokens: Sub-tokens that the forward will read in all, prompts included.
        windows: How many windows the text takes.
        label_chunks: How many passes the labels take.
    """

    document: Document
    tokens: int
    windows: int
    label_chunks: int
    _words: Words | None
    _windows: tuple[Window, ...]
    _prompts: tuple[Prompt, ...]


class Engine:
    """A loaded model. One thread may `prepare` while another runs `infer`, but only one at a time may `infer`."""

    def __init__(
        self,
        *,
        info: ModelInfo,
        split_words: Split,
        tokenizer: SubTokenizer,
        prompts: Prompts,
        forward: Forward,
        window_words: int = WINDOW_WORDS,
        overlap_words: int | None = None,
    ) -> None:
        """Put an engine together from its parts; `Engine.load` is the usual way to one."""
        self.info = info
        self._split_words = split_words
        self._tokenizer = tokenizer
        self._prompts = prompts
        self._forward = forward
        self._window_words = min(window_words, info.max_words)
        self._overlap = info.max_width if overlap_words is None else overlap_words

    @classmethod
    def load(
        cls,
        model: str | Path,
        device: str = "auto",
        dtype: str = "auto",
        revision: str | None = None,
        *,
        window_words: int = WINDOW_WORDS,
        overlap_words: int | None = None,
        text_share: float = TEXT_SHARE,
        chunk_labels: int = CHUNK_LABELS,
    ) -> Engine:
        """Load a GLiNER model for named entities, span or token-level, uni- or bi-encoder.

        Args:
            model: A folder, read without any network, or a name on the hub (offline under `HF_HUB_OFFLINE`).
            device: `auto` (the current CUDA device where there is one, else the CPU) or a torch device's name.
            dtype: `float32`, `bfloat16`, `float16`, or `auto`: the fastest that a self-test against the library's own
                answers allows. `info` says which and why.
            revision: The hub's branch, tag or commit; for a folder merely its name in `info`.
            window_words: Most words of a window of a text that the model can't read at once.
            overlap_words: Words that neighbouring windows share, and `CONTEXT_WORDS` more where the cut is inside a
                sentence, at most half a window; None for the model's longest entity. With less, an entity across a
                cut may be lost.
            text_share: Part of the model's sequence that labels leave to the text at least, in (0, 1), unless the text
                needs less; more labels are asked in chunks, a forward each.
            chunk_labels: Most labels of a chunk, at least 1.

        Raises:
            ModelError: The model, device or dtype can't be used; the message is one line that says why.
        """
        from packing import loading, precision, self_test  # here, for torch takes seconds to import
        from packing.padded_forward import PaddedForward

        torch_device = loading.resolve_device(device)
        precisions = precision.candidates(dtype, torch_device)
        folder = loading.resolve_folder(model, revision)
        local = Path(model).is_dir()
        gliner = loading.load_gliner(folder, torch_device, local=local)
        config, processor = gliner.config, gliner.data_processor
        with loading.model_errors(f"the model in {str(folder)!r} can't be used"):
            content_hash = loading.content_hash(folder)
            tokenizer = SubTokenizer(processor.transformer_tokenizer, (config.ent_token, config.sep_token))
            info = ModelInfo(
                name=folder.resolve().name if local else str(model),
                revision=revision or content_hash,
                content_hash=content_hash,
                architecture=f"{type(gliner).__name__}/{config.encoder_config.model_type}",
                device=str(torch_device),
                dtype="float32",
                backend="padded",
                why="before the self-test",
                steps=(),
                max_words=int(config.max_len),
                max_tokens=loading.token_limit(gliner),
                max_width=int(config.max_width),
            )
            bi_encoder = bool(getattr(config, "labels_encoder", None))
            prompts = Prompts(
                tokenizer,
                ent_token=config.ent_token,
                sep_token=config.sep_token,
                max_tokens=info.max_tokens,
                text_share=text_share,
                chunk_labels=chunk_labels,
                label_tokenizer=SubTokenizer(processor.labels_tokenizer, ()) if bi_encoder else None,
                max_label_tokens=loading.label_token_limit(gliner) if bi_encoder else 0,
            )
            engine = cls(
                info=info,
                split_words=processor.words_splitter,
                tokenizer=tokenizer,
                prompts=prompts,
                forward=PaddedForward(gliner, tokenizer.suffix),
                window_words=window_words,
                overlap_words=overlap_words,
            )
            documents = [Document(text, self_test.LABELS) for text in self_test.TEXTS]
            chosen = self_test.choose(gliner, _rows(engine.prepare(documents)), precisions, tokenizer.suffix)
            engine._forward = chosen.forward
            engine.info = replace(
                info,
                dtype=str(chosen.dtype).removeprefix("torch."),
                backend=chosen.backend,
                why=chosen.why,
                steps=chosen.steps,
            )
        del gliner, processor
        loading.give_back()
        return engine

    def with_parts(
        self,
        *,
        prompts: Prompts | None = None,
        forward: Forward | None = None,
        window_words: int | None = None,
        overlap_words: int | None = None,
    ) -> Engine:
        """Return an engine with the same model, but for the parts given; nothing is loaded."""
        return Engine(
            info=self.info,
            split_words=self._split_words,
            tokenizer=self._tokenizer,
            prompts=prompts or self._prompts,
            forward=forward or self._forward,
            window_words=self._window_words if window_words is None else window_words,
            overlap_words=self._overlap if overlap_words is None else overlap_words,
        )

    def extract(self, documents: Sequence[Document]) -> list[Result]:
        """Return the documents' results, in order. See `prepare` and `infer` for what may be raised."""
        return self.infer(self.prepare(documents))

    def prepare(self, documents: Sequence[Document]) -> list[Prepared]:
        """Tokenise documents and split them into windows, without running the model.

        Raises:
            ValueError: A label that the model can't read: longer than fits, or no character of it known. It is named
                by its place among the different labels.
        """
        return [self._prepare(document) for document in documents]

    def infer(self, prepared: Sequence[Prepared]) -> list[Result]:
        """Run the model over all windows of the documents and return their results, in order.

        The answer for a document doesn't depend on the others.

        Raises:
            BadScores: A score is NaN or infinite.
            TooManyEntities: More than a million spans of a document exceed their threshold.
            WindowTooLong: A window doesn't fit the model; none that `prepare` makes for this model.
        """
        rows = _rows(prepared)
        self._check(rows)
        found = iter(self._forward.candidates(rows))
        return [
            _result(one, [(window, [next(found) for _ in one._prompts]) for window in one._windows]) for one in prepared
        ]

    def caches(self) -> dict[str, CacheCounts]:
        """Return how often what was asked for was remembered: `label_sets`, and a bi-encoder's `labels`."""
        counts = {"label_sets": self._prompts.counts()}
        if (labels := self._forward.label_counts()) is not None:
            counts["labels"] = labels
        return counts

    def _check(self, rows: Sequence[Row]) -> None:
        frame = len(self._tokenizer.suffix)
        for row in rows:
            tokens = len(row.prompt.ids) + len(row.ids) + frame
            for length, limit, unit in (
                (tokens, self.info.max_tokens, "sub-tokens"),
                (len(row.counts), self.info.max_words, "words"),
            ):
                if length > limit:
                    raise WindowTooLong(
                        f"a window of document {row.document} is {length:,} {unit} long, the model reads {limit:,}"
                    )

    def _prepare(self, document: Document) -> Prepared:
        pairs = document.prompts()
        if not pairs or not document.text.strip():
            return Prepared(document, 0, 0, 0, None, (), ())
        whole, chunks = self._prompts(pairs)
        frame = len(self._tokenizer.suffix)
        room = self.info.max_tokens - frame - len(whole.ids)
        chunk_room = self.info.max_tokens - frame - max(len(prompt.ids) for prompt in chunks)
        words = read_words(document.text, self._split_words, self._tokenizer, max_word_tokens=chunk_room)
        if not len(words):
            return Prepared(document, 0, 0, 0, None, (), ())
        if len(words) <= self.info.max_words and len(words.ids) <= room:
            prompts: tuple[Prompt, ...] = (whole,)
            windows = [Window(0, len(words))]
        else:
            prompts = chunks
            windows = split(
                words.bounds.tolist(),
                sentence_ends(document.text, words),
                max_words=self._window_words,
                max_tokens=chunk_room,
                overlap=self._overlap,
            )
        text_tokens = sum(int(words.bounds[window.end] - words.bounds[window.start]) for window in windows)
        frames = len(windows) * sum(len(prompt.ids) + frame for prompt in prompts)
        tokens = text_tokens * len(prompts) + frames
        return Prepared(document, tokens, len(windows), len(prompts), words, tuple(windows), prompts)


def _rows(prepared: Sequence[Prepared]) -> list[Row]:
    """Return a row for each document, within it for each window, and within that for each chunk of labels."""
    rows: list[Row] = []
    for number, one in enumerate(prepared):
        words = one._words
        if words is None:
            continue
        counts = np.diff(words.bounds)
        thresholds = [tuple(map(one.document.threshold_of, prompt.labels)) for prompt in one._prompts]
        rows.extend(
            Row(prompt, words.ids[words.bounds[start] : words.bounds[end]], counts[start:end], limits, number)
            for start, end in one._windows
            for prompt, limits in zip(one._prompts, thresholds, strict=True)
        )
    return rows


def _result(prepared: Prepared, found: list[tuple[Window, list[list[Candidate]]]]) -> Result:
    """Make the document's entities of the candidates of each window's passes."""
    words, text = prepared._words, prepared.document.text
    if words is None:
        return Result((), 0, 0)
    labels = [label for prompt in prepared._prompts for label in prompt.labels]
    by_window = [
        (window, [c._replace(label=prompt.first + c.label) for c in candidates])
        for window, passes in found
        for prompt, candidates in zip(prepared._prompts, passes, strict=True)
    ]
    entities = []
    for candidate in select(merge(prepared._windows, by_window), prepared.document.overlap):
        start, end = int(words.starts[candidate.start]), int(words.ends[candidate.end - 1])
        entities.append(Entity(start, end, text[start:end], labels[candidate.label], candidate.score))
    entities.sort(key=lambda entity: (entity.start, -entity.end, entity.label))
    return Result(tuple(entities), prepared.windows, prepared.label_chunks)
