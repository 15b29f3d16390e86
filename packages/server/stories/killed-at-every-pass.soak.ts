/**
 * A run of ten steps whose server is killed at every point, every time that it passes it: `npm run soak`.
 *
 * Takes minutes and is no part of `npm test`, where `killed-anywhere.deep.test.ts`
 * tells the same of one point of every kind.
 */
import { describe, expect, it } from "@effect/vitest"
import { Clock, Console, Effect } from "effect"
import { tellDeaths } from "../testing/death-words.ts"
import { program } from "../testing/mcp-words.ts"

describe("Crash: kill -9 at every point and every pass of a run of ten steps", () => {
  it.live(
    "each graph effect happens once, a foreign call is never made twice unless it may be, and the run ends",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          let points = 0
          const startMs = yield* Clock.currentTimeMillis
          const figures = yield* tellDeaths(
            (diary) => Effect.succeed(program(diary)),
            (all) => {
              points = all.length
              return all
            }
          )
          const seconds = ((yield* Clock.currentTimeMillis) - startMs) / 1_000
          yield* Console.log(`${seconds.toFixed(0)} s: ${JSON.stringify(figures)}`)
          expect(figures.deaths).toBe(points)
          expect(points).toBeGreaterThan(60)
          // Each of two puts and the lookup, answered but not on record: after the call, and with its outcome.
          expect(figures.twice).toEqual({ charge: 0, put: 4, lookup: 2 })
          // Each of two charges, with its intent on record and no outcome, at four points.
          expect(figures.unknown).toBe(8)
        })
      ),
    1_800_000
  )
})
