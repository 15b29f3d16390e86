/**
 * An agent as a form holds it: texts and choices, and what they say as a definition.
 *
 * Pure. The form has a field for each part of a definition, so that nothing of
 * it is lost by being opened and saved.
 */
import type { AgentInput } from "@tropism/domain/agent"
import { defaultTools } from "@tropism/domain/built-in-tools"
import { type ChangeKind, denies } from "@tropism/domain/capability"
import { canonicalJson } from "@tropism/domain/json"
import { Result } from "effect"
import { type DraftFault, given, listGiven, partsOf, type Sent, within } from "./draft-texts.ts"
import { type FlowDraft, flowDraftOf, flowOf } from "./flow-draft.ts"
import { emptyModel, type ModelDraft, modelDraftOf, modelOf } from "./model-draft.ts"
import { hybridPolicyOf, policiesOf, type PolicyDraft, policyDraftOf, retryPolicyOf } from "./policy-draft.ts"
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

export interface AgentDraft extends ReactionDraft, FlowDraft, PolicyDraft {
  readonly name: string
  readonly role: string
  readonly prompt: string
  readonly systemPrompt: string
  readonly model: ModelDraft
  readonly triggerType: string
  readonly cronSchedule: string
  readonly timezone: string
  readonly executionMode: string
  readonly denied: ReadonlyArray<CapabilityFlag>
  /** What the definition allows explicitly; what it does not mention is allowed, or follows the flag for objects. */
  readonly granted: ReadonlyArray<CapabilityFlag>
  /** `all` types of objects, or `these`, which may be none. */
  readonly touches: string
  /** Parted by commas. */
  readonly allowedObjectTypes: string
  /** One a line. */
  readonly tools: string
  /** One a line, with * as a wildcard. */
  readonly subAgents: string
  readonly enabled: boolean
}

const newReaction = { objectTypes: [], events: ["created"] } as const

export const emptyDraft: AgentDraft = {
  ...reactionDraftOf(newReaction),
  ...flowDraftOf({}),
  ...policyDraftOf({}),
  name: "",
  role: "",
  prompt: "",
  systemPrompt: "",
  model: emptyModel,
  triggerType: "reaction",
  cronSchedule: "0 9 * * 1-5",
  timezone: "UTC",
  executionMode: "suggest",
  denied: [],
  granted: [],
  touches: "all",
  allowedObjectTypes: "",
  tools: "graph.*",
  subAgents: "",
  enabled: true
}

/** The form of a definition that says only what is not the default. */
export const draftOf = (input: AgentInput): AgentDraft => {
  const { capabilities } = input
  return {
    ...reactionDraftOf(input.reactionConfig ?? newReaction),
    ...flowDraftOf(input),
    ...policyDraftOf(input),
    name: input.name,
    role: input.role ?? "",
    prompt: input.prompt,
    systemPrompt: input.systemPrompt ?? "",
    model: modelDraftOf(input.model),
    triggerType: input.triggerType,
    cronSchedule: input.cronSchedule ?? "",
    timezone: input.timezone ?? "UTC",
    executionMode: input.executionMode ?? "suggest",
    denied: capabilityFlags.filter((flag) => capabilities?.[flag] === false),
    granted: capabilityFlags.filter((flag) => capabilities?.[flag] === true),
    touches: capabilities?.allowedObjectTypes ? "these" : "all",
    allowedObjectTypes: capabilities?.allowedObjectTypes?.join(", ") ?? "",
    tools: (input.tools ?? defaultTools(capabilities ?? null)).join("\n"),
    subAgents: (input.subAgents ?? []).join("\n"),
    enabled: input.enabled ?? true
  }
}

/** A draft once what was sent of it is saved: what was written since stays, on top of what was saved. */
export const draftAfterSave = (draft: AgentDraft, sent: AgentDraft, saved: AgentDraft): AgentDraft =>
  draft === sent
    ? saved
    : {
        ...saved,
        ...Object.fromEntries(
          Object.entries(draft).filter(([field, value]) => !Object.is(value, sent[field as keyof AgentDraft]))
        )
      }

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

const reactionFields = ["reactionConfig", "retryPolicy"]
const scheduleFields = ["cronSchedule", "timezone", "catchUp", "overlapPolicy"]

const isShown = (field: string, { triggerType, executionMode }: Sent): boolean => {
  if (reactionFields.includes(field)) return triggerType === "reaction"
  if (scheduleFields.includes(field)) return triggerType === "schedule"
  return field !== "hybridPolicy" || executionMode === "hybrid"
}

/** The definition that a form says, as far as it can be sent, and what of it cannot. */
export interface Said {
  readonly sent: Sent
  readonly faults: ReadonlyArray<DraftFault>
}

export const sentOf = (draft: AgentDraft): Said => {
  const parts = [modelOf(draft.model, "/model"), flowOf(draft), triggerOf(draft)]
  const sent = {
    name: draft.name,
    prompt: draft.prompt,
    triggerType: draft.triggerType,
    enabled: draft.enabled,
    executionMode: draft.executionMode,
    tools: partsOf(draft.tools),
    ...given("role", draft.role),
    ...given("systemPrompt", draft.systemPrompt),
    ...listGiven("subAgents", draft.subAgents),
    ...Object.assign({}, ...parts.map((part) => Result.getOrElse(part, () => ({})))),
    ...policiesOf(draft),
    ...(draft.executionMode === "hybrid" && { hybridPolicy: hybridPolicyOf(draft) }),
    ...within("capabilities", capabilitiesOf(draft))
  }
  return { sent, faults: parts.flatMap((part) => (Result.isFailure(part) ? [part.failure] : [])) }
}

const triggerOf = (draft: AgentDraft): Result.Result<Sent, DraftFault> => {
  if (draft.triggerType === "reaction")
    return Result.map(reactionOf(draft), (reactionConfig) => ({ reactionConfig, ...retryPolicyOf(draft) }))
  return Result.succeed(
    draft.triggerType === "schedule"
      ? {
          cronSchedule: draft.cronSchedule,
          ...given("timezone", draft.timezone.trim()),
          ...given("catchUp", draft.catchUp),
          ...given("overlapPolicy", draft.overlapPolicy)
        }
      : {}
  )
}

type Flags = Pick<AgentDraft, "denied" | "granted">

const flagsOf = ({ denied, granted }: Flags): Partial<Record<CapabilityFlag, boolean>> => ({
  ...Object.fromEntries(granted.map((flag) => [flag, true])),
  ...Object.fromEntries(denied.map((flag) => [flag, false]))
})

/** Whether the definition permits a kind of change. */
export const isPermitted = (draft: Flags, kind: ChangeKind): boolean =>
  denies(flagsOf(draft), kind, []) === undefined

/** Sets the flag of a kind of change; one that would follow another flag is granted by itself. */
export const permitting = (draft: Flags, flag: CapabilityFlag, kind: ChangeKind, isOn: boolean): Flags => {
  const denied = capabilityFlags.filter((each) => (each === flag ? !isOn : draft.denied.includes(each)))
  const isSilent = isOn && !isPermitted({ ...draft, denied }, kind)
  return { denied, granted: isSilent ? [...draft.granted, flag] : draft.granted }
}

const capabilitiesOf = (draft: AgentDraft): Sent => ({
  ...flagsOf(draft),
  ...(draft.touches === "these" && { allowedObjectTypes: partsOf(draft.allowedObjectTypes) })
})
