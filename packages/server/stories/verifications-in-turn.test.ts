/**
 * Verifications hold few connections: however many are asked for, everybody else is answered.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { poolLimits } from "../src/database/limits.ts"
import { Interposed, newInterposedStory } from "../testing/interposed.ts"
import { holding } from "../testing/owner-rows.ts"
import type { Story } from "../testing/platform.ts"
import { lockWaits, whenWaiting } from "../testing/server-connections.ts"
import { interposedInLine } from "../testing/waiting-in-line.ts"

/** How the question begins that waits for them. */
const comparing = "from kb.graph_relationships entity"

/** So many are asked for at once while the relationships are kept from all of them. */
const held = Effect.fnUntraced(function* (story: Story, count: number) {
  const owner = yield* holding(story.access, "lock table kb.graph_relationships in access exclusive mode")
  const asked = yield* Effect.forEach(Array.from({ length: count }), () =>
    Effect.forkScoped(story.ask("GET", "/verify"))
  )
  yield* whenWaiting(story.access, 1, comparing)
  return { asked, letGo: owner.query("rollback") }
})

layer(interposedInLine, { excludeTestServices: true })((it) => {
  describe("Verifications of one project", () => {
    it.effect("are made one after the other, and leave others their connections", () =>
      Effect.gen(function* () {
        const { access } = yield* Interposed
        const [story, other] = [yield* newInterposedStory, yield* newInterposedStory]
        const { asked, letGo } = yield* held(story, 2 * poolLimits.connections)
        for (let times = 0; times < 2 * poolLimits.connections; times += 1)
          expect((yield* other.ask("GET", "/objects")).status).toBe(200)
        expect(yield* lockWaits(access, comparing)).toBe(1)
        yield* Effect.orDie(letGo)
        for (const each of asked) expect((yield* Fiber.join(each)).status).toBe(200)
      })
    )
  })
})
