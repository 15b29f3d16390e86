/**
 * Checks that what a foreign server told was heard: all of it, once, by those who listen and nobody else.
 */
import { placesOf, songAt } from "./radio.ts"
import { type Checker, unless } from "./remains.ts"

/** Everything up to the kept cursor is an occurrence, once, and none is of before the listener began. */
const occurrencesKept: Checker = ({ occurrences, sources }) =>
  sources.flatMap(({ cursor, id }) => {
    const kept = occurrences.filter((occurrence) => occurrence.sourceId === id).map(({ eventId }) => eventId)
    const [from, to] = placesOf(cursor ?? "0.0")
    const due = Array.from({ length: Math.max(0, to - from) }, (_, index) => songAt(from + index))
    const before = new Set(Array.from({ length: from }, (_, index) => songAt(index)))
    return [
      ...unless(new Set(kept).size === kept.length, `source ${id} kept something twice`),
      ...due.flatMap((song) =>
        unless(kept.includes(song), `${song} lies before the cursor and was not kept`)
      ),
      ...kept.flatMap((song) =>
        unless(!before.has(song) && /^song-\d+$/.test(song), `${song} was kept and not told to this listener`)
      )
    ]
  })

/** Each occurrence has one first entry of each agent that listens to its source, and of nobody else. */
const occurrencesHeard: Checker = ({ entries, listeners, occurrences, runs }) => {
  const runById = new Map(runs.map((run) => [run.id, run]))
  return occurrences.flatMap(({ id, sourceId }) => {
    const hearers = listeners.filter((one) => one.sourceId === sourceId).map(({ agentId }) => agentId)
    const first = entries.filter((entry) => entry.eventId === id && entry.attempt === 1)
    return [
      ...hearers.flatMap((agentId) =>
        unless(
          first.filter((entry) => entry.agentId === agentId).length === 1,
          `occurrence ${id} has not one entry of agent ${agentId}`
        )
      ),
      ...first.flatMap((entry) => [
        ...unless(hearers.includes(entry.agentId), `agent ${entry.agentId} heard ${id} and does not listen`),
        ...unless(
          entry.status === "skipped" || runById.get(entry.runId ?? "")?.trigger.type === "mcpEvent",
          `entry ${entry.id} of occurrence ${id} has no run for it`
        )
      ])
    ]
  })
}

export const checkRadio = { occurrencesKept, occurrencesHeard }
