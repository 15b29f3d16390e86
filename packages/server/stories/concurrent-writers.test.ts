/**
 * Many writers at once, some of whom hang up: what is acknowledged is handled, and everything once.
 */
import { connect } from "node:net"
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { allOf } from "../testing/import-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { inTier } from "../testing/tier.ts"
import { silentFor, watcher } from "../testing/story-words.ts"

const writers = 16
const objects = inTier(500, 500, 5_000)

/** One in twenty requests is broken off, in turn before and after all of it was sent. */
const isAborted = (number: number) => number % 20 === 7

/** Every tenth object is none of the agent's business. */
const typeOf = (number: number) => (number % 10 === 3 ? "Place" : "Person")

const bodyOf = (number: number) => ({ type: typeOf(number), key: `object-${number}`, properties: { number } })

/** Sends a request and hangs up without an answer: in the middle of its body, or when all of it is on its way. */
const hangUp = (story: Story, number: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const { hostname, port } = new URL(story.url)
    const body = JSON.stringify(bodyOf(number))
    const head = [
      `POST /api/projects/${story.projectId}/objects HTTP/1.1`,
      `Host: ${hostname}:${port}`,
      `Authorization: Bearer ${story.token}`,
      "Content-Type: application/json",
      `Content-Length: ${body.length}`
    ]
    const sent = number % 40 === 7 ? body.slice(0, body.length / 2) : body
    const socket = connect(Number(port), hostname, () =>
      socket.write(`${head.join("\r\n")}\r\n\r\n${sent}`, () => socket.destroy())
    )
    socket.on("error", () => undefined)
    socket.on("close", () => resume(Effect.void))
  })

/** Creates an object and answers it, if the answer was waited for. */
const create = (story: Story, number: number): Effect.Effect<Json> =>
  isAborted(number) ? Effect.as(hangUp(story, number), undefined) : story.post("/objects", bodyOf(number))

const countOf = (story: Story, table: string, more = "") =>
  Effect.map(
    ask(story.access, `select count(*)::int from kb.${table} where project_id = $1 ${more}`, [
      story.projectId
    ]),
    ([row]) => row?.[0]
  )

const idOf = (object: Json): string => object.id

/** The first ids of the one list that are not in the other; a failure shows these and not thousands. */
const missing = (ids: ReadonlyArray<string>, among: ReadonlyArray<string>): ReadonlyArray<string> => {
  const there = new Set(among)
  return ids.filter((id) => !there.has(id)).slice(0, 5)
}

layer(SharedServer.layer)((it) => {
  describe("Concurrent writers", () => {
    it.effect(
      `16 clients create ${objects} objects and break off every twentieth request: exactly one entry for each matching object`,
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          // The runs stand still with the clock, so nothing but the writers and the dispatcher is at work.
          const agent = yield* story.post(
            "/agents",
            watcher({ model: silentFor(60_000), maxPendingRuns: 100_000 })
          )
          const answers = yield* Effect.forEach(
            Array.from({ length: objects }, (_, number) => number),
            (number) => create(story, number),
            { concurrency: writers }
          )
          const acknowledged = answers.filter((answer) => answer !== undefined)
          expect(acknowledged).toHaveLength(objects - objects / 20)

          yield* eventually(
            countOf(story, "graph_events", "and dispatched_at is null"),
            (waiting) => waiting === 0,
            60_000
          )
          const made = yield* allOf(story, "/objects")
          const entries = yield* allOf(story, `/agents/${agent.id}/processing-log`)
          expect(missing(acknowledged.map(idOf), made.map(idOf))).toEqual([])
          expect(new Set(made.map((object) => object.key)).size).toBe(made.length)

          // One entry for each matching object that there is, whether its writer learnt of it or not, and none besides.
          const matching = made.filter((object) => object.type === "Person").map(idOf)
          const handled = entries.map((entry) => entry.graphObjectId)
          expect([missing(matching, handled), missing(handled, matching)]).toEqual([[], []])
          expect([new Set(handled).size, handled.length]).toEqual([matching.length, matching.length])
          expect(new Set(entries.map((entry) => [entry.objectVersion, entry.eventType].join()))).toEqual(
            new Set(["1,created"])
          )
          expect(new Set(entries.map((entry) => entry.runId)).size).toBe(entries.length)
          expect(yield* countOf(story, "graph_events")).toBe(made.length)
          expect(yield* countOf(story, "graph_object_versions")).toBe(made.length)
          expect(yield* countOf(story, "agent_runs")).toBe(entries.length)
        }),
      300_000
    )
  })
})
