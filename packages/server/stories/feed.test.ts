/**
 * The live feed of committed graph events: no gap and no double, however often the connection breaks.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { type Heard, openStream } from "../testing/event-stream.ts"
import { holding } from "../testing/owner-rows.ts"
import { eventually, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { feedOf } from "../testing/story-words.ts"

const eventsOf = (story: Story): string => `/api/projects/${story.projectId}/events`

const makeThing = (story: Story, key: string) => story.post("/objects", { type: "Thing", key })

/** Asks about this project in a transaction that stays open until the scope ends. */
const held = Effect.fnUntraced(function* (story: Story, question: string) {
  const inProject = `select set_config('tropism.project', '${story.projectId}', true)`
  const connection = yield* holding(story.access, inProject)
  expect((yield* connection.queryValues(question, [story.projectId])).length).toBe(1)
  return connection
}, Effect.orDie)

const keysOf = (heard: ReadonlyArray<Heard>): ReadonlyArray<string> =>
  heard.map((one) => one.json.snapshot.key)

const upTo = (count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => `${index + 1}`)

layer(SharedServer.layer)((it) => {
  describe("The feed of graph events", () => {
    it.effect("brings what is committed from now on, with its place in the feed as id", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* makeThing(story, "before")
        yield* feedOf(story, 1)
        const live = yield* openStream(story, eventsOf(story))
        expect([live.status, live.headers.get("content-type"), live.headers.get("cache-control")]).toEqual([
          200,
          expect.stringMatching(/^text\/event-stream/),
          expect.stringContaining("no-cache")
        ])
        const object = yield* makeThing(story, "after")
        yield* story.patch(`/objects/${object.id}`, { properties: { changed: true } })
        yield* story.delete(`/objects/${object.id}`)
        yield* live.until((heard) => heard.length >= 3)
        const feed = yield* feedOf(story, 4)
        expect(live.heard).toEqual(
          feed.slice(1).map((event) => ({ id: String(event.position), name: event.type, json: event }))
        )
        expect(live.heard.map(({ id, name }) => [id, name])).toEqual([
          ["2", "created"],
          ["3", "updated"],
          ["4", "deleted"]
        ])
      })
    )

    it.effect("tells an object's changes in their order, also while somebody refers to one of them", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        // Nobody gives places until this is let go.
        const places = yield* held(story, "select 1 from kb.feeds where project_id = $1 for update")
        const object = yield* makeThing(story, "1")
        yield* story.patch(`/objects/${object.id}`, { properties: { changed: true } })
        // What a row that refers to an event takes of it until it is committed, as a dry run's does.
        yield* held(
          story,
          "select 1 from kb.graph_events where project_id = $1 and version = 1 for key share"
        )
        yield* places.query("commit")
        yield* makeThing(story, "2")
        const feed = yield* feedOf(story, 3)
        expect(feed.map(({ entityId, version }) => [entityId === object.id, version])).toEqual([
          [true, 1],
          [true, 2],
          [false, 1]
        ])
      })
    )

    it.effect("tells one event by its id", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        for (const key of upTo(2)) yield* makeThing(story, key)
        const feed = yield* feedOf(story, 2)
        expect(yield* story.get(`/events/${feed[1].id}`)).toEqual(feed[1])
        expect((yield* story.ask("GET", `/events/${story.projectId}`)).status).toBe(404)
      })
    )

    it.effect("begins where it is asked to, and after what was heard last", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        for (const key of upTo(4)) yield* makeThing(story, key)
        yield* feedOf(story, 4)
        const beginnings: ReadonlyArray<readonly [string, string | undefined, ReadonlyArray<string>]> = [
          ["?after=0", undefined, ["1", "2", "3", "4"]],
          ["?after=2", undefined, ["3", "4"]],
          // A browser repeats the address that it was given first; what it heard last counts.
          ["?after=0", "3", ["4"]],
          ["", "1", ["2", "3", "4"]]
        ]
        for (const [query, lastEventId, expected] of beginnings) {
          const live = yield* openStream(story, eventsOf(story) + query, lastEventId)
          yield* live.until((heard) => heard.length >= expected.length)
          expect(live.heard.map((heard) => heard.id)).toEqual(expected)
        }
      })
    )

    it.effect("says first behind which place it begins, so a cut before the first event hides nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const beginningOf = (query: string, lastEventId?: string) =>
          Effect.scoped(
            Effect.gen(function* () {
              const live = yield* openStream(story, eventsOf(story) + query, lastEventId)
              const place = yield* eventually(Effect.sync(live.lastEventId), (id) => id !== undefined)
              return [place, live.heard.length]
            })
          )
        expect(yield* beginningOf("")).toEqual(["0", 0])
        for (const key of upTo(2)) yield* makeThing(story, key)
        yield* feedOf(story, 2)
        expect(yield* beginningOf("")).toEqual(["2", 0])
        expect(yield* beginningOf("", "rubbish")).toEqual(["2", 0])
        // It was given to somebody who has heard nothing yet, and two events come before they are back.
        for (const key of ["3", "4"]) yield* makeThing(story, key)
        yield* feedOf(story, 4)
        const live = yield* openStream(story, eventsOf(story), "2")
        yield* live.until((heard) => heard.length >= 2)
        expect(keysOf(live.heard)).toEqual(["3", "4"])
      })
    )

    it.effect("loses nothing and repeats nothing over connections that break while others write", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const count = 60
        const listening = Effect.gen(function* () {
          const heard: Array<Heard> = []
          while (heard.length < count) {
            const live = yield* openStream(story, `${eventsOf(story)}?after=0`, heard.at(-1)?.id)
            // Each connection breaks after some events; what was on its way is lost with it.
            yield* live.until((seen) => seen.length >= Math.min(7, count - heard.length))
            yield* live.cut
            heard.push(...live.heard)
          }
          return heard
        })
        const writing = Effect.forEach(upTo(count), (key) => makeThing(story, key), { concurrency: 6 })
        const [heard] = yield* Effect.all([listening, writing], { concurrency: 2 })
        expect(heard.map((one) => one.id)).toEqual(upTo(count))
        expect(keysOf(heard).toSorted()).toEqual([...upTo(count)].toSorted())
        expect(heard.map((one) => one.json)).toEqual(yield* feedOf(story, count))
      })
    )

    it.effect("brings the same to everybody who listens, and nothing of another project", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const other = yield* newStoryHere
        const listeners = yield* Effect.forEach(upTo(5), () =>
          openStream(story, `${eventsOf(story)}?after=0`)
        )
        const foreign = yield* openStream(other, `${eventsOf(other)}?after=0`)
        yield* Effect.all([makeThing(story, "ours"), makeThing(other, "theirs")], { concurrency: 2 })
        yield* foreign.until((heard) => heard.length >= 1)
        for (const live of listeners) {
          yield* live.until((heard) => heard.length >= 1)
          expect(keysOf(live.heard)).toEqual(["ours"])
        }
        expect(keysOf(foreign.heard)).toEqual(["theirs"])
      })
    )

    it.effect("keeps a quiet connection open with a heartbeat at least every five seconds", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const live = yield* openStream(story, eventsOf(story))
        for (let second = 0; second < 60; second += 1) {
          yield* TestClock.adjust("1 second")
          yield* story.get("/events")
        }
        yield* live.commented(60 / 5)
        expect(new Set(live.comments)).toEqual(new Set([": heartbeat"]))
        expect(live.heard).toEqual([])
        yield* makeThing(story, "at last")
        yield* live.until((heard) => heard.length === 1)
      })
    )
  })
})
