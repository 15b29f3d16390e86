/**
 * A run of ten steps whose server is killed at a point of every kind that it passes.
 *
 * The foreign server is reached over HTTP. `npm run soak` kills at every point and
 * pass, with a foreign program (`killed-at-every-pass.soak.ts`).
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { CrashPointName } from "../src/crash-point.ts"
import { type Death, tellDeaths } from "../testing/death-words.ts"
import { type Diary, httpServer } from "../testing/mcp-words.ts"

/** Which passings of a point: the steps are a note, a charge, a put, a note, a lookup, and so on. */
const chosen: Partial<Record<CrashPointName, ReadonlyArray<number>>> = {
  "run.afterClaim": [1],
  "run.afterTurnStarted": [1],
  "run.beforeModel": [10],
  "run.afterModel": [2],
  "run.afterStep": [9],
  "graph.beforeCommit": [2],
  "batch.beforeCommit": [2],
  "batch.afterCommit": [2],
  // Of the first note, of the first charge's intent, and of its outcome.
  "tool.beforeCommit": [1, 3],
  "tool.afterCommit": [1, 2],
  // Of the charge, which may not be repeated, and of the put, which may.
  "run.beforeForeignCall": [1],
  "run.afterForeignCall": [1, 2],
  "run.beforeComplete": [1],
  "run.afterComplete": [1]
}

/** A foreign server that is there already: a program would be started twice for each death. */
const overHttp = (diary: Diary) => Effect.map(httpServer(diary), ({ url }) => ({ type: "http", url }))

const isChosen = ({ name, passing }: Death) => chosen[name]?.includes(passing) === true

describe("Crash: kill -9 at a point of every kind of a run of ten steps", () => {
  it.live(
    "each graph effect happens once, a foreign call is never made twice unless it may be, and the run ends",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const figures = yield* tellDeaths(overHttp, (all) => {
            // A new kind of point wants its place above.
            expect(all.filter(({ name }) => chosen[name] === undefined)).toEqual([])
            return all.filter(isChosen)
          })
          expect(figures.deaths).toBe(Object.values(chosen).flat().length)
          // The put that was answered into the void was made again, and no charge.
          expect(figures.twice).toEqual({ charge: 0, put: 1, lookup: 0 })
          // The charge that died with its intent, before it, after it and with its outcome.
          expect(figures.unknown).toBe(4)
        })
      ),
    600_000
  )
})
