/**
 * Who changes an agent, or ends its trust, waits for its writes that are under way, and later writes wait for them.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { CrashPointName } from "../src/crash-point.ts"
import { promoted, reverse } from "../testing/autonomy-words.ts"
import { Interposed, newInterposedStory } from "../testing/interposed.ts"
import { holding } from "../testing/owner-rows.ts"
import { eventually, type Json, promptWithObject, scripted, type Story } from "../testing/platform.ts"
import { clerk, passUntil } from "../testing/schedule-words.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { callsOf, make, runsOf, watcher } from "../testing/story-words.ts"
import { isEnded } from "../testing/sub-agent-words.ts"
import { approve } from "../testing/suggestion-words.ts"
import { interposedInLine } from "../testing/waiting-in-line.ts"

/** A project with an object to write to. */
const newScene = Effect.gen(function* () {
  const { access } = yield* Interposed
  const story = yield* newInterposedStory
  return { access, story, object: yield* make(story, "Note", { n: 0 }) }
})

/** Holds an object, as a long write of somebody does, until what is answered is done. */
const held = Effect.fnUntraced(function* ({ access }: Story, object: Json) {
  const holder = yield* holding(access, `select from kb.graph_objects where id = '${object.id}' for update`)
  return Effect.orDie(holder.query("commit"))
})

/** Keeps whoever passes the place next there: told once it is there, and let go. */
const keeping = Effect.fnUntraced(function* (place: CrashPointName) {
  const { server } = yield* Interposed
  const [reached, released] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  yield* server.interpose(
    place,
    Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(released))
  )
  return { reached: Deferred.await(reached), letGo: Effect.asVoid(Deferred.succeed(released, undefined)) }
})

const writing = (object: Json) => ({
  tool: "update_object",
  arguments: { objectId: object.id, properties: { n: "{{ input.input.n }}" } }
})

/** An agent that writes a number to an object when it is told to. */
const writer = (object: Json, overrides: Record<string, unknown> = {}) =>
  watcher({
    name: "writer",
    prompt: promptWithObject,
    triggerType: "manual",
    model: scripted([{ when: "step == 0", calls: [writing(object)] }, { say: "Done." }]),
    ...overrides
  })

const begin = (story: Story, agent: Json, n: number): Effect.Effect<Json> =>
  story.post(`/agents/${agent.id}/trigger?wait=false`, { input: { n, deed: "write" } })

/** What came of the one call of a run, once the run is over. */
const cameOf = (story: Story, run: Json): Effect.Effect<Json> =>
  Effect.andThen(
    eventually(story.get(`/runs/${run.id}`), isEnded),
    Effect.map(callsOf(story, run), ([call]) => call)
  )

/** Two runs of an agent: one writes to the object that somebody holds, and one is about to. */
const twoRuns = Effect.fnUntraced(function* (story: Story, agent: Json, object: Json) {
  const { access } = yield* Interposed
  const letGo = yield* held(story, object)
  const later = yield* keeping("run.afterModel")
  const second = yield* begin(story, agent, 2)
  yield* later.reached
  const first = yield* begin(story, agent, 1)
  yield* whenWaiting(access, 1)
  return { first, second, letGo, letSecondGo: later.letGo }
})

layer(Interposed.layer, { excludeTestServices: true })((it) => {
  describe("Who changes an agent whose runs write to one object", () => {
    it.effect("is not passed by writes whose object somebody keeps, and is done before that", () =>
      Effect.gen(function* () {
        const { access, object, story } = yield* newScene
        const agent = yield* story.post("/agents", writer(object))
        const { letGo, letSecondGo } = yield* twoRuns(story, agent, object)
        yield* letSecondGo
        yield* whenWaiting(access, 2)
        const renamed = yield* story.ask("PATCH", `/agents/${agent.id}`, { role: "Writes" })
        expect([renamed.status, renamed.body.role]).toEqual([200, "Writes"])
        yield* letGo
        yield* eventually(runsOf(story, agent), (runs) => runs.every(isEnded))
      })
    )

    it.effect("waits for nobody who begins something with it", () =>
      Effect.gen(function* () {
        const story = yield* newInterposedStory
        const agent = yield* story.post("/agents", watcher({ triggerType: "manual" }))
        // As whoever writes a row that names the agent, and then waits for the agent's turn.
        const holder = yield* holding(
          story.access,
          `select from kb.agents where id = '${agent.id}' for key share`
        )
        const renamed = yield* story.ask("PATCH", `/agents/${agent.id}`, { role: "Talks" })
        expect([renamed.status, renamed.body.role]).toEqual([200, "Talks"])
        const applied = yield* story.ask("POST", "/agents/apply", {
          agents: [{ ...watcher({ triggerType: "manual" }), role: "Listens" }]
        })
        expect([applied.status, applied.body.agents?.length]).toEqual([200, 1])
        yield* Effect.orDie(holder.query("commit"))
      })
    )

    it.effect("keeps nobody from approving what it suggested of another run's object", () =>
      Effect.gen(function* () {
        const { access, object, story } = yield* newScene
        const agent = yield* story.post("/agents", writer(object, { executionMode: "suggest" }))
        const suggestion = yield* cameOf(story, yield* begin(story, agent, 7))
        yield* story.patch(`/agents/${agent.id}`, { executionMode: "execute" })
        const approval = yield* keeping("task.beforeChange")
        const task = yield* story.get(`/tasks/${suggestion.result.taskId}`)
        const approving = yield* Effect.forkChild(approve(story, task))
        yield* approval.reached
        const run = yield* begin(story, agent, 8)
        yield* whenWaiting(access, 1)
        const renaming = yield* Effect.forkChild(
          story.ask("PATCH", `/agents/${agent.id}`, { role: "Writes" })
        )
        yield* whenWaiting(access, 2)
        yield* approval.letGo
        expect((yield* Fiber.join(approving)).status).toBe(200)
        expect((yield* Fiber.join(renaming)).status).toBe(200)
        expect((yield* cameOf(story, run)).decision).toBe("execute")
        const { items } = yield* story.get(`/objects/${object.id}/history`)
        expect(items.map(({ properties }: Json) => properties.n).toSorted()).toEqual([0, 7, 8])
        expect((yield* story.get(`/objects/${object.id}`)).properties.n).toBe(8)
      })
    )
  })

  describe("Who asks for a suggestion to be looked at again while somebody approves it", () => {
    it.effect("is told so, and the approval does not wait", () =>
      Effect.gen(function* () {
        const { object, story } = yield* newScene
        const agent = yield* story.post("/agents", writer(object, { executionMode: "suggest" }))
        const { result } = yield* cameOf(story, yield* begin(story, agent, 7))
        const task = yield* story.get(`/tasks/${result.taskId}`)
        // One that has looked already is no reason.
        const { rerun } = yield* story.post(`/tasks/${task.id}/rerun`, {})
        yield* eventually(story.get(`/runs/${rerun.runId}`), isEnded)
        const again = yield* story.get(`/tasks/${task.id}`)
        const approval = yield* keeping("task.beforeChange")
        const approving = yield* Effect.forkChild(approve(story, again))
        yield* approval.reached
        const { body, status } = yield* story.ask("POST", `/tasks/${task.id}/rerun`, {})
        expect([status, body.reason]).toEqual([409, "state"])
        yield* approval.letGo
        expect((yield* Fiber.join(approving)).status).toBe(200)
        expect(yield* runsOf(story, agent)).toHaveLength(2)
      })
    )
  })

  describe("The clock", () => {
    it.effect("wakes an agent while a write of its waits", () =>
      Effect.gen(function* () {
        const { access, object, story } = yield* newScene
        const model = scripted([
          { when: 'step == 0 and input.input.deed == "write"', calls: [writing(object)] },
          { say: "Done." }
        ])
        const agent = yield* story.post(
          "/agents",
          clerk("0 5 1 1 *", { model, overlapPolicy: "allow", catchUp: "none" })
        )
        const letGo = yield* held(story, object)
        const run = yield* begin(story, agent, 1)
        yield* whenWaiting(access, 1)
        yield* passUntil(access, agent, new Date(0))
        yield* eventually(runsOf(story, agent), (runs) => runs.length > 1)
        expect((yield* story.get(`/runs/${run.id}`)).status).toBe("running")
        yield* letGo
        expect((yield* cameOf(story, run)).decision).toBe("execute")
      })
    )
  })
})

layer(interposedInLine, { excludeTestServices: true })((it) => {
  describe("Who disables an agent whose runs write to one object", () => {
    it.effect("waits for the write under way, and the next write waits for them", () =>
      Effect.gen(function* () {
        const { access, object, story } = yield* newScene
        const agent = yield* story.post("/agents", writer(object))
        const { first, letGo, letSecondGo, second } = yield* twoRuns(story, agent, object)
        const disabling = yield* Effect.forkChild(
          story.ask("PATCH", `/agents/${agent.id}`, { enabled: false })
        )
        yield* whenWaiting(access, 2)
        yield* letSecondGo
        yield* whenWaiting(access, 3)
        yield* letGo
        expect((yield* Fiber.join(disabling)).body.enabled).toBe(false)
        expect((yield* cameOf(story, first)).decision).toBe("execute")
        const call = yield* cameOf(story, second)
        expect(call?.decision ?? "refuse").toBe("refuse")
        expect((yield* story.get(`/objects/${object.id}`)).properties.n).toBe(1)
      })
    )
  })

  describe("Who takes a promotion back by which runs write to one object", () => {
    it.effect("waits for the write under way, and the next write asks", () =>
      Effect.gen(function* () {
        const { access, object, story } = yield* newScene
        const { agent, promotion } = yield* promoted(story, { write: writing(object) }, "write")
        const { first, letGo, letSecondGo, second } = yield* twoRuns(story, agent, object)
        const reversing = yield* Effect.forkChild(reverse(story, agent, promotion))
        yield* whenWaiting(access, 2)
        yield* letSecondGo
        yield* whenWaiting(access, 3)
        yield* letGo
        expect((yield* Fiber.join(reversing)).status).toBe(200)
        expect((yield* cameOf(story, first)).decision).toBe("execute")
        expect((yield* cameOf(story, second)).decision).toBe("suggest")
      })
    )
  })
})
