/**
 * Helpers for stories in which a context defines a client tool and clients answer its calls.
 */
import { Effect } from "effect"
import { addEvent, logOf, newContext } from "./context-words.ts"
import { defineTool } from "./define-words.ts"
import { type Answer, eventually, type Json, scripted, type Story } from "./platform.ts"
import { ofType } from "./run-words.ts"
import type { ScriptedCall } from "./story-words.ts"

/** A tool that only a client can answer: it knows what the person has selected. */
export const pickColour = {
  name: "pick_colour",
  description: "Lets the person pick a colour.",
  inputSchema: {
    type: "object",
    properties: { prompt: { type: "string", maxLength: 200 }, count: { type: "integer", minimum: 1 } },
    required: ["prompt"],
    additionalProperties: false
  }
}

export const picking = (args: Record<string, unknown> = { prompt: "Which one?" }): ScriptedCall => ({
  tool: "pick_colour",
  arguments: args
})

/** A model that makes these calls in its first step and then repeats the results. */
export const repeatingResults = (...calls: ReadonlyArray<ScriptedCall>) =>
  scripted([
    { when: "step == 0", calls },
    { say: "{% for each in results %}{{ each.tool }}: {{ each.result | json }}; {% endfor %}" }
  ])

/** A conversation whose context defines the tool, and whose agent calls it when it is spoken to. */
export const clientConversation = Effect.fnUntraced(function* (
  story: Story,
  calls: ReadonlyArray<ScriptedCall> = [picking()],
  fields: Record<string, unknown> = {},
  overrides: Record<string, unknown> = {}
) {
  const agent = yield* newContext(story, "talk", repeatingResults(...calls), overrides)
  const defined = yield* defineTool(story, "talk", { ...pickColour, ...fields })
  return { agent, defined }
})

/** The calls that wait for a client, once there are as many. */
export const waitingCalls = (story: Story, count = 1, context = "talk"): Effect.Effect<ReadonlyArray<Json>> =>
  eventually(
    Effect.map(logOf(story, context), (log) =>
      ofType(log, "ToolCallStartedEvent").filter(({ waitsFor }) => waitsFor === "client")
    ),
    ({ length }) => length >= count
  )

/** Sends a message and waits until the run is paused with this number of calls waiting for a client. */
export const untilWaiting = Effect.fnUntraced(function* (story: Story, count = 1) {
  yield* addEvent(story, "talk", "Go")
  const calls = yield* waitingCalls(story, count)
  const { items } = yield* eventually(
    story.get("/runs?limit=1"),
    ({ items: [run] }) => run?.status === "paused"
  )
  return { run: items[0] as Json, calls, callId: calls[0]?.callId as string }
})

/** Answers a call, and returns what the server replies. */
export const answerTool = (
  story: Story,
  callId: string,
  outcome: Record<string, unknown>,
  context = "talk"
): Effect.Effect<Answer> =>
  story.ask("POST", `/contexts/${context}/events`, { type: "ToolResultEvent", callId, ...outcome })

/** What the newest run said at its end. */
export const summaryNow = (story: Story): Effect.Effect<string> =>
  Effect.map(story.get("/runs?limit=1"), ({ items: [run] }) => String(run.summary))
