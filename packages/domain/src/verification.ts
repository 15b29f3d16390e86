/**
 * What a verification found: whether the records still fold to what they say.
 *
 * The logs are the truth, so everything beside them must follow from them. A
 * difference names the thing, the rule that it breaks and what was seen; none
 * is ever mended in silence. `findLogFaults` judges one context; the graph is
 * judged where its rows are.
 */
import { Option, Schema } from "effect"
import { encodeSnapshot } from "./context-snapshot.ts"
import { fold } from "./context.ts"
import { eventNumber, type LoggedEvent } from "./context-event.ts"
import { canonicalJson } from "./json.ts"
import { addUsage, noUsage, type Usage } from "./run.ts"

export const VerificationRule = Schema.Literals([
  /** The versions of an entity are not 1, 2, 3 … */
  "versions",
  /** The newest version is not what the entity is now. */
  "present",
  /** A version has no event, or one that says something else. */
  "event",
  /** An event names other properties than those that changed. */
  "changedProperties",
  /** An object names another version than its history as the one that set a property. */
  "propertyVersions",
  /** The numbers of a log are not 1, 2, 3 …, or its head says another end. */
  "logNumbers",
  /** An event's parent is not an event before it. */
  "parents",
  /** A turn did not begin before it ended, or another began while it was open. */
  "turns",
  /** A run and its log disagree on its steps, its tokens or its last words. */
  "run",
  /** A recorded tool call and its outcome in the log disagree. */
  "toolCall",
  /** The context's head names another open turn than its log. */
  "openTurn",
  /** The snapshot of a context is not what its log folds to up to there. */
  "snapshot"
])
export type VerificationRule = typeof VerificationRule.Type

export const Difference = Schema.Struct({
  rule: VerificationRule,
  kind: Schema.Literals(["object", "relationship", "context"]),
  /** The id of the entity, or the name of the context. */
  id: Schema.String,
  /** What was found, in a sentence. */
  detail: Schema.String
}).annotate({ identifier: "Difference" })
export type Difference = typeof Difference.Type

export const Verification = Schema.Struct({
  checked: Schema.Struct({
    objects: Schema.Int,
    relationships: Schema.Int,
    versions: Schema.Int,
    contexts: Schema.Int,
    contextEvents: Schema.Int,
    runs: Schema.Int
  }),
  /** All that were found; the first of them are told. */
  differenceCount: Schema.Int,
  differences: Schema.Array(Difference)
}).annotate({ identifier: "Verification" })
export type Verification = typeof Verification.Type

/** A run as its row tells it. */
export interface RunRecord {
  readonly id: string
  readonly status: string
  readonly stepCount: number
  readonly usage: Usage
  readonly summary: string | null
}

/** A tool call as its record tells it. */
export interface CallRecord {
  readonly runId: string
  readonly callId: string
  readonly status: string
}

/** A snapshot that this version would read. */
export interface SnapshotRecord {
  readonly number: number
  readonly state: unknown
}

/** A context: its head, its whole log, and what is recorded beside it. */
export interface ContextRecords {
  readonly name: string
  readonly lastEventNumber: number
  readonly openTurnNumber: number | null
  readonly log: ReadonlyArray<LoggedEvent>
  readonly runs: ReadonlyArray<RunRecord>
  readonly calls: ReadonlyArray<CallRecord>
  readonly snapshots: ReadonlyArray<SnapshotRecord>
}

type Fault = Pick<Difference, "rule" | "detail">

/** Everything in which a context's head, its runs and its calls do not follow from its log. */
export const findLogFaults = (records: ContextRecords): ReadonlyArray<Fault> => [
  ...findNumberFaults(records),
  ...findParentFaults(records),
  ...findTurnFaults(records),
  ...records.runs.flatMap((run) => findRunFaults(run, records.log)),
  ...findCallFaults(records),
  ...records.snapshots.flatMap((snapshot) => findSnapshotFaults(snapshot, records.log))
]

const findNumberFaults = ({ lastEventNumber, log }: ContextRecords): ReadonlyArray<Fault> => {
  const wrong = log.findIndex((event, index) => eventNumber(event.id) !== index + 1)
  return [
    ...(wrong === -1
      ? []
      : [fault("logNumbers", `Event ${wrong + 1} of the log has the id ${log[wrong]?.id}`)]),
    ...(log.length === lastEventNumber
      ? []
      : [fault("logNumbers", `The log has ${log.length} events and its head says ${lastEventNumber}`)])
  ]
}

const findParentFaults = ({ log }: ContextRecords): ReadonlyArray<Fault> =>
  log.flatMap(({ id, parentEventId }, index) => {
    const isRight = Option.match(parentEventId, {
      onNone: () => index === 0,
      onSome: (parent) => index > 0 && eventNumber(parent) < eventNumber(id)
    })
    return isRight ? [] : [fault("parents", `The parent of ${id} is not an event before it`)]
  })

const findTurnFaults = ({ log, openTurnNumber }: ContextRecords): ReadonlyArray<Fault> => {
  let open: { readonly turn: number; readonly event: number } | undefined
  const found: Array<Fault> = []
  for (const event of log) {
    if (!event.type.startsWith("AgentTurn") || !("turnNumber" in event)) continue
    const isStart = event.type === "AgentTurnStartedEvent"
    if (isStart ? open !== undefined : open?.turn !== event.turnNumber)
      found.push(
        fault(
          "turns",
          `${event.type} of turn ${event.turnNumber} at ${event.id} while ${open ? `turn ${open.turn}` : "no turn"} was open`
        )
      )
    open = isStart ? { turn: event.turnNumber, event: eventNumber(event.id) } : undefined
  }
  if ((open?.event ?? null) !== openTurnNumber)
    found.push(
      fault(
        "openTurn",
        `The open turn began at event ${open?.event ?? "none"} of the log and the head says ${openTurnNumber ?? "none"}`
      )
    )
  return found
}

const findRunFaults = (run: RunRecord, log: ReadonlyArray<LoggedEvent>): ReadonlyArray<Fault> => {
  const asked = log.flatMap((event) => ("usage" in event && event.runId === run.id ? [event] : []))
  const answers = asked.filter(({ type }) => type === "AssistantMessageEvent")
  const usage = asked.map((event) => event.usage).reduce(addUsage, noUsage)
  const said = run.status === "completed" && answers.length > 0 ? fold(log).run : undefined
  return [
    ...(answers.length === run.stepCount
      ? []
      : [fault("run", `Run ${run.id} counts ${run.stepCount} steps and its log has ${answers.length}`)]),
    ...(usage.inputTokens === run.usage.inputTokens && usage.outputTokens === run.usage.outputTokens
      ? []
      : [
          fault(
            "run",
            `Run ${run.id} counts ${run.usage.inputTokens} + ${run.usage.outputTokens} tokens and its log ${usage.inputTokens} + ${usage.outputTokens}`
          )
        ]),
    ...(said?.id === run.id && said.steps !== run.stepCount
      ? [fault("run", `Run ${run.id} folds to ${said.steps} steps and counts ${run.stepCount}`)]
      : [])
  ]
}

/** Statuses of a call whose outcome the log tells. */
const hasOutcome = (status: string): boolean => status !== "started"

const findCallFaults = ({ calls, log }: ContextRecords): ReadonlyArray<Fault> => {
  const outcomes = new Map<string, string>()
  const twice: Array<Fault> = []
  for (const event of log) {
    const isOutcome = event.type === "ToolCallCompletedEvent" || event.type === "ToolCallFailedEvent"
    if (!isOutcome || !("callId" in event)) continue
    if (outcomes.has(event.callId))
      twice.push(fault("toolCall", `The call ${event.callId} has two outcomes in the log`))
    outcomes.set(event.callId, event.type === "ToolCallCompletedEvent" ? "completed" : "failed")
  }
  return [
    ...twice,
    ...calls.flatMap(({ callId, status }) => {
      const told = outcomes.get(callId)
      const recorded = !hasOutcome(status) ? undefined : status === "completed" ? "completed" : "failed"
      return told === recorded
        ? []
        : [
            fault(
              "toolCall",
              `The call ${callId} is recorded as ${status} and the log says ${told ?? "nothing"}`
            )
          ]
    })
  ]
}

const findSnapshotFaults = (
  { number, state }: SnapshotRecord,
  log: ReadonlyArray<LoggedEvent>
): ReadonlyArray<Fault> => {
  if (number > log.length)
    return [fault("snapshot", `The snapshot at event ${number} is of a log that has ${log.length} events`)]
  const folded = canonicalJson(encodeSnapshot(fold(log.slice(0, number))))
  return folded === canonicalJson(state)
    ? []
    : [fault("snapshot", `The snapshot at event ${number} is not what the log folds to`)]
}

const fault = (rule: VerificationRule, detail: string): Fault => ({ rule, detail })
