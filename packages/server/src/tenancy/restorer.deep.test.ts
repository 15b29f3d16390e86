/**
 * A restore reads its file as slowly as it comes, and holds no more of it than a batch.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { ProjectId, UserId } from "@tropism/domain/ids"
import { Context, Effect, Fiber, type FileSystem, Layer, Stream } from "effect"
import { freshDatabase } from "../../testing/fresh-database.ts"
import { eventually, newStory } from "../../testing/platform.ts"
import { Database } from "../database/database.ts"
import { poolLimits, dumpLimits } from "../database/limits.ts"
import { poolLayer } from "../database/pool.ts"
import { connect, type PostgresAccess } from "../database/postgres-access.ts"
import { Ids } from "../ids.ts"
import { judgeDump, receiveDump } from "./dump.ts"
import { ProjectIdTaken, Restorer } from "./restore.ts"

/** A project whose objects take more than two reads of its file, in rows of which five are a batch. */
const dumped = Effect.gen(function* () {
  const story = yield* newStory
  const text = "x".repeat(dumpLimits.batchBytes / 5)
  const objects = Array.from({ length: 14 }, (_, number) => ({ type: "Large", key: `large-${number}` }))
  for (const object of objects) yield* story.post("/objects", { ...object, properties: { text } })
  const { body } = yield* story.send("GET", `/api/projects/${story.projectId}/dump`)
  const file = yield* receiveDump(Stream.encodeText(Stream.make(String(body))))
  return yield* judgeDump(file)
})

/** The same file, of which the third read waits. */
const waitingFile = (file: FileSystem.File, waits: Effect.Effect<unknown>): FileSystem.File => {
  let reads = 0
  // It has the place in the file that is its own.
  const waiting: FileSystem.File = Object.create(file)
  const readAlloc: FileSystem.File["readAlloc"] = (size, options) => {
    reads += 1
    const read = file.readAlloc.call(waiting, size, options)
    return reads === 3 ? Effect.andThen(waits, read) : read
  }
  return Object.assign(waiting, { readAlloc })
}

/** What the restore has asked last, and for how long it has asked nothing since, as its own role sees it. */
const lastAsked = ({ serverUrl }: PostgresAccess) =>
  Effect.flatMap(connect(serverUrl), (own) =>
    own.queryValues(
      `select query, extract(epoch from clock_timestamp() - state_change)::float8 from pg_stat_activity
       where datname = current_database() and application_name = 'restorer' and state = 'idle in transaction'`
    )
  ).pipe(
    Effect.map(([row]) =>
      row === undefined ? undefined : { query: String(row[0]), quietSeconds: Number(row[1]) }
    ),
    Effect.scoped,
    Effect.orDie
  )

/** The restorer of a server, by a pool that gives a quiet transaction up after half a second. */
const restorerOf = Effect.fnUntraced(function* (access: PostgresAccess, name: string) {
  const pool = poolLayer({
    url: access.serverUrl,
    startupParameters: {
      ...access.serverStartupParameters,
      idle_in_transaction_session_timeout: "500"
    },
    name
  })
  return Context.get(
    yield* Layer.build(Restorer.layer.pipe(Layer.provide([Database.layer, Ids.layer]), Layer.provide(pool))),
    Restorer
  )
})

const wish = {
  projectId: ProjectId.make("01990000-0000-7000-8000-000000000001"),
  name: undefined,
  by: UserId.make("ada")
}

/** Restores a dump that waits in the middle of its objects. */
const restored = Effect.fnUntraced(function* (waits: (access: PostgresAccess) => Effect.Effect<unknown>) {
  const dump = yield* dumped
  const there = yield* freshDatabase
  const { restore } = yield* restorerOf(there, "restorer")
  const file = waitingFile(dump.file, waits(there))
  return yield* restore({ ...dump, file }, wish, () => Effect.void)
})

/** How long the transaction of the second server's restore has been open, as its own role sees it. */
const secondWaits = ({ serverUrl }: PostgresAccess) =>
  Effect.flatMap(connect(serverUrl), (own) =>
    own.queryValues(
      `select (1000 * extract(epoch from clock_timestamp() - xact_start))::int from pg_stat_activity
       where datname = current_database() and application_name = 'second' and xact_start is not null`
    )
  ).pipe(
    Effect.map(([row]) => Number(row?.[0] ?? 0)),
    Effect.scoped,
    Effect.orDie
  )

/** Waits until the restore has asked for some ids, and does nothing. */
const isAsked = (access: PostgresAccess) =>
  eventually(
    lastAsked(access),
    (last) => last !== undefined && last.query.includes("insert into kb.restored_ids")
  )

describe("A restore", () => {
  it.live("asks for the ids of some rows before it reads the others", () =>
    Effect.gen(function* () {
      expect(yield* restored(isAsked)).toMatchObject({ keptIds: true, disabledAgents: expect.any(Number) })
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("is not broken off while its file is read and nothing is asked", () =>
    Effect.gen(function* () {
      let begun = false
      const isQuiet = (access: PostgresAccess) =>
        eventually(lastAsked(access), (last) => {
          begun ||= last !== undefined
          return last === undefined ? begun : last.quietSeconds > 1
        })
      expect(yield* restored(isQuiet)).toMatchObject({ keptIds: true, project: { name: "A story" } })
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live(
    "under the id of one that is at work on another server waits for its end, and tells what came of it",
    () =>
      Effect.gen(function* () {
        const there = yield* freshDatabase
        const [first, second] = [yield* restorerOf(there, "restorer"), yield* restorerOf(there, "second")]
        const [dump, again] = [yield* dumped, yield* dumped]
        const restoring = yield* Effect.forkScoped(
          Effect.flip(
            Effect.andThen(
              // By then it has its turn.
              isAsked(there),
              second.restore(again, wish, () => Effect.void)
            )
          )
        )
        // Longer than anybody waits for a lock before he is broken off.
        const isWaiting = eventually(secondWaits(there), (waitedMs) => waitedMs > poolLimits.lockWaitMs + 500)
        const file = waitingFile(dump.file, isWaiting)
        expect(yield* first.restore({ ...dump, file }, wish, () => Effect.void)).toMatchObject({
          keptIds: true
        })
        expect(yield* Fiber.join(restoring)).toBeInstanceOf(ProjectIdTaken)
      }).pipe(Effect.provide(NodeServices.layer))
  )
})
