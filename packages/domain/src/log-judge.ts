/**
 * Judges whether a context's head, its runs, its calls and its snapshots follow from its log.
 *
 * A log is read page by page, and each event is looked at once, however many runs
 * and calls there are: what is held meanwhile is what the log folds to, and a line
 * for each run and call.
 */
import { Option } from "effect"
import { encodeSnapshot } from "./context-snapshot.ts"
import { emptyContext, fold } from "./context.ts"
import { eventNumber, type LoggedEvent } from "./context-event.ts"
import { canonicalJson } from "./json.ts"
import type { RunProgress } from "./run-progress.ts"
import { addUsage, noUsage, type Usage } from "./run.ts"
import type { Difference } from "./verification.ts"

/** A run as its row tells it. */
export interface RunRecord {
  readonly id: string
  readonly status: string
  readonly stepCount: number
  readonly usage: Usage
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

/** A context: its head, and what is recorded beside its log. */
export interface ContextRecords {
  readonly name: string
  readonly lastEventNumber: number
  readonly openTurnNumber: number | null
  readonly runs: ReadonlyArray<RunRecord>
  readonly calls: ReadonlyArray<CallRecord>
  readonly snapshots: ReadonlyArray<SnapshotRecord>
}

export type LogFault = Pick<Difference, "rule" | "detail">

export interface LogJudge {
  /** Takes the next events of the log; what is wrong with them. */
  readonly read: (page: ReadonlyArray<LoggedEvent>) => ReadonlyArray<LogFault>
  /** The log is over; what of the records does not follow from it. */
  readonly end: () => ReadonlyArray<LogFault>
}

/** One rule, as it looks at one event after the other. */
interface EventJudge {
  readonly look: (event: LoggedEvent, place: number) => ReadonlyArray<LogFault>
  readonly end: (events: number) => ReadonlyArray<LogFault>
}

/** Judges one context, whose log is read from its beginning. */
export const judgeLog = (records: ContextRecords): LogJudge => {
  const states = judgeStates(records)
  const judges = [
    judgeNumbers(records),
    judgeParents,
    judgeTurns(records),
    judgeRuns(records, states.run),
    judgeCalls(records)
  ]
  let events = 0
  return {
    read: (page) => {
      const found = page.flatMap((event, index) =>
        judges.flatMap((judge) => judge.look(event, events + index + 1))
      )
      events += page.length
      return [...found, ...states.read(page)]
    },
    end: () => [...judges.flatMap((judge) => judge.end(events)), ...states.end(events)]
  }
}

const judgeNumbers = ({ lastEventNumber }: ContextRecords): EventJudge => {
  let isOff = false
  return {
    look: ({ id }, place) => {
      if (isOff || eventNumber(id) === place) return []
      isOff = true
      return [fault("logNumbers", `Event ${place} of the log has the id ${id}`)]
    },
    end: (events) =>
      events === lastEventNumber
        ? []
        : [fault("logNumbers", `The log has ${events} events and its head says ${lastEventNumber}`)]
  }
}

const judgeParents: EventJudge = {
  look: ({ id, parentEventId }, place) => {
    const isRight = Option.match(parentEventId, {
      onNone: () => place === 1,
      onSome: (parent) => place > 1 && eventNumber(parent) < eventNumber(id)
    })
    return isRight ? [] : [fault("parents", `The parent of ${id} is not an event before it`)]
  },
  end: () => []
}

const judgeTurns = ({ openTurnNumber }: ContextRecords): EventJudge => {
  let open: { readonly turn: number; readonly event: number } | undefined
  return {
    look: (event) => {
      if (!event.type.startsWith("AgentTurn") || !("turnNumber" in event)) return []
      const before = open
      const isStart = event.type === "AgentTurnStartedEvent"
      open = isStart ? { turn: event.turnNumber, event: eventNumber(event.id) } : undefined
      return (isStart ? before === undefined : before?.turn === event.turnNumber)
        ? []
        : [
            fault(
              "turns",
              `${event.type} of turn ${event.turnNumber} at ${event.id} while ${before ? `turn ${before.turn}` : "no turn"} was open`
            )
          ]
    },
    end: () =>
      (open?.event ?? null) === openTurnNumber
        ? []
        : [
            fault(
              "openTurn",
              `The open turn began at event ${open?.event ?? "none"} of the log and the head says ${openTurnNumber ?? "none"}`
            )
          ]
  }
}

/** What a log tells of a run. */
interface ToldRun {
  readonly answers: number
  readonly usage: Usage
}

const untold: ToldRun = { answers: 0, usage: noUsage }

const judgeRuns = ({ runs }: ContextRecords, folded: () => RunProgress): EventJudge => {
  const told = new Map<string, ToldRun>()
  return {
    look: (event) => {
      if (!("usage" in event)) return []
      const { answers, usage } = told.get(event.runId) ?? untold
      told.set(event.runId, {
        answers: event.type === "AssistantMessageEvent" ? answers + 1 : answers,
        usage: addUsage(usage, event.usage)
      })
      return []
    },
    end: () => runs.flatMap((run) => findRunFaults(run, told.get(run.id) ?? untold, folded()))
  }
}

const findRunFaults = (
  run: RunRecord,
  { answers, usage }: ToldRun,
  folded: RunProgress
): ReadonlyArray<LogFault> => [
  ...(answers === run.stepCount
    ? []
    : [fault("run", `Run ${run.id} counts ${run.stepCount} steps and its log has ${answers}`)]),
  ...(usage.inputTokens === run.usage.inputTokens && usage.outputTokens === run.usage.outputTokens
    ? []
    : [
        fault(
          "run",
          `Run ${run.id} counts ${run.usage.inputTokens} + ${run.usage.outputTokens} tokens and its log ${usage.inputTokens} + ${usage.outputTokens}`
        )
      ]),
  ...(run.status === "completed" && answers > 0 && folded.id === run.id && folded.steps !== run.stepCount
    ? [fault("run", `Run ${run.id} folds to ${folded.steps} steps and counts ${run.stepCount}`)]
    : [])
]

const judgeCalls = ({ calls }: ContextRecords): EventJudge => {
  const outcomes = new Map<string, "completed" | "failed">()
  return {
    look: (event) => {
      const isOutcome = event.type === "ToolCallCompletedEvent" || event.type === "ToolCallFailedEvent"
      if (!isOutcome || !("callId" in event)) return []
      const isAgain = outcomes.has(event.callId)
      outcomes.set(event.callId, event.type === "ToolCallCompletedEvent" ? "completed" : "failed")
      return isAgain ? [fault("toolCall", `The call ${event.callId} has two outcomes in the log`)] : []
    },
    end: () => calls.flatMap((call) => findCallFault(call, outcomes.get(call.callId)))
  }
}

const findCallFault = (
  { callId, status }: CallRecord,
  told: "completed" | "failed" | undefined
): ReadonlyArray<LogFault> => {
  const recorded = status === "started" ? undefined : status === "completed" ? "completed" : "failed"
  return told === recorded
    ? []
    : [fault("toolCall", `The call ${callId} is recorded as ${status} and the log says ${told ?? "nothing"}`)]
}

/** What a log folds to: once, from snapshot to snapshot. */
const judgeStates = ({ snapshots }: ContextRecords) => {
  const ahead = snapshots.toSorted((one, other) => one.number - other.number)
  let state = emptyContext
  let events = 0
  return {
    run: () => state.run,
    read: (page: ReadonlyArray<LoggedEvent>): ReadonlyArray<LogFault> => {
      const found: Array<LogFault> = []
      let from = 0
      const goOn = (until: number) => {
        if (until > from) state = fold(page.slice(from, until), state)
        from = until
      }
      for (let next = ahead[0]; next !== undefined && next.number <= events + page.length; next = ahead[0]) {
        ahead.shift()
        goOn(next.number - events)
        if (canonicalJson(encodeSnapshot(state)) !== canonicalJson(next.state))
          found.push(fault("snapshot", `The snapshot at event ${next.number} is not what the log folds to`))
      }
      goOn(page.length)
      events += page.length
      return found
    },
    end: (events: number): ReadonlyArray<LogFault> =>
      ahead.map(({ number }) =>
        fault("snapshot", `The snapshot at event ${number} is of a log that has ${events} events`)
      )
  }
}

const fault = (rule: LogFault["rule"], detail: string): LogFault => ({ rule, detail })
