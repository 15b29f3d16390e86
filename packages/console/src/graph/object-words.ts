/**
 * Objects, their makers and their differences in words.
 *
 * Pure. What agents, people and the graph say is foreign text; whoever shows a
 * sentence of here shows it through `Visible`.
 */
import { canonicalJson } from "@tropism/domain/json"
import type { PropertyProvenance, Provenance } from "@tropism/domain/provenance"
import { Result, type Schema } from "effect"

interface Maker {
  readonly actorType: "user" | "agent" | "system"
  readonly actorId: string | null
  readonly agentName?: string | null
  readonly approvedBy?: string | null
}

/** `ada`, `the agent tidy, approved by ada`, `the server`. */
export const makerText = ({ actorType, actorId, agentName, approvedBy }: Maker): string => {
  const maker =
    actorType === "user"
      ? (actorId ?? "somebody")
      : actorType === "agent"
        ? agentName === undefined || agentName === null
          ? "an agent"
          : `the agent ${agentName}`
        : "the server"
  return approvedBy === undefined || approvedBy === null ? maker : `${maker}, approved by ${approvedBy}`
}

/** Who gave a property its value, and by what. */
export const whyText = (property: PropertyProvenance): string => {
  const by = `${property.removed ? "Removed" : "Set"} in version ${property.version} by ${makerText(property)}`
  const tool = property.toolCall === null ? "" : `, through ${property.toolCall.tool}`
  return `${by}${tool}.`
}

/** Whether a property has another value than it had. */
export const hasMoved = (before: Provenance, after: Provenance, name: string): boolean => {
  const valueIn = ({ properties }: Provenance) => properties.find(({ property }) => property === name)?.value
  const [old, young] = [valueIn(before), valueIn(after)]
  return old === undefined || young === undefined
    ? old !== young
    : canonicalJson(old) !== canonicalJson(young)
}

export type ValueKind = "text" | "json"

/** How a value is best written down. */
export const kindOf = (value: Schema.Json | undefined): ValueKind =>
  value === undefined || typeof value === "string" ? "text" : "json"

/** A value as a person edits it. */
export const editableText = (value: Schema.Json | undefined, kind: ValueKind): string => {
  if (value === undefined) return ""
  return kind === "text" && typeof value === "string" ? value : JSON.stringify(value, null, 2)
}

/** What a person wrote, as a value; undefined where it is no JSON. */
export const writtenValue = (text: string, kind: ValueKind): { readonly value: Schema.Json } | undefined => {
  if (kind === "text") return { value: text }
  const parsed = Result.try((): Schema.Json => JSON.parse(text))
  return Result.isSuccess(parsed) ? { value: parsed.success } : undefined
}
