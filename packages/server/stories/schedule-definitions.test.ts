/**
 * Which schedules are taken, and when one says that it will fire.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { ConfigProvider, Effect, Exit } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { newProject, startServer } from "../testing/platform.ts"
import { whileServing } from "../testing/restarts.ts"
import { countRows, expectProblem } from "../testing/problem-words.ts"
import { clerk, schedulesOf } from "../testing/schedule-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { watcher } from "../testing/story-words.ts"
import { naming } from "../testing/naming.ts"

/** An environment that says how often a schedule may fire. */
const withFloor = (seconds: string) =>
  Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ TROPISM_MIN_SCHEDULE_SECONDS: seconds })))

const storyWithFloor = (seconds: string) =>
  Effect.gen(function* () {
    const access = yield* freshDatabase
    return yield* newProject(yield* startServer(access), access)
  }).pipe(withFloor(seconds))

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: A schedule that can never fire is refused", () => {
    it.effect.each([
      ["0 0 30 2 *", []],
      ["0 0 31 4,6,9,11 *", []],
      ["0 9 * *", ["0 9 * * 1-5"]],
      ["*/5 * * * * *", ["0 9 * * 1-5"]],
      ["61 * * * *", [59]]
    ] as const)("%s", ([cronSchedule, named]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const before = yield* countRows(story)
        const answer = yield* story.ask("POST", "/agents", clerk(cronSchedule))
        expectProblem(answer, 422, "/cronSchedule")
        expect(answer.body.detail).toEqual(naming(cronSchedule, ...named))
        expect(yield* countRows(story)).toEqual(before)
      })
    )

    it.effect("an unknown zone is refused, and a change to a wrong schedule leaves the old one", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        expectProblem(
          yield* story.ask("POST", "/agents", clerk("0 9 * * *", { timezone: "Mars/Olympus" })),
          422,
          "/timezone"
        )
        const agent = yield* story.post("/agents", clerk("0 9 * * *"))
        const path = `/agents/${agent.id}`
        expectProblem(yield* story.ask("PATCH", path, { cronSchedule: "0 0 30 2 *" }), 422, "/cronSchedule")
        expect(yield* story.get(path)).toMatchObject({ version: 1, nextFireAt: agent.nextFireAt })
      })
    )
  })

  describe("Requirement: A schedule says when it fires next", () => {
    it.effect("the next five instants, with the time on the zone's clock", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", clerk("30 2 * * *", { timezone: "Asia/Kolkata" }))
        const preview = yield* story.get(`/agents/${agent.id}/schedule`)
        expect(preview).toMatchObject({
          cronSchedule: "30 2 * * *",
          timezone: "Asia/Kolkata",
          catchUp: "one",
          overlapPolicy: "skip",
          active: true,
          waiting: null
        })
        expect(preview.fires).toHaveLength(5)
        expect(preview.fires[0].at).toBe(agent.nextFireAt)
        for (const { at, localTime } of preview.fires) {
          expect(at).toMatch(/T21:00:00\.000Z$/)
          expect(localTime).toMatch(/T02:30:00\.000\+05:30$/)
        }
      })
    )

    it.effect(
      "another zone moves the next instant at once; a disabled agent tells its instants and fires none",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", clerk("0 12 1 7 *"))
          const path = `/agents/${agent.id}`
          const moved = yield* story.patch(path, { timezone: "America/New_York" })
          expect(moved.nextFireAt).toMatch(/-07-01T16:00:00\.000Z$/)
          expect(yield* schedulesOf(story.access, agent)).toEqual([
            { cron: "0 12 1 7 *", at: moved.nextFireAt }
          ])
          yield* story.patch(path, { enabled: false })
          const preview = yield* story.get(`${path}/schedule`)
          expect(preview.active).toBe(false)
          expect(preview.fires[0]).toEqual({
            at: moved.nextFireAt,
            localTime: expect.stringMatching(/-07-01T12:00:00\.000-04:00$/)
          })
        })
    )

    it.effect("an agent without a schedule has none to show", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher())
        expectProblem(yield* story.ask("GET", `/agents/${agent.id}/schedule`), 404)
      })
    )
  })
})

describe("Requirement: A schedule that fires too often is refused", () => {
  it.live("the server's floor is told in the sentence", () =>
    Effect.gen(function* () {
      const story = yield* storyWithFloor("900")
      for (const [cronSchedule, seconds] of [
        ["* * * * *", 60],
        ["*/5 * * * *", 300],
        ["0,59 9 * * *", undefined],
        ["0,10 9 1 1 *", 600],
        // Eleven minutes lie between the last of one day and the first of the next.
        ["2,51 0,23 * * *", 660],
        ["2,51 0,23 1,2 * *", 660]
      ] as const) {
        const answer = yield* story.ask("POST", "/agents", clerk(cronSchedule, { name: `a${seconds}` }))
        if (seconds === undefined) {
          expect(answer.status).toBe(201)
          continue
        }
        expectProblem(answer, 422, "/cronSchedule")
        expect(answer.body.detail).toMatch(new RegExp(`\\b${seconds}\\b`))
        expect(answer.body.detail).toContain("TROPISM_MIN_SCHEDULE_SECONDS")
        expect(answer.body.detail).toContain("900")
      }
      for (const [index, cronSchedule] of ["0 * * * *", "*/15 * * * *", "2,51 0,23 1 * *"].entries()) {
        const answer = yield* story.ask("POST", "/agents", clerk(cronSchedule, { name: `b${index}` }))
        expect(answer.status).toBe(201)
      }
    })
  )

  it.live("a server with a higher floor keeps what was taken before, and lets it be changed otherwise", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const { agent, projectId } = yield* Effect.scoped(
        Effect.gen(function* () {
          const story = yield* newProject(yield* startServer(access), access)
          return { agent: yield* story.post("/agents", clerk("0,5 12 1 7 *")), projectId: story.projectId }
        })
      )
      yield* withFloor("900")(
        whileServing(access, projectId, (story) =>
          Effect.gen(function* () {
            const path = `/agents/${agent.id}`
            expect(yield* story.patch(path, { prompt: "Another." })).toMatchObject({ version: 2 })
            expect(yield* story.patch(path, { enabled: false })).toMatchObject({ version: 3 })
            expectProblem(yield* story.ask("PATCH", path, { enabled: true }), 422, "/cronSchedule")
            expect(yield* story.patch(path, { enabled: true, cronSchedule: "0 12 1 7 *" })).toMatchObject({
              version: 4
            })
          })
        )
      )
    })
  )

  it.live("a floor that is no number keeps the server from starting, with a sentence", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      for (const wrong of ["0", "-5", "soon"]) {
        const exit = yield* Effect.exit(withFloor(wrong)(startServer(access)))
        expect(Exit.isFailure(exit) && String(exit.cause)).toContain("TROPISM_MIN_SCHEDULE_SECONDS")
      }
    })
  )

  it.live("without a floor each minute is taken", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      expect((yield* story.ask("POST", "/agents", clerk("* * * * *"))).status).toBe(201)
    })
  )
})
