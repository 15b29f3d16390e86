/**
 * Checks the work of runs: what they spent, what they wait for, and the runs that they began.
 */
import { addUsage, noUsage, type Usage } from "@tropism/domain/run"
import { outboxLimits, runLimits } from "../src/limits.ts"
import type { BudgetRow, RunRow } from "./rows.ts"
import { type Checker, keyOf, unless } from "./remains.ts"

const isOver = ({ status }: RunRow): boolean =>
  ["completed", "failed", "cancelled", "skipped"].includes(status)

/** Whether a run goes on by nobody's wish but a person's. */
const restsForGood = (run: RunRow): boolean =>
  isOver(run) ||
  (run.status === "paused" && ["stepLimit", "timeout", "budget"].includes(run.pauseReason ?? ""))

const isReal = ({ backtestId }: RunRow): boolean => backtestId === null

const usageOf = (runs: ReadonlyArray<RunRow>): Usage =>
  runs.map(({ usage }) => usage).reduce(addUsage, noUsage)

const agrees = (row: BudgetRow | undefined, usage: Usage): boolean =>
  (row?.inputTokens ?? 0) === usage.inputTokens && (row?.outputTokens ?? 0) === usage.outputTokens

/** What each run, each chain, each agent and each backtest has spent is the sum of the steps of those who spent it. */
const spendingCounted: Checker = ({ backtests, budgets, runs }) => {
  const rows = Map.groupBy(budgets, ({ scope, scopeId }) => keyOf(scope, scopeId))
  const rowOf = (scope: string, id: string): BudgetRow | undefined => rows.get(keyOf(scope, id))?.[0]
  const said = (scope: string, id: string, spenders: ReadonlyArray<RunRow>): ReadonlyArray<string> => {
    const usage = usageOf(spenders)
    const row = rowOf(scope, id)
    return unless(
      agrees(row, usage),
      `the ${scope} ${id} has spent ${row?.inputTokens ?? 0} + ${row?.outputTokens ?? 0} tokens and its steps ${usage.inputTokens} + ${usage.outputTokens}`
    )
  }
  const ofAgents = Map.groupBy(runs, ({ agentId }) => agentId)
  const ofChains = Map.groupBy(runs, ({ rootEventId }) => rootEventId)
  return [
    ...runs.flatMap((run) =>
      said(
        "run",
        run.id,
        runs.filter(({ ancestors, id }) => id === run.id || ancestors.includes(run.id))
      )
    ),
    // A backtest pays for its runs, and then their agent and their chain do not.
    ...[...ofAgents].flatMap(([id, spenders]) => said("agent", id, spenders.filter(isReal))),
    ...[...ofChains].flatMap(([id, spenders]) =>
      id === null ? [] : said("chain", id, spenders.filter(isReal))
    ),
    ...backtests.flatMap(({ id }) =>
      said(
        "backtest",
        id,
        runs.filter(({ backtestId }) => backtestId === id)
      )
    )
  ]
}

/** No run asked its model once more when its own budget was spent: it overran it by one request at most. */
const budgetsKept: Checker = ({ agents, contextEvents, runs }) => {
  const answers = Map.groupBy(contextEvents, ({ event }): string =>
    event.type === "AssistantMessageEvent" && "usage" in event ? event.runId : ""
  )
  const definitions = new Map(agents.map((agent) => [agent.id, agent.definitions]))
  return runs.flatMap((run) => {
    const perRun = definitions.get(run.agentId)?.[run.agentVersion - 1]?.budget?.perRun
    const most = run.limits?.maxTokens ?? perRun?.maxTokens ?? Number.POSITIVE_INFINITY
    const steps = (answers.get(run.id) ?? []).flatMap(({ event }) => ("usage" in event ? [event.usage] : []))
    const before = steps.slice(0, -1).reduce(addUsage, noUsage)
    return unless(
      steps.length === 0 || before.inputTokens + before.outputTokens < most,
      `run ${run.id} may spend ${most} tokens and asked again after ${before.inputTokens + before.outputTokens}`
    )
  })
}

/** A run that waits for others has one that is alive and whose call is open; one that waits for a person has a question. */
const waitsKnown: Checker = ({ calls, runs, tasks }) => {
  const open = calls.filter(({ status }) => status === "started")
  return runs.flatMap((run) => {
    if (run.status !== "paused") return []
    const own = open.filter(({ runId }) => runId === run.id).map(({ id }) => id)
    if (run.pauseReason === "subAgents")
      return unless(
        runs.some((child) => own.includes(child.spawnedBy ?? "") && !restsForGood(child)),
        `run ${run.id} waits for runs and none of those that it spawned is alive`
      )
    if (run.pauseReason === "question")
      return unless(
        tasks.some(({ status, toolCallId }) => status === "pending" && own.includes(toolCallId)),
        `run ${run.id} waits for a person and nobody was asked`
      )
    if (run.pauseReason === "toolResult")
      return unless(own.length > 0, `run ${run.id} waits for a client and has no open call`)
    return []
  })
}

/** Nothing lives below a run that was cancelled or has failed. */
const familiesEnd: Checker = ({ runs }) => {
  const byId = new Map(runs.map((run) => [run.id, run]))
  return runs.flatMap((run) =>
    run.ancestors.flatMap((id) => {
      const above = byId.get(id)
      return unless(
        isOver(run) || (above?.status !== "cancelled" && above?.status !== "failed"),
        `run ${run.id} is ${run.status} below ${id}, which is ${above?.status}`
      )
    })
  )
}

/** What became of a run that another spawned stands once in the log of that other, or is not wanted there any more. */
const childrenReported: Checker = ({ calls, contextEvents, runs }) => {
  const callById = new Map(calls.map((call) => [call.id, call]))
  const outcomes = Map.groupBy(
    contextEvents.filter(
      ({ event }) => event.type === "ToolCallCompletedEvent" || event.type === "ToolCallFailedEvent"
    ),
    ({ contextName, event }) => keyOf(contextName, "callId" in event ? event.callId : "")
  )
  return runs.flatMap((child) => {
    if (child.parentRunId === null || !restsForGood(child)) return []
    const call = callById.get(child.spawnedBy ?? "")
    if (call === undefined) return [`run ${child.id} was spawned by a call that is not on record`]
    const found = outcomes.get(keyOf(call.contextName, call.callId)) ?? []
    return [
      ...unless(call.status !== "started", `run ${child.id} is ${child.status} and its call still waits`),
      ...unless(found.length === 1, `run ${child.id} is reported ${found.length} times`)
    ]
  })
}

/** A flow goes through its steps in their order, each begun once in a round, and completes after the last. */
const flowsGoThrough: Checker = ({ agents, contextEvents, runs }) => {
  const definitions = new Map(agents.map((agent) => [agent.id, agent.definitions]))
  const logs = Map.groupBy(contextEvents, ({ contextName }) => contextName)
  return runs.flatMap((run) => {
    const definition = definitions.get(run.agentId)?.[run.agentVersion - 1]
    if (definition === undefined || run.trigger.type === "context" || definition.flowType === "single")
      return []
    const steps = definition.steps.length === 0 ? ["prompt"] : definition.steps.map(({ name }) => name)
    const begun = (logs.get(run.contextName) ?? []).flatMap(({ event }) =>
      event.type === "FlowStepStartedEvent" && "step" in event ? [event] : []
    )
    const isInOrder = begun.every(
      ({ index, iteration, step }, n) =>
        step === steps[index] && index === n % steps.length && iteration === Math.floor(n / steps.length) + 1
    )
    return [
      ...unless(isInOrder, `run ${run.id} went through ${begun.map(({ step }) => step).join(", ")}`),
      ...unless(
        run.status !== "completed" ||
          (definition.flowType === "sequential" ? begun.length === steps.length : begun.length > 0),
        `run ${run.id} completed after ${begun.length} of ${steps.length} steps`
      )
    ]
  })
}

/** No run was tried more often behind its last step, or in all, than it may be; and none was given up before. */
const attemptsBounded: Checker = ({ runs }) =>
  runs.flatMap((run) => {
    const { attempt, attemptsBeforeStep, errorMessage, id } = run
    const atStep = attempt - attemptsBeforeStep
    const isSpent = atStep >= runLimits.maxAttempts || attempt >= runLimits.maxAttemptsInAll
    const isGivenUp = /^The (?:last of \d+ attempts|worker died)/.test(errorMessage ?? "")
    return [
      ...unless(
        atStep <= runLimits.maxAttempts && attempt <= runLimits.maxAttemptsInAll,
        `run ${id} was tried ${attempt} times, ${atStep} of them behind its last step`
      ),
      ...unless(isSpent || !isGivenUp, `run ${id} was given up after ${atStep} attempts at one step`)
    ]
  })

/** A stop is said within a second of the deadline, and the loop that finds who waits for others looks once a second. */
const lateMs = runLimits.lateStopMs + outboxLimits.lookIntervalMs

/**
 * A run whose time is up is told so at its deadline and rests when its grace is over, and so does every run below it.
 *
 * **Details** A run that began while something went wrong, killed workers and lost databases among it, rests at the latest when
 * nothing goes wrong any more. Whose clock stood still is left out: it asked a person, was resumed, or waited for a model.
 */
const deadlinesHold: Checker = ({ agents, calls, calmSinceMs, contextEvents, runs }) => {
  const definitions = new Map(agents.map((agent) => [agent.id, agent.definitions]))
  const logs = Map.groupBy(contextEvents, ({ contextName }) => contextName)
  const asked = new Set(calls.flatMap(({ runId, tool }) => (tool === "ask_user" ? [runId] : [])))
  const logOf = (run: RunRow) => logs.get(run.contextName) ?? []
  const topOf = ({ ancestors, id }: RunRow): string => ancestors[0] ?? id
  const wasTroubled = (run: RunRow): boolean => (run.startedAt?.getTime() ?? 0) < calmSinceMs
  // Those above a run that waits wait for its model, too.
  const troubled = new Set(runs.filter(({ metFailure }) => metFailure).map(topOf))
  const deadlineOf = (run: RunRow): number => {
    const { agentId, agentVersion, id, limits, startedAt, trigger } = run
    const timeoutMs =
      limits?.timeoutMs === undefined
        ? definitions.get(agentId)?.[agentVersion - 1]?.defaultTimeoutMs
        : limits.timeoutMs
    const isLeftOut =
      startedAt === null ||
      (wasTroubled(run) && troubled.has(topOf(run))) ||
      trigger.type === "context" ||
      asked.has(id) ||
      logOf(run).some(({ event }) => event.type === "RunResumedEvent")
    return isLeftOut
      ? Number.POSITIVE_INFINITY
      : startedAt.getTime() + (timeoutMs ?? Number.POSITIVE_INFINITY)
  }
  const deadlines = new Map(runs.map((run) => [run.id, deadlineOf(run)]))
  return runs.flatMap((run) => {
    const deadlineMs = Math.min(
      ...[run.id, ...run.ancestors].map((id) => deadlines.get(id) ?? Number.POSITIVE_INFINITY)
    )
    const log = logOf(run).map(({ event, json }) => ({ event, atMs: Date.parse(String(json["timestamp"])) }))
    const lastMs = Math.max(...log.map(({ atMs }) => atMs))
    const endMs = deadlineMs + runLimits.graceMs
    const isTroubled = [run, ...runs.filter(({ id }) => run.ancestors.includes(id))].some(wasTroubled)
    const isTold = log.some(
      ({ atMs, event }) => event.type === "SoftStopEvent" && atMs <= deadlineMs + lateMs
    )
    return [
      ...unless(
        lastMs <= (isTroubled ? Math.max(endMs, calmSinceMs) : endMs) + lateMs,
        `run ${run.id} was at work ${lastMs - deadlineMs} ms after its deadline`
      ),
      ...unless(
        isTold || isTroubled || lastMs <= deadlineMs + lateMs,
        `run ${run.id} was not told that its time was up, and was at work ${lastMs - deadlineMs} ms after its deadline`
      )
    ]
  })
}

export const checkWork = {
  deadlinesHold,
  attemptsBounded,
  spendingCounted,
  budgetsKept,
  waitsKnown,
  familiesEnd,
  childrenReported,
  flowsGoThrough
}
