/**
 * Suggestions made at once, by agents and those they spawn, decided in any order, around a restart and among moves.
 *
 * Each world follows from a seed; a model says what graph and tasks must be
 * afterwards. A failure names the seed: put it into `repeated` to see it again.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Chance, chanceOf } from "../simulation/chance.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { type Json, newProject, startServer, type Story, storyIn } from "../testing/platform.ts"
import * as Model from "../testing/review-model.ts"
import { callsOf, make, type ScriptedCall } from "../testing/story-words.ts"
import { handingOver, spawning, worker } from "../testing/sub-agent-words.ts"
import { inTier } from "../testing/tier.ts"

const repeated: string | undefined = undefined
const seed = repeated ?? inTier("first", crypto.randomUUID(), crypto.randomUUID())

const worlds = inTier(1, 3, 30)
const actsOfWave = 9
const names = ["a", "b", "c"] as const

interface World {
  readonly chance: Chance
  readonly model: Model.Model
  readonly objects: ReadonlyArray<Json>
  /** The server's tasks, in the order of the model's. */
  readonly tasks: Array<Json>
  readonly projectId: string
}

const newWorld = Effect.fnUntraced(function* (story: Story, number: number) {
  const state = { a: 0, b: 0, c: 0 }
  const objects = yield* Effect.forEach([1, 2, 3], () => make(story, "Thing", state))
  const world: World = {
    chance: chanceOf(`${seed}/${number}`),
    model: { objects: objects.map(() => ({ versions: [state], isDeleted: false })), tasks: [] },
    objects,
    tasks: [],
    projectId: story.projectId
  }
  return world
})

interface Wanted extends Pick<Model.ModelTask, "object" | "data"> {
  readonly call: ScriptedCall
}

/** What one agent suggests, the same tool again and again: of each object each property once, sometimes its end. */
const drawWanted = ({ chance, model, objects }: World): ReadonlyArray<Wanted> =>
  objects.flatMap(({ id }, object) => {
    if (model.objects[object]?.isDeleted) return []
    const updates = names
      .filter(() => chance.oneIn(2))
      .map((name): Wanted => {
        const data = { [name]: chance.between(1, 2) }
        return {
          object,
          data,
          call: { tool: "update_object", arguments: { objectId: id, properties: data } }
        }
      })
      .filter(({ data }) =>
        Object.entries(data ?? {}).some(([name, value]) => presentOf(model, object)[name] !== value)
      )
    const deletion: Wanted = {
      object,
      data: null,
      call: { tool: "delete_object", arguments: { objectId: id } }
    }
    return chance.oneIn(4) ? [...updates, deletion] : updates
  })

const presentOf = ({ objects }: Model.Model, object: number): Model.State =>
  objects[object]?.versions.at(-1) ?? {}

/** An agent and one that it spawns suggest, all at once each; both are new, so neither refines what waits. */
const suggestWave = Effect.fnUntraced(function* (story: Story, world: World, wave: number) {
  const { model } = world
  const [ofBoss, ofHelper] = [drawWanted(world), drawWanted(world)]
  const mode = { executionMode: "suggest" }
  const helper = yield* story.post(
    "/agents",
    worker(`helper-${wave}`, handingOver(...ofHelper.map(({ call }) => call)), mode)
  )
  const calls = [...ofBoss.map(({ call }) => call), spawning(`helper-${wave}`)]
  const boss = yield* story.post(
    "/agents",
    worker(`boss-${wave}`, handingOver(...calls), { ...mode, subAgents: ["*"] })
  )
  const run = yield* story.post(`/agents/${boss.id}/trigger`)
  expect(run.status, `seed ${seed}: ${JSON.stringify(run)}`).toBe("completed")
  const runs = yield* story.get("/runs?limit=200")
  const bases = model.objects.map(({ versions }) => versions.length)
  for (const [agent, wanted] of [
    [boss, ofBoss],
    [helper, ofHelper]
  ] as const) {
    const its = runs.items.find(({ agentId }: Json) => agentId === agent.id)
    const made = (yield* callsOf(story, its)).filter(({ tool }) => tool !== "spawn_agent")
    for (const [index, { data, object }] of wanted.entries()) {
      const { result } = made[index]
      world.tasks.push(yield* story.get(`/tasks/${result.taskId}`))
      model.tasks.push({ object, data, base: bases[object] ?? 0, status: "pending" })
    }
  }
})

/** A few acts in any order: decisions, also on what is decided, and moves. */
const act = Effect.fnUntraced(function* (story: Story, { chance, model, objects, tasks }: World) {
  for (let n = 0; n < actsOfWave; n++) {
    const index = chance.below(Math.max(1, tasks.length))
    const kind = tasks.length === 0 ? 0 : chance.below(5)
    if (kind === 0) {
      const object = chance.below(objects.length)
      const data = { [chance.pick(names)]: chance.between(0, 2) }
      const answer = yield* story.ask("PATCH", `/objects/${objects[object].id}`, { properties: data })
      expect(answer.status, `seed ${seed}`).toBe(Model.patch(model, object, data))
    } else {
      const [verb, expected] =
        kind < 4 ? ["approve", Model.approve(model, index)] : ["reject", Model.reject(model, index)]
      const { body, status } = yield* story.ask("POST", `/tasks/${tasks[index].id}/${verb}`, {})
      expect([verb, status, body.reason], `seed ${seed}: ${JSON.stringify(body)}`).toEqual([
        verb,
        ...expected
      ])
    }
  }
})

/** The graph, its history and every task are what the model says. */
const agrees = Effect.fnUntraced(function* (story: Story, { model, objects, tasks }: World) {
  for (const [index, object] of objects.entries()) {
    const { isDeleted, versions } = model.objects[index] as Model.ModelObject
    const history = yield* story.get(`/objects/${object.id}/history?limit=200`)
    expect(
      history.items.toReversed().map(({ properties }: Json) => properties),
      `seed ${seed}`
    ).toEqual(versions)
    expect((yield* story.ask("GET", `/objects/${object.id}`)).status, `seed ${seed}`).toBe(
      isDeleted ? 404 : 200
    )
  }
  const found = yield* Effect.forEach(tasks, ({ id }) => story.get(`/tasks/${id}`), { concurrency: 4 })
  expect(
    found.map(({ staleness, status }) => [status, staleness?.state ?? null]),
    `seed ${seed}`
  ).toEqual(model.tasks.map((task) => [task.status, Model.standing(model, task)]))
})

describe("Requirement: Suggestion Task Resolution, whatever is decided in whatever order", () => {
  it.live(
    "S000-R29…R33 parallel suggestions of agents and sub-agents, around a restart, end as the model says",
    () =>
      Effect.gen(function* () {
        const access = { ...(yield* freshDatabase), embedded: false }
        const wave = (made: ReadonlyArray<World> | undefined, number: number) =>
          Effect.scoped(
            Effect.gen(function* () {
              const doors = yield* startServer(access)
              const all: Array<World> = []
              for (let n = 0; n < worlds; n++) {
                const known = made?.[n]
                const story = known
                  ? storyIn(doors, access, known.projectId)
                  : yield* newProject(doors, access)
                const world = known ?? (yield* newWorld(story, n))
                yield* act(story, world)
                yield* suggestWave(story, world, number)
                yield* act(story, world)
                yield* agrees(story, world)
                all.push(world)
              }
              return all
            })
          )
        const before = yield* wave(undefined, 1)
        yield* wave(before, 2)
      }).pipe(Effect.scoped),
    120_000
  )
})
