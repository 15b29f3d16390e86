/**
 * Refuses a definition that contradicts itself, can never fire, or whose prompt or script cannot be read.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * A schedule is measured against the floor when it is new or becomes active, so
 * that an agent whose schedule was taken once can always be changed otherwise,
 * and above all be disabled.
 */
import { type AgentDefinition, findDefinitionFault, isNew } from "@tropism/domain/agent"
import { Effect, Schema } from "effect"
import { findScriptFault } from "../model/script.ts"
import { checkFloor, checkTimezone, readSchedule } from "./schedule.ts"
import { findPromptFault } from "./template.ts"

/** Something in an agent's definition that cannot be right, with the place. */
export class DefinitionRefused extends Schema.TaggedError<DefinitionRefused>()("DefinitionRefused", {
  reason: Schema.Literals(["invalid", "nameTaken", "version"]),
  pointer: Schema.String,
  detail: Schema.String
}) {}

/** What a definition is judged against besides itself. */
export interface Measure {
  readonly now: Date
  readonly minScheduleSeconds: number
}

/** Answers the definition, or refuses it; `before` is what the agent was, if it was. */
export const checkDefinition = Effect.fnUntraced(function* (
  definition: AgentDefinition,
  before: AgentDefinition | undefined,
  measure: Measure
) {
  const fault =
    findDefinitionFault(definition, before) ??
    findPromptFault(definition, before) ??
    findModelFault(definition, before)
  if (fault)
    return yield* new DefinitionRefused({ reason: "invalid", pointer: fault.pointer, detail: fault.message })
  yield* Effect.mapError(
    checkSchedule(definition, before, measure),
    ({ pointer, detail }) => new DefinitionRefused({ reason: "invalid", pointer, detail })
  )
  return definition
})

/** What is wrong with the script of the agent's own model, or of the model of a step. */
const findModelFault = (definition: AgentDefinition, before: AgentDefinition | undefined) => {
  const own = isNew("model", definition, before) ? [{ pointer: "", model: definition.model }] : []
  const ofSteps = isNew("steps", definition, before)
    ? definition.steps.map(({ model }, index) => ({ pointer: `/steps/${index}`, model }))
    : []
  for (const { model, pointer } of [...own, ...ofSteps]) {
    const fault = model?.script ? findScriptFault(model.script, `${pointer}/model/script`) : undefined
    if (fault) return fault
  }
  return undefined
}

const checkSchedule = Effect.fnUntraced(function* (
  { cronSchedule, enabled, timezone }: AgentDefinition,
  before: AgentDefinition | undefined,
  { minScheduleSeconds, now }: Measure
) {
  if (cronSchedule === null) return yield* checkTimezone(timezone)
  const rule = yield* readSchedule(cronSchedule, timezone, now)
  if (cronSchedule !== before?.cronSchedule || (enabled && !before.enabled))
    yield* checkFloor(cronSchedule, rule, minScheduleSeconds)
})
