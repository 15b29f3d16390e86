/**
 * What the log of a server says of a database that is away, for as long as that lasts.
 */
import { expect, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { clusterLimits } from "../src/cluster/cluster-limits.ts"
import { freeAddress } from "../testing/cluster-servers.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { operatedDatabase } from "../testing/operated-database.ts"
import { eventually, newProject, startServer, storyKeys } from "../testing/platform.ts"
import { keptLines } from "../testing/kept-lines.ts"

it.live("an outage is told once for all that the server does, and so is its end", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const { logger, said } = keptLines()
      const story = yield* newProject(yield* startServer(access, [logger]), access)
      const { become, change } = yield* operatedDatabase(access)
      const objects = story.ask("GET", "/objects")

      yield* become("connection limit 0")
      yield* eventually(objects, ({ status }) => status === 503)
      yield* eventually(
        Effect.sync(() => said.length),
        (lines) => lines > 0
      )
      // Nobody is sent away once more: who has come back by then would have found it away twice.
      yield* change("connection limit -1")
      yield* eventually(
        Effect.sync(() => said.at(-1)),
        (line) => line === "The database answers again"
      )
      expect(said).toEqual([
        "The database does not answer: whatever the server does by itself waits for it",
        "The database answers again"
      ])
    })
  )
)

it.live("nor does a server of a cluster tell each second that it holds no places meanwhile", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const access = { ...(yield* freshDatabase), embedded: false }
      const { logger, said } = keptLines()
      const at = yield* freeAddress
      yield* startServer(access, [logger], undefined, false, storyKeys, at)
      const { become, change } = yield* operatedDatabase(access)
      const saysThat = (words: string) =>
        eventually(
          Effect.sync(() => said.filter((line) => line.includes(words))),
          ({ length }) => length > 0
        )
      yield* become("connection limit 0")
      yield* saysThat("The database does not answer")
      const fromMs = yield* Clock.currentTimeMillis
      yield* eventually(Clock.currentTimeMillis, (nowMs) => nowMs - fromMs > 3 * clusterLimits.heartbeatMs)
      yield* change("connection limit -1")
      expect(yield* saysThat("The database answers again")).toHaveLength(1)
      expect(said.filter((line) => line.includes("The database does not answer"))).toHaveLength(1)
      const [away, back] = ["The database does not answer", "The database answers again"].map((words) =>
        said.findIndex((line) => line.includes(words))
      )
      expect(said.slice(away, back).filter((line) => /shard/i.test(line))).toEqual([])
    })
  )
)
