/**
 * What a test builds of the server, and what is left of it when the test is over.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { logWith, newContext, say } from "../testing/context-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { ask } from "../testing/owner-rows.ts"
import { newProject, startServer } from "../testing/platform.ts"
import { platformOn } from "../testing/restarts.ts"
import { silentFor } from "../testing/story-words.ts"

const source = join(import.meta.dirname, "..", "src")

/** The keys of all services that the server's sources declare. */
const declared = readdirSync(source, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
  .flatMap((path) => [
    ...readFileSync(join(source, path), "utf8").matchAll(
      /extends Context\.Service<[\s\S]*?>\(\)\(\s*"(@tropism\/server\/[^"]+)"/g
    )
  ])
  .map(([, key]) => key)

/** Those that come with an act and not with the server. */
const givenByActs = ["@tropism/server/database/ProjectTransaction"]

/** Those that the server is given from outside. */
const givenBelow = [
  "@tropism/server/Ids",
  "@tropism/server/model/Models",
  "@tropism/server/http/Standing",
  "@tropism/server/http/RateLimits"
]

describe("Testability", () => {
  it.live(
    "S004-R47 every service of the server is built for a test by its own layer, on a database of the test's",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const built = yield* Layer.build(platformOn(yield* freshDatabase))
          const keys = new Set(built.mapUnsafe.keys())
          expect(declared.length).toBeGreaterThan(60)
          expect(
            declared.filter(
              (key) => ![...givenByActs, ...givenBelow].includes(key ?? "") && !keys.has(key ?? "")
            )
          ).toEqual([])
          expect(declared).toEqual(expect.arrayContaining([...givenByActs, ...givenBelow]))
        })
      )
  )

  it.live(
    "S004-R48 an actor lives in the scope that a test builds it in: when that closes, its run is given back and its doors are shut",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const access = yield* freshDatabase
          const story = yield* Effect.scoped(
            Effect.gen(function* () {
              const inside = yield* newProject(yield* startServer(access), access)
              yield* newContext(inside, "talk", silentFor(600_000))
              yield* say(inside, "talk", "Hello")
              yield* logWith(inside, "talk", "AgentTurnStartedEvent")
              return inside
            })
          )
          expect((yield* Effect.exit(story.send("GET", "/health")))._tag).toBe("Failure")
          const rows = yield* ask(
            access,
            "select status, lease_expires_at <= now(), (select max(type) from kb.context_events where type like 'AssistantMessage%') from kb.agent_runs"
          )
          expect(rows).toEqual([["running", true, null]])
        })
      )
  )
})
