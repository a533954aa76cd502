"""Automations of the server: it marks runs whose process is gone as crashed, and sends notifications.

They are created from this file at every start of `evenkeel serve` and identified by name; an automation that was
disabled in the UI stays disabled. The webhook's URL is stored in a Prefect block, and the UI does not show it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from prefect.blocks.webhook import Webhook
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import StateType
from prefect.events import AutomationCore, EventTrigger, Posture
from prefect.events.actions import CallWebhook, ChangeFlowRunState
from prefect.exceptions import ObjectNotFound
from prefect.types import SecretDict
from pydantic import SecretStr

from flows.budget.spending import BudgetSpent
from flows.prefect_runtime.environment import HEARTBEAT_SECONDS
from flows.prefect_runtime.server import ZOMBIE
from flows.prefect_runtime.states import SUSPENDED

PREFIX = "evenkeel: "
BLOCK = "evenkeel-notify"
SILENCE = timedelta(seconds=3 * HEARTBEAT_SECONDS)
"""How long a run may go without a heartbeat, which a thread of its process sends. The server checks as often, so it may
take twice as long to notice."""
HEARTBEAT = "prefect.flow-run.heartbeat"
FAILED = ("Failed", BudgetSpent.state_name)
"""Names of the states of a failed run. Prefect names its events after these, not after the state's type; see
`flows.prefect_runtime.states`."""
IDLE_STATES = (
    *("Completed", *FAILED, "Crashed", "Cancelled", "Skipped"),
    *("AwaitingRetry", "Scheduled", "Suspended", "Paused"),
)
"""States in which a run needs no process."""


@dataclass(frozen=True)
class Message:
    """A notification: on which of these events, of which resources, with which text (Jinja)."""

    events: set[str]
    resource: str
    text: str


RUN = "{{ flow.name }} ({{ flow_run.name }})"
LINK = "{{ flow_run|ui_url }}"
REASON = "{{ flow_run.state.message }}"
FLOW_RUNS = "prefect.flow-run.*"
MESSAGES = {
    "approval needed": Message(
        {"checkpoint.waiting"},
        "evenkeel.candidate.*",
        "the checkpoint {{ event.payload.digest|truncate(12, true, '') }} of {{ event.payload.run }} awaits approval: "
        f"{{{{ event.payload.needed }}}}\nread the evidence, then Resume: {LINK}\n"
        "or at a terminal: {{ event.payload.decide }}",
    ),
    "failed": Message({f"prefect.flow-run.{state}" for state in FAILED}, FLOW_RUNS, f"{RUN} failed: {REASON}\n{LINK}"),
    "crashed": Message({"prefect.flow-run.Crashed"}, FLOW_RUNS, f"{RUN} crashed: {REASON}\n{LINK}"),
    "collapsed": Message(
        {"evenkeel.run.collapsed"},
        "evenkeel.run.*",
        "the training of {{ event.payload.run }} collapsed and was stopped: {{ event.payload.reason }}",
    ),
}


def set_automations(client: SyncPrefectClient, notify: str) -> None:
    """Create or update all automations; without a URL notifications are removed."""
    wanted = [crash_detection()]
    if notify:
        block = Webhook(method="POST", url=SecretStr(notify), headers=SecretDict({"Content-Type": "application/json"}))
        document = asyncio.run(block.asave(BLOCK, overwrite=True))
        wanted += [notification(name, message, document) for name, message in MESSAGES.items()]
    else:
        with suppress(ObjectNotFound):
            client.delete_block_document(client.read_block_document_by_name(BLOCK, "webhook").id)
    there = {found.name: found for found in client.read_automations() if found.name.startswith(PREFIX)}
    for automation in wanted:
        if (found := there.pop(automation.name, None)) is None:
            client.create_automation(automation)
        else:
            client.update_automation(found.id, automation.model_copy(update={"enabled": found.enabled}))
    for gone in there.values():
        client.delete_automation(gone.id)


def crash_detection() -> AutomationCore:
    """Marks a run without a heartbeat as crashed."""
    message = f"{ZOMBIE} for {SILENCE.total_seconds():.0f} seconds."
    return AutomationCore(
        name=f"{PREFIX}no sign of life",
        description="A run whose process is gone is Crashed; it would stay Running for ever.",
        trigger=EventTrigger(
            posture=Posture.Proactive,
            after={HEARTBEAT},
            expect={HEARTBEAT, SUSPENDED, *(f"prefect.flow-run.{state}" for state in IDLE_STATES)},
            match={"prefect.resource.id": [FLOW_RUNS]},
            for_each={"prefect.resource.id"},
            threshold=1,
            within=SILENCE,
        ),
        actions=[ChangeFlowRunState(state=StateType.CRASHED, name="Crashed", message=message)],
    )


def notification(name: str, message: Message, block: UUID) -> AutomationCore:
    """One kind of message, as JSON ``{"text": ...}``: Slack, Mattermost and Teams take that."""
    payload = f'{{% set text %}}Evenkeel: {message.text}{{% endset %}}{{"text": {{{{ text|tojson }}}} }}'
    return AutomationCore(
        name=f"{PREFIX}{name}",
        description=f"Notifies the webhook of block {BLOCK}.",
        trigger=EventTrigger(
            posture=Posture.Reactive,
            expect=message.events,
            match={"prefect.resource.id": [message.resource]},
            for_each={"prefect.resource.id"},
            threshold=1,
            within=timedelta(0),
        ),
        actions=[CallWebhook(block_document_id=block, payload=payload)],
    )
