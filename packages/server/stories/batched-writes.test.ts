/**
 * Many people write at once: their writes are committed together, and each is answered, refused and recorded as if it were alone.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { DispatchPauseMs } from "../src/reactions/dispatcher.ts"
import { ask, holding } from "../testing/owner-rows.ts"
import { type Answer, eventually, newStory, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { make } from "../testing/story-words.ts"
import { inTier } from "../testing/tier.ts"

const clients = 16
const rounds = inTier(12, 12, 60)

/** A write, and what is asked of its answer. */
interface Write {
  readonly kind: string
  readonly act: Effect.Effect<Answer>
}

const send = (story: Story, method: string, path: string, body?: unknown, ifMatch?: string) =>
  story.send(
    method,
    `/api/projects/${story.projectId}${path}`,
    body,
    ifMatch === undefined ? {} : { "if-match": ifMatch }
  )

/** Writes of one round: some alone, some in each other's way, some that are refused in any case. */
const writesOf = Effect.fnUntraced(function* (story: Story, round: number) {
  const [a, b, c, lone, end] = yield* Effect.forEach(["a", "b", "c", "lone", "end"], (name) =>
    make(story, "Base", { name, round })
  )
  yield* story.post("/relationships", { type: "HAS", fromId: c.id, toId: end.id })
  const write = (
    kind: string,
    ...asked: Parameters<typeof send> extends [Story, ...infer Rest] ? Rest : never
  ) => ({ kind, act: send(story, ...asked) }) satisfies Write
  const missing = "01990000-0000-7000-8000-0000000000ff"
  const writes: ReadonlyArray<Write> = [
    write("new", "POST", "/objects", { type: "New", properties: { round } }),
    write("new", "POST", "/objects", { type: "New", properties: { round, nested: { deep: [1, "x"] } } }),
    ...Array.from({ length: 3 }, (_, n) =>
      write("keyed", "POST", "/objects", { type: "Keyed", key: `key-${round}`, properties: { n } })
    ),
    ...Array.from({ length: 3 }, (_, n) =>
      write("matched", "PATCH", `/objects/${a.id}`, { properties: { n } }, `"1"`)
    ),
    ...Array.from({ length: 3 }, (_, n) =>
      write("patched", "PATCH", `/objects/${b.id}`, { properties: { [`n${n}`]: n } })
    ),
    ...Array.from({ length: 2 }, () => write("deleted", "DELETE", `/objects/${lone.id}`)),
    write("cascade", "DELETE", `/objects/${c.id}`),
    ...Array.from({ length: 2 }, () =>
      write("related", "POST", "/relationships", { type: "KNOWS", fromId: a.id, toId: b.id })
    ),
    write("bad", "POST", "/objects", { type: "New", properties: { text: "\u0000" } }),
    write("self", "POST", "/relationships", { type: "KNOWS", fromId: a.id, toId: a.id }),
    write("missing", "PATCH", `/objects/${missing}`, { properties: {} }),
    write("noEnd", "POST", "/relationships", { type: "KNOWS", fromId: a.id, toId: missing })
  ]
  return writes
})

/** How often each kind of write was answered with which status. */
const tally = (answered: ReadonlyArray<readonly [Write, Answer]>) => {
  const counts: Record<string, Record<number, number>> = {}
  for (const [{ kind }, { status }] of answered) {
    const ofKind = (counts[kind] ??= {})
    ofKind[status] = (ofKind[status] ?? 0) + 1
  }
  return counts
}

const times = (counts: Record<string, Record<number, number>>) =>
  Object.fromEntries(
    Object.entries(counts).map(([kind, ofKind]) => [
      kind,
      Object.fromEntries(Object.entries(ofKind).map(([status, count]) => [status, count * rounds]))
    ])
  )

const eventsOf = (story: Story) =>
  ask(
    story.access,
    `select entity_id, version, type, xmin::text from kb.graph_events where project_id = $1 order by seq`,
    [story.projectId]
  )

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Writes of many clients at once", () => {
    it.effect("are answered each as if it were alone, and each change has one event in order", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const writes = (yield* Effect.forEach(
          Array.from({ length: rounds }, (_, n) => n),
          (round) => writesOf(story, round)
        )).flat()
        const before = (yield* eventsOf(story)).length
        const answered = yield* Effect.forEach(
          writes,
          (write) => Effect.map(write.act, (answer) => [write, answer] as const),
          { concurrency: clients }
        )
        expect(tally(answered)).toEqual(
          times({
            new: { 201: 2 },
            keyed: { 201: 1, 409: 2 },
            matched: { 200: 1, 412: 2 },
            patched: { 200: 3 },
            deleted: { 204: 1, 404: 1 },
            cascade: { 204: 1 },
            related: { 201: 1, 409: 1 },
            bad: { 422: 1 },
            self: { 422: 1 },
            missing: { 404: 1 },
            noEnd: { 422: 1 }
          })
        )
        for (const [, answer] of answered) if (answer.status >= 400) expectProblem(answer, answer.status)

        const events = (yield* eventsOf(story)).slice(before)
        const told = new Map(events.map(([id, version]) => [`${id} ${version}`, true]))
        // Two deletions of each round say nothing of their version, and one of them takes a relationship along.
        const written = answered.filter(([, { body, status }]) => status < 300 && body !== null)
        const versions = written.map(([, { body }]) => `${body.id} ${body.version}`)
        expect(versions.filter((version) => !told.has(version))).toEqual([])
        expect(new Set(versions).size).toBe(versions.length)
        expect(events).toHaveLength(versions.length + 3 * rounds)
        expect(told.size).toBe(events.length)

        // The versions of an entity follow one another, in the order of the events and in its row.
        const last = new Map<unknown, number>()
        const all = yield* eventsOf(story)
        for (const [id, version] of all) {
          expect([id, version]).toEqual([id, (last.get(id) ?? 0) + 1])
          last.set(id, Number(version))
        }
        const rows = yield* ask(
          story.access,
          `select id, version from kb.graph_objects where project_id = $1
           union all select id, version from kb.graph_relationships where project_id = $1`,
          [story.projectId]
        )
        expect(new Map(rows.map(([id, version]) => [id, version]))).toEqual(last)

        // Fewer transactions than changes: they were committed together.
        expect(new Set(events.map(([, , , transaction]) => transaction)).size).toBeLessThan(events.length / 2)
      })
    )

    it.effect("do not wait for what another transaction holds, nor does the one that needs it fail", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const [held, free] = [yield* make(story, "A"), yield* make(story, "B")]
          const holder = yield* holding(
            story.access,
            `select from kb.graph_objects where id = '${held.id}' for update`,
            `insert into kb.graph_objects (id, project_id, type, key, properties, version)
             values (gen_random_uuid(), '${story.projectId}', 'Thing', 'coming', '{}', 1)`
          )
          const waiting = yield* Effect.forEach(
            [
              story.ask("PATCH", `/objects/${held.id}`, { properties: { n: 1 } }),
              story.ask("POST", "/objects", { type: "Thing", key: "coming" })
            ],
            (asked) => Effect.forkChild(asked, { startImmediately: true })
          )
          const others = yield* Effect.all(
            [
              story.ask("PATCH", `/objects/${free.id}`, { properties: { n: 1 } }),
              story.ask("POST", "/objects", { type: "Thing", key: "other" })
            ],
            { concurrency: "unbounded" }
          )
          expect(others.map(({ status }) => status)).toEqual([200, 201])
          expect(waiting.map((fiber) => fiber.pollUnsafe())).toEqual([undefined, undefined])
          yield* Effect.orDie(holder.query("rollback"))
          const answers = yield* Effect.forEach(waiting, Fiber.join)
          expect(answers.map(({ status }) => status)).toEqual([200, 201])
        })
      )
    )

    it.effect("find no project where there is none", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const nowhere = "01990000-0000-7000-8000-0000000000aa"
        for (const [method, path, body] of [
          ["POST", "/objects", { type: "A" }],
          ["PATCH", `/objects/${nowhere}`, { properties: {} }],
          ["DELETE", `/relationships/${nowhere}`]
        ] as const) {
          const answer = yield* story.send(method, `/api/projects/${nowhere}${path}`, body)
          expectProblem(answer, 404)
          // The same as for a project's other addresses, and nothing of the object.
          expect(answer.body.detail).toBe(
            (yield* story.send("GET", `/api/projects/${nowhere}/objects`)).body.detail
          )
        }
      })
    )
  })
})

describe("Events that follow a round of dispatch", () => {
  it.live("gather until its pause is over, and are dispatched together", () =>
    Effect.scoped(
      Effect.gen(function* () {
        // The round takes its instant from the beginning of its transaction, so events of one round have the same.
        const story = yield* Effect.provideService(newStory, DispatchPauseMs, 3_000)
        const roundsOf = ask(
          story.access,
          "select count(*)::int, count(distinct dispatched_at)::int from kb.graph_events where dispatched_at is not null and object_type = 'Thing'"
        )
        yield* make(story, "Thing")
        yield* eventually(roundsOf, ([row]) => row?.[0] === 1)
        yield* Effect.forEach([1, 2, 3], () => make(story, "Thing"))
        expect(yield* eventually(roundsOf, ([row]) => row?.[0] === 4)).toEqual([[4, 2]])
      })
    )
  )
})
