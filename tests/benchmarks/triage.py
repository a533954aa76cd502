"""What triage says of a checkpoint and a task, beside what training gains: the real model and reasoning-gym.

    python -m tests.benchmarks.triage --out triage.jsonl [--pairs 0 1 2] [--jobs 2]

Every pair trains whatever triage says. A measurement is one line of the output file, with the right answers of every
prompt that triage sampled, so that another rule can be tried on it; lines that are there already are not repeated. Ends
with the table. Pairs with an even number are those that the rule was chosen on; it is reported on the others.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from components.config import Settings, load
from components.files import append_line, read_json, read_jsonl
from components.layout import Layout
from components.sft.triage import judged
from components.stages import run_stage
from tests.benchmarks.recipes import accuracy

MODEL = Path("models/smollm2-135m-instruct")
GAIN = 0.05
"""Held-out pass@1 that training must gain before a pair counts as one that RL can train."""
ROWS = 80
"""Problems of a data set; of products of two digits there are hardly more."""
BEFORE_SFT, BEFORE_TRAINING = ("data", "sft"), ("data", "audit", "sft", "admission", "triage", "clusters")
Row = dict[str, Any]


class Pair(NamedTuple):
    """A task, SFT steps on the mixture before it (0: the model as it is), and the steps of training."""

    task: str
    sft: int
    steps: int = 14


TASKS: dict[str, Row] = {
    "product": {"products": {"settings": {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}}},
    "product_long": {"products": {"settings": {"min_terms": 2, "max_terms": 2, "min_digits": 2, "max_digits": 3}}},
    "sum": {"chain_sum": {"settings": {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}}},
    "sum_two_digits": {"chain_sum": {"settings": {"min_terms": 2, "max_terms": 2, "min_digits": 2, "max_digits": 2}}},
    "sum_long": {"chain_sum": {"settings": {"min_terms": 3, "max_terms": 4, "min_digits": 3, "max_digits": 4}}},
    "backward": {"spell_backward": {"settings": {"min_word_len": 3, "max_word_len": 4}}},
    "backward_long": {"spell_backward": {"settings": {"min_word_len": 7, "max_word_len": 10}}},
    "divisor": {"gcd": {"settings": {"min_value": 1, "max_value": 30, "min_numbers": 2, "max_numbers": 2}}},
    "letters": {"letter_counting": {"settings": {"min_words": 3, "max_words": 5}}},
    "legs": {"leg_counting": {"settings": {"min_animals": 1, "max_animals": 2, "max_instances": 4}}},
    "equation": {"simple_equations": {"settings": {"min_value": 1, "max_value": 9}}},
    "courses": {"course_schedule": {"settings": {"min_num_courses": 3, "max_num_courses": 4}}},
}
SFT_ON = ("product", "sum", "backward", "divisor", "letters", "legs")
PAIRS = (
    Pair("courses", 0), Pair("product", 0), Pair("sum", 0), Pair("letters", 0),
    Pair("product", 8), Pair("sum", 8), Pair("sum_two_digits", 8), Pair("backward", 8),
    Pair("divisor", 8), Pair("letters", 8), Pair("sum_long", 8), Pair("legs", 8),
    Pair("product", 32), Pair("sum_two_digits", 32), Pair("backward", 32), Pair("divisor", 32),
    Pair("sum", 32), Pair("product_long", 32), Pair("equation", 32), Pair("backward_long", 32),
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, then print the table."""
    options = _parser().parse_args(arguments)
    os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
    done = {row["pair"] for row in _rows(options.out)}
    wanted = [number for number in options.pairs if number not in done]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for future in [pool.submit(checkpoint, options.work, sft) for sft in sorted({PAIRS[n].sft for n in wanted})]:
            future.result()
        for future in as_completed([pool.submit(measure, options.work, number) for number in wanted]):
            append_line(options.out, future.result())
    print(table(_rows(options.out)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "evenkeel-triage")
    parser.add_argument("--pairs", nargs="+", type=int, default=range(len(PAIRS)))
    parser.add_argument("--jobs", type=int, default=2)
    return parser


def _rows(path: Path) -> list[Row]:
    return sorted(read_jsonl(path), key=lambda row: row["pair"]) if path.exists() else []


def checkpoint(work: Path, sft: int) -> Path:
    """The model after so many SFT steps on a mixture of short tasks; made once."""
    if not sft:
        return MODEL
    folder = work / f"sft-{sft}"
    layout = Layout(folder)
    if not layout.sft_checkpoint.exists():
        datasets: Row = {}
        for task in SFT_ON:
            datasets |= TASKS[task]
        settings = _settings(folder, MODEL, datasets, {
            "sft": {"steps": sft, "batch_size": 8, "lr": 5e-5, "warmup": 2, "checkpoint_every": 1000,
                    "compute_dtype": "bfloat16"},
            "data": {"splits": {"sft": 0.7, "train": 0.1, "dev": 0.1, "test": 0.1}},
        })  # fmt: skip
        for stage in BEFORE_SFT:
            run_stage(stage, settings, layout)
    return layout.sft_checkpoint


def measure(work: Path, number: int) -> Row:
    """Judge and train one pair; accuracy before and after on the same held-out prompts."""
    pair = PAIRS[number]
    folder = work / f"pair-{number}"
    layout = Layout(folder)
    settings = _settings(folder, checkpoint(work, pair.sft), TASKS[pair.task], {
        "sft": {"steps": 0},
        "train": {"steps": pair.steps, "prompts_per_step": 8, "eval_every": pair.steps, "eval_prompts": 2,
                  "eval_samples": 2, "checkpoint_every": 1000, "keep_pairs": 0},
    })  # fmt: skip
    for stage in BEFORE_TRAINING:
        run_stage(stage, settings, layout)
    before = accuracy(settings, layout, "sft_checkpoint")
    run_stage("train", settings, layout)
    after = accuracy(settings, layout, "train_checkpoint")
    return {
        "pair": number,
        **pair._asdict(),
        "triage": read_json(layout.triage),
        "before": before["pass_at_1"],
        "after": after["pass_at_1"],
        "accuracy": [row["signals"].get("accuracy") for row in read_jsonl(layout.records)],
    }


def _settings(folder: Path, model: Path, datasets: Row, changes: Row) -> Settings:
    """A small run of ``model`` on ``datasets`` in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {
        "source": {"kind": "reasoning_gym", "rows": ROWS * len(datasets), "datasets": datasets},
        "splits": {"sft": 0, "train": 0.5, "dev": 0.1, "test": 0.4},
        "concentration": {"max_template": 1.0, "max_labelled_template": 1.0},
    }
    base: Row = {
        "extends": [str(Path("configs/recipes/grpo.yaml").resolve())],
        "name": folder.name,
        "threads": 1,
        "data": data | changes.get("data", {}),
        "policy": {"model": {"kind": "checkpoint", "path": str(model.resolve())}},
        "reward": {"verifier": {"kind": "reasoning_gym"}},
        "audit": {"override": "the pairs measure triage"},
        "triage": {"prompts": 40, "samples": 16, "override": "every pair is trained"},
        "schedule": {"kind": "uniform"},
        "health": {"enabled": False},
        "rollout": {"group_size": 8, "max_new_tokens": 10, "engine": {"precision": "bfloat16"}},
        "learner": {"lr": 2.0e-5, "warmup": 2, "compute_dtype": "bfloat16"},
        "evaluation": {"prompts": 40, "samples": 4, "reuse": False},
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({**base, **{name: part for name, part in changes.items() if name != "data"}}))
    return load(path)


def table(rows: Sequence[Row]) -> str:
    """Markdown: every pair, and how often each half is judged rightly."""
    lines = ["| pair | task | SFT steps | pass@1 | teaching groups a step | triage | after | gain |", "|---" * 8 + "|"]
    for row in rows:
        figures = judged(row["triage"])
        lines.append(
            f"| {row['pair']} | {row['task']} | {row['sft']} | {row['before']:.0%} | {figures['teaching']:.1f} "
            f"| {figures['verdict']} | {row['after']:.0%} | {100 * (row['after'] - row['before']):+.0f} |"
        )
    for half, parity in (("chosen on (even)", 0), ("reported on (odd)", 1)):
        lines.append(f"\n{half}: {_rates([row for row in rows if row['pair'] % 2 == parity])}")
    return "\n".join(lines)


def _rates(rows: Sequence[Row]) -> str:
    gained: dict[str, list[bool]] = {"refuse": [], "accept": []}
    for row in rows:
        gained[judged(row["triage"])["verdict"]].append(row["after"] - row["before"] >= GAIN)
    refused, accepted = gained["refuse"], gained["accept"]
    return (
        f"{sum(refused)} of {len(refused)} refused ones gained {GAIN:.0%} or more, "
        f"{sum(accepted)} of {len(accepted)} accepted ones did"
    )


if __name__ == "__main__":
    main()
