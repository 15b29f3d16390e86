/**
 * The agents of a project as models.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 */
import type { AgentModel } from "@tropism/api/openai-api"
import type { Agent } from "@tropism/domain/agent"
import { AgentId, type ProjectId } from "@tropism/domain/ids"
import { Effect, Schema } from "effect"
import { Agents } from "../agent/agents.ts"
import { TodoAssistants } from "../agent/todo-assistants.ts"
import { reading } from "./access.ts"
import { openAiFault } from "./openai-faults.ts"
import { openAiLimits } from "./openai-limits.ts"

/** Those that can be spoken to, the newest first. */
export const listModels = Effect.fn("http.openai.models")(function* (projectId: ProjectId) {
  const agents = yield* Agents
  const found: Array<Agent> = []
  const data = yield* reading(
    projectId,
    Effect.gen(function* () {
      yield* ensureAssistant
      while (found.length < openAiLimits.listedModels) {
        const page = yield* agents.list(found.at(-1)?.id, openAiLimits.pageModels)
        found.push(...page)
        if (page.length < openAiLimits.pageModels) break
      }
      return found.filter(({ enabled }) => enabled).map(modelOf)
    })
  )
  return { object: "list", data } as const
})

export const getModel = Effect.fn("http.openai.model")(function* (projectId: ProjectId, model: string) {
  return modelOf(yield* reading(projectId, knownAgent(model)))
})

/** An older project gets its TodoAssistant when somebody asks for a model first. */
const ensureAssistant = Effect.flatMap(TodoAssistants, ({ ensure }) => ensure)

const isAgentId = Schema.is(AgentId)

/** The agent of this name, else of this id. */
export const knownAgent = Effect.fnUntraced(function* (model: string) {
  const agents = yield* Agents
  yield* ensureAssistant
  const named = (yield* agents.named([model])).get(model)
  const agent = named ?? (isAgentId(model) ? yield* agents.get(model) : undefined)
  if (agent) return agent
  return yield* openAiFault(`There is no agent ${model} in this project`, {
    status: 404,
    param: "model",
    code: "model_not_found"
  })
})

const modelOf = ({ createdAt, name }: Agent): AgentModel => ({
  id: name,
  object: "model",
  created: secondsOf(createdAt),
  owned_by: "tropism"
})

/** An instant as OpenAI writes it. */
export const secondsOf = (timestamp: string): number => Math.floor(new Date(timestamp).getTime() / 1_000)
