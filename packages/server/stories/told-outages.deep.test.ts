/**
 * What the log of a server says of a database that is away, for as long as that lasts.
 */
import { expect, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { clusterLimits } from "../src/cluster/limits.ts"
import { freeAddress } from "../testing/cluster-servers.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { operatedDatabase } from "../testing/operated-database.ts"
import { eventually, newProject, startServer, storyKeys } from "../testing/platform.ts"
import { keptLines } from "../testing/kept-lines.ts"

it.live("an outage is told once for all that the server does, and so is its end", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const { codes, logger } = keptLines()
      const story = yield* newProject(yield* startServer(access, [logger]), access)
      const { become, change } = yield* operatedDatabase(access)
      const objects = story.ask("GET", "/objects")

      yield* become("connection limit 0")
      yield* eventually(objects, ({ status }) => status === 503)
      yield* eventually(
        Effect.sync(() => codes.length),
        (lines) => lines > 0
      )
      // Nobody is sent away once more: who has come back by then would have found it away twice.
      yield* change("connection limit -1")
      yield* eventually(
        Effect.sync(() => codes.at(-1)),
        (code) => code === "databaseBack"
      )
      expect(codes).toEqual(["databaseAway", "databaseBack"])
    })
  )
)

it.live("nor does a server of a cluster tell each second that it holds no places meanwhile", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const access = { ...(yield* freshDatabase), embedded: false }
      const { codes, logger, said } = keptLines()
      const at = yield* freeAddress
      yield* startServer(access, [logger], undefined, undefined, storyKeys, at)
      const { become, change } = yield* operatedDatabase(access)
      const linesOf = (code: string) => codes.filter((each) => each === code)
      const tells = (code: string) =>
        eventually(
          Effect.sync(() => linesOf(code)),
          ({ length }) => length > 0
        )
      yield* become("connection limit 0")
      yield* tells("databaseAway")
      const fromMs = yield* Clock.currentTimeMillis
      yield* eventually(Clock.currentTimeMillis, (nowMs) => nowMs - fromMs > 3 * clusterLimits.heartbeatMs)
      yield* change("connection limit -1")
      expect(yield* tells("databaseBack")).toHaveLength(1)
      expect(linesOf("databaseAway")).toHaveLength(1)
      const [away, back] = ["databaseAway", "databaseBack"].map((code) => codes.indexOf(code))
      expect(said.slice(away, back).filter((line) => /shard/i.test(line))).toEqual([])
    })
  )
)
