"""What surrounds a person's answer to a candidate: the form, what was shown, what was said before, and who asks."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from prefect._internal.pydantic.v2_schema import create_v2_schema
from prefect.client.schemas.objects import StateType
from prefect.exceptions import Pause
from prefect.utilities.schema_tools.validation import validate
from test_watching_runs import ran

from components.config import Settings, dump, load
from components.config.promotion import FILE, PromotionPolicy, QuorumSettings, load_policy
from components.config.registry import RegistrySettings
from components.errors import InputError
from components.evaluation import against
from components.files import sha256_bytes, write_text
from components.registry import Candidate, DirectoryStore, Standing, Unavailable, find, identify, question, sign
from components.registry.approvals import Approval, approvals_of
from components.registry.keys import new_key, public_text
from components.registry.statements import state
from components.types import Judgement
from flows.cleaning import approval_requests
from flows.governance.commands import DecisionCommands, config_of
from flows.governance.registry import DEFAULT, RegistryContext, name_of, named_store, signing_key
from flows.host.git import git
from flows.prefect_runtime import states
from flows.promoting import rounds as rounds_module
from flows.promoting import suspension
from flows.promoting.answers import Concluded, Decision, SignedDecision, Undecided, conclude, filled, form, store_answer
from flows.promoting.report import pages
from flows.promoting.rounds import Rounds, rounds
from flows.promoting.suspension import approvals_needed, outcome_page, request_page
from flows.promoting.waiting_runs import KEY, Request, Run, load_request, store_request
from flows.run.workspace import UNKNOWN_REQUEST, RunRequest
from flows.serving.automations import MESSAGES
from tests.code_graph import ROOT
from tests.proposals import commit
from tests.served.asking import make_candidate

NOW = datetime(2026, 8, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def context(tmp_path: Path) -> RegistryContext:
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    signing_key(tmp_path, load_policy(tmp_path))  # makes the project's key, which the policy then trusts
    return RegistryContext(tmp_path, DirectoryStore(tmp_path / "registry"), load_policy(tmp_path))


def record(context: RegistryContext, value: float) -> str:
    """A candidate of which there is no more than the record; its digest."""
    digest = sha256_bytes(str(value).encode())
    gate = {"result": "pass", "checks": [], "policy_sha256": "0" * 64}
    candidate = Candidate(digest, gate, {"run": "demo-1", "started_by": ["lin"]}, evidence="e" * 64)
    context.store.put_if_absent(candidate.key, candidate.to_bytes())
    return digest


def with_policy(context: RegistryContext, **settings: Any) -> RegistryContext:
    return replace(context, policy=replace(context.policy, settings=PromotionPolicy.model_validate(settings)))


def request(context: RegistryContext, digest: str, **changes: Any) -> Request:
    candidate = find(context.store, digest)
    fields = {"digest": digest, "evidence": candidate.evidence, "policy": context.policy.sha256, "gate": "0" * 64}
    made = Request(**{**fields, "base": 0, "approved": 0, "shown": "# shown", "flow_run": "a run", **changes})
    store_request(context.store, made)
    return made


def answer(context: RegistryContext, made: Request, at: datetime = NOW, **values: str) -> Approval:
    """What a person sends about ``made`` is stored."""
    return store_answer(context, find(context.store, made.digest), made, values, at)


def undecided(context: RegistryContext, candidate: Candidate, said: Approval | None = None) -> Undecided:
    found = conclude(context, candidate, said)
    assert isinstance(found, Undecided)
    return found


def approved(context: RegistryContext, candidate: Candidate) -> Concluded | Undecided:
    """Ada approves a candidate of which the gate has just said what it says."""
    made = request(context, candidate.digest, gate=undecided(context, candidate).standing.question.gate)
    answer(context, made, datetime.now(UTC), decision="approve", by="Ada")
    return conclude(context, candidate)


def errors(kind: type[Decision], values: dict[str, Any]) -> list[str]:
    """What the server says to a form: it holds it to this schema."""
    return [error.message for error in validate(values, create_v2_schema("Decision", model_base=kind))]


# The form


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("doubtful", [False, True])
def test_no_form_decides_anything_by_default(signed: bool, doubtful: bool) -> None:
    kind = form(signed, doubtful, "# evidence")
    assert any("'decision' is a required property" in error for error in errors(kind, {}))
    assert any("'decision' is a required property" in error for error in errors(kind, {"by": "Ada", "reason": "so"}))
    assert any("'by' is a required property" in error for error in errors(kind, {"decision": "approve"}))
    assert errors(kind, {"decision": "approve", "by": " \t", "reason": "so"})
    assert errors(kind, {"decision": "approve", "by": "Ada", "reason": "so", "digest": "0"})
    assert not errors(kind, {"decision": "approve", "by": "Ada", "reason": "so"})


def test_where_the_gate_is_in_doubt_a_reason_is_required() -> None:
    assert errors(form(False, True, ""), {"decision": "approve", "by": "Ada"})
    assert not errors(form(False, False, ""), {"decision": "approve", "by": "Ada"})


@pytest.mark.parametrize("values", [{}, None, [], "approve", {"decision": "approve"}, {"decision": "", "by": "Ada"}])
def test_what_is_no_decision_is_said_to_be_none(values: Any) -> None:
    with pytest.raises(InputError, match="not a decision"):
        filled(values)


# What was shown


def test_what_was_shown_is_found_again_and_its_key_fits_prefect(context: RegistryContext) -> None:
    digest = record(context, 0.1)
    made = request(context, digest)
    assert load_request(context.store, digest, made.sha256) == made
    matched = KEY.fullmatch(made.key(3))
    assert matched is not None
    assert (matched["digest"], matched["request"], matched["round"]) == (digest[:16], made.sha256, "3")


def test_what_was_shown_cannot_be_replaced(context: RegistryContext) -> None:
    digest, other = record(context, 0.1), record(context, 0.2)
    made, about_other = request(context, digest), request(context, other)
    (path,) = context.project.glob(f"registry/objects/requests/{digest}/*.json")
    path.write_bytes(replace(made, base=7).to_bytes())
    with pytest.raises(InputError, match="no longer in the registry as it was"):
        load_request(context.store, digest, made.sha256)
    with pytest.raises(InputError):
        load_request(context.store, digest, about_other.sha256)


# Answers


def test_the_same_answer_twice_is_one_approval(context: RegistryContext) -> None:
    digest = record(context, 0.1)
    made = request(context, digest)
    for _ in range(2):
        answer(context, made, decision="approve", by="Ada")
    (approval,) = approvals_of(context.store, digest)
    assert approval.statement.question == made.question("promote", identify(context.store))
    assert approval.statement.at == "2026-08-01T12:00:00+00:00"


def test_an_answer_is_about_what_was_shown_whatever_is_so_by_now(context: RegistryContext) -> None:
    digest = make_candidate(context.project, 0.1)
    answer(context, request(context, digest, policy="1" * 64), datetime.now(UTC), decision="approve", by="Ada")
    found = undecided(context, find(context.store, digest))
    assert "the policy was another" in found.standing.others[0][1]


def signed_desk(context: RegistryContext) -> tuple[RegistryContext, dict[str, Any]]:
    keys = {name: new_key() for name in ("ada", "grace")}
    approvers = {name: {"key": public_text(key), "also": [f"{name}@x.org"]} for name, key in keys.items()}  # type: ignore[arg-type]
    return with_policy(context, approvers=approvers, promote={"approvals": 2, "signed": True}), keys


def text(context: RegistryContext, made: Request, name: str, key: Any, action: str = "promote") -> str:
    question = made.question(action, identify(context.store))  # type: ignore[arg-type]
    return sign(state(question, by=name, reason="", at=datetime.now(UTC), valid=timedelta(days=1)), key).to_text()


def test_a_signed_answer_must_be_of_this_person_about_this_candidate(context: RegistryContext) -> None:
    context, keys = signed_desk(context)
    digest, other = record(context, 0.1), record(context, 0.2)
    made = request(context, digest)
    given = {
        "and none was given": "",
        "is about the checkpoint": text(context, request(context, other), "ada", keys["ada"]),
        "in another name": text(context, made, "grace", keys["grace"]),
        "says reject": text(context, made, "ada", keys["ada"], "reject"),
        "not an approval": "yes",
    }
    for reason, signed in given.items():
        with pytest.raises(InputError, match=reason):
            answer(context, made, decision="approve", by="ada@x.org", signed_approval=signed)
    assert not approvals_of(context.store, digest)
    signed = text(context, made, "ada", keys["ada"])
    assert answer(context, made, decision="approve", by="ada@x.org", signed_approval=signed).signed


def test_what_is_pasted_and_does_not_count_is_not_kept(context: RegistryContext) -> None:
    context, keys = signed_desk(context)
    digest = record(context, 0.1)
    made, now = request(context, digest), datetime.now(UTC)
    asked = made.question("promote", identify(context.store))

    def stated(key: Any = keys["ada"], at: datetime = now, days: int = 1, **other: Any) -> Approval:
        said = state(replace(asked, **other), by="ada", reason="", at=at, valid=timedelta(days=days))
        return sign(said, key)

    good = stated()
    given = {
        "key is not listed": stated(new_key()),
        "signature is not one of its key": replace(good, signature="A" * 15_000),
        "not signed": replace(good, key=None, signature=None),
        "longer than the 14 days": stated(at=datetime(1, 1, 1, tzinfo=UTC), days=800_000),
        "expired": stated(at=now - timedelta(days=2)),
        "not valid before": stated(at=now + timedelta(days=2)),
        "in the registry ffffffff": stated(registry="f" * 32),
        "the policy was another": stated(policy="f" * 64),
        "stands on no record now": stated(base=7),
        "on other evidence": stated(evidence=None),
    }
    pasted = {reason: approval.to_text() for reason, approval in given.items()}
    pasted["no character"] = json.dumps(json.loads(good.to_text()) | {"key": "\ud800"})
    for reason, signed in pasted.items():
        with pytest.raises(InputError, match=reason):
            answer(context, made, decision="approve", by="ada", signed_approval=signed)
    assert not approvals_of(context.store, digest)
    assert answer(context, made, decision="approve", by="ada", signed_approval=good.to_text()) == good


def test_what_was_pasted_once_is_the_same_answer_when_it_is_heard_again(context: RegistryContext) -> None:
    """A process that died over an answer leaves it to the next one, perhaps after the champion has changed by it."""
    context, keys = signed_desk(context)
    digest = record(context, 0.1)
    made = request(context, digest)
    values = {"decision": "approve", "by": "ada", "signed_approval": text(context, made, "ada", keys["ada"])}
    first = answer(context, made, **values)
    stricter = with_policy(context, **context.policy.settings.model_dump() | {"valid_days": 3})
    assert answer(stricter, made, **values) == first


# What it comes to


def test_enough_approvals_promote_and_the_same_again_is_decided(context: RegistryContext) -> None:
    candidate = find(context.store, make_candidate(context.project, 0.1))
    assert approved(context, candidate).state == "Promoted"  # type: ignore[union-attr]
    assert conclude(context, candidate) == Concluded("Decided", "promoted by Ada (record 1)")


def test_a_rejection_ends_it(context: RegistryContext) -> None:
    candidate = find(context.store, make_candidate(context.project, 0.1))
    made = request(context, candidate.digest)
    said = answer(context, made, datetime.now(UTC), decision="reject", by="Ada", reason="no")
    found = conclude(context, candidate, said)
    assert isinstance(found, Concluded)
    assert (found.state, found.words) == ("Rejected", "rejected by Ada (record 1): no")


def test_a_rejection_waits_for_no_comparison(context: RegistryContext, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise InputError("No space left on device")

    first, candidate = (find(context.store, make_candidate(context.project, value)) for value in (0.1, 0.2))
    approved(context, first)
    monkeypatch.setattr(against, "compare_with_champion", broken)
    with pytest.raises(InputError, match="No space left"):
        conclude(context, candidate)
    made = request(context, candidate.digest, base=1)
    said = answer(context, made, datetime.now(UTC), decision="reject", by="Ada")
    assert conclude(context, candidate, said).state == "Rejected"  # type: ignore[union-attr]


def test_a_rejection_of_somebody_who_may_not_reject_is_asked_about_again(context: RegistryContext) -> None:
    context, _ = signed_desk(context)
    candidate = find(context.store, make_candidate(context.project, 0.1))
    asked = request(context, candidate.digest).question("reject", identify(context.store))
    undecided(context, candidate, Approval(state(asked, by="mallory", reason="", at=NOW, valid=timedelta(days=1))))


# What is shown


def test_a_person_sees_what_is_open_first_and_no_text_is_taken_for_markup(context: RegistryContext) -> None:
    digest = make_candidate(context.project, 0.1, doubt="*we* <b>know</b> better")
    candidate = find(context.store, digest)
    found = undecided(context, candidate)
    address = pages(context.project, context.store, candidate.evidence)
    said = request_page(
        candidate, found.judgement, found.standing, DecisionCommands.of(context), champion="none yet", pages=address
    )
    assert "**The gate leaves it to you**: " in said
    assert said.index("### Left to you\n\n- **triage**") < said.index("### Passed\n\n- **")
    assert "know" in said
    assert "<b>" not in said
    assert f"/evidence/{candidate.evidence}/out/report.html)" in said
    assert f"`evenkeel reject {digest[:12]} --by YOUR-NAME --reason WHY`" in said
    assert approvals_needed(found.standing, False) == "1 approval needed"
    assert "> not | this" not in outcome_page(candidate, "Refused", "not | this", found.judgement)


def test_each_command_that_is_shown_takes_a_key_where_the_policy_asks_for_a_signature(context: RegistryContext) -> None:
    candidate = find(context.store, make_candidate(context.project, 0.1))
    found = undecided(context, candidate)
    policy = context.policy.settings.model_copy(update={"rollback": QuorumSettings(signed=True)})
    lines = DecisionCommands(policy, "configs/my run.yaml")
    said = request_page(candidate, found.judgement, found.standing, lines, champion="none yet", pages={})
    config = "--config 'configs/my run.yaml'"
    assert f"`evenkeel rollback --by YOUR-NAME --reason WHY --key YOUR-KEY {config}`" in said
    assert f"`evenkeel approve {candidate.digest[:12]} --by YOUR-NAME {config}`" in said


@pytest.mark.parametrize(
    ("request_", "registry", "named"),
    [
        (RunRequest("configs/demo.yaml"), DEFAULT, "configs/demo.yaml"),
        (RunRequest("configs/mine.yaml", ("train.steps=3",)), "other", "configs/mine.yaml"),
        (RunRequest("configs/demo.yaml", ("registry.path=other",)), "other", "runs/demo-1/params.yaml"),
        (UNKNOWN_REQUEST, DEFAULT, "runs/demo-1/params.yaml"),
        (None, DEFAULT, "configs/demo.yaml"),
        (None, "other", "YOUR-CONFIG"),
    ],
)
def test_a_command_names_the_configuration_of_the_registry(
    tmp_path: Path, request_: RunRequest | None, registry: str, named: str
) -> None:
    if request_ is not None:
        ran(tmp_path, "demo-1", request=request_)
    assert config_of(tmp_path, "demo-1", registry) == named


# What was said before


class Server:
    """The history of one flow run, and what its form sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *states: Any, **answers: Any) -> None:
        self._states = states
        monkeypatch.setattr(rounds_module, "read_flow_run_input", lambda key, flow_run_id: answers.get(key))

    def read_flow_run_states(self, flow_run: UUID) -> list[Any]:
        return list(reversed(self._states))


def history(*states: str) -> list[Any]:
    """A state a minute: the key of a suspension, or a name in capitals."""
    found = []
    for minute, name in enumerate(states):
        key = None if name.isupper() else name
        details = SimpleNamespace(pause_key=key, run_input_keyset={"response": f"r-{key}"} if key else None)
        type = StateType.PAUSED if key else StateType(name)
        found.append(SimpleNamespace(type=type, timestamp=NOW + timedelta(minutes=minute), state_details=details))
    return found


DIGEST, REQUEST, LATER = "a" * 64, "b" * 64, "c" * 64
FIRST, SECOND = f"promote-{DIGEST[:16]}-{REQUEST}-1", f"promote-{DIGEST[:16]}-{LATER}-2"


def test_the_answer_to_the_last_question_is_the_one_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = ("RUNNING", FIRST, "SCHEDULED", "RUNNING")
    answered = {f"r-{FIRST}": {"decision": "approve"}}
    found = rounds(Server(monkeypatch, *history(*begun), **answered), uuid4(), DIGEST)  # type: ignore[arg-type]
    assert (found.asked, found.last) == (1, REQUEST)
    assert found.answer is not None
    assert (found.answer.request, found.answer.at) == (REQUEST, NOW + timedelta(minutes=2))

    later = history(*begun, SECOND, "SCHEDULED", "RUNNING")
    found = rounds(Server(monkeypatch, *later, **answered), uuid4(), DIGEST)  # type: ignore[arg-type]
    assert (found.asked, found.last, found.answer) == (2, LATER, None)


def test_a_suspension_that_is_no_question_of_ours_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    suspended = history("RUNNING", "somebody-pressed-suspend", "RUNNING")
    found = rounds(Server(monkeypatch, *suspended), uuid4(), DIGEST)  # type: ignore[arg-type]
    assert (found.asked, found.last, found.answer) == (0, None, None)
    found = rounds(Server(monkeypatch, *history(FIRST, "RUNNING")), uuid4(), "d" * 64)  # type: ignore[arg-type]
    assert found.answer is None, "an answer about another candidate"


# Asking


def test_people_are_notified_once_and_the_server_after_every_suspension(
    monkeypatch: pytest.MonkeyPatch, context: RegistryContext
) -> None:
    emitted: list[str] = []
    sent: list[dict[str, Any]] = []

    def emit(event: str, resource: Any, payload: Any = None) -> None:
        emitted.append(event)
        sent.append(payload)

    def suspend(**asked: Any) -> None:
        assert asked["timeout"] is None
        keys.append(asked["key"])
        raise Pause

    keys: list[str] = []
    monkeypatch.setattr(states, "emit_event", emit)
    monkeypatch.setattr(suspension, "suspend_flow_run", suspend)
    monkeypatch.setattr(suspension, "create_markdown_artifact", lambda *_, **__: None)
    monkeypatch.setattr(suspension, "get_run_logger", logging.getLogger)
    monkeypatch.setattr(suspension, "pages", lambda *_: {})
    context = replace(context, config="configs/mine.yaml")
    candidate = find(context.store, record(context, 0.1))
    judgement = Judgement("inconclusive", (), context.policy.sha256, candidate.evidence, 0)
    found = Undecided(
        judgement, Standing(question(candidate, judgement, context.policy, identify(context.store)), 1, (), ())
    )
    me = SimpleNamespace(id=uuid4())
    with pytest.raises(Pause):
        suspension.request_approval(context, candidate, found, Rounds(0, None, None), me)  # type: ignore[arg-type]
    assert emitted == ["checkpoint.waiting", "evenkeel.flow-run.suspended"]
    command = f"evenkeel approve {candidate.digest[:12]} --by YOUR-NAME --reason WHY --config configs/mine.yaml"
    assert sent[0]["decide"] == command and "event.payload.decide" in MESSAGES["approval needed"].text

    asked = KEY.fullmatch(keys[0])
    assert asked is not None
    again = Rounds(1, asked["request"], None)
    with pytest.raises(Pause):
        suspension.request_approval(context, candidate, replace(found, note="a note"), again, me)  # type: ignore[arg-type]
    assert emitted[2:] == ["evenkeel.flow-run.suspended"], "a wrong answer notifies no one"
    assert keys[0] != keys[1], "Prefect takes every key once"


# Who asks


def flow_run(minute: int, digest: str = DIGEST, registry: str = "registry") -> Any:
    parameters = {"digest": digest, "registry": registry}
    return SimpleNamespace(
        id=uuid4(), created=NOW + timedelta(minutes=minute), parameters=parameters, deployment_id=uuid4()
    )


def test_the_oldest_of_several_runs_asks() -> None:
    mine = flow_run(2)
    runs = [flow_run(3), mine, flow_run(1, digest=DIGEST[:12]), flow_run(0), flow_run(0, digest="b" * 64)]
    client = SimpleNamespace(read_flow_runs=lambda **_: runs)
    assert rounds_module.asks_already(client, mine, DIGEST, "registry") is runs[3]  # type: ignore[arg-type]
    assert rounds_module.asks_already(client, runs[3], DIGEST, "registry") is None  # type: ignore[arg-type]
    assert rounds_module.asks_already(client, flow_run(9, registry="other"), DIGEST, "other") is None  # type: ignore[arg-type]
    printed = flow_run(0, digest=f"sha256:{DIGEST}")
    client = SimpleNamespace(read_flow_runs=lambda **_: [printed])
    assert rounds_module.asks_already(client, mine, DIGEST, "registry") is printed  # type: ignore[arg-type]


def test_a_run_that_names_no_registry_asks_about_the_default_one() -> None:
    plain = flow_run(0)
    del plain.parameters["registry"]
    client = SimpleNamespace(read_flow_runs=lambda **_: [plain])
    assert rounds_module.asks_already(client, flow_run(1), DIGEST, "registry") is plain  # type: ignore[arg-type]
    assert rounds_module.asks_already(client, flow_run(1), DIGEST, "elsewhere") is None  # type: ignore[arg-type]


def test_a_run_that_was_started_by_hand_has_no_others() -> None:
    mine = flow_run(1)
    mine.deployment_id = None
    assert rounds_module.asks_already(SimpleNamespace(), mine, DIGEST, "registry") is None  # type: ignore[arg-type]


# The janitor


class Api:
    """A Prefect server as the janitor meets it."""

    def __init__(self, *runs: dict[str, Any], paused: bool = False, form: bool = True) -> None:
        self._runs, self._paused, self._form = runs, paused, form
        self.started: list[dict[str, Any]] = []
        self.resumed: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path.endswith("/flow_runs/filter"):
            return httpx.Response(200, json=list(self._runs))
        if path.endswith("/set_state"):
            self.resumed.append(path.split("/")[-2])
            return httpx.Response(201, json={"status": "ACCEPT"})
        if "/input/" in path:
            return httpx.Response(200 if self._form else 404, json={})
        if path.endswith("/create_flow_run"):
            self.started.append(json.loads(request.content))
            return httpx.Response(201, json={"name": "brisk-otter"})
        return httpx.Response(200, json={"id": "d", "paused": self._paused})


def row(
    id: str, state: str, digest: str, age: int = 600, key: str | None = None, name: str | None = None
) -> dict[str, Any]:
    details = {"run_input_keyset": {"schema": "the-form"} if state == "PAUSED" else None, "pause_key": key}
    since = (datetime.now(UTC) - timedelta(seconds=age)).isoformat()
    return {
        "id": id,
        "name": id,
        "state_type": state,
        "state": {"timestamp": since, "name": name or state.title(), "state_details": details},
        "parameters": {"digest": digest},
    }


CLIENT = httpx.Client


def answered_by(monkeypatch: pytest.MonkeyPatch, server: Callable[[httpx.Request], httpx.Response]) -> None:
    transport = httpx.MockTransport(server)
    monkeypatch.setattr(httpx, "Client", lambda base_url, **_: CLIENT(base_url=base_url, transport=transport))


def settle(monkeypatch: pytest.MonkeyPatch, project: Path, api: Api) -> list[str]:
    answered_by(monkeypatch, api)
    return [f"{action.what}: {action.done}" for action in approval_requests.settle_requests(project, "http://x/api")]


def test_the_janitor_requests_approvals_whose_event_was_lost(
    monkeypatch: pytest.MonkeyPatch, context: RegistryContext
) -> None:
    names = ("lost", "asked", "ended by a person", "failed", "waiting")
    digests = {name: record(context, number / 10) for number, name in enumerate(names)}
    api = Api(
        row("1", "COMPLETED", digests["asked"]),
        row("2", "CANCELLED", digests["ended by a person"]),
        row("6", "FAILED", digests["failed"], age=1200),
        row("3", "FAILED", digests["failed"]),
        row("4", "PAUSED", digests["waiting"][:12]),
        row("5", "COMPLETED", digests["failed"], name="Asked"),
    )
    settle(monkeypatch, context.project, api)
    assert [one["parameters"]["digest"] for one in api.started] == [digests["lost"]]
    assert api.resumed == ["3"], "the last one may have failed over an answer, and the duplicate sent no request"


def test_the_janitor_looks_into_the_registries_of_runs_that_are_here(
    monkeypatch: pytest.MonkeyPatch, context: RegistryContext
) -> None:
    digest = record(replace(context, store=DirectoryStore(context.project / "mine")), 0.1)
    run = ran(context.project, "demo-1", candidate=digest)
    write_text(run.layout.params, dump(load(ROOT / "configs/demo.yaml", ["registry.path=mine"])))
    actions = settle(monkeypatch, context.project, Api())
    assert actions == [f"{digest[:12]}: approval requested by flow run brisk-otter"]


def test_the_janitor_goes_on_where_a_registry_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, context: RegistryContext
) -> None:
    def named(project: Path, text: str) -> DirectoryStore:
        if text == "a bucket":
            raise Unavailable("no answer")
        return DirectoryStore(project / text)

    monkeypatch.setattr(approval_requests, "named_store", named)
    digest = record(replace(context, store=DirectoryStore(context.project / "third")), 0.1)
    runs = [row("a bucket", "CANCELLED", DIGEST, age=600), row("third", "CANCELLED", DIGEST, age=1200)]
    for run in runs:
        run["parameters"]["registry"] = run["name"]
    actions = settle(monkeypatch, context.project, Api(*runs))
    assert actions == ["a bucket: left alone", f"{digest[:12]}: approval requested by flow run brisk-otter"]


def test_a_paused_deployment_sends_no_request(monkeypatch: pytest.MonkeyPatch, context: RegistryContext) -> None:
    record(context, 0.1)
    api = Api(paused=True)
    assert settle(monkeypatch, context.project, api) == []
    assert not api.started


def test_the_janitor_resumes_requests_that_are_answered_or_outdated(
    monkeypatch: pytest.MonkeyPatch, context: RegistryContext
) -> None:
    digest = record(context, 0.1)
    present = request(context, digest).key(1)
    waiting = row("waiting", "PAUSED", digest, key=present)
    assert settle(monkeypatch, context.project, Api(waiting)) == []
    assert settle(monkeypatch, context.project, Api(waiting, form=False)) == ["waiting: resumed"]
    assert settle(monkeypatch, context.project, Api(row("new", "PAUSED", digest, age=1), form=False)) == []
    for changed in ({"policy": "1" * 64}, {"base": 3}, {"evidence": "2" * 64}):
        stale = row("stale", "PAUSED", digest, key=request(context, digest, **changed).key(1))
        assert settle(monkeypatch, context.project, Api(stale)) == ["stale: resumed"]
    monkeypatch.setattr(approval_requests, "decision_on", lambda store, digest: "a record")
    assert settle(monkeypatch, context.project, Api(waiting)) == ["waiting: resumed"]


def test_the_janitor_leaves_questions_alone_while_the_policy_is_edited(
    monkeypatch: pytest.MonkeyPatch, context: RegistryContext
) -> None:
    digest = record(context, 0.1)
    stale = row("stale", "PAUSED", digest, key=request(context, digest, policy="1" * 64).key(1))
    (context.project / FILE).write_text("valid_days: 3\n")
    assert settle(monkeypatch, context.project, Api(stale)) == ["registry: left alone"]


def test_a_server_that_does_not_answer_is_said_and_no_error(
    monkeypatch: pytest.MonkeyPatch, context: RegistryContext
) -> None:
    def dead(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    answered_by(monkeypatch, dead)
    (action,) = approval_requests.settle_requests(context.project, "http://x/api")
    assert "does not answer" in action.why


# Which registry


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ('{"kind": "floppy"}', "kind: "),
        ('{"path": 3}', "path: "),
        ("{", "Expecting property name"),
        ('{"kind": "s3", "key": "x"}', "key: Extra inputs"),
    ],
)
def test_a_registry_is_named_by_its_folder_and_nothing_else_is_taken(tmp_path: Path, wrong: str, said: str) -> None:
    assert name_of(Settings().registry) == "registry"
    assert named_store(tmp_path, "registry").keys("") == []
    with pytest.raises(InputError, match=f"not a registry: .*{said}"):
        named_store(tmp_path, wrong)


def test_a_bucket_is_named_by_its_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened: list[RegistrySettings] = []
    monkeypatch.setattr("flows.governance.registry.open_store", opened.append)
    bucket = RegistrySettings(kind="s3", bucket="models", prefix="team", endpoint_url="http://127.0.0.1:9000")
    named_store(tmp_path, name_of(bucket))
    assert opened == [bucket.under(tmp_path)]


def test_a_run_is_about_a_candidate_by_its_first_digits() -> None:
    made = Run("1", "n", "PAUSED", NOW, DIGEST[:8], "registry", None, None)
    assert made.waits and made.about(DIGEST)
    assert not made.about("b" * 64) and not made.about(DIGEST, "other")
    assert not replace(made, digest="").about(DIGEST)


def test_a_signed_form_has_a_field_for_the_signature() -> None:
    assert "signed_approval" in create_v2_schema("Decision", model_base=SignedDecision)["properties"]
    assert "signed_approval" not in create_v2_schema("Decision", model_base=Decision)["properties"]
