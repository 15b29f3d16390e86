/**
 * Comparisons: variants of a context are asked the same, and read side by side.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { Api } from "@tropism/api/api"
import { Conflict } from "@tropism/api/problems"
import type { Agent } from "@tropism/domain/agent"
import { type ComparisonInput, findActingTools } from "@tropism/domain/comparison"
import { type DefinedTool, isClientTool } from "@tropism/domain/context-config"
import { findFault } from "@tropism/domain/json"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Agents } from "../agent/agents.ts"
import { Contexts } from "../agent/contexts.ts"
import { Comparisons } from "../dispatch/comparisons.ts"
import { inProject, looking, reading } from "./access.ts"
import { checkModel } from "./model-checks.ts"
import { readableContext, spokenContext } from "./owned.ts"
import { invalid, orNotFound, triggerProblem } from "./refusals.ts"

const knownComparison = orNotFound("comparison")

export const comparisonsHandlers = HttpApiBuilder.group(Api, "comparisons", (handlers) =>
  handlers.handleAll({
    compare: Effect.fn("http.comparisons.compare")(function* ({ params, payload }) {
      const fault = findFault(payload) ?? findTwin(payload)
      if (fault) return yield* invalid(fault.pointer, fault.message)
      const [agents, comparisons, contexts] = [yield* Agents, yield* Comparisons, yield* Contexts]
      const context = yield* looking(params.projectId, "editor", () => spokenContext(params.name))
      for (const [index, { model }] of payload.variants.entries())
        if (model) yield* checkModel(params.projectId, context, model, `/variants/${index}/model`)
      return yield* inProject(params.projectId, "editor", ({ userId }) =>
        Effect.gen(function* () {
          const from = yield* spokenContext(params.name)
          const agent = yield* agents.get(from.agentId)
          if (!agent) return yield* new Conflict({ reason: "state", detail: "The agent is deleted" })
          const { config } = yield* contexts.load(params.name)
          const mayAct = findUnallowed(agent, config.tools, payload)
          if (mayAct) return yield* invalid("/allowWrites", mayAct)
          const id = yield* Effect.catchTags(comparisons.start(from, agent, payload, userId), {
            TriggerRefused: triggerProblem,
            ForkRefused: ({ detail }) => Effect.fail(invalid("/at", detail)),
            PromptFailed: ({ detail }) => Effect.fail(invalid("", detail)),
            ContextExists: ({ name }) =>
              Effect.fail(
                new Conflict({ reason: "nameTaken", detail: `There is already a context named ${name}` })
              )
          })
          return yield* knownComparison(comparisons.get(params.name, id))
        })
      )
    }),
    comparison: Effect.fn("http.comparisons.comparison")(function* ({ params }) {
      const comparisons = yield* Comparisons
      return yield* knownComparison(
        reading(
          params.projectId,
          Effect.andThen(readableContext(params.name), comparisons.get(params.name, params.comparisonId))
        )
      )
    })
  })
)

const findTwin = ({ variants }: ComparisonInput) => {
  const index = variants.findIndex(({ label }, place) =>
    variants.slice(0, place).some((other) => other.label.toLowerCase() === label.toLowerCase())
  )
  return index === -1
    ? undefined
    : {
        pointer: `/variants/${index}/label`,
        message: `There are two variants ${variants[index]?.label}: give each a label of its own`
      }
}

/** Why the variants may not be asked without a word: what the agent's tools do, each variant would do for itself. */
const findUnallowed = (
  { steps, tools }: Agent,
  defined: ReadonlyArray<DefinedTool>,
  { allowWrites, variants }: ComparisonInput
) => {
  const acting = [
    ...findActingTools([...tools, ...steps.flatMap((step) => step.tools ?? [])]),
    // What a client does for a call is not known here.
    ...defined.filter(isClientTool).map(({ name }) => name)
  ]
  return allowWrites === true || acting.length === 0
    ? undefined
    : `The agent has tools that act (${[...new Set(acting)].join(", ")}), and each of the ${variants.length} variants would act for itself: send allowWrites true if they may, or compare with an agent that only reads`
}
