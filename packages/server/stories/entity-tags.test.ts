/**
 * Whoever has read something is told whether it is still the same, and no more.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { newAssistant } from "../testing/chat-words.ts"
import { addEvent, echo, newContext } from "../testing/context-words.ts"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { make } from "../testing/story-words.ts"
import { creating, suggested } from "../testing/suggestion-words.ts"
import { expectProblem } from "../testing/problem-words.ts"

const read = (story: Story, path: string, tag?: string) =>
  story.send(
    "GET",
    `/api/projects/${story.projectId}${path}`,
    undefined,
    tag === undefined ? {} : { "if-none-match": tag }
  )

/** Reads, reads again with the tag, changes it, and reads with the old tag. */
const shown = Effect.fnUntraced(function* (
  story: Story,
  path: string,
  change: (first: Json) => Effect.Effect<unknown>
) {
  const first = yield* read(story, path)
  const tag = first.headers.get("etag") ?? ""
  const same = yield* read(story, path, `"other", W/${tag}`)
  const sameTag = same.headers.get("etag")
  yield* change(first.body)
  const later = yield* read(story, path, tag)
  return {
    path,
    isStrong: /^"[^"]+"$/.test(tag),
    same: [same.status, same.body, sameTag === tag],
    later: [later.status, later.headers.get("etag") !== tag]
  }
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("ETag and If-None-Match", () => {
    it.effect("the contract says of each operation whether it tells and takes them", () =>
      Effect.gen(function* () {
        const { doors } = yield* SharedServer
        const { paths } = (yield* doors.send("GET", "/openapi.json")).body
        const operations = Object.values<Json>(paths).flatMap((path) => Object.values<Json>(path))
        const having = (test: (operation: Json) => unknown) =>
          operations
            .filter(test)
            .map(({ operationId }) => operationId)
            .toSorted()
        const takes = (name: string) => (operation: Json) =>
          operation.parameters?.some((parameter: Json) => parameter.name === name)
        expect(having(takes("if-none-match"))).toEqual(having(({ responses }) => responses[304]))
        expect(having(({ responses }) => responses[304])).toEqual([
          "attachments.download",
          "contexts.get",
          "conversations.get",
          "objects.get",
          "projects.settings",
          "relationships.get",
          "tasks.get"
        ])
        expect(having(takes("if-match"))).toEqual(having(({ responses }) => responses[412]))
        // Nothing is said twice: a document that does is none.
        const twice = ({ parameters = [] }: Json) =>
          new Set(parameters.map((one: Json) => `${one.in} ${one.name}`)).size < parameters.length
        expect(having(twice)).toEqual([])
        expect(having(takes("if-match"))).toEqual([
          "agents.delete",
          "agents.update",
          "conversations.delete",
          "conversations.rename",
          "definitions.restore",
          "mcpServers.update",
          "objects.delete",
          "objects.update",
          "projects.changeSettings",
          "relationships.delete",
          "relationships.update",
          "tasks.change",
          "tasks.remove"
        ])
        for (const operation of operations.filter(takes("if-match")))
          expect(operation.responses[200]?.headers.ETag ?? operation.responses[204]).toBeDefined()
      })
    )

    it.effect("what is unchanged is 304 without a body, what has moved is told whole under another tag", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [a, b] = [yield* make(story, "A", { n: 1 }), yield* make(story, "A")]
        const one = yield* story.post("/relationships", { type: "knows", fromId: a.id, toId: b.id })
        const agent = yield* newAssistant(story, echo)
        const talk = yield* story.post("/conversations", { agentId: agent.id })
        const todo = yield* story.post("/tasks", { title: "Milk" })
        yield* newContext(story, "desk")
        const cases: ReadonlyArray<readonly [string, () => Effect.Effect<unknown>]> = [
          [`/objects/${a.id}`, () => story.patch(`/objects/${a.id}`, { properties: { n: 2 } })],
          [
            `/relationships/${one.id}`,
            () => story.patch(`/relationships/${one.id}`, { properties: { n: 2 } })
          ],
          [`/tasks/${todo.id}`, () => story.patch(`/tasks/${todo.id}`, { title: "Bread" })],
          [`/conversations/${talk.id}`, () => story.patch(`/conversations/${talk.id}`, { title: "T" })],
          ["/contexts/desk", () => addEvent(story, "desk", "Hello", false)],
          ["/settings", () => story.patch("/settings", { chainLimits: { maxDepth: 7 } })]
        ]
        for (const [path, change] of cases)
          expect(yield* shown(story, path, change)).toEqual({
            path,
            isStrong: true,
            same: [304, null, true],
            later: [200, true]
          })
      })
    )

    it.effect(
      "who changes or deletes what has moved since they read it is told 412, and nothing is done",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* newAssistant(story, echo)
          const talk = yield* story.post("/conversations", { agentId: agent.id })
          const todo = yield* story.post("/tasks", { title: "Milk" })
          const transport = { type: "stdio", command: "/nowhere/at-all" }
          const server = yield* story.post("/mcp-servers", { name: "shop", transport, enabled: false })
          const cases: ReadonlyArray<readonly [string, (n: number) => Json, boolean]> = [
            [`/mcp-servers/${server.id}`, (n) => ({ callTimeoutMs: n * 1_000 }), false],
            [`/tasks/${todo.id}`, (n) => ({ title: `Milk ${n}` }), true],
            [`/conversations/${talk.id}`, (n) => ({ title: `Talk ${n}` }), true],
            ["/settings", (n) => ({ chainLimits: { maxDepth: n } }), false],
            [`/agents/${agent.id}`, (n) => ({ prompt: `Say ${n}.` }), true]
          ]
          for (const [path, change, isDeleted] of cases) {
            const sendAs = (method: string, tag: string, body?: Json) =>
              story.send(method, `/api/projects/${story.projectId}${path}`, body, { "if-match": tag })
            const first = (yield* read(story, path)).headers.get("etag") ?? ""
            const changed = yield* sendAs("PATCH", first, change(1))
            expect([path, changed.status]).toEqual([path, 200])
            const second = changed.headers.get("etag") ?? ""
            expect(second).not.toBe(first)
            expect((yield* read(story, path)).headers.get("etag")).toBe(second)
            expectProblem(yield* sendAs("PATCH", first, change(2)), 412)
            if (isDeleted) expectProblem(yield* sendAs("DELETE", first), 412)
            const present = yield* read(story, path)
            expect([present.headers.get("etag"), present.body]).toEqual([second, changed.body])
            // Of many who read the same, one wins.
            const many = yield* Effect.forEach(
              Array.from({ length: 8 }, (_, index) => index + 3),
              (n) => sendAs("PATCH", second, change(n)),
              { concurrency: 8 }
            )
            expect([path, many.map(({ status }) => status).toSorted()]).toEqual([
              path,
              [200, ...Array<number>(7).fill(412)]
            ])
            expect((yield* sendAs("PATCH", "*", change(20))).status).toBe(200)
            const last = (yield* read(story, path)).headers.get("etag") ?? ""
            if (isDeleted) expect((yield* sendAs("DELETE", last)).status).toBe(204)
          }
        })
    )

    it.effect("a suggestion that waits is assigned by who knows it, and not by who read it before", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { task } = yield* suggested(story, creating("n-1"))
        const path = `/api/projects/${story.projectId}/tasks/${task.id}`
        const tag = (yield* story.send("GET", path)).headers.get("etag") ?? ""
        const assign = (assignee: string | null) =>
          story.send("PATCH", path, { assignee }, { "if-match": tag })
        const [one, other] = yield* Effect.all([assign("admin"), assign("me")], { concurrency: 2 })
        expect([one.status, other.status].toSorted()).toEqual([200, 412])
        expectProblem(yield* assign(null), 412)
      })
    )

    it.effect("an agent is always told whole: when it fires next moves without a version", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, echo)
        const first = yield* read(story, `/agents/${agent.id}`)
        const tag = first.headers.get("etag") ?? ""
        expect(tag).toBe(`"${first.body.version}"`)
        const again = yield* read(story, `/agents/${agent.id}`, tag)
        expect([again.status, again.body, again.headers.get("etag")]).toEqual([200, first.body, tag])
      })
    )
  })
})
