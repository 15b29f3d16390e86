/**
 * Whose run comes first when there are more runs than hands.
 *
 * All hands but one are held by runs whose model is silent, so that what is
 * queued behind them begins one after the other.
 */
import { describe, expect, layer } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { sharesOf } from "../src/runs/worker.ts"
import { ask } from "../testing/owner-rows.ts"
import {
  eventually,
  type Json,
  newProject,
  scripted,
  slots,
  startServer,
  type Story
} from "../testing/platform.ts"
import { newStoryHere, patientDatabase, SharedServer } from "../testing/shared-server.ts"
import { endedRuns, make, runsOf, saying, silentFor, watcher } from "../testing/story-words.ts"

const hands = slots - sharesOf(slots).spare

/** Holds every hand that this project may have, and answers what gives one back and what gives back all. */
const holdHands = Effect.fnUntraced(function* (story: Story) {
  const holder = yield* story.post(
    "/agents",
    watcher({
      name: "holder",
      model: silentFor(600_000),
      reactionConfig: { objectTypes: ["Hold"], events: ["created"], concurrencyStrategy: "parallel" }
    })
  )
  yield* Effect.forEach(Array.from({ length: hands }), () => make(story, "Hold"), { concurrency: 8 })
  const held = yield* eventually(
    runsOf(story, holder),
    (runs) => runs.filter((run) => run.status === "running").length === hands
  )
  const [first, ...others] = held.map((run) => story.ask("POST", `/runs/${run.id}/cancel`))
  const freeOthers = Effect.all(others, { concurrency: 8 })
  yield* Effect.addFinalizer(() => freeOthers)
  return { freeOne: first ?? Effect.void, freeOthers }
})

/** An agent with so many runs in the queue, each for an object that changed. */
const queueReactions = Effect.fnUntraced(function* (story: Story, count: number) {
  const agent = yield* story.post("/agents", watcher({ model: saying("Seen.") }))
  yield* Effect.forEach(Array.from({ length: count }), () => make(story, "Person"), { concurrency: 8 })
  yield* eventually(runsOf(story, agent), (runs) => runs.length === count)
  return agent
})

const manual = (overrides: Record<string, unknown> = {}) => ({
  name: "asked",
  prompt: "Hello",
  triggerType: "manual",
  executionMode: "execute",
  tools: [],
  model: saying("Done."),
  ...overrides
})

const trigger = (story: Story, agent: Json) => story.post(`/agents/${agent.id}/trigger?wait=false`)

/** How many of the runs had begun when this one had. */
const begunBefore = (runs: ReadonlyArray<Json>, instant: string): number =>
  runs.filter((run) => run.startedAt !== null && Date.parse(run.startedAt) < Date.parse(instant)).length

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Whose run comes first", () => {
    it.effect("a run that a person waits for begins before reactions that were queued earlier", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { freeOne, freeOthers } = yield* holdHands(story)
        const reacting = yield* queueReactions(story, 20)
        const asked = yield* story.post("/agents", manual())
        yield* trigger(story, asked)
        yield* freeOne
        const [run] = yield* endedRuns(story, asked, 1)
        // One of four claims is for the oldest, whoever it is.
        expect(begunBefore(yield* runsOf(story, reacting), run.startedAt)).toBeLessThanOrEqual(1)
        yield* freeOthers
        yield* endedRuns(story, reacting, 20)
      })
    )

    it.effect("what such a run spawns comes first too, and so does the run when it goes on", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { freeOne, freeOthers } = yield* holdHands(story)
        const reacting = yield* queueReactions(story, 20)
        const asked = yield* story.post(
          "/agents",
          manual({
            tools: ["run.*"],
            subAgents: ["helper"],
            model: scripted([
              {
                when: "step == 0",
                calls: [{ tool: "spawn_agent", arguments: { agent: "helper", task: "Help" } }]
              },
              { say: "Done." }
            ])
          })
        )
        const helper = yield* story.post("/agents", manual({ name: "helper" }))
        yield* trigger(story, asked)
        yield* freeOne
        const [run] = yield* endedRuns(story, asked, 1)
        const [help] = yield* runsOf(story, helper)
        expect(help.parentRunId).toBe(run.id)
        expect(begunBefore(yield* runsOf(story, reacting), run.completedAt)).toBeLessThanOrEqual(2)
        yield* freeOthers
        yield* endedRuns(story, reacting, 20)
      })
    )

    it.effect("reactions begin also while people ask for one run after the other", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { freeOne, freeOthers } = yield* holdHands(story)
        const reacting = yield* queueReactions(story, 3)
        const asked = yield* story.post("/agents", manual())
        yield* Effect.forEach(Array.from({ length: 12 }), () => trigger(story, asked))
        yield* freeOne
        const ended = yield* endedRuns(story, asked, 12)
        const last = ended
          .map((run) => run.startedAt)
          .sort()
          .at(-1)
        expect(begunBefore(yield* runsOf(story, reacting), last)).toBe(3)
        yield* freeOthers
      })
    )

    it.effect("what a reaction spawns waits with the reactions", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const parent = yield* story.post(
          "/agents",
          watcher({
            tools: ["run.*"],
            subAgents: ["helper"],
            model: scripted([
              {
                when: "step == 0",
                calls: [{ tool: "spawn_agent", arguments: { agent: "helper", task: "Help" } }]
              },
              { say: "Done." }
            ])
          })
        )
        yield* story.post("/agents", manual({ name: "helper" }))
        const asked = yield* story.post("/agents", manual())
        yield* make(story, "Person")
        yield* trigger(story, asked)
        yield* endedRuns(story, parent, 1)
        yield* endedRuns(story, asked, 1)
        const rows = yield* ask(
          story.access,
          "select trigger_type, priority::int from kb.agent_runs where project_id = $1 order by 1",
          [story.projectId]
        )
        expect(rows).toEqual([
          ["agent", 1],
          ["manual", 0],
          ["reaction", 1]
        ])
      })
    )
  })

  it.effect("TROPISM_CONCURRENT_RUNS says how many runs a server works on at once", () =>
    Effect.gen(function* () {
      const access = yield* patientDatabase
      const env = ConfigProvider.fromEnv({ env: { TROPISM_CONCURRENT_RUNS: "3" } })
      const doors = yield* Effect.provide(startServer(access), ConfigProvider.layer(env))
      const story = yield* newProject(doors, access)
      const agent = yield* story.post("/agents", watcher({ model: silentFor(600_000) }))
      yield* Effect.forEach([1, 2, 3, 4, 5], () => make(story, "Person"))
      const runs = yield* eventually(
        runsOf(story, agent),
        (found) => found.length === 5 && found.filter(({ status }) => status === "running").length >= 2
      )
      // The third slot is kept for a project that has no run at work.
      expect(runs.map(({ status }) => status).toSorted()).toEqual([
        "queued",
        "queued",
        "queued",
        "running",
        "running"
      ])
    })
  )
})
