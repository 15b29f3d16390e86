/**
 * Refinements at the same moment: on two servers, against a decision, and by a run whose server died.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { type Json, newProject, startServer, type Story, storyIn } from "../testing/platform.ts"
import { startMortal } from "../testing/mortal-servers.ts"
import { endedRuns, make } from "../testing/story-words.ts"
import { approve, pendingOf, suggesting, suggestingOnce, updating } from "../testing/suggestion-words.ts"

/** One project, through the doors of two servers. */
const twoServers = Effect.gen(function* () {
  const access = yield* freshDatabase
  const [here, there] = [yield* startServer(access), yield* startServer(access)]
  const story = yield* newProject(here, access)
  return [story, storyIn(there, access, story.projectId)] as const
})

const trigger = (story: Story, agent: Json, ...calls: ReadonlyArray<unknown>) =>
  story.post(`/agents/${agent.id}/trigger?wait=false`, { input: { calls } })

const revisionsOf = (story: Story, task: Json) =>
  Effect.map(story.get(`/tasks/${task.id}/revisions?limit=200`), (page) =>
    page.items.map(({ revision }: Json) => revision)
  )

/** The numbers from one below a revision down to 1. */
const before = (revision: number) => Array.from({ length: revision - 1 }, (_, index) => revision - 1 - index)

describe("Requirement: Of the same suggestion there is one", () => {
  it.live("also when twenty runs on two servers make it at once", () =>
    Effect.gen(function* () {
      const stories = yield* twoServers
      const [story] = stories
      const ada = yield* make(story, "Person", { age: 0 })
      const agent = yield* suggesting(story)
      yield* Effect.forEach(
        Array.from({ length: 20 }, (_, index) => index),
        (n) => trigger(stories[n % 2] ?? story, agent, updating(ada, { age: n + 1, [`of${n}`]: true })),
        { concurrency: 20 }
      )
      yield* endedRuns(story, agent, 20)
      const tasks = yield* pendingOf(story)
      expect(tasks.map(({ number, revision }) => [number, revision])).toEqual([[1, 20]])
      expect(Object.keys(tasks[0].payload.suggestedChanges.data)).toHaveLength(21)
      expect(yield* revisionsOf(story, tasks[0])).toEqual(before(20))
    })
  )

  it.live("of a refinement and an approval at once one comes first, and both are whole", () =>
    Effect.gen(function* () {
      const [story, other] = yield* twoServers
      const agent = yield* suggesting(story)
      const seen = { refined: 0, opened: 0 }
      for (let round = 0; round < 15; round++) {
        const ada = yield* make(story, "Person", { age: 1 })
        const { result } = yield* suggestingOnce(story, agent, updating(ada, { age: 2 }))
        const task = yield* story.get(`/tasks/${result.taskId}`)
        const [decided, again] = yield* Effect.all(
          [
            // Each round a little later, so that either may be the first.
            Effect.andThen(
              Effect.forEach(Array(round), () => other.get("/tasks?limit=1")),
              approve(other, task, { digest: task.digest })
            ),
            suggestingOnce(story, agent, updating(ada, { age: 3 }))
          ],
          { concurrency: 2 }
        )
        const after = yield* story.get(`/tasks/${task.id}`)
        const { properties } = yield* story.get(`/objects/${ada.id}`)
        if (again.result.refined === true) {
          seen.refined++
          expect(again.result.taskId).toBe(task.id)
          expect([decided.status, decided.body.reason]).toEqual([409, "digestMismatch"])
          expect([after.status, after.revision, properties.age]).toEqual(["pending", 2, 1])
        } else {
          seen.opened++
          expect(again.result.taskId).not.toBe(task.id)
          expect(decided.status).toBe(200)
          expect([after.status, after.revision, properties.age]).toEqual(["completed", 1, 2])
          expect(yield* revisionsOf(story, task)).toEqual([])
        }
      }
      expect(seen.refined + seen.opened).toBe(15)
    })
  )

  it.live(
    "a call that is taken up by another server, its own having died after it refined, refines once",
    () =>
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const mortal = yield* startMortal(access)
        const story = yield* newProject(mortal, access)
        const ada = yield* make(story, "Person", { age: 1 })
        const agent = yield* suggesting(story)
        yield* mortal.dieAt("tool.afterCommit", 2)
        yield* trigger(story, agent, updating(ada, { age: 2 }), updating(ada, { age: 3 }))
        yield* mortal.died
        const other = storyIn(yield* startServer(access), access, story.projectId)
        const [run] = yield* endedRuns(other, agent, 1)
        expect([run.status, run.attempt]).toEqual(["completed", 2])
        const tasks = yield* pendingOf(other)
        expect(tasks.map(({ number, revision }) => [number, revision])).toEqual([[1, 2]])
        expect(yield* revisionsOf(other, tasks[0])).toEqual([1])
      })
  )
})
