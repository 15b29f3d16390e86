/**
 * The log does not grow for ever, and forgetting that something was done never does it again.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { ConfigProvider, Effect, Fiber } from "effect"
import { chatLimits } from "../src/chat/limits.ts"
import { runLimits } from "../src/limits.ts"
import { inTime } from "../testing/chat-time.ts"
import { countOf, echo, logOf } from "../testing/context-words.ts"
import { newModel, sendCompletion, sendResponse } from "../testing/openai-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { ask, holding } from "../testing/owner-rows.ts"
import { type Json, newProject, scripted, startServer, type Story } from "../testing/platform.ts"
import { answer, asking, askingModel } from "../testing/question-words.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  endedRuns,
  entriesOf,
  entriesWhen,
  feedOf,
  make,
  runsOf,
  saying,
  silentFor,
  watcher
} from "../testing/story-words.ts"

/** Lets an agent's entries be as old as so many days. */
const age = (story: Story, ids: ReadonlyArray<string>, days: number) =>
  ask(
    story.access,
    `update kb.agent_processing_log set created_at = created_at - make_interval(days => $2::int),
       started_at = started_at - make_interval(days => $2::int), completed_at = completed_at - make_interval(days => $2::int),
       dead_lettered_at = dead_lettered_at - make_interval(days => $2::int) where id = any($1::uuid[])`,
    [ids, days]
  )

/** Says something to an agent as a client of OpenAI's API, and answers the name of the context. */
const saidIn = (
  story: Story,
  { model = "clerk", conversation }: { model?: string; conversation?: string } = {}
) =>
  inTime(
    sendCompletion(
      story,
      { model, messages: [{ role: "user", content: "Hello" }] },
      conversation === undefined ? {} : { "x-tropism-conversation": conversation }
    ),
    50
  ) as Effect.Effect<Json>

const contextOf = (answered: Json): string => answered.headers.get("x-tropism-conversation")

/** Lets the last word in contexts be as old as so many days. */
const lastSaid = (story: Story, names: ReadonlyArray<string>, days: number) =>
  ask(
    story.access,
    "update kb.brought_contexts set due_at = due_at - make_interval(days => $2::int) where context_name = any($1::text[])",
    [names, days]
  )

const statusOf = (story: Story, path: string) => Effect.map(story.ask("GET", path), ({ status }) => status)

const isGone = (story: Story, name: string) => statusOf(story, `/contexts/${name}`)

layer(SharedServer.layer)((it) => {
  describe("Risk: database bloat from the processing log", () => {
    it.effect(
      "S001-K02 ended entries older than 30 days are removed by themselves; younger and live ones stay",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher({ model: saying("Done.") }))
          for (let count = 0; count < 3; count += 1) yield* make(story, "Person")
          const [first, second, third] = yield* entriesWhen(story, agent, 3)
          const busy = yield* story.post("/agents", watcher({ name: "busy", model: silentFor(600_000) }))
          yield* make(story, "Person")
          const [live] = yield* entriesWhen(story, busy, 1, (entry) => entry.status === "processing")
          yield* entriesWhen(story, agent, 4)
          // A run that rests keeps its entry in processing, however much time passes.
          const stopped = { stopped: true, reason: "A holiday" }
          yield* story.send("PUT", `/api/projects/${story.projectId}/kill-switch`, stopped)
          yield* age(story, [first.id, second.id], 31)
          yield* age(story, [third.id], 29)
          yield* age(story, [live.id], 31)
          const left = yield* asTimePasses(
            runLimits.forgetIntervalMs,
            entriesOf(story, agent),
            (found) => found.length === 2
          )
          expect(left.map((entry) => entry.id)).toContain(third.id)
          expect((yield* entriesOf(story, busy)).map((entry) => entry.id)).toEqual([live.id])
          // The runs, which tell what was done, stay.
          expect(yield* runsOf(story, agent)).toHaveLength(4)
        })
    )

    it.effect("S001-K02 failed entries, too, are removed after 30 days, whoever looks at them", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: scripted([{ when: "'neither'" }]) }))
        for (let count = 0; count < 2; count += 1) yield* make(story, "Person")
        const [old, young] = yield* entriesWhen(story, agent, 2)
        expect([old, young]).toMatchObject([
          { status: "failed", deadLetteredAt: expect.any(String) },
          { status: "failed", deadLetteredAt: expect.any(String) }
        ])
        yield* age(story, [old.id], 31)
        yield* age(story, [young.id], 29)
        const left = yield* asTimePasses(
          runLimits.forgetIntervalMs,
          entriesOf(story, agent),
          (found) => found.length === 1
        )
        expect(left.map(({ id }) => id)).toEqual([young.id])
        expect((yield* story.get(`/agents/${agent.id}/dead-letters`)).items).toMatchObject([{ id: young.id }])
      })
    )

    it.effect(
      "S001-K02 what was forgotten is not handled again, neither by this server nor by one that starts",
      () =>
        Effect.gen(function* () {
          const { access } = yield* SharedServer
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher())
          yield* make(story, "Person")
          const [entry] = yield* entriesWhen(story, agent, 1)
          yield* age(story, [entry.id], 31)
          yield* asTimePasses(
            runLimits.forgetIntervalMs,
            entriesOf(story, agent),
            (found) => found.length === 0
          )
          yield* startServer(access)
          // A later event passes through both dispatchers; the forgotten one does not come again.
          const next = yield* make(story, "Person")
          yield* feedOf(story, 2)
          const entries = yield* entriesWhen(story, agent, 1)
          expect(entries.map((found) => found.graphObjectId)).toEqual([next.id])
          expect(yield* endedRuns(story, agent, 2)).toHaveLength(2)
        })
    )
  })

  describe("Contexts of clients that keep their conversations themselves", () => {
    it.effect(
      "are forgotten 31 days after the last word in them; what was done stays, and what is needed",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* newModel(story, "clerk", echo)
          const [old, spoken, young, forked] = yield* Effect.forEach([1, 2, 3, 4], () =>
            Effect.map(saidIn(story), contextOf)
          )
          if (!old || !spoken || !young || !forked) throw new Error("No context")
          yield* story.post(`/contexts/${forked}/fork`, { name: "fork" })
          yield* newModel(story, "asker", askingModel(asking("Which colour?")), { tools: ["run.*"] })
          const asked = yield* saidIn(story, { model: "asker" })
          yield* lastSaid(story, [old, spoken, forked, contextOf(asked)], 32)
          yield* lastSaid(story, [young], 30)
          expect((yield* saidIn(story, { conversation: spoken })).status).toBe(200)
          const [run] = (yield* story.get("/runs?limit=200")).items.filter(
            ({ contextName }: Json) => contextName === old
          )
          expect(
            yield* asTimePasses(chatLimits.forgetIntervalMs, isGone(story, old), (status) => status === 404)
          ).toBe(404)
          for (const name of [spoken, young, forked, "fork", contextOf(asked)])
            expect([name, yield* isGone(story, name)]).toEqual([name, 200])
          expect(countOf(yield* logOf(story, "fork"), "AssistantMessageEvent")).toBe(1)
          // Nobody is told of it or goes on in it, and nothing of what was said is left.
          const listed = (yield* story.get("/contexts?limit=200")).items.map(({ name }: Json) => name)
          expect(listed).toContain(young)
          expect(listed).not.toContain(old)
          expect((yield* saidIn(story, { conversation: old })).body.error).toMatchObject({
            code: "conversation_not_found"
          })
          const spokenTo = yield* story.ask("POST", `/contexts/${old}/events`, {
            type: "UserMessageEvent",
            content: "Again"
          })
          expect(spokenTo.status).toBe(404)
          for (const table of ["context_events", "context_snapshots", "passages", "brought_contexts"])
            expect(
              yield* ask(story.access, `select 1 from kb.${table} where context_name = $1`, [old])
            ).toEqual([])
          // The run tells that it was, and everything that is recorded still follows from the logs.
          expect(yield* story.get(`/runs/${run.id}`)).toMatchObject({ status: "completed", contextName: old })
          expect((yield* story.get(`/runs/${run.id}/events`)).items).toEqual([])
          expect((yield* story.get("/verify")).differences).toEqual([])
          // What waits for a person goes on, and is forgotten in its turn.
          const resting = (yield* story.get("/runs?status=paused")).items[0]
          expect((yield* answer(story, resting, "blue")).status).toBe(200)
        })
    )

    it.effect("are forgotten with their responses; one that was forked, when its forks are", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        const respond = (previous?: Json) =>
          inTime(
            sendResponse(story, {
              model: "clerk",
              input: "Hello",
              ...(previous ? { previous_response_id: previous.body.id } : {})
            }),
            50
          ) as Effect.Effect<Json>
        const first = yield* respond()
        const second = yield* respond(first)
        const forked = yield* respond(first)
        const read = ({ body }: Json) => statusOf(story, `/v1/responses/${body.id}`)
        const untilGone = (response: Json) =>
          asTimePasses(chatLimits.forgetIntervalMs, read(response), (status) => status === 404)
        yield* lastSaid(story, [first, forked].map(contextOf), 32)
        expect(yield* untilGone(forked)).toBe(404)
        expect(yield* read(first)).toBe(200)
        // Needed until then, it was put off by a day.
        yield* lastSaid(story, [contextOf(first)], 2)
        expect(yield* untilGone(first)).toBe(404)
        expect(yield* read(second)).toBe(404)
        expect((yield* respond(first)).body.error.code).toBe("previous_response_not_found")
        expect(
          yield* ask(story.access, "select 1 from kb.responses where project_id = $1", [story.projectId])
        ).toEqual([])
      })
    )

    it.effect("are not gone on in by whoever comes while they are being forgotten", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        const name = contextOf(yield* saidIn(story))
        yield* lastSaid(story, [name], 32)
        const sweeper = yield* holding(story.access, "select kb.forget_brought_contexts(86400, 50)")
        const speaking = yield* Effect.forkChild(saidIn(story, { conversation: name }))
        yield* whenWaiting(story.access, 1)
        yield* Effect.orDie(sweeper.query("commit"))
        expect((yield* Fiber.join(speaking)).body.error).toMatchObject({ code: "conversation_not_found" })
        expect((yield* story.get("/verify")).differences).toEqual([])
      }).pipe(Effect.scoped)
    )
  })

  describe("Occurrences of foreign events", () => {
    it.effect(
      "are removed after 30 days, unless an entry is about them or their source might tell them again",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher({ model: silentFor(600_000) }))
          yield* make(story, "Person")
          const [live] = yield* entriesWhen(story, agent, 1, (entry) => entry.status === "processing")
          const source = crypto.randomUUID()
          yield* ask(
            story.access,
            `insert into kb.mcp_event_sources (id, project_id, server_name, name, arguments, arguments_digest)
             values ($1, $2, 'orders', 'order.placed', '{}', 'x')`,
            [source, story.projectId]
          )
          const told = (name: string, createdDays: number, happenedDays: number) =>
            Effect.map(
              ask(
                story.access,
                `insert into kb.mcp_occurrences (id, project_id, source_id, number, event_id, happened_at, created_at)
                 values (gen_random_uuid(), $1, $2, 1, $3, now() - make_interval(days => $4::int), now() - make_interval(days => $5::int))
                 returning id`,
                [story.projectId, source, name, happenedDays, createdDays]
              ),
              ([row]) => row?.[0]
            )
          yield* told("old", 31, 31)
          yield* told("young", 29, 31)
          yield* told("of a clock that is ahead", 31, 29)
          const handled = yield* told("handled", 31, 31)
          yield* ask(
            story.access,
            "update kb.agent_processing_log set entity_type = 'mcpEvent', event_type = 'occurred', event_id = null, occurrence_id = $2 where id = $1",
            [live.id, handled]
          )
          const left = Effect.map(
            ask(story.access, "select event_id from kb.mcp_occurrences where source_id = $1 order by 1", [
              source
            ]),
            (rows) => rows.map(([name]) => name)
          )
          expect(yield* asTimePasses(runLimits.forgetIntervalMs, left, (names) => names.length < 4)).toEqual([
            "handled",
            "of a clock that is ahead",
            "young"
          ])
        })
    )
  })
})

it.effect("S001-K02 one setting says how long entries are kept, for all of them", () =>
  Effect.gen(function* () {
    const access = yield* freshDatabase
    const story = yield* newProject(yield* startServer(access), access)
    const done = yield* story.post("/agents", watcher())
    const failed = yield* story.post(
      "/agents",
      watcher({ name: "failing", model: scripted([{ when: "'neither'" }]) })
    )
    for (let count = 0; count < 2; count += 1) yield* make(story, "Person")
    const entries = [...(yield* entriesWhen(story, done, 2)), ...(yield* entriesWhen(story, failed, 2))]
    const old = entries.filter((_, index) => index % 2 === 0).map(({ id }) => id)
    const young = entries.filter((_, index) => index % 2 === 1).map(({ id }) => id)
    yield* age(story, old, 6)
    yield* age(story, young, 4)
    const left = Effect.map(Effect.all([entriesOf(story, done), entriesOf(story, failed)]), (found) =>
      found.flat().map(({ id }) => id)
    )
    expect(yield* asTimePasses(runLimits.forgetIntervalMs, left, ({ length }) => length === 2)).toEqual(young)
  }).pipe(
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ TROPISM_RETENTION_DAYS: "5" }))),
    Effect.scoped
  )
)
