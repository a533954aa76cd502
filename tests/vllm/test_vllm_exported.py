"""A folder that `evenkeel export` writes is a model that vLLM serves as it is."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from components.config.servers import VllmEngine
from components.files import sha256_tree
from components.processes import Child, free_port, vllm_python
from components.processes.vllm_server import environment
from flows.exporting.form import Form, write
from tests.vllm.tiny import tiny

QUESTIONS = ("1+1=", "12+12=", "3+3=")
TOKENS = 24
STARTED = 300.0


def exported(tmp_path: Path) -> Path:
    tree, folder = tmp_path / "tree", tmp_path / "release"
    tree.mkdir()
    folder.mkdir()
    tiny().save(tree)
    write(Form.safetensors, tree, sha256_tree(tree), folder, "tiny")
    return folder


def served(server: Child, url: str, body: dict[str, object]) -> list[list[int]]:
    """The tokens that a server samples; it may still be starting."""
    until = time.monotonic() + STARTED
    while True:
        assert server.alive and time.monotonic() < until, server.log.read_text()[-2000:]
        try:
            answer = httpx.post(f"{url}/v1/completions", json=body, timeout=60, trust_env=False)
        except httpx.TransportError:
            time.sleep(0.5)
            continue
        assert answer.status_code == 200, answer.text
        return [choice["token_ids"] for choice in answer.json()["choices"]]


def greedy(folder: Path) -> list[list[int]]:
    """The same by transformers."""
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    found = []
    for question in QUESTIONS:
        ids = tokenizer(question, return_tensors="pt").input_ids
        with torch.no_grad():
            out = model.generate(ids, do_sample=False, max_new_tokens=TOKENS)
        found.append(out[0, ids.shape[1] :].tolist())
    return found


def test_an_exported_folder_answers_in_vllm_as_in_transformers(tmp_path: Path) -> None:
    folder, port = exported(tmp_path), free_port()
    command = [str(vllm_python(None)), "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)]
    command += ["--served-model-name", "release", "--host", "127.0.0.1", "--port", str(port), "--dtype", "float32"]
    command += ["--enforce-eager"]
    variables = environment(VllmEngine(kind="vllm", processes=1, eager=True), "1", gpu=torch.cuda.is_available())
    server = Child("release", command, log=tmp_path / "release.log", env=variables)
    try:
        body = {"model": "release", "prompt": list(QUESTIONS), "max_tokens": TOKENS, "temperature": 0}
        body["return_token_ids"] = True
        found = served(server, f"http://127.0.0.1:{port}", body)
    finally:
        server.stop()
    assert found == greedy(folder)
    assert all(found)
