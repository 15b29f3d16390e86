/**
 * Makes the agents of a project what their definitions say, by name.
 *
 * An agent that is so already is left alone, so applying twice makes no second
 * version. A field that a definition does not name goes back to its default:
 * the file says everything about the agent. Agents that no file names stay.
 */
import { type Agent, type AgentInput, type AgentPatch, defineAgent } from "@tropism/domain/agent"
import { canonicalJson, isJsonObject } from "@tropism/domain/json"
import { Effect } from "effect"
import type { Access } from "./access.ts"
import type { AgentFile } from "./agent-files.ts"
import { readAgents } from "./agents-by-name.ts"
import { failure, requestFailure } from "./failure.ts"

export interface AppliedAgent {
  readonly name: string
  readonly outcome: "created" | "updated" | "unchanged"
  readonly id: string
  readonly version: number
}

export const applyAgents = (access: Access, definitions: ReadonlyArray<AgentFile>) =>
  Effect.gen(function* () {
    const existing = new Map((yield* readAgents(access)).map((agent) => [agent.name, agent]))
    return yield* Effect.forEach(definitions, ({ file, input }) =>
      applyAgent(access, input, existing.get(input.name)).pipe(
        Effect.mapError((error) =>
          failure(`${file}: ${requestFailure(error, access.connection.url).message}`)
        )
      )
    )
  })

const applyAgent = (access: Access, input: AgentInput, agent: Agent | undefined) =>
  Effect.gen(function* () {
    if (agent === undefined) {
      const created = yield* access.client.agents.create({ params: access.params, payload: input })
      return told(created, "created")
    }
    if (isSame(agent, input)) return told(agent, "unchanged")
    const updated = yield* access.client.agents.update({
      params: { ...access.params, agentId: agent.id },
      payload: wholePatch(input)
    })
    return told(updated, "updated")
  })

const told = (agent: Agent, outcome: AppliedAgent["outcome"]): AppliedAgent => ({
  name: agent.name,
  outcome,
  id: agent.id,
  version: agent.version
})

/** Whether an agent is what a definition says, defaults filled in and null counting as absent. */
export const isSame = (agent: Agent, input: AgentInput): boolean => {
  const wanted = defineAgent(input)
  const has = Object.fromEntries(Object.keys(wanted).map((field) => [field, Reflect.get(agent, field)]))
  return canonicalJson(withoutNulls(has)) === canonicalJson(withoutNulls(wanted))
}

const withoutNulls = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => item !== null && item !== undefined)
      .map(([key, item]) => [key, withoutNulls(item)])
  )
}

/** The patch that sets every field: what the definition does not name, to null, which is the default. */
const wholePatch = (input: AgentInput): AgentPatch => ({
  role: null,
  systemPrompt: null,
  model: null,
  flowType: null,
  tools: null,
  cronSchedule: null,
  timezone: null,
  reactionConfig: null,
  executionMode: null,
  hybridPolicy: null,
  capabilities: null,
  maxSteps: null,
  enabled: null,
  ...input
})
