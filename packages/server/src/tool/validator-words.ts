/**
 * What a validator of JSON Schemas complains of, in the words that every edge uses.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * The validator answers one line of text in which each complaint begins with its
 * place. Here it becomes places by JSON pointer; what it only says of the
 * containers of such a place is left out.
 */
import { type JsonFault, pointerStep } from "@tropism/domain/json"
import { missing, mustBe, noField } from "@tropism/domain/schema-faults"
import { foreignLimits } from "./foreign-limits.ts"
import { lineOf } from "./foreign-fault.ts"

/** The places that are wrong, each told once, and no more of them than a model mends at once. */
export const placesOf = (complaints: string): ReadonlyArray<JsonFault> => {
  const all = complaints.split(/; (?=#(?:\/\S*)?: )/).map(read)
  const strongest = strongestBelow(all)
  const places = new Map<string, Complaint>()
  for (const complaint of all)
    if (strongest.get(complaint.pointer) === complaint.strength)
      places.set(complaint.pointer, joined(places.get(complaint.pointer), complaint))
  return [...places.values()]
    .slice(0, foreignLimits.argumentFaults)
    .map(({ message, pointer, types }) => ({ pointer, message: lineOf(types ? mustBe(types) : message) }))
}

/** A complaint is not told where a stronger one is of the same place, or of one in it. */
const strengths = { value: 3, choice: 2, field: 1, container: 0 }

interface Complaint extends JsonFault {
  readonly strength: number
  /** The types of which a value must be one, where that is the complaint. */
  readonly types?: ReadonlyArray<string>
}

/** How strong the strongest complaint is of a place and of what lies in it. */
const strongestBelow = (complaints: ReadonlyArray<Complaint>): ReadonlyMap<string, number> => {
  const strongest = new Map<string, number>()
  for (const { pointer, strength } of complaints)
    for (let end = pointer.length; end >= 0; end = end === 0 ? -1 : pointer.lastIndexOf("/", end - 1)) {
      const place = pointer.slice(0, end)
      strongest.set(place, Math.max(strength, strongest.get(place) ?? 0))
    }
  return strongest
}

/** One place wants text, says one branch of a choice, and a list, says another: it takes either. */
const joined = (first: Complaint | undefined, next: Complaint): Complaint => {
  if (first === undefined) return next
  return first.types && next.types ? { ...first, types: [...first.types, ...next.types] } : first
}

/** `#/a/b: complaint.`, as the validator spells it. */
const read = (text: string): Complaint => {
  const split = text.indexOf(": ")
  const pointer = decodeURI(text.slice(1, split))
  const said = text.slice(split + 2).replace(/\.$/, "")
  const message = said.replace(/^Instance/, "This")
  if (ofContainer.test(said)) return { pointer, message, strength: strengths.container }
  if (ofChoice.test(said)) return { pointer, message, strength: strengths.choice }
  // A field that is there and does not fit is called unknown as well.
  if (said === "False boolean schema") return { pointer, message: noField, strength: strengths.field }
  const strength = strengths.value
  const required = /^Instance does not have required property "([\s\S]*)"$/.exec(said)?.[1]
  if (required !== undefined) return { pointer: pointer + pointerStep(required), message: missing, strength }
  const types = /^Instance type "\w+" is invalid\. Expected "(.*)"$/.exec(said)?.[1]?.split('", "')
  return { pointer, message: valueOf(said) ?? message, strength, ...(types ? { types } : {}) }
}

/** Said of what holds the place that does not fit. */
const ofContainer =
  /^(?:A subschema had errors|(?:Property|Items) [\s\S]*(?:does|did) not match [\s\S]*schema|Instance does not match (?:every subschema|"then" schema|"else" schema))$/

/** Said of a value that fits none of the branches of a choice, or too many. */
const ofChoice = /^Instance does not match (?:any subschemas|exactly one subschema \(\d+ matches\))$/

/** What a value must be where only certain ones are taken. */
const valueOf = (said: string): string | undefined => {
  const [, some, json] = /^Instance does not match (any of )?([\s\S]+)$/.exec(said) ?? []
  if (json === undefined) return undefined
  const values: unknown = JSON.parse(json)
  return some !== undefined && Array.isArray(values)
    ? `This must be ${values.map((value) => JSON.stringify(value)).join(" or ")}`
    : `This must be ${json}`
}
