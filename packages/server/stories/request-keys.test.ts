/**
 * A POST that is sent again under its Idempotency-Key has one effect and one answer, at every door.
 */
import { describe, expect, layer } from "@effect/vitest"
import { ownNames } from "@tropism/api/idempotency"
import { Effect } from "effect"
import { importFile } from "../testing/import-words.ts"
import {
  agentDoors,
  graphDoors,
  type KeyedCase,
  type KeyedDoor,
  peopleDoors,
  runDoors,
  taskDoors
} from "../testing/keyed-doors.ts"
import { ask } from "../testing/owner-rows.ts"
import type { Answer, Json, Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { inTier } from "../testing/tier.ts"
import { asUser } from "../testing/token-words.ts"

const sendAt = (story: Story, { body, headers = {}, path }: Omit<KeyedCase, "rows">, key: string) =>
  story.send("POST", path.startsWith("/api") ? path : `/api/projects/${story.projectId}${path}`, body, {
    ...headers,
    "idempotency-key": key
  })

const isRepeat = ({ headers }: Answer): boolean => headers.get("idempotency-replayed") === "true"

/** What comes of many at once with one key, and of one more. */
const shown = Effect.fnUntraced(function* ({ arrange, id }: KeyedDoor, together: number) {
  const story = yield* newStoryHere
  const wanted = yield* arrange(story)
  const count = Effect.map(
    ask(story.access, `select count(*)::int from ${wanted.rows}`, [story.projectId]),
    ([row]) => Number(row?.[0])
  )
  const before = yield* count
  const send = sendAt(story, wanted, `of:${id}`)
  const answers = yield* Effect.all(
    Array.from({ length: together }, () => send),
    {
      concurrency: "unbounded"
    }
  )
  const repeat = yield* send
  const all = [...answers, repeat]
  return {
    id,
    refused: all.filter(({ status }) => status >= 300).map(({ body }) => body),
    bodies: new Set(all.map(({ body }) => JSON.stringify(body))).size,
    statuses: new Set(all.map(({ status }) => status)).size,
    first: answers.filter((answer) => !isRepeat(answer)).length <= 1,
    isRepeat: isRepeat(repeat),
    effects: (yield* count) - before
  }
})

const asItShould = ({ id }: KeyedDoor) => ({
  id,
  refused: [],
  bodies: 1,
  statuses: 1,
  first: true,
  isRepeat: true,
  effects: 1
})

const expectEach = Effect.fnUntraced(function* (doors: ReadonlyArray<KeyedDoor>, together: number) {
  const seen = []
  for (const door of doors) seen.push(yield* Effect.scoped(shown(door, together)))
  expect(seen).toEqual(doors.map(asItShould))
})

/** Every POST of the contract but those that have a name of their own, as its document says. */
const postsOf = (document: Json): ReadonlyArray<string> =>
  Object.values<Json>(document.paths)
    .flatMap((path) => (path.post ? [path.post] : []))
    .filter(({ parameters }) => parameters.some(({ name }: Json) => name === "idempotency-key"))
    .map(({ operationId }) => operationId)
    .toSorted()

const groups = {
  "the graph": graphDoors,
  agents: agentDoors,
  "runs and talks": runDoors,
  tasks: taskDoors,
  people: peopleDoors
}

const object = { path: "/objects", body: { type: "A", properties: { a: 1, b: [2] } } }

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Idempotency-Key", () => {
    it.effect("the contract says it of every POST, and each is shown below or has a name of its own", () =>
      Effect.gen(function* () {
        const { doors } = yield* SharedServer
        const document = (yield* doors.send("GET", "/openapi.json")).body
        const listed = Object.values(groups).flatMap((group) => group.map(({ id }) => id))
        expect(listed.toSorted()).toEqual(postsOf(document))
        const posts = Object.values<Json>(document.paths).filter(({ post }) => post)
        expect(posts.length).toBe(listed.length + Object.keys(ownNames).length)
      })
    )

    for (const [name, group] of Object.entries(groups))
      it.effect(
        `of ${name}: many at once and a repeat have one effect and are told the same, byte for byte`,
        () => expectEach(group, inTier(2, 10, 50)),
        120_000
      )

    it.effect("fifty identical POSTs at once make one object and are told the same", () =>
      expectEach(
        graphDoors.filter(({ id }) => id === "objects.create"),
        50
      )
    )
  })

  describe("A key", () => {
    it.effect("has 1 to 255 visible ASCII characters, or the header is named in a 422", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        for (const key of ["k".repeat(256), "two words", "tab\there", "\u00e9"])
          expectProblem(yield* sendAt(story, object, key), 422, "idempotency-key")
        expect((yield* sendAt(story, object, `!${"k".repeat(253)}~`)).status).toBe(201)
        expect((yield* story.get("/objects")).items).toHaveLength(1)
      })
    )

    it.effect("takes one request: another body or query is refused, another way to write it is not", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const first = yield* sendAt(story, object, "k")
        expect(isRepeat(first)).toBe(false)
        const rewritten = '{ "properties": {"b":[2.0], "a": 1}, "type": "A" }'
        const again = yield* sendAt(
          story,
          { ...object, body: rewritten, headers: { "content-type": "application/json" } },
          "k"
        )
        expect([again.status, again.body, isRepeat(again)]).toEqual([201, first.body, true])
        expect(again.headers.get("etag")).toBe(first.headers.get("etag"))
        const other = { ...object, body: { type: "A", properties: { a: 2 } } }
        const refusal = yield* sendAt(story, other, "k")
        expectProblem(refusal, 422, "idempotency-key")
        expect(isRepeat(refusal)).toBe(false)
        expect((yield* story.get("/objects")).items).toHaveLength(1)
      })
    )

    it.effect("is the token's own, the address's own and the project's own", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [one, other] = [yield* asUser(story, "editor"), yield* asUser(story, "editor")]
        const elsewhere = yield* newStoryHere
        const made = yield* Effect.forEach([story, one, other, elsewhere], (from) =>
          sendAt(from, object, "k")
        )
        expect(made.map(isRepeat)).toEqual([false, false, false, false])
        const todo = yield* sendAt(story, { path: "/tasks", body: { title: "Milk" } }, "k")
        expect([todo.status, isRepeat(todo)]).toEqual([201, false])
        expect((yield* story.get("/objects")).items).toHaveLength(3)
      })
    )

    it.effect("keeps no refusal: the same request is judged anew", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const wanted = { ...object, body: { type: "A", key: "one" } }
        const there = yield* story.post("/objects", wanted.body)
        expectProblem(yield* sendAt(story, wanted, "k"), 409)
        yield* story.delete(`/objects/${there.id}`)
        const now = yield* sendAt(story, wanted, "k")
        expect([now.status, isRepeat(now)]).toEqual([201, false])
      })
    )

    it.effect("tells a secret again to whoever has the token, and nobody finds it in the database", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/members", { userId: "ada", role: "editor" })
        const wanted = { path: "/tokens", body: { name: "mine", userId: "ada" } }
        const { token } = (yield* sendAt(story, wanted, "k")).body
        expect(token).toMatch(/^tropism_/)
        expect((yield* sendAt(story, wanted, "k")).body.token).toBe(token)
        const kept = yield* ask(
          story.access,
          "select outcome::text from kb.idempotency_keys where project_id = $1",
          [story.projectId]
        )
        expect(kept).toHaveLength(1)
        expect(kept[0]?.[0]).toMatch(/^"v1\./)
        expect(JSON.stringify(kept)).not.toContain(token)
      })
    )

    it.effect("is refused where a file has an id of its own instead, and nothing is done", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/objects", { type: "A", properties: {} })
        const dump = (yield* story.send("GET", `/api/projects/${story.projectId}/dump`)).body
        const lines = '{"type":"A","properties":{}}\n'
        const projects = Effect.map(
          story.send("GET", "/api/projects?limit=200"),
          ({ body }) => body.items.length
        )
        const before = yield* projects
        const headers = { "content-type": "application/octet-stream" }
        for (const [path, body, instead] of [
          ["/import?format=jsonl", lines, "resume"],
          ["/api/restore", dump, "id"]
        ] as const) {
          const refusal = yield* sendAt(story, { path, body, headers }, "k")
          expectProblem(refusal, 400, "idempotency-key")
          expect(refusal.body.detail).toContain(`?${instead}=`)
        }
        expect((yield* story.get("/objects")).items).toHaveLength(1)
        expect(yield* projects).toBe(before)
        const keyless = yield* importFile(story, lines, {}, "?format=jsonl")
        expect([keyless.status, (yield* story.get("/objects")).items.length]).toEqual([200, 2])
      })
    )

    it.effect("who may not do it any more is not told again what came of it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* asUser(story, "editor", [story.projectId], "ada")
        expect((yield* sendAt(ada, object, "k")).status).toBe(201)
        yield* story.patch("/members/ada", { role: "viewer" })
        expectProblem(yield* sendAt(ada, object, "k"), 403)
      })
    )
  })
})
