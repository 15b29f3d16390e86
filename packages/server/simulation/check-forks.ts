/**
 * Checks contexts that know of others: where a fork begins, and what an agent is reminded of.
 */
import { type Checker, type Remains, unless } from "./remains.ts"
import type { ContextEventRow } from "./rows.ts"

/** The log of each context, that of a fork with the events that it shares. */
export const wholeLogs = ({
  contextEvents,
  contexts
}: Remains): ReadonlyMap<string, ReadonlyArray<ContextEventRow>> => {
  const own = Map.groupBy(contextEvents, ({ contextName }) => contextName)
  const byName = new Map(contexts.map((context) => [context.name, context]))
  const whole = (name: string): ReadonlyArray<ContextEventRow> => {
    const { forkedAt = null, forkedFrom = null } = byName.get(name) ?? {}
    const shared = forkedFrom === null ? [] : whole(forkedFrom).filter((row) => row.number <= (forkedAt ?? 0))
    return [...shared, ...(own.get(name) ?? [])]
  }
  return new Map([...own.keys()].map((name) => [name, whole(name)]))
}

/** A fork begins behind the event at which it was forked, and says so first; every one that somebody was told of is there. */
const forksBegin: Checker = ({ acknowledged, contextEvents, contexts }) => [
  ...contexts.flatMap(({ forkedAt, forkedFrom, name }) => {
    if (forkedFrom === null) return []
    const [first] = contextEvents.filter(({ contextName }) => contextName === name)
    return unless(
      first?.event.type === "ContextForkedEvent" &&
        first.number === (forkedAt ?? 0) + 1 &&
        "from" in first.event &&
        first.event.from === forkedFrom &&
        first.event.at === forkedAt &&
        contexts.some((one) => one.name === forkedFrom && one.lastEventNumber >= (forkedAt ?? 0)),
      `${name} is forked from ${forkedFrom} at ${forkedAt}, and begins with ${first?.event.type} ${first?.number}`
    )
  }),
  ...acknowledged.forked.flatMap(({ at, context, from }) =>
    unless(
      contexts.some((one) => one.name === context && one.forkedFrom === from && one.forkedAt === at),
      `the fork ${context} of ${from} at ${at} is lost`
    )
  )
]

/** An agent is reminded of what was said before, in another context of its own, and of nothing twice. */
const recallsKnown: Checker = (remains) => {
  const agentOf = new Map(remains.contexts.map(({ agentId, name }) => [name, agentId]))
  const rowById = new Map(remains.contextEvents.map((row) => [row.json.id as string, row]))
  return [...wholeLogs(remains)].flatMap(([name, log]) => {
    const passages = log.flatMap(({ event, json }) =>
      event.type === "MemoryRecalledEvent" && "passages" in event
        ? event.passages.map(({ context, eventId }) => ({ context, eventId, at: String(json.timestamp) }))
        : []
    )
    return [
      ...passages.flatMap(({ at, context, eventId }) => {
        const said = rowById.get(eventId)
        return unless(
          said?.contextName === context &&
            context !== name &&
            agentOf.get(context) === agentOf.get(name) &&
            String(said.json.timestamp) <= at,
          `${name} recalls ${eventId} of ${context}, which was not said there before to the same agent`
        )
      }),
      ...unless(
        new Set(passages.map(({ eventId }) => eventId)).size === passages.length,
        `${name} recalls something twice`
      )
    ]
  })
}

export const checkForks = { forksBegin, recallsKnown }
