/**
 * An agent as a form holds it: texts and choices, and what they say as a definition.
 *
 * Pure. What the form has no field for is kept as JSON beside it, so that
 * nothing of a definition is lost by being opened and saved.
 */
import type { AgentInput } from "@tropism/domain/agent"
import { canonicalJson, isJsonObject } from "@tropism/domain/json"
import { Result } from "effect"
import { given, jsonText, numberGiven, numberText, partsOf, type Sent, within } from "./draft-texts.ts"
import { type ReactionDraft, reactionDraftOf, reactionOf } from "./reaction-draft.ts"

export const capabilityFlags = [
  "canCreateObjects",
  "canUpdateObjects",
  "canDeleteObjects",
  "canCreateRelationships",
  "canUpdateRelationships",
  "canDeleteRelationships"
] as const
export type CapabilityFlag = (typeof capabilityFlags)[number]

export interface AgentDraft extends ReactionDraft {
  readonly name: string
  readonly role: string
  readonly prompt: string
  readonly systemPrompt: string
  /** Empty is the server's default. */
  readonly provider: string
  readonly modelName: string
  readonly modelRest: string
  readonly triggerType: string
  readonly cronSchedule: string
  readonly timezone: string
  readonly executionMode: string
  readonly threshold: string
  readonly hybridRest: string
  readonly denied: ReadonlyArray<CapabilityFlag>
  /** What the definition allows in so many words; what it is silent about is allowed as well. */
  readonly granted: ReadonlyArray<CapabilityFlag>
  /** `all` types of objects, or `these`, which may be none. */
  readonly touches: string
  /** Parted by commas. */
  readonly allowedObjectTypes: string
  /** One a line. */
  readonly tools: string
  readonly maxSteps: string
  readonly runTokens: string
  readonly runDollars: string
  readonly dayTokens: string
  readonly dayDollars: string
  /** One a line, with * as a wildcard. */
  readonly subAgents: string
  readonly enabled: boolean
  readonly rest: string
}

export const emptyDraft: AgentDraft = {
  name: "",
  role: "",
  prompt: "",
  systemPrompt: "",
  provider: "",
  modelName: "",
  modelRest: "",
  triggerType: "reaction",
  cronSchedule: "0 9 * * 1-5",
  timezone: "UTC",
  objectTypes: "",
  events: ["created"],
  conditions: [],
  changedProperties: "",
  concurrencyStrategy: "",
  debounceMs: "",
  maxWaitMs: "",
  batchSize: "",
  maxConcurrency: "",
  maxRuns: "",
  perSeconds: "",
  reactionRest: "",
  executionMode: "suggest",
  threshold: "",
  hybridRest: "",
  denied: [],
  granted: [],
  touches: "all",
  allowedObjectTypes: "",
  tools: "graph.*",
  maxSteps: "",
  runTokens: "",
  runDollars: "",
  dayTokens: "",
  dayDollars: "",
  subAgents: "",
  enabled: true,
  rest: ""
}

/** The form of a definition that says only what is not the default. */
export const draftOf = (input: AgentInput): AgentDraft => {
  const { model, budget, hybridPolicy, capabilities } = input
  const { provider = "", name = "", ...modelRest } = model ?? {}
  const { confidenceThreshold, ...hybridRest } = hybridPolicy ?? {}
  const rest = Object.fromEntries(Object.entries(input).filter(([field]) => !formFields.includes(field)))
  return {
    ...reactionDraftOf(input.reactionConfig ?? { objectTypes: [], events: ["created"] }),
    name: input.name,
    role: input.role ?? "",
    prompt: input.prompt,
    systemPrompt: input.systemPrompt ?? "",
    provider,
    modelName: name,
    modelRest: jsonText(modelRest),
    triggerType: input.triggerType,
    cronSchedule: input.cronSchedule ?? "",
    timezone: input.timezone ?? "UTC",
    executionMode: input.executionMode ?? "suggest",
    threshold: numberText(confidenceThreshold),
    hybridRest: jsonText(hybridRest),
    denied: capabilityFlags.filter((flag) => capabilities?.[flag] === false),
    granted: capabilityFlags.filter((flag) => capabilities?.[flag] === true),
    touches: capabilities?.allowedObjectTypes ? "these" : "all",
    allowedObjectTypes: capabilities?.allowedObjectTypes?.join(", ") ?? "",
    tools: (input.tools ?? []).join("\n"),
    maxSteps: numberText(input.maxSteps),
    runTokens: numberText(budget?.perRun?.maxTokens),
    runDollars: numberText(budget?.perRun?.maxCostUsd),
    dayTokens: numberText(budget?.perDay?.maxTokens),
    dayDollars: numberText(budget?.perDay?.maxCostUsd),
    subAgents: (input.subAgents ?? []).join("\n"),
    enabled: input.enabled ?? true,
    rest: jsonText(rest)
  }
}

/** What the form has fields for. */
const formFields: ReadonlyArray<string> = [
  "name",
  "role",
  "prompt",
  "systemPrompt",
  "model",
  "triggerType",
  "cronSchedule",
  "timezone",
  "reactionConfig",
  "executionMode",
  "hybridPolicy",
  "capabilities",
  "tools",
  "maxSteps",
  "budget",
  "subAgents",
  "enabled"
]

/**
 * What an edit changes of a definition; null is a field that was emptied, which goes back to its default.
 *
 * **Details** What the form does not show, and what nobody touched, is not sent, so it stays as it was.
 */
export const changesOf = (before: Sent, after: Sent): Sent =>
  Object.fromEntries(
    [...new Set([...Object.keys(before), ...Object.keys(after)])]
      .filter(
        (field) => isShown(field, after) && canonicalJson(before[field]) !== canonicalJson(after[field])
      )
      .map((field) => [field, after[field] ?? null])
  )

const isShown = (field: string, { triggerType, executionMode }: Sent): boolean => {
  if (field === "reactionConfig") return triggerType === "reaction"
  if (field === "cronSchedule" || field === "timezone") return triggerType === "schedule"
  return field !== "hybridPolicy" || executionMode === "hybrid"
}

/** What cannot be sent, with the field. */
export interface DraftFault {
  readonly field: keyof AgentDraft
  readonly message: string
}

/** The definition that a form says, or the first field in which something is no JSON. */
export const sentOf = (draft: AgentDraft): Result.Result<Sent, DraftFault> =>
  Result.gen(function* () {
    const rest = yield* objectIn(draft, "rest")
    const modelRest = yield* objectIn(draft, "modelRest")
    const reactionRest = yield* objectIn(draft, "reactionRest")
    const hybridRest = yield* objectIn(draft, "hybridRest")
    const subAgents = partsOf(draft.subAgents)
    return {
      ...rest,
      name: draft.name,
      prompt: draft.prompt,
      triggerType: draft.triggerType,
      enabled: draft.enabled,
      executionMode: draft.executionMode,
      tools: partsOf(draft.tools),
      ...given("role", draft.role),
      ...given("systemPrompt", draft.systemPrompt),
      ...numberGiven("maxSteps", draft.maxSteps),
      ...within("budget", {
        ...within("perRun", limitGiven(draft.runTokens, draft.runDollars)),
        ...within("perDay", limitGiven(draft.dayTokens, draft.dayDollars))
      }),
      ...(subAgents.length > 0 && { subAgents }),
      ...(draft.provider !== "" && {
        model: { provider: draft.provider, name: draft.modelName, ...modelRest }
      }),
      ...(draft.triggerType === "schedule" && {
        cronSchedule: draft.cronSchedule,
        ...given("timezone", draft.timezone)
      }),
      ...(draft.triggerType === "reaction" && { reactionConfig: reactionOf(draft, reactionRest) }),
      ...(draft.executionMode === "hybrid" && {
        hybridPolicy: { ...hybridRest, ...numberGiven("confidenceThreshold", draft.threshold) }
      }),
      ...within("capabilities", capabilitiesOf(draft))
    }
  })

const capabilitiesOf = ({ denied, granted, touches, allowedObjectTypes }: AgentDraft): Sent => ({
  ...Object.fromEntries(granted.map((flag) => [flag, true])),
  ...Object.fromEntries(denied.map((flag) => [flag, false])),
  ...(touches === "these" && { allowedObjectTypes: partsOf(allowedObjectTypes) })
})

const limitGiven = (tokens: string, dollars: string): Sent => ({
  ...numberGiven("maxTokens", tokens),
  ...numberGiven("maxCostUsd", dollars)
})

const objectIn = (draft: AgentDraft, field: "rest" | "modelRest" | "reactionRest" | "hybridRest") => {
  const text = draft[field]
  if (text.trim() === "") return Result.succeed<Sent>({})
  return Result.try((): unknown => JSON.parse(text)).pipe(
    Result.filterOrFail(isJsonObject, () => undefined),
    Result.mapError((): DraftFault => ({
      field,
      message: 'This is no JSON object, such as {"ignoreAgentTriggered": true}.'
    }))
  )
}
