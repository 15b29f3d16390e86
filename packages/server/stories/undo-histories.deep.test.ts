/**
 * Whatever an agent and people did to the same objects, in whatever order, an undo of the agent leaves what people set.
 *
 * Each seed draws a history, in which an agent and a person take turns by chance; it is undone at once, or run by run. The model beside it knows nothing of plans: it
 * keeps of each property what a person set last, as the graph had it at that moment.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Chance, chanceOf } from "../simulation/chance.ts"
import { type Json, promptWithObject, scripted, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { make } from "../testing/story-words.ts"
import { approve } from "../testing/suggestion-words.ts"
import { objectNow, undoRun } from "../testing/undo-words.ts"

/** What of one object a person would find if the agent had never been there. */
interface Remembered {
  readonly id: string
  readonly isAgents: boolean
  /** Whether a person has changed it since the agent made it. */
  isHeld: boolean
  isThere: boolean
  /** What it was when it was last looked at. */
  last: Json
  readonly set: Map<string, Json>
}

const obedient = {
  name: "obedient",
  prompt: promptWithObject,
  triggerType: "manual",
  executionMode: "execute",
  tools: ["graph.*"],
  model: scripted([
    {
      when: "step == 0 and input.input.op == 'update'",
      calls: [
        {
          tool: "update_object",
          arguments: { objectId: "{{ input.input.id }}", properties: "{{ input.input.properties }}" }
        }
      ]
    },
    {
      when: "step == 0 and input.input.op == 'delete'",
      calls: [{ tool: "delete_object", arguments: { objectId: "{{ input.input.id }}" } }]
    },
    {
      when: "step == 0 and input.input.op == 'create'",
      calls: [
        { tool: "create_object", arguments: { type: "Made", properties: "{{ input.input.properties }}" } }
      ]
    },
    { say: "Done." }
  ])
}

const names = ["a", "b"] as const

/** A patch of one or two properties: whole values, parts of values, and removals. */
const drawPatch = (chance: Chance): Record<string, Json> =>
  Object.fromEntries(
    Array.from({ length: chance.between(1, 2) }, () => [
      chance.pick(names),
      chance.pick<Json>([1, 2, "x", { p: chance.below(3) }, { q: { r: chance.below(3) } }, [1, null], null])
    ])
  )

const same = (one: Json, other: Json): boolean => JSON.stringify(one) === JSON.stringify(other)

/** Plays a history of so many deeds, and answers what people would remember. */
const play = Effect.fnUntraced(function* (story: Story, agent: Json, chance: Chance, deeds: number) {
  const known: Array<Remembered> = []
  for (let n = 0; n < 2; n++) {
    const made = yield* make(story, "Thing", { a: n, b: { p: 0, q: { r: 0 } }, n: null })
    known.push({
      id: made.id,
      isAgents: false,
      isHeld: true,
      isThere: true,
      last: {},
      set: new Map(Object.entries(made.properties))
    })
  }
  const order = (input: Json) => story.post(`/agents/${agent.id}/trigger`, { input })
  for (let deed = 0; deed < deeds; deed++) {
    const one = chance.pick(known as [Remembered])
    const before = yield* objectNow(story, one)
    if (before) one.last = before.properties
    if (chance.oneIn(2)) {
      const kind = chance.below(10)
      if (kind === 0) {
        yield* order({ op: "create", properties: drawPatch(chance) })
        const [made] = (yield* story.get("/objects?type=Made&limit=200")).items.filter(
          (item: Json) => !known.some(({ id }) => id === item.id)
        )
        known.push({ id: made.id, isAgents: true, isHeld: false, isThere: false, last: {}, set: new Map() })
      } else if (kind === 1) yield* order({ op: "delete", id: one.id })
      else yield* order({ op: "update", id: one.id, properties: drawPatch(chance) })
      continue
    }
    if (!before) {
      if (chance.oneIn(2)) {
        yield* story.post(`/objects/${one.id}/restore`)
        Object.assign(one, { isThere: true, isHeld: true })
      }
    } else if (chance.oneIn(10)) {
      yield* story.delete(`/objects/${one.id}`)
      one.isThere = false
    } else {
      const after = yield* story.patch(`/objects/${one.id}`, { properties: drawPatch(chance) })
      if (after.version === before.version) continue
      Object.assign(one, { isThere: true, isHeld: true })
      for (const name of names)
        if (!same(before.properties[name], after.properties[name])) one.set.set(name, after.properties[name])
    }
  }
  return known
})

/** Says what an object must be after the undo. */
const expected = (one: Remembered): Json => {
  if (!one.isThere) return undefined
  if (one.isAgents) {
    if (!one.isHeld) return undefined
    // What a person never set stays as the agent left it, for the object is the person's now.
    return Object.fromEntries(
      [...new Set([...Object.keys(one.last), ...one.set.keys()])]
        .map((name) => [name, one.set.has(name) ? one.set.get(name) : one.last[name]])
        .filter(([, value]) => value !== undefined)
    )
  }
  return Object.fromEntries([...one.set].filter(([, value]) => value !== undefined))
}

layer(SharedServer.layer)((it) => {
  describe("An undo of any history", () => {
    it.effect.each([1, 2, 3, 4, 5, 6, 7, 8])(
      "S001-N04 leaves what people set last and takes back the rest: seed %i",
      (seed) =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", obedient)
          const known = yield* play(story, agent, chanceOf(`undo ${seed}`), 28)
          for (const one of known) one.last = (yield* objectNow(story, one))?.properties ?? one.last
          const plan = yield* story.ask("POST", `/agents/${agent.id}/undo`, { version: 1 })
          const decided = plan.status === 201 ? yield* approve(story, plan.body) : undefined
          // A plan of conflicts alone has nothing to do, and no plan is made where nothing is left.
          if (decided?.status !== 200) expect((decided ?? plan).body.reason).toBe("state")
          for (const one of known) {
            const now = yield* objectNow(story, one)
            expect([seed, one.id, now?.properties]).toEqual([seed, one.id, expected(one)])
          }
        })
    )
  })

  describe("An undo of any history, run by run", () => {
    it.effect.each([1, 2, 3, 4, 5, 6, 7, 8])(
      "S001-N04 in any order and then newest first brings back what was without the agent: seed %i",
      (seed) =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", obedient)
          const chance = chanceOf(`undo one by one ${seed}`)
          const known = yield* play(story, agent, chance, 20)
          const newestFirst: ReadonlyArray<Json> = (yield* story.get(`/runs?agentId=${agent.id}&limit=200`))
            .items
          const drawn = newestFirst
            .filter(() => chance.oneIn(2))
            .map((run) => ({ run, at: chance.below(1_000) }))
            .toSorted((a, b) => a.at - b.at)
            .map(({ run }) => run)
          for (const run of [...drawn, ...newestFirst]) {
            const plan = yield* undoRun(story, run)
            if (plan.status === 409) expect(plan.body.reason).toBe("state")
            else if (plan.body.payload.counts.ready > 0)
              expect((yield* approve(story, plan.body)).status).toBe(200)
          }
          for (const one of known) {
            const now = (yield* objectNow(story, one))?.properties
            // Of what the agent made and a person holds, only what that person set is certain.
            if (one.isAgents && one.isHeld && one.isThere)
              for (const [name, value] of one.set)
                expect([seed, name, now?.[name]]).toEqual([seed, name, value])
            else expect([seed, one.id, now]).toEqual([seed, one.id, expected(one)])
          }
        })
    )
  })
})
