/**
 * Looks at what is left when the faults are over, with the checkers of the simulation where they fit.
 */
import { connect } from "@tropism/server/database/postgres-access"
import { Effect, Redacted } from "effect"
import { checkActs } from "../packages/server/simulation/check-acts.ts"
import { checkChats } from "../packages/server/simulation/check-chats.ts"
import { checkGraph } from "../packages/server/simulation/check-graph.ts"
import { checkLogs } from "../packages/server/simulation/check-logs.ts"
import { checkReactions } from "../packages/server/simulation/check-reactions.ts"
import { checkShop } from "../packages/server/simulation/check-shop.ts"
import { nothingAcknowledged } from "../packages/server/simulation/people.ts"
import type { Remains } from "../packages/server/simulation/remains.ts"
import { readRowsWith, type Rows } from "../packages/server/simulation/rows.ts"
import type { People } from "./writers.ts"

export const readAll = (url: string, projectId: string): Promise<Rows> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(connect(Redacted.make(url)), (connection) => readRowsWith(connection, projectId))
    )
  )

/** Every sentence is something that should not be. */
export const judge = (
  rows: Rows,
  people: People,
  deeds: ReadonlyArray<string>,
  fires: ReadonlyArray<{ readonly due: string; readonly count: number }>
): ReadonlyArray<string> => [
  ...lostWrites(rows, people),
  ...people.twofold.map((each) => `one key, two answers: ${each}`),
  ...lostDecisions(rows, people),
  ...lostWords(rows, people),
  ...unhandled(rows, people),
  ...fires
    .filter(({ count }) => count > 1)
    .map(({ due, count }) => `the schedule fired ${count} times for ${due}`),
  ...byCheckers(rows, deeds)
]

const lostWrites = ({ objects, versions }: Rows, { written }: People): ReadonlyArray<string> => {
  const firstOf = new Map(
    versions.filter(({ version }) => version === 1).map((version) => [version.objectId, version])
  )
  const timesOf = Map.groupBy(objects, ({ properties }) => properties["n"])
  return written.flatMap(({ id, key, n }) => [
    ...(firstOf.get(id)?.properties["n"] === n ? [] : [`the acknowledged write ${key} (${id}) is not there`]),
    ...(timesOf.get(n)?.length === 1
      ? []
      : [`the write ${key} is there ${timesOf.get(n)?.length ?? 0} times`])
  ])
}

const lostDecisions = ({ tasks }: Rows, { decided }: People): ReadonlyArray<string> => {
  const statusOf = new Map(tasks.map((task) => [String(task.id), task.status]))
  return decided.flatMap(({ id, verdict }) => {
    const wanted = verdict === "approve" ? "completed" : "rejected"
    return statusOf.get(id) === wanted
      ? []
      : [`task ${id}: ${verdict} was acknowledged and it is ${statusOf.get(id)}`]
  })
}

/** What was said and answered stands once in the log of its conversation. */
const lostWords = ({ contextEvents }: Rows, { said }: People): ReadonlyArray<string> => {
  const placesOf = Map.groupBy(
    contextEvents.filter(({ event }) => event.type === "UserMessageEvent"),
    ({ event }) => ("content" in event ? event.content : undefined)
  )
  return said.flatMap(({ conversationId, message }) => {
    const places = (placesOf.get(message) ?? []).map(({ contextName }) => contextName)
    return places.length === 1 && places[0]?.includes(conversationId)
      ? []
      : [`"${message}" of conversation ${conversationId} stands in [${places.join(", ")}]`]
  })
}

/** Every written object woke its agent: a run that ended, or an entry that says why there is none. */
const unhandled = ({ entries, runs }: Rows, { written }: People): ReadonlyArray<string> => {
  const statusOf = new Map(runs.map(({ id, status }) => [id, status]))
  const entriesOf = Map.groupBy(
    entries.filter(({ eventType }) => eventType === "created"),
    ({ graphObjectId }) => graphObjectId
  )
  return written.flatMap(({ id, key }) => {
    const found = entriesOf.get(id) ?? []
    const completed = found.filter(({ runId }) => statusOf.get(runId ?? "") === "completed").length
    const excused = found.some(
      ({ reason, runId }) => reason !== null || statusOf.get(runId ?? "") === "failed"
    )
    return completed === 1 || (completed === 0 && excused)
      ? []
      : [`the object ${key} (${id}) has ${completed} completed runs and ${found.length} entries`]
  })
}

const byCheckers = (rows: Rows, deeds: ReadonlyArray<string>): ReadonlyArray<string> => {
  const remains: Remains = {
    ...rows,
    acknowledged: nothingAcknowledged(),
    // Its servers are killed to the end.
    calmSinceMs: Number.POSITIVE_INFINITY,
    deeds,
    errors: [],
    excuses: []
  }
  return Object.entries({
    ...checkGraph,
    ...checkReactions,
    ...checkActs,
    ...checkShop,
    ...checkChats,
    ...checkLogs
  }).flatMap(([checker, find]) => find(remains).map((detail) => `${checker}: ${detail}`))
}
