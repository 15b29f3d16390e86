/**
 * What is told of runs: each state once, nothing that was over before, however the looks fall.
 */
import { describe, expect, it } from "@effect/vitest"
import type { Run } from "@tropism/domain/run"
import { Effect, Redacted, Stream } from "effect"
import { fakeServer, token } from "../testing/fake-server.ts"
import { run } from "../testing/records.ts"
import { withClient, accessTo } from "./access.ts"
import { followRuns, noteRuns, nothingSeen, type SeenRuns } from "./follow-runs.ts"
import { limits } from "./limits.ts"

/** Looks at one page after the other and says what each look told. */
const looks = (...pages: ReadonlyArray<ReadonlyArray<Run>>) => {
  let seen: SeenRuns = nothingSeen
  return pages.map((page) => {
    const noted = noteRuns(seen, page)
    seen = noted.seen
    return noted.changed.map((one) => `${one.id.slice(-1)} ${one.status}`)
  })
}

const queued = (number: number) => run(number, { status: "queued" })
const running = (number: number, attempt = 1) => run(number, { status: "running", attempt })

describe("noteRuns", () => {
  it("tells each state of a run once, the oldest run first", () => {
    expect(
      looks(
        [running(2), queued(1)],
        [running(2), running(1)],
        [run(2), running(1)],
        [run(2), run(1)],
        [run(2), run(1)]
      )
    ).toEqual([["1 queued", "2 running"], ["1 running"], ["2 completed"], ["1 completed"], []])
  })

  it("tells a run that a second worker has taken over", () => {
    expect(looks([running(1)], [running(1, 2)])).toEqual([["1 running"], ["1 running"]])
  })

  it("tells a run once that two pages of one look hold", () => {
    expect(looks([run(2), run(1), run(1)])).toEqual([["1 completed", "2 completed"]])
  })

  it("forgets old runs and still never tells them again", () => {
    const many = Array.from({ length: limits.rememberedRuns + 50 }, (_, index) => run(index + 1))
    const first = noteRuns(nothingSeen, many)
    expect(first.changed).toHaveLength(many.length)
    expect(first.seen.over.size).toBe(limits.rememberedRuns)
    const second = noteRuns(first.seen, [...many, run(many.length + 1)])
    expect(second.changed.map((one) => one.id)).toEqual([run(many.length + 1).id])
  })
})

describe("followRuns", () => {
  const access =
    (url: string) => (body: (access: ReturnType<typeof accessTo>) => Effect.Effect<void, unknown>) =>
      withClient({ url, token: Redacted.make(token) }, (client) =>
        Effect.flatMap(client.projects.list({ query: {} }), ({ items: [project] }) =>
          project ? body(accessTo(client, { url }, project)) : Effect.die("no project")
        )
      )

  it.live("tells what ends after the first look, however many pages it takes, and nothing from before", () =>
    Effect.gen(function* () {
      const old = Array.from({ length: 300 }, (_, index) => run(index + 1))
      const waiting = running(301)
      const server = yield* fakeServer({ runs: [waiting, ...old.toReversed()] })
      const told: Array<string> = []
      let lookCount = 0
      yield* access(server.url)((project) =>
        followRuns(project).pipe(
          Stream.tap((look) =>
            Effect.sync(() => {
              told.push(...look.changed.map((one) => `${Number(one.id.slice(-12))} ${one.status}`))
              lookCount += 1
              // After the first look 450 runs are born and die, and the waiting one ends.
              const born = Array.from({ length: 450 }, (_, index) => run(302 + index))
              if (lookCount === 1) server.state.runs = [...born.toReversed(), run(301), ...old.toReversed()]
            })
          ),
          Stream.take(3),
          Stream.runDrain
        )
      )
      expect(told).toHaveLength(451)
      expect([told[0], told[1], told[450]]).toEqual(["301 completed", "302 completed", "751 completed"])
      const lastLook = server.requests.filter(({ line }) => line.includes("/runs?")).at(-1)
      expect(lastLook?.line).not.toContain("cursor")
    })
  )
})
