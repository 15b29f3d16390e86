/**
 * Refuses at the door a model that could not be asked when its turn comes.
 *
 * Flow: **http** → dispatch → run → tool → task
 *
 * A run that finds its model missing fails, minutes after somebody set it: who
 * sets one is told at once what to do. Nobody is asked anything here, and no
 * transaction is open while a model is looked for.
 */
import { emptyConfig } from "@tropism/domain/context-config"
import type { ContextName, NewEvent } from "@tropism/domain/context-event"
import type { FlowStep } from "@tropism/domain/flow"
import type { ProjectId } from "@tropism/domain/ids"
import type { ModelProvider, ModelRef } from "@tropism/domain/model-config"
import { Effect, Option } from "effect"
import { Agents } from "../agent/agents.ts"
import type { ContextHead } from "../agent/contexts.ts"
import { Models } from "../model/models.ts"
import { makeRecordings } from "../run/recordings.ts"
import { looking } from "./access.ts"
import { spokenContext } from "./owned.ts"
import { invalid } from "./refusals.ts"

/** Checks each model that an event sets. */
export const checkModels = Effect.fnUntraced(function* (
  projectId: ProjectId,
  name: ContextName,
  event: NewEvent
) {
  if (
    event.type !== "SetLlmConfigEvent" &&
    event.type !== "SetGuardEvent" &&
    event.type !== "DefineWorkflowEvent"
  )
    return
  // Who may not set anything here is refused before anything is looked up.
  const context = yield* looking(projectId, "editor", () => spokenContext(name))
  if (event.type === "SetLlmConfigEvent") return yield* checkModel(projectId, context, event, "")
  if (event.type === "DefineWorkflowEvent") return yield* checkSteps(projectId, context, event.steps)
  const agents = yield* Agents
  const agent = yield* looking(projectId, "editor", () => agents.get(context.agentId))
  if (agent?.model?.guard)
    return yield* invalid("/guard", `The guard of ${agent.name} is in its definition: change it there`)
  if (event.guard?.provider === "replay")
    return yield* invalid("/guard/provider", "A recorded run cannot judge: name a model that can be asked")
  if (event.guard) yield* checkModel(projectId, context, event.guard, "/guard", true)
})

/** Checks the models of a workflow's steps; a script is judged with the workflow, where it stands. */
const checkSteps = Effect.fnUntraced(function* (
  projectId: ProjectId,
  context: ContextHead,
  steps: ReadonlyArray<FlowStep>
) {
  for (const [index, { model }] of steps.entries())
    if (model !== null && model.provider !== "scripted")
      yield* checkModel(projectId, context, model, `/steps/${index}/model`)
})

/** Refuses a model that cannot be asked in a context; `pointer` is where it stands in what was sent. */
export const checkModel = Effect.fnUntraced(function* (
  projectId: ProjectId,
  { agentId, name: contextName }: ContextHead,
  { name, provider }: ModelRef,
  pointer: string,
  isGuard = false
) {
  const agents = yield* Agents
  const models = yield* Models
  const recordingsOf = yield* makeRecordings
  const agent = yield* looking(projectId, "editor", () => agents.get(agentId))
  // Nobody works for an agent that was deleted.
  if (!agent) return
  const set = { provider, name }
  yield* models
    .resolve({
      agentName: agent.name,
      // The agent's own script answers for the agent and judges nothing.
      model: isGuard ? null : agent.model,
      settings: { ...emptyConfig, primary: Option.some(set) },
      readRecord: recordingsOf(projectId, contextName)
    })
    .pipe(Effect.mapError(({ message }) => invalid(`${pointer}/${wrongPart(provider)}`, message)))
})

/** What is missing of the models within this program is their name; of the others, the way to their provider. */
const wrongPart = (provider: ModelProvider): "name" | "provider" =>
  provider === "scripted" || provider === "replay" ? "name" : "provider"
