/**
 * Lists that have more than is printed, and lists that are printed whole.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { fakeServer } from "../testing/fake-server.ts"
import { invoke } from "../testing/invoke.ts"
import { at, id, run } from "../testing/records.ts"

/** Says how many are printed, and the flag for more. */
const hint = expect.stringMatching(/\b50\b.*--limit\b/)

describe("A list", () => {
  it.live("says on standard error that there is more than its limit, to a program, too", () =>
    Effect.gen(function* () {
      const runs = Array.from({ length: 60 }, (_, index) => run(60 - index))
      const server = yield* fakeServer({ runs })
      const json = yield* invoke(server, "runs", "--json")
      expect(JSON.parse(json.out.join("\n"))).toHaveLength(50)
      expect(JSON.parse(json.error)).toEqual({ notice: hint })
      const told = yield* invoke(server, "runs")
      expect([told.error, told.out.length]).toEqual([hint, 51])
      const quiet = yield* invoke(server, "runs", "--quiet")
      expect([quiet.error, quiet.out]).toEqual(["", told.out])
      expect((yield* invoke(server, "runs", "--limit", "60")).error).toBe("")
    })
  )

  it.live("of which all was asked for has all, however long it is", () =>
    Effect.gen(function* () {
      const projects = Array.from({ length: 10_050 }, (_, index) => ({
        id: id("project", index + 1),
        name: `P${index}`,
        createdAt: at(0)
      }))
      const server = yield* fakeServer({ projects })
      const { error, out } = yield* invoke(server, "projects", "--json")
      expect([JSON.parse(out.join("\n")).length, error]).toEqual([10_050, ""])
    })
  )
})
