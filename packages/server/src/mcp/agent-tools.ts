/**
 * Agents as people meet them through MCP: look at one, set it to work, ask why it did or did not wake.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 */
import type { Agent } from "@tropism/domain/agent"
import { AgentId, GraphEventId } from "@tropism/domain/ids"
import { Effect, Schema } from "effect"
import { Agents } from "../agent/agents.ts"
import { isPassing } from "../database/database-away.ts"
import { Explanations } from "../dispatch/explanations.ts"
import { Triggers } from "../dispatch/triggers.ts"
import { Closing } from "../http/closing.ts"
import { pageById } from "../http/paging.ts"
import { orNotFound } from "../http/refusals.ts"
import { Outbox } from "../outbox/outbox.ts"
import { adds, personTool, reads } from "../tool/person-tool.ts"
import { asJson, failed, known, opt, pageArguments, pageOf, pageShape } from "./told.ts"

const AgentWord = Schema.String.check(Schema.isBetweenLength(1, 200)).annotate({
  description: "The agent's name or its id"
})

/** An agent in a list. */
const shownAgent = (agent: Agent) => ({
  id: agent.id,
  name: agent.name,
  role: agent.role,
  enabled: agent.enabled,
  triggerType: agent.triggerType,
  executionMode: agent.executionMode,
  version: agent.version,
  tools: agent.tools
})

/** The agent that a name or an id means, deleted ones never. */
export const makeFindAgent = Effect.map(
  Agents,
  (agents) => (word: string) =>
    known("agent")(
      Schema.is(AgentId)(word)
        ? agents.get(word)
        : Effect.map(agents.named([word]), (named) => named.get(word))
    )
)

const listAgents = {
  name: "list_agents",
  title: "List agents",
  description: "Lists the agents of the project, newest first.",
  arguments: Schema.Struct(pageArguments),
  outputSchema: pageShape,
  annotations: reads,
  role: "viewer"
} as const

const getAgent = {
  name: "get_agent",
  title: "Read an agent",
  description:
    "Reads an agent's whole definition: prompt, model, tools, trigger, mode, capabilities and limits.",
  arguments: Schema.Struct({ agent: AgentWord }),
  annotations: reads,
  role: "viewer"
} as const

const triggerAgent = {
  name: "trigger_agent",
  title: "Set an agent to work",
  description:
    "Begins a run of an agent, as yours. Waits for its end, at most a minute, and answers the run; with wait false it answers at once. Ask get_run for one that goes on.",
  arguments: Schema.Struct({
    agent: AgentWord,
    input: opt(Schema.Json.annotate({ description: "What its prompt sees as input" })),
    wait: opt(Schema.Boolean.annotate({ description: "False to answer as soon as the run is queued" }))
  }),
  annotations: adds,
  execution: { taskSupport: "optional" },
  role: "editor"
} as const

const explainEvent = {
  name: "explain",
  title: "Explain why agents woke",
  description:
    "Says why an event of the graph, or what an MCP server told, did or did not wake an agent, or, without an agent, each of them. get_object and the project's events know the ids of events, the trigger of a run those of what was told.",
  arguments: Schema.Struct({ eventId: GraphEventId, agent: opt(AgentWord), ...pageArguments }),
  annotations: reads,
  role: "viewer"
} as const

export const makeAgentTools = Effect.gen(function* () {
  const agents = yield* Agents
  const triggers = yield* Triggers
  const explanations = yield* Explanations
  const outbox = yield* Outbox
  const findAgent = yield* makeFindAgent
  const { lastCall } = yield* Closing

  return [
    personTool(listAgents, (args) =>
      pageById(pageOf("agents", args), agents.list).pipe(
        Effect.mapError(failed),
        Effect.map(({ items, nextCursor }) => ({
          result: asJson({ items: items.map(shownAgent), nextCursor })
        }))
      )
    ),
    personTool(getAgent, ({ agent }) => Effect.map(findAgent(agent), (found) => ({ result: asJson(found) }))),
    personTool(triggerAgent, ({ agent: word, input, wait }, { principal: { projectId, userId } }) =>
      Effect.gen(function* () {
        const agent = yield* findAgent(word)
        const runId = yield* Effect.mapError(triggers.byHand(agent, input ?? undefined, userId), failed)
        const now = triggers.look(projectId, runId)
        const run =
          wait === false
            ? now
            : Effect.raceFirst(triggers.settled(projectId, runId), Effect.as(lastCall, undefined))
        const begun = { id: runId, agentId: agent.id, agentName: agent.name, status: "queued" }
        return {
          result: begun,
          // Whatever is not known of it, it has begun: told of a fault, whoever asked would trigger it again.
          afterwards: Effect.map(
            Effect.catchDefect(run, (defect) =>
              isPassing(defect) ? Effect.succeed(undefined) : Effect.die(defect)
            ),
            (seen) => asJson(seen ?? begun)
          )
        }
      })
    ),
    personTool(explainEvent, ({ agent: word, eventId, ...page }) =>
      Effect.gen(function* () {
        const event = yield* outbox.get(eventId)
        if (typeof word === "string") {
          const { id } = yield* findAgent(word)
          const explanation =
            event === undefined
              ? known("event")(explanations.ofOccurrence(eventId, id))
              : known("agent")(explanations.one(event, id))
          return { result: asJson(yield* explanation) }
        }
        const all = pageById(pageOf(`explanations of ${eventId}`, page), (before, limit) =>
          event === undefined
            ? orNotFound("event")(explanations.listOfOccurrence(eventId, before, limit))
            : explanations.list(event, before, limit)
        )
        return { result: asJson(yield* Effect.mapError(all, failed)) }
      })
    )
  ]
})
