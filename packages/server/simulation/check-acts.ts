/**
 * Checks what agents did: every tool call on record once, every effect through a
 * call, and no write of an agent that may only suggest without a person's yes.
 */
import { DenialReason } from "@tropism/domain/denial"
import { canonicalJson } from "@tropism/domain/json"
import type { CallRow, ContextEventRow } from "./rows.ts"
import { wholeLogs } from "./check-forks.ts"
import { isForeign } from "./check-shop.ts"
import { type Checker, unless } from "./remains.ts"

/** A call's outcome in a log: what the model reads. */
interface Outcome {
  readonly callId: string
  readonly isFailure: boolean
  readonly result: unknown
}

const outcomeOf = ({ event }: ContextEventRow): Outcome | undefined => {
  if (event.type === "ToolCallCompletedEvent" && "result" in event)
    return { callId: event.callId, isFailure: false, result: event.result }
  if (event.type === "ToolCallFailedEvent" && "error" in event && "callId" in event)
    return { callId: event.callId, isFailure: true, result: event.error }
  return undefined
}

/** Each call that a model asked for has one outcome in its log, after the message that asked. */
const callsAnswered: Checker = (remains) =>
  [...wholeLogs(remains)].flatMap(([name, log]) => {
    const asked = log.flatMap((row) =>
      row.event.type === "AssistantMessageEvent" && "toolCalls" in row.event
        ? row.event.toolCalls.map((call) => ({ id: call.id, at: row.number }))
        : []
    )
    const outcomes = log.flatMap((row) => {
      const outcome = outcomeOf(row)
      return outcome === undefined ? [] : [{ ...outcome, at: row.number }]
    })
    return [
      ...asked.flatMap((call) => {
        const found = outcomes.filter((outcome) => outcome.callId === call.id)
        return [
          ...unless(found.length === 1, `call ${call.id} of ${name} has ${found.length} outcomes`),
          ...unless(
            found.every((outcome) => outcome.at > call.at),
            `call ${call.id} of ${name} has an outcome before it was asked for`
          )
        ]
      }),
      ...outcomes
        .filter((outcome) => !asked.some((call) => call.id === outcome.callId))
        .map((outcome) => `call ${outcome.callId} of ${name} has an outcome and nobody asked for it`)
    ]
  })

/** The calls that each log asks for by itself. */
const askedIn = (contextEvents: ReadonlyArray<ContextEventRow>): ReadonlySet<string> =>
  new Set(
    contextEvents.flatMap(({ contextName, event }) =>
      event.type === "AssistantMessageEvent" && "toolCalls" in event
        ? event.toolCalls.map(({ id }) => `${contextName} ${id}`)
        : []
    )
  )

/** Each outcome in a log has its record, once, also of a call that was not made, and each record its outcome: they say the same. A fork makes no call of what it shares: it says so, and that is on no record. */
const callsRecorded: Checker = ({ calls, contextEvents, contexts }) => {
  const outcomes = new Map<string, Outcome>()
  const forks = new Set(contexts.flatMap(({ forkedFrom, name }) => (forkedFrom === null ? [] : [name])))
  const asked = askedIn(contextEvents)
  const isShared = (name: string, { callId, isFailure }: Outcome): boolean =>
    isFailure && forks.has(name) && !asked.has(`${name} ${callId}`)
  for (const row of contextEvents) {
    const outcome = outcomeOf(row)
    if (outcome !== undefined && !isShared(row.contextName, outcome))
      outcomes.set(`${row.contextName} ${outcome.callId}`, outcome)
  }
  const records = Map.groupBy(calls, (call) => `${call.contextName} ${call.callId}`)
  const agrees = (record: CallRow, outcome: Outcome | undefined): boolean =>
    outcome !== undefined &&
    outcome.isFailure === (record.status !== "completed") &&
    canonicalJson(outcome.result) === canonicalJson(record.result)
  return [
    ...[...outcomes.keys()]
      .filter((key) => !records.has(key))
      .map((key) => `the outcome of ${key} is not on record: ${canonicalJson(outcomes.get(key)?.result)}`),
    ...[...records].flatMap(([key, found]) => [
      ...unless(found.length === 1, `call ${key} is on record ${found.length} times`),
      ...found.flatMap((record) =>
        unless(agrees(record, outcomes.get(key)), `the record of ${key} says something else than the log`)
      )
    ])
  ]
}

/** A call that was refused for want of a right, or because people must decide or did, is among the denials, once, and no other call is; none of a backtest is. */
const denialsRecorded: Checker = ({ calls, denials, runs }) => {
  const tried = new Set(runs.flatMap(({ backtestId, id }) => (backtestId === null ? [] : [id])))
  const ofCall = Map.groupBy(
    denials.filter((denial) => denial.taskId === null),
    (denial) => denial.toolCallId
  )
  return calls.flatMap((call) => {
    const count = ofCall.get(call.id)?.length ?? 0
    return unless(
      count === (isDenied(call) && !tried.has(call.runId) ? 1 : 0),
      `call ${call.id} was ${call.status} and is among the denials ${count} times`
    )
  })
}

/** A call that the limits of its run refuse is no denial. */
const isDenied = ({ result, status }: CallRow): boolean =>
  status === "refused" &&
  typeof result === "object" &&
  result !== null &&
  "reason" in result &&
  (DenialReason.literals as ReadonlyArray<unknown>).includes(result.reason)

/** What an agent did or suggested in the graph has a call on record that decided so, and the other way round. */
const effectsRecorded: Checker = ({ calls: made, events, revisions, tasks: all, wouldBes }) => {
  const tasks = all.filter(({ payload }) => payload.suggestedChanges !== undefined)
  // What a foreign tool does is no effect in the graph.
  const calls = made.filter((call) => !isForeign(call))
  const callById = new Map(calls.map((call) => [call.id, call]))
  const done = events.filter((event) => event.actorType === "agent" && event.taskId === null)
  const doneBy = Map.groupBy(done, (event) => event.toolCallId)
  // A call suggests what a task says, or said before another call refined it; in a backtest, what would be suggested.
  const tasksOf = Map.groupBy([...tasks, ...revisions, ...wouldBes], (said) => said.toolCallId)
  return [
    ...done.flatMap((event) =>
      unless(
        callById.get(event.toolCallId ?? "")?.decision === "execute",
        `event ${event.id} was made by an agent with no call on record that did it`
      )
    ),
    ...tasks.flatMap((task) =>
      unless(
        callById.get(task.toolCallId)?.decision === "suggest",
        `task ${task.ordinal} has no call on record that suggested it`
      )
    ),
    ...calls.flatMap((call) => {
      const effects = (doneBy.get(call.id)?.length ?? 0) + (tasksOf.get(call.id)?.length ?? 0)
      const isAct =
        call.status === "completed" && (call.decision === "execute" || call.decision === "suggest")
      return isAct
        ? unless(
            effects === 1 || isUnchanged(call.result),
            `call ${call.id} (${call.decision}) had ${effects} effects`
          )
        : unless(effects === 0, `call ${call.id} was ${call.status} and had ${effects} effects`)
    })
  ]
}

const isUnchanged = (result: unknown): boolean =>
  typeof result === "object" && result !== null && "status" in result && result.status === "unchanged"

/** An agent in suggest mode has written nothing that no person approved. */
const suggestedOnly: Checker = ({ agents, events, tasks }) => {
  const bound = new Set(
    agents
      .filter((agent) => agent.definitions.every(({ executionMode }) => executionMode === "suggest"))
      .map((agent) => agent.id)
  )
  const taskById = new Map(tasks.map((task) => [task.id, task]))
  return events
    .filter((event) => event.actorType === "agent" && bound.has(event.actorId ?? ""))
    .flatMap((event) => {
      const task = taskById.get(event.taskId ?? "")
      return unless(
        task?.status === "completed" &&
          task.agentId === event.actorId &&
          event.approvedBy !== null &&
          task.resolvedBy === event.approvedBy,
        `event ${event.id}: an agent that may only suggest wrote without an approved task`
      )
    })
}

/** From whom a right was taken for good, whether by a switch, a change or a deletion, has written nothing by itself since. */
const restraintsObeyed: Checker = ({ acknowledged, events }) => {
  const written = Map.groupBy(
    events.filter((event) => event.actorType === "agent" && event.taskId === null),
    (event) => event.actorId ?? ""
  )
  return [
    ...acknowledged.restrained.flatMap((restraint) =>
      (written.get(restraint.agentId) ?? []).flatMap((event) =>
        unless(
          restraint.written.includes(event.id),
          `event ${event.id} was written by agent ${restraint.agentId} after it was told that it may not`
        )
      )
    ),
    ...acknowledged.halted.flatMap(({ after, before }) =>
      unless(
        after.every((id) => before.includes(id)),
        `agents wrote ${after.length - before.length} times while a kill switch was on`
      )
    )
  ]
}

export const checkActs = {
  callsAnswered,
  callsRecorded,
  denialsRecorded,
  effectsRecorded,
  suggestedOnly,
  restraintsObeyed
}
