"""The mutations: a file, the text to replace (which occurs in it once) and its replacement."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """One wrong line. ``file`` is relative to ``components/``."""

    file: str
    old: str
    new: str


TESTS = {
    "objectives": (
        "ratios",
        "advantages",
        "aggregation",
        "corrections",
        "kl",
        "objective",
        "exploration",
        "gae",
        "extend",
    ),
    "scheduling": (
        "scheduling",
        "scheduling_forecast",
        "scheduling_pools",
        "scheduling_checked",
        "scheduling_coverage",
    ),
    "rewards": ("rewards_verifiers", "rewards_*", "tasks_countdown"),
    "gate": ("stage_gate", "gate_*", "canaries*"),
    "health": ("health_monitor", "health_windows", "health_ladder", "health_rules", "health_ledger"),
    "registry": (
        "registry_approvals",
        "registry_deciding",
        "registry_record_signing",
        "registry_history",
        "registry_candidates",
    ),
}
"""Package -> its tests, `tests/unit/test_<name>.py`, in the order in which they run."""

MUTATIONS = (
    # Objectives: signs, sides, denominators, gradients that must not flow.
    Mutation("objectives/ratios/clip.py", "torch.minimum(ratio", "torch.maximum(ratio"),
    Mutation("objectives/ratios/clip.py", "1 + settings.high)\n    surrogate", "1 + settings.low)\n    surrogate"),
    Mutation("objectives/ratios/clip.py", "high = high | ((ratio", "high = high & ((ratio"),
    Mutation("objectives/ratios/gspo.py", ".detach() * (logp", " * (logp"),
    Mutation(
        "objectives/ratios/gspo.py",
        "high = (ratio > 1 + settings.high) & (advantages > 0)",
        "high = ratio > 1 + settings.high",
    ),
    Mutation("objectives/ratios/gmpo.py", "clamp(min=-settings.low)", "clamp(max=settings.low)"),
    Mutation("objectives/ratios/unclipped.py", "anchor).detach().exp()", "anchor).exp()"),
    Mutation("objectives/ratios/unclipped.py", "tokens.advantages > 0, settings", "tokens.advantages < 0, settings"),
    Mutation("objectives/ratios/unclipped.py", "ratio.clamp(max=settings.cap))", "ratio)"),
    Mutation("objectives/ratios/dppo.py", "low = outside & ~above", "low = outside & above"),
    Mutation("objectives/ratios/unclipped.py", "decay * (1 - total.exp())", "decay * (total.exp() - 1)"),
    Mutation("objectives/ratios/unclipped.py", "settings.beta / 2", "settings.beta"),
    Mutation("objectives/advantages/groups.py", "count.clamp(min=1), 0.0)", "values.shape[1], 0.0)"),
    Mutation("objectives/advantages/groups.py", 'int(kind == "unbiased")\n', "0\n"),
    Mutation("objectives/advantages/centred.py", "count / (count - 1)", "count / (count + 1)"),
    Mutation("objectives/advantages/maxrl.py", "torch.where(mean > 0, mean, 1.0)", "(mean + 1)"),
    Mutation("objectives/advantages/gdpo.py", "summed + settings.weights", "summed - settings.weights"),
    Mutation("objectives/advantages/hras.py", "settings.beta * step / settings.warmup", "settings.beta"),
    Mutation("objectives/advantages/cap.py", "clamp(-limit, limit)", "clamp(max=limit)"),
    Mutation("objectives/corrections/token.py", ".clamp(max=settings.cap)", ".clamp(min=settings.cap)"),
    Mutation(
        "objectives/corrections/token.py",
        "(ratio <= settings.high), ratio, 0.0)",
        "(ratio <= settings.high), 1.0, 0.0)",
    ),
    Mutation("objectives/corrections/sequence.py", "* mask.sum(1, keepdim=True)\n", "\n"),
    Mutation("objectives/corrections/sequence.py", "math.log(settings.veto)) & mask)", "math.log(settings.veto)))"),
    Mutation("objectives/corrections/sequence.py", "left & (advantages < 0)", "left"),
    Mutation("objectives/kl.py", "(-difference).expm1() + difference", "difference.expm1() - difference"),
    Mutation(
        "objectives/aggregation.py",
        "mask.float() / lengths.clamp(min=1) / _rows(mask)",
        "mask.float() / lengths.clamp(min=1)",
    ),
    Mutation("objectives/objective.py", "mask = inputs.mask & finite", "mask = inputs.mask"),
    # Scheduling: which prompts, in which order, and what is remembered.
    Mutation("scheduling/uniform.py", "start + end - position", "start + count"),
    Mutation("scheduling/uniform.py", "self._luck(count) < admission", "self._luck(count) > admission"),
    Mutation("scheduling/forecast.py", "self._settings.explore, 1)", "0, 1)"),
    Mutation("scheduling/forecast.py", "self.right[places] * kept + right", "self.right[places] + right"),
    Mutation("scheduling/forecast.py", "1 - constant", "constant"),
    Mutation("scheduling/greso.py", "-self._settings.move if found > target", "-self._settings.move if found < target"),
    Mutation("scheduling/uniform.py", 'self.stream("uniform", epoch)', 'self.stream("uniform", 0)'),
    Mutation("scheduling/ads.py", "self._draws % self._epoch == 0", "self._draws % self._epoch == 1"),
    Mutation("scheduling/ads.py", "(1 - s.alpha) * p + s.alpha * t", "s.alpha * p + (1 - s.alpha) * t"),
    Mutation("scheduling/ads.py", "scale = (1 - len(shares) * floor)", "scale = 1"),
    Mutation("scheduling/ads.py", "HARDER if success > 0.5 else EASIER", "EASIER if success > 0.5 else HARDER"),
    Mutation("scheduling/ads.py", "moving[HARDER][::-1]", "moving[HARDER]"),
    Mutation(
        "scheduling/pools.py",
        "pools[success >= self._settings.easy] = EASY",
        "pools[success > self._settings.easy] = EASY",
    ),
    Mutation("scheduling/pools.py", "np.isnan(success) | ", ""),
    Mutation("scheduling/pools.py", "min(size - takes[pool], count - sum(takes))", "size - takes[pool]"),
    Mutation("scheduling/pools.py", "(waited > settings.retry) | ", ""),
    Mutation("scheduling/pools.py", "self.at[places] = draw", "self.at[places] = 0"),
    # Rewards: what is right, what is unscorable.
    Mutation("rewards/base.py", "answer.strip() == prompt", "answer.strip() in prompt"),
    Mutation("rewards/base.py", "text.rpartition(marker)", "text.partition(marker)"),
    Mutation("rewards/numeric.py", "and rounds and", "and"),
    Mutation("rewards/numeric.py", "value /= 100", "value *= 100"),
    Mutation("rewards/numeric.py", "if value is None:", "if value is not None:"),
    Mutation("rewards/grammar/comparison.py", "and all(_equal(sides[0]", "and any(_equal(sides[0]"),
    Mutation("rewards/grammar/judging.py", "        if usual.clear:", "        if not usual.clear:"),
    Mutation("rewards/grammar/expressions.py", "not 0 < two < three", "not 0 < two"),
    Mutation("rewards/grammar/arithmetic.py", "-AGREED", "-1"),
    Mutation("rewards/scorer.py", "limit - cache - length", "limit - length"),
    Mutation("rewards/scorer.py", "{n: mean(n) for n in missing}", "{n: 0.0 for n in missing}"),
    Mutation("rewards/scorer.py", "if not weight(name)}},", "}},"),
    Mutation("rewards/countdown.py", "<= numbers\n", "!= numbers\n"),
    Mutation("rewards/multiple_choice.py", "if letter not in self._options or ", "if letter not in self._options and "),
    Mutation("rewards/worker.py", "if not 0 <= judgement.accuracy <= 1:", "if judgement.accuracy > 1:"),
    # The gate: each limit on the right side, and a missing figure is a fail.
    Mutation(
        "gate/checks/evaluation.py",
        '"pass" if low > limit else "fail", needed',
        '"pass" if low >= limit else "fail", needed',
    ),
    Mutation("gate/checks/evaluation.py", "_at_most(max(shares)", "_at_most(min(shares)"),
    Mutation("gate/checks/evaluation.py", 'return "inconclusive" if low > limit', 'return "pass" if low > limit'),
    Mutation("gate/checks/beginning.py", "rows > 0 and bad", "bad"),
    Mutation("gate/checks/health.py", "progress == planned <= steps and", "progress <= planned <= steps and"),
    Mutation("gate/checks/evaluation.py", "if compared != [candidate, champion]:", "if compared[0] != candidate:"),
    Mutation("gate/checks/health.py", "if missing := blind(settings.health.rules, records):", "if missing := None:"),
    Mutation("gate/checks/health.py", "known.get(one.rule) is False]", "known.get(one.rule) is None and False]"),
    Mutation("gate/checks/stored.py", "if len(set(found.values())) == 1:", "if len(set(found.values())) <= 2:"),
    Mutation("gate/checks/stored.py", "if found.get(path) != md5:", "if path not in found:"),
    # Health: windows, streaks, cool-downs, and what is done about a verdict.
    Mutation("health/windows.py", "position >= seen - count", "position > seen - count"),
    Mutation("health/windows.py", "if step < count]", "if step <= count]"),
    Mutation("health/windows.py", "total.count * total.sum_xx - total.sum_x**2", "total.count * total.sum_xx"),
    Mutation(
        "health/monitor.py", "streak.length < rule.settings.streak or", "streak.length <= rule.settings.streak or"
    ),
    Mutation("health/monitor.py", "self._step - streak.fired >= cooldown", "self._step - streak.fired > cooldown"),
    Mutation("health/monitor.py", "streak.length, streak.said = 0, False\n", "streak.length = 0\n"),
    Mutation(
        "health/monitor.py",
        "if any(self._is_grave(rule) for rule in self._rules):\n            return",
        "if False:\n            return",
    ),
    Mutation("health/responses/ladder.py", "or self._interventions >= self._limits.interventions", ""),
    Mutation("health/responses/ladder.py", "self.blamed < self._limits.rollbacks", "True"),
    Mutation("health/responses/ladder.py", "[: max(0, room)]", ""),
    # The registry: which approvals count, and what a crash must not lose.
    Mutation("registry/standing.py", "if terms.now >= expires:", "if terms.now > expires:"),
    Mutation("registry/standing.py", "if said.evidence != question.evidence:", "if False:"),
    Mutation("registry/standing.py", "if said.gate != question.gate:", "if False:"),
    Mutation("registry/standing.py", "if said.base != question.base:", "if False:"),
    Mutation("registry/standing.py", "if owner != settings.approver(approval.statement.by):", "if False:"),
    Mutation("registry/standing.py", "if approval.key is not None and one.key == approval.key:", "if False:"),
    Mutation("registry/candidates.py", " and not (known and challenger(store))", ""),
    Mutation("registry/promotion.py", 'failed or judgement.result not in ("pass", "inconclusive")', "failed"),
    Mutation("registry/promotion.py", 'doubtful=result == "inconclusive"', "doubtful=False"),
    Mutation("registry/approvals.py", "if approval.stored_under != key:", "if False:"),
    Mutation(
        "registry/approvals.py",
        "base64.b64decode(approval.signature, validate=True)",
        "base64.b64decode(approval.signature)",
    ),
)
