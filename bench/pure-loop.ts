/**
 * The engine's loop in memory: decide, ask, fold, with nothing kept.
 *
 * The same decider, reducer and scripted model as the server's, so what a step
 * costs there beside this is what it costs to keep it.
 */
import { decide } from "@tropism/domain/decide"
import { emptyContext, fold, type ReducedContext } from "@tropism/domain/context"
import { contextEventId, ContextName, type NewEvent } from "@tropism/domain/context-event"
import { readLogged } from "@tropism/domain/logged-event"
import { noUsage } from "@tropism/domain/run"
import type { Script } from "@tropism/domain/script"
import { attempt } from "@tropism/server/models/retry"
import { compileScript } from "@tropism/server/models/script"
import { fromScript } from "@tropism/server/models/models"
import { Effect, Result, Stream } from "effect"
import { nowMs } from "./doors.ts"

/** What the model says to a log: nothing but calls, until it has made enough of them. */
export type Ask = (context: ReducedContext) => Promise<{ readonly text: string; readonly calls: number }>

/** The same answer to every log, at no cost: what is left is the engine's own. */
export const knowing =
  (steps: number): Ask =>
  (context) =>
    Promise.resolve(context.run.steps < steps ? { text: "", calls: 1 } : { text: "Done.", calls: 0 })

/** The scripted model, asked as the server asks any model. */
export const following = async (given: Script): Promise<Ask> => {
  const script = compileScript(given)
  if (Result.isFailure(script)) throw new Error(script.failure)
  const model = {
    provider: "scripted",
    name: "bench",
    price: null,
    port: fromScript(script.success)
  } as const
  const tools = [{ name: "search_objects", inputSchema: { type: "object" } }]
  return ({ messages }) =>
    attempt(model, { messages, tools }).pipe(
      Stream.runFold(
        () => ({ text: "", calls: 0 }),
        (answer, part) =>
          part.type === "text"
            ? { ...answer, text: answer.text + part.delta }
            : part.type === "toolCall"
              ? { ...answer, calls: answer.calls + 1 }
              : answer
      ),
      Effect.runPromise
    )
}

const contextName = ContextName.make("bench")
const runId = "00000000-0000-7000-8000-000000000000"

/** Works on a run until it ends and answers how long each step took, in milliseconds. */
export const workInMemory = async (ask: Ask) => {
  let context = emptyContext
  const durations: Array<number> = []
  let begun = nowMs()
  const append = (...events: ReadonlyArray<NewEvent>) => {
    const first = context.nextEventNumber
    const logged = events.map((event, index) =>
      readLogged({
        ...event,
        id: contextEventId(contextName, first + index),
        timestamp: new Date(0).toISOString(),
        agentName: contextName,
        parentEventId: null,
        triggersAgentTurn: event.triggersAgentTurn ?? false
      })
    )
    context = fold(logged, context)
  }
  append(
    { type: "SessionStartedEvent" },
    { type: "UserMessageEvent", content: "Begin.", triggersAgentTurn: true }
  )
  append({ type: "AgentTurnStartedEvent", turnNumber: 1 })
  for (;;) {
    const decision = decide({ context, runId, ownTurnNumber: 1, maxSteps: null, mayRepeat: () => true })
    if (decision.type === "requestModel") {
      const { calls, text } = await ask(context)
      const toolCalls = Array.from({ length: calls }, () => ({
        id: `call_${context.run.steps}`,
        name: "search_objects",
        arguments: { type: "Nothing", limit: 1 }
      }))
      append({
        type: "AssistantMessageEvent",
        content: text,
        toolCalls,
        runId,
        model: "bench",
        usage: noUsage
      })
      if (calls > 0) continue
    } else if (decision.type === "callTool") {
      const { id, name, arguments: args } = decision.call
      append(
        { type: "ToolCallStartedEvent", callId: id, tool: name, arguments: args },
        { type: "ToolCallCompletedEvent", callId: id, tool: name, result: { objects: [] } }
      )
    } else if (decision.type === "completeTurn") {
      return { context, durations }
    } else throw new Error(`The bench's run came to ${decision.type}`)
    durations.push(nowMs() - begun)
    begun = nowMs()
  }
}
