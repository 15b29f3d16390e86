/**
 * Definitions and ports of the `run` server's tools: spawn a sub-run, ask a person, end a loop.
 *
 * Schemas only; later modules fill the ports. No schema has a field for the caller.
 */
import { AgentName } from "@tropism/domain/agent"
import { exitLoopTool } from "@tropism/domain/flow"
import type { ToolCallId } from "@tropism/domain/ids"
import { Context, type Effect, Schema } from "effect"
import type { ProjectTransaction } from "../database/database.ts"
import type { ChangeRefused } from "../graph/change-refused.ts"
import type { RunPrincipal } from "./principal.ts"
import type { ToolEffect } from "./tool-calls.ts"

/** Accepts null as absent: many models send null for what they leave out. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

export const SpawnAgent = Schema.Struct({
  agent: AgentName.annotate({ description: "The name of the agent that does the work" }),
  task: Schema.String.check(Schema.isBetweenLength(1, 20_000)).annotate({
    description: "What it should do, in full: it sees nothing of your conversation"
  }),
  input: opt(Schema.Json.annotate({ description: "Data for the task" })),
  timeoutMs: opt(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 604_800_000 })).annotate({
      description: "How long it may take, in milliseconds"
    })
  )
})
export const ListAgents = Schema.Struct({})
export const AskUser = Schema.Struct({
  question: Schema.String.check(Schema.isBetweenLength(1, 4_000)).annotate({
    description: "The question, with all that a person needs to answer it"
  }),
  options: opt(
    Schema.Array(Schema.String.check(Schema.isBetweenLength(1, 200)))
      .check(Schema.isBetweenLength(1, 20))
      .annotate({ description: "The answers to choose from; without them the person writes freely" })
  )
})
export const ExitLoop = Schema.Struct({
  output: opt(
    Schema.String.check(Schema.isMaxLength(20_000)).annotate({ description: "What the loop has come to" })
  )
})

/** Every tool of the server, by name. */
export const runTools = {
  spawn_agent: {
    description:
      "Hands a task to another agent and waits for what it says at its end. Several calls in one message work side by side.",
    arguments: SpawnAgent
  },
  list_agents: { description: "Lists the agents that you may hand tasks to.", arguments: ListAgents },
  ask_user: {
    description: "Asks a person a question and waits for the answer, however long it takes.",
    arguments: AskUser
  },
  [exitLoopTool]: { description: "Ends the loop that you work in, after this answer.", arguments: ExitLoop }
} as const

type Answer = Effect.Effect<ToolEffect, ChangeRefused, ProjectTransaction>

/** Port that starts sub-runs. */
export class ChildRuns extends Context.Service<
  ChildRuns,
  {
    /** Queues a run of another agent; its end supplies the call's outcome. */
    readonly spawn: (args: typeof SpawnAgent.Type, principal: RunPrincipal, callId: ToolCallId) => Answer
    /** The agents that the principal's agent may spawn. */
    readonly list: (principal: RunPrincipal) => Answer
  }
>()("@tropism/server/tool/ChildRuns") {}

/** Port that asks a person. */
export class Questions extends Context.Service<
  Questions,
  {
    /** Creates a question task; its answer is the call's outcome. */
    readonly ask: (args: typeof AskUser.Type, principal: RunPrincipal, callId: ToolCallId) => Answer
  }
>()("@tropism/server/tool/Questions") {}
