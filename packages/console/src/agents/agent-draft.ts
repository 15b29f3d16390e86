/**
 * An agent as a form holds it: texts and choices, and what they say as a definition.
 *
 * Pure. What the form has no field for is kept as JSON beside it, so that
 * nothing of a definition is lost by being opened and saved.
 */
import { AgentInput } from "@tropism/domain/agent"
import { isJsonObject } from "@tropism/domain/json"
import { Result } from "effect"

/** A definition as it is sent; the server judges it, not this file. */
export type Sent = Readonly<Record<string, unknown>>

export const capabilityFlags = [
  "canCreateObjects",
  "canUpdateObjects",
  "canDeleteObjects",
  "canCreateRelationships",
  "canUpdateRelationships",
  "canDeleteRelationships"
] as const
export type CapabilityFlag = (typeof capabilityFlags)[number]

export interface AgentDraft {
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
  /** Parted by commas; empty is all. */
  readonly objectTypes: string
  readonly events: ReadonlyArray<string>
  readonly where: string
  readonly concurrencyStrategy: string
  readonly debounceMs: string
  readonly reactionRest: string
  readonly executionMode: string
  readonly threshold: string
  readonly hybridRest: string
  readonly denied: ReadonlyArray<CapabilityFlag>
  /** Parted by commas; empty is all. */
  readonly allowedObjectTypes: string
  /** One a line. */
  readonly tools: string
  readonly maxSteps: string
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
  where: "",
  concurrencyStrategy: "",
  debounceMs: "",
  reactionRest: "",
  executionMode: "suggest",
  threshold: "",
  hybridRest: "",
  denied: [],
  allowedObjectTypes: "",
  tools: "graph.*",
  maxSteps: "",
  enabled: true,
  rest: ""
}

/** The form of a definition that says only what is not the default. */
export const draftOf = (input: AgentInput): AgentDraft => {
  const { model, reactionConfig, hybridPolicy, capabilities } = input
  const { provider = "", name = "", ...modelRest } = model ?? {}
  const { objectTypes, events, where, concurrencyStrategy, debounceMs, ...reactionRest } = reactionConfig ?? {
    objectTypes: [],
    events: emptyDraft.events
  }
  const { confidenceThreshold, ...hybridRest } = hybridPolicy ?? {}
  const rest = Object.fromEntries(Object.entries(input).filter(([field]) => !formFields.includes(field)))
  return {
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
    objectTypes: objectTypes.join(", "),
    events,
    where: where ? JSON.stringify(where, null, 2) : "",
    concurrencyStrategy: concurrencyStrategy ?? "",
    debounceMs: debounceMs === undefined || debounceMs === null ? "" : String(debounceMs),
    reactionRest: jsonText(reactionRest),
    executionMode: input.executionMode ?? "suggest",
    threshold:
      confidenceThreshold === undefined || confidenceThreshold === null ? "" : String(confidenceThreshold),
    hybridRest: jsonText(hybridRest),
    denied: capabilityFlags.filter((flag) => capabilities?.[flag] === false),
    allowedObjectTypes: capabilities?.allowedObjectTypes?.join(", ") ?? "",
    tools: (input.tools ?? []).join("\n"),
    maxSteps: input.maxSteps === undefined || input.maxSteps === null ? "" : String(input.maxSteps),
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
  "enabled"
]

/** A definition whole: what a form leaves out is set to null, which is the default. */
export const wholeOf = (sent: Sent): Sent => ({
  ...Object.fromEntries(Object.keys(AgentInput.fields).map((field) => [field, null])),
  ...sent
})

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
    const where = draft.where.trim() === "" ? undefined : yield* objectIn(draft, "where")
    const allowed = partsOf(draft.allowedObjectTypes)
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
      ...(draft.provider !== "" && {
        model: { provider: draft.provider, name: draft.modelName, ...modelRest }
      }),
      ...(draft.triggerType === "schedule" && {
        cronSchedule: draft.cronSchedule,
        ...given("timezone", draft.timezone)
      }),
      ...(draft.triggerType === "reaction" && {
        reactionConfig: {
          ...reactionRest,
          objectTypes: partsOf(draft.objectTypes),
          events: draft.events,
          ...(where && { where }),
          ...given("concurrencyStrategy", draft.concurrencyStrategy),
          ...numberGiven("debounceMs", draft.debounceMs)
        }
      }),
      ...(draft.executionMode === "hybrid" && {
        hybridPolicy: { ...hybridRest, ...numberGiven("confidenceThreshold", draft.threshold) }
      }),
      ...((draft.denied.length > 0 || allowed.length > 0) && {
        capabilities: {
          ...Object.fromEntries(draft.denied.map((flag) => [flag, false])),
          ...(allowed.length > 0 && { allowedObjectTypes: allowed })
        }
      })
    }
  })

/** The parts of a list that is written with commas or lines. */
export const partsOf = (text: string): ReadonlyArray<string> =>
  text
    .split(/[,\n]/)
    .map((part) => part.trim())
    .filter((part) => part !== "")

const given = (field: string, text: string): Sent => (text.trim() === "" ? {} : { [field]: text })

/** What is no number is sent as it was written, and the server says what is wrong with it. */
const numberGiven = (field: string, text: string): Sent => {
  if (text.trim() === "") return {}
  const number = Number(text)
  return { [field]: Number.isNaN(number) ? text : number }
}

const jsonText = (value: object): string =>
  Object.keys(value).length === 0 ? "" : JSON.stringify(value, null, 2)

const objectIn = (
  draft: AgentDraft,
  field: "rest" | "modelRest" | "reactionRest" | "hybridRest" | "where"
) => {
  const text = draft[field]
  if (text.trim() === "") return Result.succeed<Sent>({})
  return Result.try((): unknown => JSON.parse(text)).pipe(
    Result.filterOrFail(isJsonObject, () => undefined),
    Result.mapError((): DraftFault => ({
      field,
      message: 'This is no JSON object, such as {"maxConcurrency": 2}.'
    }))
  )
}
