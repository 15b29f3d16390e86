/**
 * The gate, through every door: capability × operation × mode, each cell with what the specifications say of it.
 *
 * The first tier takes one mode of each line of capabilities, the deep tier all of them.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import {
  allCapabilities,
  type Cell,
  type Ids,
  isAllowed,
  linesOf,
  type Sentence,
  sentenceOf,
  allSayings,
  someSayings,
  someCapabilities,
  thingsAfter,
  type Trial,
  trialsOf
} from "../testing/gate-cells.ts"
import { type Door, doors, type Told } from "../testing/gate-doors.ts"
import { allOf, importLines, jsonl } from "../testing/import-words.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { diagonal, inTier, sampled } from "../testing/tier.ts"
import { asUser } from "../testing/token-words.ts"

/** What is in the graph now, by the names of things. */
const thingsOf = Effect.fnUntraced(function* (story: Story) {
  const all: ReadonlyArray<Json> = yield* allOf(story, "/objects")
  const objects = all.filter(({ type }) => ["Alpha", "Beta"].includes(type))
  const relationships: ReadonlyArray<Json> = yield* allOf(story, "/relationships")
  const named = new Map(objects.map(({ id, key }) => [id, key]))
  const told = ({ properties, type, version }: Json, name: unknown) =>
    `${type} ${name} ${version} ${properties.is}`
  const things = [
    ...objects.map((one) => told(one, one.key)),
    ...relationships.map((one) => told(one, named.get(one.fromId)))
  ]
  const idOf = new Map([
    ...objects.map(({ id, key, type }): readonly [string, string] => [`${type} ${key}`, id]),
    ...relationships.map(({ fromId, id }): readonly [string, string] => [`TIES ${named.get(fromId)}`, id])
  ])
  const ids: Ids = {
    object: (type, { name }) => idOf.get(`${type} ${name}`) ?? name,
    relationship: ({ name }) => idOf.get(`TIES ${name}`) ?? name
  }
  return { things: things.toSorted(), ids }
})

/** What is written of each cell when it is done, asked or denied: an event, a suggestion, a denial. */
const countsOf = (told: ReadonlyArray<readonly [Cell, Sentence]>) => {
  const count = (wanted: Sentence) => told.filter(([, sentence]) => sentence === wanted).length
  return { done: count("done"), asked: count("asked"), denied: count("denied") }
}

/** Tries all cells through a door and expects of each what `wanted` says, and of the graph that nothing else happened. */
const expectCells = Effect.fnUntraced(function* (
  story: Story,
  trials: ReadonlyArray<Trial>,
  door: Door,
  wanted: (cell: Cell) => Sentence
) {
  const cells = trials.flatMap((trial) => trial.cells)
  const imported = yield* importLines(story, jsonl(...cells.flatMap(linesOf)))
  expect(imported.at(-1)).toMatchObject({ type: "finished", failed: 0 })
  const { ids } = yield* thingsOf(story)
  const told = yield* door(story, trials, ids)
  const shown = ([cell, sentence]: Told) => [cell.name, cell.rights, cell.said, sentence]
  const expected = cells.map((cell): Told => [cell, wanted(cell)])
  expect(told.map(shown)).toEqual(expected.map(shown))
  const { things } = yield* thingsOf(story)
  expect(things).toEqual(expected.flatMap(([cell, sentence]) => thingsAfter(cell, sentence)).toSorted())
  // What was there before, the admin made.
  const written = yield* eventually(
    Effect.map(allOf(story, "/events"), (events) => events.filter(({ actorId }) => actorId !== "admin")),
    (events) => events.length >= countsOf(expected).done
  )
  expect(written).toHaveLength(countsOf(expected).done)
  expect((yield* story.get("/verify")).differences).toEqual([])
  return { written, ...countsOf(expected) }
})

/** Expects what the specifications say of what an agent tries: each event in its run, each suggestion and denial once. */
const expectThroughAgents = Effect.fnUntraced(function* (door: Door, trials: ReadonlyArray<Trial>) {
  const story = yield* newStoryHere
  const { asked, denied, done, written } = yield* expectCells(story, trials, door, sentenceOf)
  // Every kind of sentence was passed, or the cells would show nothing.
  expect(Math.min(asked, denied, done)).toBeGreaterThan(inTier(1, 10, 10))
  for (const event of written)
    expect(event).toMatchObject({ actorType: "agent", runId: expect.any(String), taskId: null })
  expect(yield* allOf(story, "/tasks")).toHaveLength(asked)
  expect(yield* allOf(story, "/denials")).toHaveLength(denied)
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: the gate stands below every door", () => {
    it.effect("a run by hand: each capability, operation and mode", () =>
      expectThroughAgents(doors.byHand, sampled(diagonal(trialsOf(allCapabilities, []), 3), 5))
    )

    it.effect("a run by hand: each operation, mode and policy, and all that a model may say", () =>
      expectThroughAgents(doors.byHand, sampled(trialsOf([null, { allowedObjectTypes: [] }], allSayings), 4))
    )

    for (const [name, door] of [
      ["a reaction", doors.byReaction],
      ["a conversation", doors.byChat],
      ["a sub-agent with rights of its own", doors.byChild],
      ["a sub-agent that may do everything, for an agent with these rights", doors.byParent]
    ] as const)
      it.effect(name, () =>
        expectThroughAgents(door, sampled(diagonal(trialsOf(someCapabilities, someSayings), 3), 2))
      )

    it.effect("an approval: the agent's rights as they are then, and its mode no more", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const trials = sampled(
          [
            ...trialsOf(allCapabilities, []).filter(({ rights }) => rights.executionMode === "execute"),
            ...trialsOf(someCapabilities, []).filter(({ rights }) => rights.executionMode === "suggest")
          ],
          5
        )
        const { denied, done, written } = yield* expectCells(story, trials, doors.byApproval, (cell) =>
          isAllowed(cell.rights, cell.operation) ? "done" : "denied"
        )
        expect(Math.min(denied, done)).toBeGreaterThan(inTier(6, 20, 20))
        for (const event of written)
          expect(event).toMatchObject({
            actorType: "agent",
            approvedBy: "admin",
            taskId: expect.any(String)
          })
        const tasks: ReadonlyArray<Json> = yield* allOf(story, "/tasks")
        expect(tasks.filter(({ status }) => status === "completed")).toHaveLength(done)
        expect(tasks.filter(({ status }) => status === "pending")).toHaveLength(denied)
        expect(yield* allOf(story, "/denials")).toHaveLength(denied)
      })
    )

    for (const [name, door] of [
      ["a person", doors.byPerson],
      ["a person at the MCP door", doors.byMcp]
    ] as const)
      it.effect(`${name}: the role decides, and no agent's rights do`, () =>
        Effect.gen(function* () {
          for (const role of ["viewer", "editor", "reviewer"] as const) {
            const story = yield* newStoryHere
            const person = yield* asUser(story, role)
            const [trial] = trialsOf([null], [])
            const { written } = yield* expectCells(
              story,
              trial ? [trial] : [],
              (_, trials, ids) => door(person, trials, ids),
              () => (role === "viewer" ? "denied" : "done")
            )
            for (const event of written)
              expect(event).toMatchObject({ actorType: "user", actorId: role, runId: null })
            expect(yield* allOf(story, "/tasks")).toEqual([])
          }
        })
      )

    it.effect("S000-R29 an approval: whoever may make a change by hand may approve it", () =>
      Effect.gen(function* () {
        for (const role of ["viewer", "editor", "reviewer"] as const) {
          const story = yield* newStoryHere
          const person = yield* asUser(story, role)
          const { written } = yield* expectCells(
            story,
            trialsOf([null], []).slice(0, 1),
            doors.byApprovalOf(person),
            () => (role === "viewer" ? "denied" : "done")
          )
          for (const event of written) expect(event).toMatchObject({ actorType: "agent", approvedBy: role })
        }
      })
    )
  })
})
