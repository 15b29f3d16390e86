/**
 * Resources that MCP clients watch: told of when they change, in both revisions, to whom they are there for and to nobody else.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { addEvent } from "../testing/context-words.ts"
import { newConversation, talker } from "../testing/conversation-words.ts"
import { openStream } from "../testing/event-stream.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { opening, revisions, sendMessage } from "../testing/mcp-clients.ts"
import { addressOf, modernHeaders, modernMessage } from "../testing/mcp-extension-words.ts"
import { logAt, objectAt, watching } from "../testing/mcp-updates.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, newProject, startServer, type Story, storyIn } from "../testing/platform.ts"
import { couriers } from "../testing/server-connections.ts"
import { newStoryHere, patientDatabase, SharedServer } from "../testing/shared-server.ts"
import { saying } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

const thing = (story: Story, key: string) =>
  story.post("/objects", { type: "Thing", key, properties: { n: 0 } })
const touch = (story: Story, { id }: { readonly id: string }, n: number) =>
  story.patch(`/objects/${id}`, { properties: { n } })

/** A run that has ended, of a conversation of one person. */
const runOfAda = Effect.fnUntraced(function* (story: Story) {
  const agent = yield* talker(story, [{ say: "Nobody must know." }])
  const { contextName } = yield* newConversation(story, agent, "Secret", "ada")
  const ada = yield* asUser(story, "editor", null, "ada")
  yield* addEvent(ada, contextName, "Hush")
  const run = yield* eventually(
    Effect.map(story.get(`/runs?agentId=${agent.id}`), ({ items }) => items[0]),
    (seen) => seen?.status === "completed"
  )
  return { ada, contextName, run }
})

const revoke = (story: Story) =>
  ask(
    story.access,
    "update kb.api_tokens set revoked_at = now() where hash = encode(sha256($1::bytea), 'hex')",
    [story.token]
  )

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  for (const revision of revisions)
    describe(`A client of ${revision} that watches resources`, () => {
      it.effect(
        "is told of an object that changes or is deleted, and of a log that grows, and of nothing else",
        () =>
          Effect.gen(function* () {
            const story = yield* newStoryHere
            const [mine, other] = [yield* thing(story, "mine"), yield* thing(story, "other")]
            const { ada, contextName, run } = yield* runOfAda(story)
            const uris = [objectAt(mine), logAt(run)]
            const watcher = yield* watching(ada, revision, [...uris, "tropism://inbox"])
            expect(watcher.taken).toEqual(uris)
            yield* touch(story, other, 1)
            yield* touch(story, mine, 1)
            expect(new Set(yield* watcher.untilTold(objectAt(mine)))).toEqual(new Set([objectAt(mine)]))
            yield* addEvent(ada, contextName, "And hush again")
            yield* watcher.untilTold(logAt(run))
            const before = watcher.told.length
            yield* story.delete(`/objects/${mine.id}`)
            yield* eventually(
              Effect.sync(() => watcher.told.slice(before)),
              (told) => told.includes(objectAt(mine))
            )
          })
      )

      it.effect("hears of many changes together", () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const [busy, last] = [yield* thing(story, "busy"), yield* thing(story, "last")]
          const watcher = yield* watching(story, revision, [objectAt(busy), objectAt(last)])
          const changes = Array.from({ length: 60 }, (_, index) => index + 1)
          yield* Effect.forEach(changes, (n) => touch(story, busy, n), { concurrency: 10 })
          yield* touch(story, last, 1)
          const told = yield* watcher.untilTold(objectAt(last))
          expect(told.filter((uri) => uri === objectAt(busy)).length).toBeLessThan(changes.length)
        })
      )

      it.effect(
        "finds what is missing, another project's or another person's nowhere, in the same words",
        () =>
          Effect.gen(function* () {
            const [story, foreign] = [yield* newStoryHere, yield* newStoryHere]
            const [mine, theirs] = [yield* thing(story, "mine"), yield* thing(foreign, "theirs")]
            const { contextName, run, ada } = yield* runOfAda(story)
            const ben = yield* asUser(story, "reviewer", null, "ben")
            const hidden = [
              objectAt(theirs),
              objectAt({ id: crypto.randomUUID() }),
              logAt(run),
              logAt({ id: crypto.randomUUID() }),
              "tropism://objects/no-id"
            ]
            const watcher = yield* watching(ben, revision, [...hidden, objectAt(mine)])
            expect(watcher.taken).toEqual([objectAt(mine)])
            if (revision === "2025-11-25") expect(new Set(watcher.refused.slice(0, 4)).size).toBe(1)
            yield* touch(foreign, theirs, 1)
            yield* addEvent(ada, contextName, "Hush")
            yield* touch(story, mine, 1)
            expect(new Set(yield* watcher.untilTold(objectAt(mine)))).toEqual(new Set([objectAt(mine)]))
          })
      )
    })

  describe("A stream whose token has ended", () => {
    it.effect("hears no word of what changes then, and is closed", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const mine = yield* thing(story, "mine")
        const params = { notifications: { resourceSubscriptions: [objectAt(mine)] } }
        const person = yield* asUser(story, "viewer")
        const stream = yield* openStream(person, addressOf(story), undefined, {
          method: "POST",
          headers: modernHeaders(person, "subscriptions/listen", params),
          body: JSON.stringify(modernMessage("subscriptions/listen", params))
        })
        yield* stream.until((heard) => heard.length === 1)
        yield* revoke(person)
        yield* touch(story, mine, 1)
        yield* stream.ended
        expect(stream.heard.map(({ json }) => json.method ?? "answered")).toEqual([
          "notifications/subscriptions/acknowledged",
          "answered"
        ])
      })
    )
  })

  describe("A session that watches", () => {
    it.effect("is told when it comes back what has changed meanwhile, and leaves nothing when it ends", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const mine = yield* thing(story, "mine")
        const begun = yield* sendMessage(story, addressOf(story), opening)
        const session = { "mcp-session-id": begun.headers.get("mcp-session-id") ?? "" }
        const subscribing = {
          jsonrpc: "2.0",
          id: 2,
          method: "resources/subscribe",
          params: { uri: objectAt(mine) }
        }
        yield* sendMessage(story, addressOf(story), subscribing, session)
        yield* touch(story, mine, 1)
        const stream = yield* openStream(story, addressOf(story), undefined, { headers: session })
        const heard = yield* stream.until((all) => all.length > 0)
        expect(heard[0]?.json).toEqual({
          jsonrpc: "2.0",
          method: "notifications/resources/updated",
          params: { uri: objectAt(mine) }
        })
        const rows = ask(story.access, "select uri from kb.resource_subscriptions where project_id = $1", [
          story.projectId
        ])
        expect(yield* rows).toEqual([[objectAt(mine)]])
        yield* Effect.promise(() =>
          fetch(story.url + addressOf(story), {
            method: "DELETE",
            headers: { authorization: `Bearer ${story.token}`, ...session }
          })
        )
        expect(yield* rows).toEqual([])
      })
    )

    it.effect("may be subscribed to no more than there may be, and a stream may name no more than that", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const mine = yield* thing(story, "mine")
        yield* ask(
          story.access,
          `insert into kb.resource_subscriptions (project_id, session, uri, user_id, place, expires_at)
           select $1, 'another', 'tropism://objects/' || n, 'admin', 0, now() + interval '1 hour' from generate_series(1, 500) n`,
          [story.projectId]
        )
        const watcher = yield* watching(story, "2025-11-25", [objectAt(mine)])
        expect(watcher.refused).toEqual([expect.stringMatching(/\b500\b/)])
        const many = Array.from({ length: 101 }, () => objectAt({ id: crypto.randomUUID() }))
        const params = { notifications: { resourceSubscriptions: many } }
        const { messages } = yield* sendMessage(
          story,
          addressOf(story),
          modernMessage("subscriptions/listen", params),
          modernHeaders(story, "subscriptions/listen", params)
        )
        expect(messages).toMatchObject([{ id: 1, error: { code: -32_602 } }])
      })
    )
  })
})

describe("Two servers on one database", () => {
  it.live("a session that subscribes at one is told at the other of what a third has written", () =>
    Effect.gen(function* () {
      const access = { ...(yield* freshDatabase), embedded: false }
      const [here, there] = [yield* startServer(access), yield* startServer(access)]
      yield* eventually(couriers(access), (pids) => pids.length === 2)
      const story = yield* newProject(here, access)
      const other = storyIn(there, access, story.projectId)
      const agent = yield* story.post("/agents", {
        name: "speaker",
        prompt: "Go.",
        triggerType: "manual",
        model: saying("Done.")
      })
      const run = yield* story.post(`/agents/${agent.id}/trigger`)
      const mine = yield* thing(story, "mine")
      const begun = yield* sendMessage(story, addressOf(story), opening)
      const session = { "mcp-session-id": begun.headers.get("mcp-session-id") ?? "" }
      const stream = yield* openStream(other, addressOf(story), undefined, { headers: session })
      for (const uri of [objectAt(mine), logAt(run)]) {
        const message = { jsonrpc: "2.0", id: 2, method: "resources/subscribe", params: { uri } }
        expect((yield* sendMessage(story, addressOf(story), message, session)).messages).toMatchObject([
          { result: {} }
        ])
      }
      yield* touch(story, mine, 1)
      const heard = yield* stream.until((all) => all.length > 0)
      expect(heard.map(({ json }) => json.params.uri)).toEqual([objectAt(mine)])
    }).pipe(Effect.scoped)
  )
})

layer(SharedServer.layer)((it) => {
  describe("A server that stops", () => {
    // Its clock stands still: whatever it would wait for, it would wait for ever.
    it.effect("ends every stream at once, each in the way of its revision", () =>
      Effect.gen(function* () {
        const access = yield* patientDatabase
        const serving = yield* Scope.make()
        const doors = yield* Scope.provide(startServer(access), serving)
        const story = yield* newProject(doors, access)
        const mine = yield* thing(story, "mine")
        const modern = yield* watching(story, "2026-07-28", [objectAt(mine)])
        const begun = yield* sendMessage(story, addressOf(story), opening)
        const old = yield* openStream(story, addressOf(story), undefined, {
          headers: { "mcp-session-id": begun.headers.get("mcp-session-id") ?? "" }
        })
        const params = { name: "object.created" }
        const events = yield* openStream(story, addressOf(story), undefined, {
          method: "POST",
          headers: modernHeaders(story, "events/stream", params),
          body: JSON.stringify(modernMessage("events/stream", params))
        })
        yield* events.until((heard) => heard.length >= 1)
        // Nor does it wait for connections over which nothing more will come.
        for (const { headers } of [old, events]) expect(headers.get("connection")).toBe("close")
        yield* Scope.close(serving, Exit.void)
        expect(yield* modern.closed).toBe("graceful")
        yield* old.ended
        yield* events.ended
        expect(events.heard.at(-1)?.json).toMatchObject({ id: 1, result: {} })
        expect(old.heard).toEqual([])
      })
    )
  })
})
