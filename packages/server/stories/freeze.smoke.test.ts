/**
 * A server that stands still holds what it has locked for a moment, and not what its other transactions were waiting for besides.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { startMortal } from "../testing/mortal-servers.ts"
import { holding } from "../testing/owner-rows.ts"
import { newProject, storyIn } from "../testing/platform.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { make } from "../testing/story-words.ts"

const waiting = 4

/** One transaction that stands still is broken off after three seconds, and whoever waits looks anew at once; four would take twelve. */
const withinMs = 9_000

describe("Transactions of a server that stands still", () => {
  it.live("that waited for the same row do not take it one after the other", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const [first, second] = yield* Effect.all([startMortal(access), startMortal(access)], {
          concurrency: 2
        })
        const story = yield* newProject(first, access)
        const elsewhere = storyIn(second, access, story.projectId)
        const ada = yield* make(story, "Person", { n: 0 })
        const owner = yield* holding(access, `select from kb.graph_objects where id = '${ada.id}' for update`)
        for (let n = 1; n <= waiting; n++)
          yield* Effect.forkScoped(
            Effect.ignoreCause(story.patch(`/objects/${ada.id}`, { properties: { n } }))
          )
        yield* whenWaiting(access, waiting)
        yield* first.freeze
        yield* owner.query("rollback")
        const changed = yield* Effect.timeoutOption(
          elsewhere.patch(`/objects/${ada.id}`, { properties: { n: -1 } }),
          withinMs
        )
        expect(changed).toMatchObject({ value: { properties: { n: -1 } } })
        yield* first.thaw
      })
    )
  )
})
