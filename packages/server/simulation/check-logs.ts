/**
 * Checks the logs of contexts: contiguous, every turn and session ended once, every
 * message answered, and folding to what the runs report.
 */
import { fold } from "@tropism/domain/context"
import { eventNumber } from "@tropism/domain/context-event"
import { beginReplay, replay } from "@tropism/domain/replay"
import { addUsage, noUsage } from "@tropism/domain/run"
import { Option } from "effect"
import { summaryOf } from "../src/runs/run-texts.ts"
import { wholeLogs } from "./check-forks.ts"
import type { ContextEventRow } from "./rows.ts"
import { type Checker, countsUp, unless } from "./remains.ts"

const logsOf = wholeLogs

/** Numbers are 1 to n, the head says n, and a parent is an event before its child. */
const logsContiguous: Checker = (remains) => {
  const logs = logsOf(remains)
  return remains.contexts.flatMap(({ name, lastEventNumber }) => {
    const log = logs.get(name) ?? []
    return [
      ...unless(
        countsUp(log.map((row) => row.number)) && log.length === lastEventNumber,
        `the log of ${name} has ${log.length} events, its last number is ${lastEventNumber}`
      ),
      ...log.flatMap(({ number, event }) =>
        unless(
          Option.match(event.parentEventId, {
            onNone: () => number === 1,
            onSome: (id) => eventNumber(id) < number
          }),
          `event ${number} of ${name} has a parent that is not before it`
        )
      )
    ]
  })
}

/** A turn that began ends once, and no other begins before. */
const turnsEnd: Checker = (remains) =>
  [...logsOf(remains)].flatMap(([name, log]) => {
    let open: number | undefined
    const found: Array<string> = []
    for (const { event } of log) {
      if (!event.type.startsWith("AgentTurn") || !("turnNumber" in event)) continue
      const isStart = event.type === "AgentTurnStartedEvent"
      if (isStart ? open !== undefined : open !== event.turnNumber)
        found.push(`turn ${event.turnNumber} of ${name}: ${event.type} while ${open ?? "none"} was open`)
      open = isStart ? event.turnNumber : undefined
    }
    return [...found, ...unless(open === undefined, `turn ${open} of ${name} never ended`)]
  })

/** A session that began ends once, whoever died in it, and nothing is outside of one but that a fork begins (S004-R40). */
const sessionsPair: Checker = (remains) =>
  [...logsOf(remains)].flatMap(([name, log]) => {
    let isOpen = false
    let isTurnOpen = false
    return log.flatMap(({ event: { type }, number }) => {
      const isSession = type === "SessionStartedEvent" || type === "SessionEndedEvent"
      const isTurn = type.startsWith("AgentTurn")
      const isFitting = isSession
        ? isOpen !== (type === "SessionStartedEvent") && !isTurnOpen
        : isOpen || type === "ContextForkedEvent"
      if (isSession) isOpen = type === "SessionStartedEvent"
      if (isTurn) isTurnOpen = type === "AgentTurnStartedEvent"
      return unless(
        isFitting,
        `event ${number} of ${name} is ${type} where a session is ${isOpen ? "open" : "over"}`
      )
    })
  })

/** What a run has said, in order: its answers, and what there was of those that were broken off. */
const wordsOf = (log: ReadonlyArray<ContextEventRow>, runId: string): ReadonlyArray<string> => {
  const texts: Array<string> = []
  let isOwn = false
  for (const { event } of log) {
    if (event.type === "AssistantMessageEvent" && "runId" in event) {
      isOwn = event.runId === runId
      if (isOwn && event.content !== "") texts.push(event.content)
    }
    if (event.type === "SoftStopEvent") {
      if ("runId" in event) isOwn = event.runId === runId
      if (isOwn && "partialText" in event && event.partialText) texts.push(event.partialText)
    }
    if (event.type === "AgentTurnInterruptedEvent" && "partialText" in event && isOwn && event.partialText)
      texts.push(event.partialText)
  }
  return texts
}

/** Whether a text has all of these, each behind the one before. */
const tellsInOrder = (text: string, words: ReadonlyArray<string>): boolean => {
  let end = 0
  return words.every((each) => {
    const at = text.indexOf(each, end)
    end = at + each.length
    return at !== -1
  })
}

/** The answers in the log are the run's steps, their usage and that of guards, summaries and notes its usage, and the last of them its summary; of a run that was cancelled all of them are. */
const logsFold: Checker = (remains) => {
  const logs = Map.groupBy(remains.contextEvents, ({ contextName }) => contextName)
  return remains.runs.flatMap((run) => {
    const answers = (logs.get(run.contextName) ?? []).flatMap(({ event }) =>
      event.type === "AssistantMessageEvent" && "usage" in event && event.runId === run.id ? [event] : []
    )
    const verdicts = (logs.get(run.contextName) ?? []).flatMap(({ event }) =>
      event.type === "GuardVerdictEvent" && "usage" in event && event.runId === run.id ? [event] : []
    )
    const told = (logs.get(run.contextName) ?? []).flatMap(({ event }) =>
      (event.type === "ContextNotedEvent" || event.type === "ContextSummarizedEvent") &&
      "usage" in event &&
      event.runId === run.id
        ? [event]
        : []
    )
    const usage = [...answers, ...verdicts, ...told].map((said) => said.usage).reduce(addUsage, noUsage)
    const words = wordsOf(logs.get(run.contextName) ?? [], run.id)
    const text = words.at(-1) ?? ""
    const isDone = run.status === "completed" || run.status === "paused"
    return [
      ...unless(
        answers.length === run.stepCount,
        `run ${run.id} counts ${run.stepCount} steps and its log ${answers.length}`
      ),
      ...unless(
        usage.inputTokens === run.usage.inputTokens && usage.outputTokens === run.usage.outputTokens,
        `run ${run.id} and its log disagree on its usage`
      ),
      ...unless(
        !isDone || (run.summary ?? "") === summaryOf(text),
        `run ${run.id} says "${run.summary}" and its log "${text}"`
      ),
      ...unless(
        run.status !== "cancelled" || tellsInOrder(run.summary ?? "", words),
        `run ${run.id} was cancelled and says "${run.summary}", and its log ${JSON.stringify(words)}`
      )
    ]
  })
}

/** Each log is what the decider writes, given what came from outside (S004-F19). */
const logsReplay: Checker = (remains) =>
  [...logsOf(remains)].flatMap(([name, log]) => {
    const { firstDifference } = replay(
      beginReplay,
      log.map((row) => row.json)
    )
    return firstDifference
      ? [
          `${name} differs at ${firstDifference.eventId}: ${firstDifference.detail}: ${JSON.stringify(firstDifference)}`
        ]
      : []
  })

/** Nobody is at work any more: no session of a run's own log is open, and no message that wants an answer has none. */
const logsClosed: Checker = (remains) =>
  [...logsOf(remains)].flatMap(([name, log]) => {
    const context = fold(log.map((row) => row.event))
    const newest = remains.runs.findLast((run) => run.contextName === name)
    // A fork shares what was said before it, and answers only what is said in it.
    const isSpokenIn = log.some(({ contextName, json }) => contextName === name && json.triggersAgentTurn)
    const isBrokenOff = newest?.status === "failed" || newest?.status === "cancelled"
    return [
      ...unless(!context.isSessionOpen || !name.startsWith("run-"), `the session of ${name} is still open`),
      ...unless(
        isBrokenOff || !isSpokenIn || (!context.isTriggered && !context.isTurnDue),
        `${name} has a message without an answer`
      ),
      ...unless(context.pendingCalls.length === 0, `${name} has calls without an outcome`)
    ]
  })

/** What was said and acknowledged stands in the log, once. */
const messagesKept: Checker = (remains) => {
  const logs = logsOf(remains)
  return remains.acknowledged.said.flatMap(({ context, content }) => {
    const found = (logs.get(context) ?? []).filter(
      ({ event }) => event.type === "UserMessageEvent" && "content" in event && event.content === content
    )
    return unless(found.length === 1, `"${content}" stands ${found.length} times in ${context}`)
  })
}

/** What an operator must see though nothing is wrong with the server. */
const isRefusal = (line: string): boolean =>
  line.includes("An agent's change was refused") || line.includes("A call of a foreign tool was refused")

/** A server logs no error but those that were made to happen, each in its own words. */
const calm: Checker = ({ errors, excuses }) =>
  errors.filter((line) => !isRefusal(line) && !excuses.some((words) => line.includes(words)))

export const checkLogs = {
  logsContiguous,
  turnsEnd,
  sessionsPair,
  logsFold,
  logsReplay,
  logsClosed,
  messagesKept,
  calm
}
