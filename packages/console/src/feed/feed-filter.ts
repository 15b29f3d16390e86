/**
 * The language in which the live feed is filtered: `type:Person actor:agent agent:tidy op:updated`.
 *
 * Pure. Words of different names must all hold; of one name, or parted by
 * commas, any; a minus before a word turns it. A word without a name is looked
 * for in what the row says.
 */
import { subjectOf, type FeedItem } from "./feed-items.ts"

interface Term {
  /** Undefined for a word without a name. */
  readonly name: FilterName | undefined
  readonly values: ReadonlyArray<string>
  readonly isTurned: boolean
}

export interface FeedFilter {
  readonly terms: ReadonlyArray<Term>
  /** What could not be understood, as sentences; such a word filters nothing. */
  readonly faults: ReadonlyArray<string>
}

/** Each name with what it means, as the page tells it. */
export const filterWords = {
  type: "object or relationship type: type:Person",
  actor: "actor: user, agent, system, or an id: actor:agent",
  agent: "agent name or id: agent:tidy",
  op: "operation: created, updated, deleted, began or ended: op:updated",
  status: "run status: status:failed",
  prop: "changed property: prop:license",
  object: "object key or id: object:ada",
  run: "run id",
  chain: "chain, by root event id",
  is: "event or run: is:run"
} as const

export type FilterName = keyof typeof filterWords

const isName = (name: string): name is FilterName => Object.hasOwn(filterWords, name)

const pattern = /(-?)(?:([A-Za-z]+):)?(?:"([^"]*)"?|(\S+))/g

export const parseFilter = (text: string): FeedFilter => {
  const faults: Array<string> = []
  const terms: Array<Term> = []
  for (const [whole, minus, name, quoted, plain = ""] of text.matchAll(pattern)) {
    const values = quoted === undefined ? plain.split(",").filter((value) => value !== "") : [quoted]
    const lower = name?.toLowerCase()
    if (lower !== undefined && !isName(lower))
      faults.push(`"${whole}" is not a valid filter. Use one of ${Object.keys(filterWords).join(", ")}.`)
    else if (values.length > 0) terms.push({ name: lower, values, isTurned: minus === "-" })
  }
  return { terms, faults }
}

/** Whether a row is shown; `nameOf` knows the agents. */
export const passes = (
  { terms }: FeedFilter,
  item: FeedItem,
  nameOf: (agentId: string) => string | undefined
): boolean => {
  const says = (name: FilterName | undefined, value: string) =>
    valuesOf(item, name, nameOf).some((held) =>
      name === undefined
        ? held.toLowerCase().includes(value.toLowerCase())
        : held.toLowerCase() === value.toLowerCase()
    )
  const turned = terms.filter(({ isTurned }) => isTurned)
  if (turned.some(({ name, values }) => values.some((value) => says(name, value)))) return false
  const wanted = terms.filter(({ isTurned }) => !isTurned)
  return wanted.every(({ name, values }) => {
    const together =
      name === undefined ? values : wanted.filter((term) => term.name === name).flatMap((term) => term.values)
    return together.some((value) => says(name, value))
  })
}

const valuesOf = (
  item: FeedItem,
  name: FilterName | undefined,
  nameOf: (agentId: string) => string | undefined
): ReadonlyArray<string> => {
  const facts = item.kind === "event" ? eventFacts(item, nameOf) : runFacts(item)
  if (name === undefined) return [facts.type, facts.object, facts.agent, facts.actor, facts.op].flat()
  return name === "is" ? [item.kind] : facts[name]
}

type Facts = Readonly<Record<Exclude<FilterName, "is">, ReadonlyArray<string>>>

const present = (...values: ReadonlyArray<string | null | undefined>): ReadonlyArray<string> =>
  values.flatMap((value) => value ?? [])

const eventFacts = (
  { event }: FeedItem & { readonly kind: "event" },
  nameOf: (agentId: string) => string | undefined
): Facts => ({
  type: [event.objectType],
  actor: present(event.actorType, event.actorId, event.approvedBy),
  agent: event.actorType === "agent" && event.actorId ? present(event.actorId, nameOf(event.actorId)) : [],
  op: [event.type],
  status: [],
  prop: event.changedProperties,
  object: [event.entityId, subjectOf(event)],
  run: present(event.runId),
  chain: [event.rootEventId]
})

const runFacts = ({ run, op }: FeedItem & { readonly kind: "run" }): Facts => ({
  type: (run.trigger.events ?? []).map(({ objectType }) => objectType),
  actor: ["agent", run.agentId],
  agent: [run.agentName, run.agentId],
  op: [op],
  status: [run.status],
  prop: [],
  object: (run.trigger.events ?? []).map(({ objectId }) => objectId),
  run: [run.id],
  chain: present(run.rootEventId)
})
