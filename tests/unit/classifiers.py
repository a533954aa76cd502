"""A tiny sequence-pair classifier in a folder, as `transformers` saves one: its weights are random."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}


def save_classifier(path: Path, words: list[str], labels: tuple[str, str], positions: int, **config: Any) -> Path:
    """A BERT that knows these words, splits numbers into digits, and reads ``positions`` tokens."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    known = [*SPECIAL.values(), *words]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(known)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(individual_digits=True)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    named = {"id2label": dict(enumerate(labels)), "label2id": {name: i for i, name in enumerate(labels)}}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = BertConfig(vocab_size=len(known), max_position_embeddings=positions, **sizes, **named, **config)
        BertForSequenceClassification(made).save_pretrained(path)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=positions, **SPECIAL).save_pretrained(path)
    return path
