"""Weights that are read and written one at a time are those of the whole policy."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
import torch
from factories import TINY, policy
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from components.config.policy import LoraSettings, PolicySettings
from components.errors import InputError
from components.files import manifest
from components.learner.weights import Gathered
from components.policy import Policy, load_policy, stored
from components.policy.lazily import Lazily
from components.policy.lora import Initial, adapted, names_in_model
from components.policy.outline import filled, is_hollow, outline
from components.policy.stored import Stored, buckets, write_buckets
from components.policy.tiny import build_model
from components.policy.writing import Named, write_policy

LORA = LoraSettings(rank=2, alpha=8, targets="all-linear")


def mixture() -> Policy:
    shape = TINY.model_copy(update={"experts": 4, "layers": 2})
    return Policy(build_model(shape, policy().tokenizer, seed=0), policy().tokenizer)


def moved(own: Policy) -> Policy:
    """With an adapter that changes something."""
    generator = torch.Generator().manual_seed(0)
    for parameter in own.trainable().values():
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=generator)
    return own


class TestFiles:
    def test_are_read_tensor_by_tensor_by_their_names(self, tmp_path):
        save_file({"weight/a": torch.ones(2), "other": torch.zeros(1)}, tmp_path / "one.safetensors")
        save_file({"weight/b": torch.zeros(3, dtype=torch.long)}, tmp_path / "two.safetensors")
        found = Stored(sorted(tmp_path.iterdir()), "weight/", torch.bfloat16)
        assert list(found) == ["a", "b"] and found.shape("b") == (3,)
        assert found["a"].dtype == torch.bfloat16 and found["b"].dtype == torch.long

    def test_with_a_tensor_of_the_same_name_are_refused(self, tmp_path):
        for name in ("one", "two"):
            save_file({"a": torch.ones(2)}, tmp_path / f"{name}.safetensors")
        with pytest.raises(ValueError, match=r"two\.safetensors holds a, which another file holds too"):
            Stored.folder(tmp_path)

    def test_hold_a_bucket_each_and_together_every_weight(self, tmp_path, monkeypatch):
        monkeypatch.setattr(stored, "BUCKET", 4096)
        own = policy().weights()
        files = list(write_buckets(own, tmp_path))
        assert len(files) > 2
        sizes = [sum(t.nbytes for t in load_file(file).values()) for file in files]
        assert all(size <= 4096 or len(load_file(file)) == 1 for size, file in zip(sizes, files, strict=True))
        found = Stored(files)
        assert found.keys() == own.keys() and all(torch.equal(found[name], own[name]) for name in own)

    def test_are_written_while_no_more_than_a_bucket_is_held(self, monkeypatch):
        monkeypatch.setattr(stored, "BUCKET", 100)
        read: list[str] = []

        class Noted(dict[str, Tensor]):
            def items(self):  # type: ignore[override]
                for name, value in super().items():
                    read.append(name)
                    yield name, value

        first, *_ = buckets(Noted({name: torch.ones(20) for name in "abc"}))
        assert list(first) == ["a"]
        assert next(buckets(Noted({name: torch.ones(20) for name in "abc"}))).keys() == {"a"}
        assert read[-2:] == ["a", "b"]


class TestAPolicyThatIsWritten:
    @pytest.mark.parametrize("make", [policy, mixture], ids=["dense", "mixture of experts"])
    def test_tensor_by_tensor_is_the_folder_that_it_saves_itself(self, make, tmp_path):
        own = make()
        own.save(tmp_path / "whole")
        (tmp_path / "streamed").mkdir()
        write_policy(own, own.weights(), tmp_path / "streamed")
        whole, streamed = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "streamed"))
        assert whole.keys() == streamed.keys()
        assert all(torch.equal(whole[name], streamed[name]) for name in whole)
        rest = [manifest(tmp_path / name) for name in ("whole", "streamed")]
        for files in rest:
            files.pop("model.safetensors")
        assert rest[0] == rest[1]

    def test_in_bfloat16_can_be_read_by_others(self, tmp_path):
        own = Policy(policy().model.bfloat16(), policy().tokenizer)
        write_policy(own, own.weights(), tmp_path)
        with safe_open(tmp_path / "model.safetensors", "pt") as file:
            assert file.metadata() == {"format": "pt"}
            name = next(iter(own.weights()))
            assert torch.equal(file.get_tensor(name), own.weights()[name])

    def test_with_other_weights_than_its_own_has_those(self, tmp_path):
        own, other = policy(), {name: weight + 1 for name, weight in policy().weights().items()}
        write_policy(own, other, tmp_path)
        found = load_policy(tmp_path, PolicySettings())
        assert all(torch.equal(weight, other[name]) for name, weight in found.weights().items())

    def test_with_a_weight_of_another_shape_is_an_error(self, tmp_path):
        own = policy()
        wrong = {name: weight[:1] for name, weight in own.weights().items()}
        with pytest.raises(ValueError, match="not as announced"):
            write_policy(own, wrong, tmp_path)


class TestNames:
    def test_of_fused_experts_are_those_of_the_checkpoint_and_each_weight_is_read_once(self, tmp_path):
        own, read = mixture(), []

        class Noted(dict[str, Tensor]):
            def __getitem__(self, name: str) -> Tensor:
                read.append(name)
                return super().__getitem__(name)

        own.save(tmp_path)
        found = Named(own.model, Noted(own.weights()))
        expected = load_file(tmp_path / "model.safetensors")
        assert found.keys() == expected.keys() != own.weights().keys()
        assert all(torch.equal(value, expected[name]) for name, value in found.items())
        assert len(read) == len(set(read)) == len(own.weights())


class TestAnOutline:
    def test_has_no_values_of_its_own_and_finds_those_of_the_checkpoint(self, tmp_path):
        own = policy()
        own.save(tmp_path)
        found, weights = outline(tmp_path, PolicySettings())
        assert is_hollow(found.model) and not is_hollow(own.model)
        assert {n: p.shape for n, p in found.model.named_parameters()} == {
            n: p.shape for n, p in own.model.named_parameters()
        }
        assert found.encode_prompt("1+1=") == own.encode_prompt("1+1=") and found.parameters == own.parameters
        assert sum(p.untyped_storage().nbytes() for p in found.model.parameters()) < 1000
        assert all(torch.equal(weights[name], weight) for name, weight in own.weights().items())

    def test_filled_with_weights_is_the_policy(self, tmp_path):
        own = policy()
        own.save(tmp_path)
        found = filled(*outline(tmp_path, PolicySettings()))
        assert all(torch.equal(own.weights()[name], weight) for name, weight in found.weights().items())
        ids = torch.tensor([own.encode_prompt("1+1=")])
        assert torch.equal(found.model(ids).logits, own.model(ids).logits)

    def test_filled_tensor_by_tensor_takes_no_more_memory_than_its_weights(self, tmp_path):
        own = policy()
        own.save(tmp_path)
        hollow, weights = outline(tmp_path, PolicySettings())
        gc.freeze()  # what is there already is not looked through for every tensor

        def storages() -> dict[int, int]:
            found = (one.untyped_storage() for one in gc.get_objects() if isinstance(one, torch.nn.Parameter))
            return {one.data_ptr(): one.nbytes() for one in found}

        class Watched(Lazily):
            names, most = own.weights().keys(), 0

            def __getitem__(self, name: str) -> torch.Tensor:
                self.most = max(self.most, sum(storages().values()))
                return weights[name]

        watched = Watched()
        found = filled(hollow, watched)
        assert 0 < watched.most < sum(weight.nbytes for weight in own.weights().values())
        assert not any(p.requires_grad for p in found.model.parameters()) and is_hollow(hollow.model)
        assert all(p.requires_grad for p in hollow.model.parameters())

    def test_reads_weights_in_the_policys_precision(self, tmp_path):
        policy().save(tmp_path)
        _, weights = outline(tmp_path, PolicySettings(dtype="bfloat16"))
        assert {weight.dtype for weight in weights.values()} == {torch.bfloat16}

    def test_of_a_mixture_of_experts_is_the_policy_itself(self, tmp_path):
        own = mixture()
        own.save(tmp_path)
        found, weights = outline(tmp_path, PolicySettings())
        assert not is_hollow(found.model)
        assert all(torch.equal(weights[name], weight) for name, weight in own.weights().items())

    def test_has_the_adapter_that_the_whole_policy_would_have(self, tmp_path):
        policy().save(tmp_path)
        found, weights = outline(tmp_path, PolicySettings())
        apart, whole = adapted(found, LORA, seed=3), adapted(policy(), LORA, seed=3)
        state, expected = Initial(apart, weights), Initial(whole, None)
        assert {name for name, _ in whole.model.named_parameters()} <= state.keys() | set(
            names_in_model(whole).values()
        )
        assert all(torch.equal(state[name], expected[name]) for name, _ in whole.model.named_parameters())


class TestGatheredWeights:
    @pytest.mark.parametrize("make", [policy, lambda: moved(adapted(policy(), LORA, seed=3))], ids=["whole", "adapter"])
    def test_are_those_of_the_policy_with_its_adapter_merged(self, make):
        own = make()
        parameters = dict(own.model.named_parameters())
        found = Gathered(own, lambda wanted: [parameters[name].detach() for name in wanted], parameters)
        expected = own.weights()
        assert found.keys() == expected.keys()
        assert all(torch.allclose(found[name], expected[name], atol=1e-6) for name in expected)

    def test_take_what_was_learned_from_elsewhere_where_that_is_given(self):
        own = moved(adapted(policy(), LORA, seed=3))
        learned = {name: parameter.detach().clone() for name, parameter in own.trainable().items()}
        expected, parameters = own.weights(), dict(own.model.named_parameters())
        moved(own)
        found = Gathered(own, lambda wanted: [parameters[name].detach() for name in wanted], parameters, learned)
        assert all(torch.allclose(found[name], expected[name], atol=1e-6) for name in expected)


def test_a_folder_without_weights_is_empty(tmp_path: Path):
    assert len(Stored.folder(tmp_path)) == 0


def test_an_outline_keeps_how_the_checkpoint_is_sampled_from(tmp_path):
    own = policy()
    own.model.generation_config.temperature, own.model.generation_config.do_sample = 0.6, True
    own.save(tmp_path / "whole")
    found, weights = outline(tmp_path / "whole", PolicySettings())
    (tmp_path / "again").mkdir()
    write_policy(found, weights, tmp_path / "again")
    name = "generation_config.json"
    assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_weights_that_a_checkpoint_has_apart_are_not_tied_by_its_outline(tmp_path):
    own = policy()
    own.save(tmp_path)
    (file,) = tmp_path.glob("*.safetensors")
    tensors = load_file(file)
    assert own.model.config.tie_word_embeddings and "lm_head.weight" not in tensors
    save_file(tensors | {"lm_head.weight": 2 * tensors["model.embed_tokens.weight"]}, file, metadata={"format": "pt"})
    found, _ = outline(tmp_path, PolicySettings())
    assert not is_hollow(found.model)
    assert torch.equal(found.model.lm_head.weight, 2 * found.model.model.embed_tokens.weight)


def test_what_cannot_be_loaded_is_refused_with_its_reason(tmp_path):
    policy().save(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"qwen3"', '"unheard_of"'))
    with pytest.raises(InputError, match="cannot load this checkpoint"):
        outline(tmp_path, PolicySettings())


def test_buffers_of_a_checkpoint_are_written_too(tmp_path):
    own = policy()
    own.model.register_buffer("bias_of_experts", torch.arange(3.0))
    (tmp_path / "streamed").mkdir()
    write_policy(own, own.weights(), tmp_path / "streamed")
    assert torch.equal(load_file(tmp_path / "streamed" / "model.safetensors")["bias_of_experts"], torch.arange(3.0))
