/**
 * Events that wait to be handled together: until their object is quiet, or
 * until there are enough of them. The server keeps real time here.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { limitChains } from "../testing/chain-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { ModelsOnTheWire } from "../testing/model-on-the-wire.ts"
import { ask, holding } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, scripted, startServer, type Story } from "../testing/platform.ts"
import { whileServing } from "../testing/restarts.ts"
import {
  calling,
  change,
  endedRuns,
  entriesOf,
  entriesWhen,
  feedOf,
  make,
  runsOf,
  saying,
  versionsOf,
  watcher
} from "../testing/story-words.ts"

const everything = { objectTypes: ["Person"], events: ["created", "updated", "deleted"] }

/** Says which versions its templates see: the events, the newest and the object. */
const witness = {
  prompt: `{% for each in events %}{{ each.version }} {% endfor %}newest {{ event.version }} of {{ object.properties.name }}`,
  model: saying("{{ message }}")
}

const agentThat = (reaction: Record<string, unknown>, overrides: Record<string, unknown> = {}) =>
  watcher({ reactionConfig: { ...everything, ...reaction }, ...witness, ...overrides })

const msBetween = (from: string, to: string): number => Date.parse(to) - Date.parse(from)

/** Lets nothing that waits for an agent begin, however long it takes to come, until this is committed. */
const heldBack = ({ access }: Pick<Story, "access">, { id }: Json) =>
  holding(access, `select pg_advisory_xact_lock(hashtextextended('tropism.release.${id}', 0))`)

const newStoryHere = Effect.flatMap(ModelsOnTheWire, ({ newStory }) => newStory)

/** A model that says nothing before it is let go. */
const heldModel = (say: string) =>
  Effect.flatMap(ModelsOnTheWire, ({ model }) => model([{ say }], { isHeld: true }))

layer(ModelsOnTheWire.layer, { excludeTestServices: true })((it) => {
  describe("Risk: high-frequency events overwhelm agents", () => {
    it.effect(
      "S001-F01, K03 events of an object that is not quiet become one run, which gets all of them",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", agentThat({ debounceMs: 1_500 }))
          const held = yield* heldBack(story, agent)
          const person = yield* make(story, "Person", { name: "Ada" })
          yield* change(story, person, { name: "Grace" }, { name: "Edith" }, { name: "Joan" })
          const waiting = yield* entriesWhen(story, agent, 4, (entry) => entry.status === "pending")
          for (const entry of waiting) {
            expect(entry).toMatchObject({ runId: null, reason: expect.stringContaining("debounceMs") })
            expect(msBetween(entry.createdAt, entry.dueAt)).toBeGreaterThanOrEqual(1_499)
          }
          yield* held.query("commit")
          const [run] = yield* endedRuns(story, agent, 1)
          expect([versionsOf(run), run.summary]).toEqual([[1, 2, 3, 4], "1 2 3 4 newest 4 of Joan"])
          expect(msBetween(waiting[3].createdAt, run.createdAt)).toBeGreaterThanOrEqual(1_500)
          const entries = yield* entriesWhen(story, agent, 4)
          for (const entry of entries)
            expect(entry).toMatchObject({ status: "completed", runId: run.id, reason: null, dueAt: null })
          expect(yield* runsOf(story, agent)).toHaveLength(1)
        })
    )

    it.effect("S001-F01 a steady stream is handled at the latest maxWaitMs after the first event", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          agentThat({ debounceMs: 1_500, maxWaitMs: 1_500, concurrencyStrategy: "parallel" })
        )
        const person = yield* make(story, "Person", { count: 0 })
        let count = 0
        const changeAndLook = Effect.suspend(() =>
          Effect.andThen(change(story, person, { count: ++count }), runsOf(story, agent))
        )
        // The object is never quiet: but for maxWaitMs there would be no run.
        const [first] = yield* eventually(changeAndLook, (runs) => runs.length >= 1)
        const [oldest] = yield* entriesOf(story, agent)
        expect(msBetween(oldest.createdAt, first.createdAt)).toBeGreaterThanOrEqual(1_499)
        // All that had come by then and nothing twice; what came later is the next run's.
        yield* change(story, person, { count: ++count })
        yield* entriesWhen(story, agent, count + 1)
        const runs = yield* endedRuns(story, agent, 2)
        expect(runs.flatMap(versionsOf)).toEqual(Array.from({ length: count + 1 }, (_, index) => index + 1))
      })
    )

    /** What becomes of changes while a run is at work on their object, and of all when it has ended. */
    const are = (status: string) => (changes: ReadonlyArray<Json>) =>
      changes.every((entry) => entry.status === status)
    /** They wait for another reason than before. */
    const waitBehind = ([first]: ReadonlyArray<Json>, before: unknown) =>
      first.status === "pending" && first.reason !== before
    const whenBusy = [
      ["skip", are("skipped"), ["completed", "skipped", "skipped"], [[1]]],
      ["parallel", are("processing"), ["completed", "completed", "completed"], [[1], [2, 3]]],
      ["latest", waitBehind, ["completed", "completed", "completed"], [[1], [2, 3]]],
      ["queue", waitBehind, ["completed", "completed", "completed"], [[1], [2, 3]]]
    ] as const
    for (const [concurrencyStrategy, isSo, statuses, versions] of whenBusy) {
      it.effect(
        `S001-F01 debounced events of an object at work, with the strategy ${concurrencyStrategy}`,
        () =>
          Effect.gen(function* () {
            const story = yield* newStoryHere
            const { config: model, letGo } = yield* heldModel("Done.")
            const agent = yield* story.post(
              "/agents",
              agentThat({ debounceMs: 1_500, concurrencyStrategy }, { model })
            )
            const person = yield* make(story, "Person")
            yield* entriesWhen(story, agent, 1, (entry) => entry.status === "processing")
            const held = yield* heldBack(story, agent)
            yield* change(story, person, { name: "Grace" }, { name: "Edith" })
            const [, debounced] = yield* eventually(entriesOf(story, agent), ({ length }) => length === 3)
            yield* held.query("commit")
            yield* eventually(entriesOf(story, agent), (all) => isSo(all.slice(1), debounced?.reason))
            yield* letGo
            const entries = yield* entriesWhen(story, agent, 3)
            expect(entries.map((entry) => entry.status)).toEqual(statuses)
            const runs = yield* endedRuns(story, agent, versions.length)
            expect(runs.map(versionsOf)).toEqual(versions)
            const [first, second] = runs
            if (second !== undefined)
              expect(msBetween(first.completedAt, second.startedAt) >= 0).toBe(
                concurrencyStrategy !== "parallel"
              )
          })
      )
    }

    it.effect("S001-F01 a debounce that is taken away lets go what waits, by the new rule", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", agentThat({ debounceMs: 3_600_000 }))
        const person = yield* make(story, "Person")
        yield* change(story, person, { name: "Grace" })
        yield* entriesWhen(story, agent, 2, (entry) => entry.status === "pending")
        yield* story.patch(`/agents/${agent.id}`, { reactionConfig: { ...everything, debounceMs: 0 } })
        const [run] = yield* endedRuns(story, agent, 1)
        expect([versionsOf(run), run.agentVersion]).toEqual([[1, 2], 2])
      })
    )
  })

  describe("Work that waits behind other work of its object, when the rule changes", () => {
    const runsThen = [
      ["skip", [[1, 2, 3]]],
      ["parallel", [[1], [2], [3]]],
      ["latest", [[1, 2, 3]]],
      ["queue", [[1], [2], [3]]]
    ] as const
    for (const [concurrencyStrategy, versions] of runsThen) {
      it.effect(`S001-F01 follows the changed rule too: ${concurrencyStrategy}`, () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post(
            "/agents",
            agentThat({ debounceMs: 3_600_000, concurrencyStrategy })
          )
          const person = yield* make(story, "Person")
          yield* change(story, person, { name: "Grace" }, { name: "Edith" })
          yield* entriesWhen(story, agent, 3, (entry) => entry.status === "pending")
          yield* story.patch(`/agents/${agent.id}`, {
            reactionConfig: { ...everything, concurrencyStrategy }
          })
          const entries = yield* entriesWhen(story, agent, 3)
          expect(entries.map((entry) => entry.status)).toEqual(["completed", "completed", "completed"])
          expect((yield* runsOf(story, agent)).map(versionsOf).toSorted()).toEqual(versions)
        })
      )
    }
  })

  describe("Future: optional batching of high-frequency events", () => {
    it.effect(
      "S001-F01 a run gets a full batch at once; fewer events wait, and no longer than maxWaitMs",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const rule = { batchSize: 3, maxWaitMs: 3_600_000, concurrencyStrategy: "parallel" }
          const agent = yield* story.post("/agents", agentThat(rule))
          const people = yield* Effect.forEach(["a", "b", "c", "d"], (name) =>
            make(story, "Person", { name })
          )
          const [full] = yield* endedRuns(story, agent, 1)
          expect(full.trigger.events.map((event: Json) => event.objectId)).toEqual(
            people.slice(0, 3).map((person) => person.id)
          )
          const [, , , last] = yield* entriesWhen(story, agent, 4, () => true)
          expect(last).toMatchObject({ status: "pending", reason: expect.stringContaining("batchSize") })
          yield* story.patch(`/agents/${agent.id}`, {
            reactionConfig: { ...everything, ...rule, maxWaitMs: 1_500 }
          })
          const [, rest] = yield* endedRuns(story, agent, 2)
          expect(rest.trigger.events.map((event: Json) => event.objectId)).toEqual([people[3].id])
          expect(msBetween(last.createdAt, rest.createdAt)).toBeGreaterThanOrEqual(1_499)
        })
    )

    it.effect("S001-F01 a batch begins earlier when the agent has heard nothing for debounceMs", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          agentThat({ batchSize: 100, debounceMs: 1_500, maxWaitMs: 3_600_000 })
        )
        const held = yield* heldBack(story, agent)
        yield* Effect.forEach(["a", "b", "c", "d"], (name) => make(story, "Person", { name }))
        yield* entriesWhen(story, agent, 4, (entry) => entry.status === "pending")
        yield* held.query("commit")
        const [run] = yield* endedRuns(story, agent, 1)
        expect(run.trigger.events).toHaveLength(4)
        expect(yield* runsOf(story, agent)).toHaveLength(1)
      })
    )

    it.effect("S001-F01 a batch takes a place in the chain of every root event, once", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", agentThat({ batchSize: 2, maxWaitMs: 60_000 }))
        yield* make(story, "Person")
        yield* make(story, "Person")
        const events = yield* feedOf(story, 2)
        const [run] = yield* endedRuns(story, agent, 1)
        expect(run).toMatchObject({ rootEventId: events[1].id, depth: 0 })
        for (const event of events)
          expect(yield* story.get(`/chains/${event.id}`)).toMatchObject({ use: { runs: 1 } })
      })
    )

    it.effect("S001-K01 a loop through batches ends at the depth cap, which says so", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* limitChains(story, { maxDepth: 3 })
        const create = { tool: "create_object", arguments: { type: "Person", properties: {} } }
        const agent = yield* story.post(
          "/agents",
          agentThat(
            { batchSize: 2, maxWaitMs: 3_600_000, ignoreSelfTriggered: false },
            { model: calling(create, create), executionMode: "execute" }
          )
        )
        for (const name of ["Ada", "Grace"]) yield* make(story, "Person", { name })
        // Two, and two at each depth: the last two lie too deep.
        const events = yield* eventually(feedOf(story, 8), (seen) => seen[7].refusals.length === 1)
        expect(events.map((event) => event.depth)).toEqual([0, 0, 1, 1, 2, 2, 3, 3])
        for (const event of events.slice(6))
          expect(event.refusals).toMatchObject([{ rule: "chainDepth", reason: expect.any(String) }])
        expect(yield* endedRuns(story, agent, 3)).toHaveLength(3)
      })
    )

    it.effect("S001-K01 of a batch, only what belongs to a full chain is left out, and says so", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* limitChains(story, { maxRuns: 1 })
        const note = (properties: Record<string, unknown>) => ({
          tool: "create_object",
          arguments: { type: "Note", properties }
        })
        yield* story.post(
          "/agents",
          agentThat({ concurrencyStrategy: "parallel" }, { model: calling(note({})) })
        )
        const reader = yield* story.post(
          "/agents",
          agentThat(
            { objectTypes: ["Note"], batchSize: 2, maxWaitMs: 60_000 },
            { name: "reader", model: scripted([{ say: "Read." }]) }
          )
        )
        yield* make(story, "Person")
        yield* feedOf(story, 2)
        yield* make(story, "Note")
        const entries = yield* entriesWhen(story, reader, 2)
        expect(entries).toMatchObject([
          { status: "skipped", runId: null, reason: expect.any(String) },
          { status: "completed" }
        ])
        const [run] = yield* endedRuns(story, reader, 1)
        expect(run.trigger.events).toHaveLength(1)
        const [, refused] = yield* feedOf(story, 3)
        expect(refused.refusals).toMatchObject([{ agentId: reader.id, rule: "chainRuns" }])
      })
    )

    it.effect("S001-K01 what waits behind an event whose chain is full goes on without it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* limitChains(story, { maxRuns: 1 })
        const note = { tool: "create_object", arguments: { type: "Note", properties: { by: "writer" } } }
        yield* story.post("/agents", agentThat({}, { model: calling(note) }))
        const { config: model, letGo } = yield* heldModel("Read.")
        const reader = yield* story.post(
          "/agents",
          agentThat(
            {
              objectTypes: ["Note"],
              concurrencyStrategy: "queue",
              batchSize: 2,
              maxWaitMs: 500,
              maxConcurrency: 1
            },
            { name: "reader", model }
          )
        )
        // While the reader is at its first note three more events wait: a batch, and one behind the last of that, whose chain is full.
        yield* make(story, "Note", { name: "the first" })
        yield* entriesWhen(story, reader, 1, ({ status }) => status === "processing")
        yield* make(story, "Note")
        yield* make(story, "Person")
        const [, , , written] = yield* feedOf(story, 4)
        yield* change(story, { id: written.entityId }, { by: "somebody" })
        // Each of them has waited for as long as it may.
        const due = `select from kb.agent_processing_log where agent_id = $1 and status = 'pending'
          and created_at < now() - interval '500 ms'`
        yield* eventually(ask(story.access, due, [reader.id]), ({ length }) => length === 3)
        yield* letGo
        yield* eventually(
          entriesOf(story, reader),
          (seen) => seen.length === 4 && seen[1].status === "completed"
        )
        const parked = "select id from kb.agent_processing_log where agent_id = $1 and parked"
        expect(yield* ask(story.access, parked, [reader.id])).toEqual([])
        const entries = yield* entriesWhen(story, reader, 4)
        expect(entries).toMatchObject([
          { status: "completed" },
          { status: "completed" },
          { status: "skipped", runId: null, reason: expect.any(String) },
          { status: "completed" }
        ])
      })
    )
  })
})

describe("What waits when the server stops", () => {
  it.live("S001-F01 waits on in its rows, and begins where a server runs when it is due", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const { projectId } = yield* Effect.scoped(
        Effect.flatMap(startServer(access), (doors) => newProject(doors, access))
      )
      const agent = yield* whileServing(access, projectId, (story) =>
        story.post("/agents", agentThat({ debounceMs: 1_500, maxWaitMs: 60_000 }))
      )
      const held = yield* heldBack({ access }, agent)
      const waiting = yield* whileServing(access, projectId, (story) =>
        Effect.gen(function* () {
          const person = yield* make(story, "Person", { name: "Ada" })
          yield* change(story, person, { name: "Grace" })
          return yield* entriesWhen(story, agent, 2, (entry) => entry.status === "pending")
        })
      )
      yield* held.query("commit")
      const [run] = yield* whileServing(access, projectId, (story) => endedRuns(story, agent, 1))
      expect([versionsOf(run), run.status, run.summary]).toEqual([
        [1, 2],
        "completed",
        "1 2 newest 2 of Grace"
      ])
      expect(msBetween(waiting[1].createdAt, run.createdAt)).toBeGreaterThanOrEqual(1_499)
    })
  )
})
