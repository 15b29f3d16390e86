/**
 * Checks the calls of client tools: each has one outcome, and an answer that was acknowledged is that outcome.
 */
import { clientTool } from "./agents.ts"
import { easel } from "./painters.ts"
import { type Checker, type Remains, unless } from "./remains.ts"

const outcomesOf = ({ contextEvents }: Remains) =>
  contextEvents.flatMap(({ contextName, event }) =>
    contextName === easel &&
    (event.type === "ToolCallCompletedEvent" || event.type === "ToolCallFailedEvent") &&
    "callId" in event &&
    event.tool === clientTool
      ? [event]
      : []
  )

/** No call has two outcomes, however many clients answered. */
const callsEndOnce: Checker = (remains) =>
  [...Map.groupBy(outcomesOf(remains), ({ callId }) => callId)].flatMap(([callId, outcomes]) =>
    unless(outcomes.length === 1, `call ${callId} of a client tool has ${outcomes.length} outcomes`)
  )

/** An acknowledged answer is the outcome of its call, and no second one was acknowledged. */
const answersKept: Checker = (remains) => {
  const outcomes = outcomesOf(remains)
  return [...Map.groupBy(remains.acknowledged.answeredCalls, ({ callId }) => callId)].flatMap(
    ([callId, answers]) => [
      ...unless(answers.length === 1, `call ${callId} was answered ${answers.length} times`),
      ...answers.flatMap(({ client }) =>
        unless(
          outcomes.some((event) => event.callId === callId && event.userId === client),
          `the answer of ${client} to call ${callId} was acknowledged and is not in the log`
        )
      )
    ]
  )
}

/** A call does not wait when its run has ended. */
const noCallLeft: Checker = ({ calls, runs }) => {
  const ended = new Set(runs.flatMap(({ completedAt, id }) => (completedAt === null ? [] : [id])))
  return calls.flatMap(({ id, runId, status, tool }) =>
    unless(
      tool !== clientTool || status !== "started" || runId === null || !ended.has(runId),
      `call ${id} waits for a client, and its run has ended`
    )
  )
}

export const checkClients = { callsEndOnce, answersKept, noCallLeft }
