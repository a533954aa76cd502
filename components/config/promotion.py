"""What promotion requires: one file per project, `configs/promotion/policy.yaml`, and no setting of a run.

Whoever starts a run chooses its settings, and so could weaken them; the policy is the project's own, under version
control, and its digest goes into every statement and every record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field, ValidationError, field_validator

from components.config.base import Section
from components.config.governed import GOVERNED, Bound, value_at
from components.config.judgement import GateSettings, RuleSettings
from components.config.keys import approver_key, own_signer, signer_key
from components.config.people import check_name, person
from components.config.reading import find_rules, read_mapping, read_rules
from components.config.registry import RegistrySettings
from components.errors import InputError
from components.files import sha256_json

FILE = Path("configs/promotion/policy.yaml")
HOW = "correct the lines above; the comments in configs/promotion/policy.yaml say what may stand there"
OWN_SIGNER = "this project"
"""What the project's own key is called."""
Action = Literal["promote", "reject", "rollback", "adopt"]
"""What a person can state: about a checkpoint, or, to adopt, about a policy."""
OfAdopted = Literal["training health", "training completed", "health by policy"]
"""Checks that cannot pass by the log of another trainer."""


class ApproverSettings(Section):
    """A person who may approve."""

    key: str = Field(description="The public key, `ed25519:` and 44 characters; `evenkeel keys new NAME` prints it.")
    also: tuple[str, ...] = Field((), description="Other names of the same person: e-mail address, login.")

    _key = field_validator("key")(approver_key)


class QuorumSettings(Section):
    """How many must agree, and how they prove who they are."""

    approvals: int = Field(1, ge=1, le=100, description="Different people that must approve.")
    signed: bool = Field(False, description="Only approvals count that are signed with the key of a listed approver.")
    own_approval: bool | None = Field(
        None,
        description="May the one who started the run approve? Not set: to promote, only where nothing is signed, for a "
        "name without proof excludes no one; to roll back, always, for what comes back was approved before.",
    )


class PromotionPolicy(Section):
    """The file, typed."""

    version: Literal[1] = Field(1, description="Version of the format of this file.")
    gate: GateSettings = Field(GateSettings(), description="Limits that a candidate is judged by again.")
    runs: dict[str, Bound] = Field(
        default_factory=dict,
        description="Settings of a run by their names with dots, and what each must keep to; those that are not listed "
        "here must keep to the defaults (`components/config/governed.py`).",
    )
    rules: str = Field("default", description="Health rules it is judged by: a file in configs/health, without .yaml.")
    approvers: dict[str, ApproverSettings] = Field(
        default_factory=dict, description="By name. Where any are listed, only their approvals count."
    )
    promote: QuorumSettings = Field(QuorumSettings(), description="Approvals that a promotion needs.")
    rollback: QuorumSettings = Field(QuorumSettings(), description="Approvals that a rollback needs.")
    adopted: tuple[OfAdopted, ...] = Field(
        get_args(OfAdopted),
        description="Checks of a checkpoint from another trainer that a person may answer with a reason, because its "
        "log does not show what they need; the others of the three fail.",
    )
    valid_days: int = Field(14, ge=1, le=365, description="Days that an approval is valid at the most.")
    signers: dict[str, str] = Field(
        default_factory=dict,
        description="Public keys (PEM) of those who sign checkpoints, by name; empty: this project's.",
    )

    @field_validator("runs")
    @classmethod
    def _settings_exist(cls, runs: dict[str, Bound]) -> dict[str, Bound]:
        from components.config.root import Settings  # which has what this module needs

        for path in runs:
            try:
                value = value_at(Settings(), path)
            except LookupError as error:
                raise ValueError(str(error)) from None
            if isinstance(value, Section):
                raise ValueError(f"{path} is a section, not a setting")
        return runs

    @field_validator("approvers")
    @classmethod
    def _names_show(cls, approvers: dict[str, ApproverSettings]) -> dict[str, ApproverSettings]:
        for name, one in approvers.items():
            for said in (name, *one.also):
                check_name(said)
        return approvers

    registry_key: str | None = Field(
        None,
        description="The public key that promotion records are signed with, `ed25519:` and 44 characters; "
        "`evenkeel keys new NAME --for registry` prints it. The private key stays with whoever decides, outside of the "
        "registry.",
    )
    witness: RegistrySettings | None = Field(
        None,
        description="A second store, which those who may write to the registry may not change: after every decision it "
        "gets the sha256 of the newest record, so that records that were removed or replaced are noticed.",
    )

    _registry_key = field_validator("registry_key")(lambda key: None if key is None else approver_key(key))
    _signers = field_validator("signers")(lambda signers: {name: signer_key(key) for name, key in signers.items()})

    def conflicts(self) -> Iterator[str]:
        keys = ((name, one.key) for name, one in self.approvers.items())
        yield from _repeated(keys, "have one key; each needs one of their own")
        names = ((name, person(said)) for name, one in self.approvers.items() for said in (name, *one.also))
        yield from _repeated(names, "go by one name; list a person once")
        for name, quorum in (("promote", self.promote), ("rollback", self.rollback)):
            listed = len(self.approvers)
            if quorum.signed and not listed:
                yield f"{name}: signed approvals need approvers; add them with `evenkeel keys new NAME`"
            if listed and quorum.approvals > listed:
                yield f"{name}: {quorum.approvals} approvals are required and {listed} approvers listed"

    @property
    def bounds(self) -> dict[str, Bound]:
        """What settings of a run must keep to, by their names with dots."""
        return {**GOVERNED, **self.runs}

    def quorum(self, action: Action) -> QuorumSettings:
        """What an action needs. One person turns a candidate down, and proves the name where promotion requires it."""
        if action == "reject":
            return self.promote.model_copy(update={"approvals": 1, "own_approval": True})
        if action == "adopt":
            return self.promote.model_copy(update={"own_approval": True})
        return self.promote if action == "promote" else self.rollback

    def own_approval(self, action: Action) -> bool:
        """Whether the one who started the run may approve."""
        quorum = self.quorum(action)
        if quorum.own_approval is not None:
            return quorum.own_approval
        return action == "rollback" or not quorum.signed

    def approver(self, name: str) -> str | None:
        """The listed name of a person, whichever of their names is given."""
        wanted = person(name)
        for listed, settings in self.approvers.items():
            if wanted in map(person, (listed, *settings.also)):
                return listed
        return None


def _repeated(pairs: Iterable[tuple[str, str]], problem: str) -> Iterator[str]:
    """What is wrong where a value occurs twice."""
    owners: dict[str, str] = {}
    for name, value in pairs:
        if value in owners:
            yield f"approvers: {owners[value]!r} and {name!r} {problem}"
        owners[value] = name


@dataclass(frozen=True)
class Policy:
    """The policy of a project with the health rules that it names."""

    settings: PromotionPolicy
    rules: Mapping[str, RuleSettings]
    signers: Mapping[str, str] = field(default_factory=dict)
    """Public keys (PEM) that checkpoints must be signed with, by name: those listed, or that of the project itself."""
    project: Path | None = field(default=None, compare=False)
    """Where it was read: the registry's private key and a witness in a folder are looked for from here."""

    @cached_property
    def sha256(self) -> str:
        """Digest over what the file and the health rules that it names require, whatever their format.

        A setting at its default is left out, so that a later version with more settings knows an old policy again. The
        project's own key for checkpoints is none of it: it differs from machine to machine.
        """
        return sha256_json(self.content)

    @cached_property
    def content(self) -> dict[str, Any]:
        """What the digest is over; `of_content` reads it."""
        content: dict[str, Any] = self.settings.model_dump(mode="json", exclude={"rules"}, exclude_defaults=True)
        rules = {name: rule.model_dump(mode="json", exclude_defaults=True) for name, rule in self.rules.items()}
        return {**content, "rules": rules}

    @classmethod
    def of_content(cls, content: Mapping[str, Any]) -> Policy:
        """The policy with this content, without the keys of a project that checkpoints are signed with.

        Raises:
            ValueError, TypeError, KeyError: it is none, or one of a newer version.
        """
        rules = {name: RuleSettings.model_validate(rule) for name, rule in content["rules"].items()}
        settings = PromotionPolicy.model_validate({name: one for name, one in content.items() if name != "rules"})
        return cls(settings, rules, settings.signers)


def load_policy(project: Path) -> Policy:
    """The policy of the project in this folder.

    Raises:
        InputError: the file or the rules are missing or malformed. Without a policy nothing is promoted: that a file is
            gone must not weaken what it required.
    """
    path = project / FILE
    if not path.is_file():
        raise InputError(
            "there is no promotion policy, so nothing can be decided",
            where=path,
            how=f"bring it back (git checkout -- {FILE}), or write one: an empty mapping {{}} requires one approval",
        )
    tree = read_mapping(path)
    settings = read_policy(tree, where=str(path))
    rules = read_rules(find_rules(path, settings.rules))
    try:
        judged_by = {name: RuleSettings.model_validate(rule) for name, rule in rules.items()}
    except ValidationError as error:
        raise InputError(
            f"the health rules of the policy are not valid:\n{_lines(error)}", where=path, how=HOW
        ) from None
    return Policy(settings, judged_by, settings.signers or own_signers(project), project)


def own_signers(project: Path) -> dict[str, str]:
    """The key of the project itself, where it has made one, by the name that it is shown under."""
    own = own_signer(project)
    return {OWN_SIGNER: own} if own else {}


def read_policy(tree: Mapping[str, Any], where: str) -> PromotionPolicy:
    """The policy in parsed YAML.

    Raises:
        InputError: every line that is wrong, a sentence each; values are not repeated, as one may be a private
            key there.
    """
    try:
        return PromotionPolicy.model_validate(tree)
    except ValidationError as error:
        raise InputError(f"the promotion policy is not valid:\n{_lines(error)}", where=where, how=HOW) from None


def _lines(error: ValidationError) -> str:
    return "\n".join(f"  - {_line(one)}" for one in error.errors(include_input=False, include_url=False))


def _line(error: Any) -> str:
    key = ".".join(str(part) for part in error["loc"])
    text = "unknown setting" if error["type"] == "extra_forbidden" else error["msg"].removeprefix("Value error, ")
    return f"{key}: {text}" if key else text
