/**
 * Conversations: listed, renamed, deleted, read and exported by the person whose they are.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { messagesOf, newConversation, talk, talker } from "../testing/conversation-words.ts"
import type { Json } from "../testing/platform.ts"
import { problemOf } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { asUser } from "../testing/token-words.ts"
import { naming } from "../testing/naming.ts"

/** Adds what it is told to, and says so. */
const adds = [
  {
    when: "step == 0 and message contains 'add'",
    calls: [
      { tool: "add_task", arguments: { title: "Buy milk" } },
      { tool: "complete_task", arguments: { task_id: 9 } }
    ]
  },
  { when: "step > 0", say: "I've added Buy milk." },
  { say: "You said: {{ message }}" }
]

const spoken = (items: ReadonlyArray<Json>) => items.map(({ content, role }) => [role, content])

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: Conversations", () => {
    it.effect(
      "S003-R34 S003-R60 an answer carries the calls that were made for it, with arguments and result",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const talks = yield* newConversation(story, yield* talker(story, adds), "Milk")
          yield* talk(story, talks, "Please add milk")
          yield* talk(story, talks, "Thanks")
          const { items, nextCursor } = yield* messagesOf(story, talks)
          expect(nextCursor).toBeNull()
          expect(spoken(items)).toEqual([
            ["user", "Please add milk"],
            ["assistant", "I've added Buy milk."],
            ["user", "Thanks"],
            ["assistant", "You said: Thanks"]
          ])
          expect(items.map(({ toolCalls }) => toolCalls.length)).toEqual([0, 2, 0, 0])
          expect(items[1].toolCalls).toEqual([
            {
              tool: "add_task",
              arguments: { title: "Buy milk" },
              result: { task_id: 1, status: "created", title: "Buy milk" },
              timestamp: expect.any(String)
            },
            {
              tool: "complete_task",
              arguments: { task_id: 9 },
              result: { error: expect.any(String), task_id: 9 },
              timestamp: expect.any(String)
            }
          ])
          for (const limit of [1, 3]) {
            const pages = []
            let cursor: string | null = ""
            while (cursor !== null) {
              const page: Json = yield* messagesOf(
                story,
                talks,
                `?limit=${limit}${cursor && `&cursor=${cursor}`}`
              )
              pages.push(page.items)
              cursor = page.nextCursor
            }
            expect(pages.flat()).toEqual(items)
            expect(pages.length).toBe(Math.ceil(items.length / limit))
          }
          yield* problemOf(story.ask("GET", `/conversations/${talks.id}/messages?cursor=abc`), 422)
          expect(yield* story.get(`/conversations/${talks.id}/export`)).toEqual({
            ...(yield* story.get(`/conversations/${talks.id}`)),
            messages: items
          })
        })
    )

    it.effect("one's own are listed, the one that changed last first, and renamed", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [one, other] = [yield* talker(story, adds), yield* talker(story, adds)]
        const first = yield* newConversation(story, one, "First")
        const second = yield* newConversation(story, other, "Second")
        yield* newConversation(story, one, "Somebody else's", "ann")
        const titles = (query = "") =>
          Effect.map(story.get(`/conversations${query}`), ({ items }) =>
            items.map(({ title }: Json) => title)
          )
        expect(yield* titles()).toEqual(["Second", "First"])
        expect(yield* titles(`?agentId=${one.id}`)).toEqual(["First"])
        const renamed = yield* story.patch(`/conversations/${first.id}`, { title: "Groceries" })
        expect(renamed).toMatchObject({ id: first.id, contextName: first.contextName, title: "Groceries" })
        expect(yield* titles()).toEqual(["Groceries", "Second"])
        const { items, nextCursor } = yield* story.get("/conversations?limit=1")
        expect(items).toEqual([renamed])
        expect(yield* titles(`?limit=1&cursor=${nextCursor}`)).toEqual(["Second"])
        for (const title of ["", " ", "x".repeat(201), "a\u0000b", 7])
          yield* problemOf(story.ask("PATCH", `/conversations/${second.id}`, { title }), 422, "/title")
        yield* problemOf(story.ask("GET", "/conversations?cursor=1.2"), 422)
      })
    )

    it.effect("one is begun before anything is said", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ann = yield* asUser(story, "editor", null, "ann")
        const agent = yield* talker(story, adds)
        const begun = yield* ann.post("/conversations", { agentId: agent.id })
        expect(begun).toMatchObject({
          agentId: agent.id,
          contextName: `chat-${begun.id}`,
          title: naming(agent.name)
        })
        expect((yield* ann.get("/conversations")).items).toEqual([begun])
        expect(yield* ann.get(`/contexts/${begun.contextName}`)).toMatchObject({ owner: "ann" })
        yield* talk(ann, begun, "Hello")
        expect(spoken((yield* messagesOf(ann, begun)).items)).toEqual([
          ["user", "Hello"],
          ["assistant", "You said: Hello"]
        ])
        const titled = yield* ann.post("/conversations", { agentId: agent.id, title: "Groceries" })
        expect(titled.title).toBe("Groceries")
        const viewer = yield* asUser(story, "viewer")
        yield* problemOf(viewer.ask("POST", "/conversations", { agentId: agent.id }), 403)
        const refused = [
          [{ agentId: agent.id, title: "a\u0000" }, "/title"],
          [{ agentId: agent.id, userId: "ben" }, "/userId"]
        ] as const
        for (const [body, pointer] of refused)
          yield* problemOf(ann.ask("POST", "/conversations", body), 422, pointer)
      })
    )

    it.effect("a deleted one is listed no more, and nobody can go on with it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const talks = yield* newConversation(story, yield* talker(story, adds), "Milk")
        yield* talk(story, talks, "Please add milk")
        expect((yield* story.delete(`/conversations/${talks.id}`)).status).toBe(204)
        expect((yield* story.get("/conversations")).items).toEqual([])
        for (const [method, path, body] of [
          ["GET", ""],
          ["PATCH", "", { title: "Again" }],
          ["DELETE", ""],
          ["GET", "/messages"],
          ["GET", "/export"]
        ] as const)
          yield* problemOf(story.ask(method, `/conversations/${talks.id}${path}`, body), 404)
      })
    )

    it.effect("to everybody else a conversation is not there; an admin may read it and no more", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ann = yield* asUser(story, "editor", null, "ann")
        const ben = yield* asUser(story, "editor", null, "ben")
        const others = [
          ben,
          yield* asUser(story, "reviewer", null, "cleo"),
          yield* asUser(story, "viewer", null, "dan")
        ]
        const talks = yield* newConversation(story, yield* talker(story, adds), "Milk", "ann")
        yield* talk(ann, talks, "Hello")
        const doors = [
          ["GET", ""],
          ["GET", "/messages"],
          ["GET", "/export"]
        ] as const
        const changes = [
          ["PATCH", "", { title: "Mine" }],
          ["DELETE", ""]
        ] as const
        const at = (id: string, path: string) => `/conversations/${id}${path}`
        const unknown = crypto.randomUUID()
        for (const [method, path] of doors) {
          expect((yield* story.ask(method, at(talks.id, path))).status).toBe(200)
          for (const other of others) {
            const missing = yield* problemOf(other.ask(method, at(unknown, path)), 404)
            expect(yield* problemOf(other.ask(method, at(talks.id, path)), 404)).toEqual(missing)
          }
        }
        for (const [method, path, body] of changes) {
          yield* problemOf(story.ask(method, at(talks.id, path), body), 403)
          yield* problemOf(ben.ask(method, at(talks.id, path), body), 404)
        }
        for (const reader of [story, ...others])
          expect((yield* reader.get("/conversations")).items).toEqual([])
        expect((yield* ann.get("/conversations")).items).toMatchObject([{ title: "Milk" }])
      })
    )
  })
})
