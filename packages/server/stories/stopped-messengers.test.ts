/**
 * Requirement: while a kill switch is on, nobody is told or asked anything by the server itself; afterwards each is, once.
 */
import { describe, expect, it as alone, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { outboxLimits } from "../src/limits.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { eventSource } from "../testing/mcp-event-source.ts"
import { resultOf } from "../testing/mcp-extension-words.ts"
import { receiver, subscribing } from "../testing/mcp-receiver.ts"
import { ask, holding } from "../testing/owner-rows.ts"
import { eventually, newProject, startServer, type Story, storyIn } from "../testing/platform.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { asTimePasses, newStoryHere, passing, SharedServer } from "../testing/shared-server.ts"
import { addSource, askNow, idsOf, listener } from "../testing/source-words.ts"
import { feedOf, runsOf, watcher } from "../testing/story-words.ts"

const turn = (story: Story, stopped: boolean) =>
  Effect.map(
    story.send("PUT", `/api/projects/${story.projectId}/kill-switch`, { stopped, reason: "An incident" }),
    ({ status }) => expect(status).toBe(200)
  )

/** What nobody delivers or asks right now. */
const isLeft = (story: Story) =>
  eventually(
    ask(
      story.access,
      `select from kb.event_subscriptions where project_id = $1 and claimed_until is not null
       union all select from kb.mcp_event_sources where project_id = $1 and claimed_until is not null`,
      [story.projectId]
    ),
    (rows) => rows.length === 0
  )

/** A project that tells one and asks another. */
const newMessenger = Effect.gen(function* () {
  const story = yield* newStoryHere
  const [hook, source] = [yield* receiver(), yield* eventSource()]
  yield* addSource(story, source.url)
  const agent = yield* story.post("/agents", listener())
  yield* asTimePasses(20, story.get("/mcp-servers"), ({ items }) =>
    items[0].eventSources.every(({ status }: { status: string }) => status === "listening")
  )
  yield* subscribing(story, hook.url)
  return { agent, hook, source, story }
})

type Messenger = Effect.Success<typeof newMessenger>

const thing = (story: Story, key: string) => story.post("/objects", { type: "Thing", key })

/** Something happens of which it tells, and something of which it hears when it asks. */
const happening = Effect.fnUntraced(function* ({ source, story }: Messenger, id: string) {
  yield* thing(story, id)
  source.happen(id)
  yield* askNow(story)
})

/** It has told and heard what happened, so often. */
const isThrough = ({ agent, hook, story }: Messenger, ids: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    yield* hook.until(ids.length)
    const runs = yield* asTimePasses(
      20,
      runsOf(story, agent),
      (all) => all.length >= ids.length && all.every(({ status }) => status === "completed")
    )
    expect(hook.events().map(({ body }) => body.data.key)).toEqual(ids)
    expect(idsOf(runs).toSorted()).toEqual(ids)
  })

layer(SharedServer.layer)((it) => {
  describe("A project whose kill switch is on", () => {
    it.effect("delivers nothing and asks no source, while others are served; then it does both once", () =>
      Effect.gen(function* () {
        const stopped = yield* newMessenger
        yield* turn(stopped.story, true)
        yield* isLeft(stopped.story)
        const asked = stopped.source.asked.length
        yield* happening(stopped, "1")
        const other = yield* newMessenger
        yield* happening(other, "1")
        yield* isThrough(other, ["1"])
        // Whoever came later was served: it had its turns meanwhile.
        expect(stopped.hook.events()).toEqual([])
        expect(stopped.source.asked).toHaveLength(asked)
        yield* turn(stopped.story, false)
        yield* isThrough(stopped, ["1"])
      })
    )

    it.effect("delivers nothing of what was claimed before it was on", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const hook = yield* receiver()
        yield* subscribing(story, hook.url)
        yield* turn(story, true)
        yield* thing(story, "1")
        yield* feedOf(story, 1)
        const holder = yield* holding(story.access, "lock table kb.graph_events in access exclusive mode")
        yield* turn(story, false)
        // It is claimed, and what there is to tell is looked for.
        yield* whenWaiting(story.access, 1)
        yield* turn(story, true)
        yield* holder.query("commit")
        yield* isLeft(story)
        expect(hook.events()).toEqual([])
        yield* turn(story, false)
        yield* hook.until(1)
      })
    )

    it.effect("delivers what is under way, and nothing behind it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const hook = yield* receiver()
        const { cursor } = yield* resultOf(story, "events/poll", { name: "object.created" })
        for (const key of ["1", "2"]) yield* thing(story, key)
        yield* feedOf(story, 2)
        yield* hook.hold
        yield* subscribing(story, hook.url, { cursor })
        // No wake-up tells of events that were there before: the lookout finds both at once.
        yield* TestClock.adjust(outboxLimits.lookIntervalMs)
        yield* hook.until(1)
        yield* turn(story, true)
        yield* hook.letGo
        yield* isLeft(story)
        expect(hook.events().map(({ body }) => body.data.key)).toEqual(["1"])
        yield* turn(story, false)
        yield* hook.until(2)
        yield* hook.letGo
        yield* isLeft(story)
        expect(hook.events().map(({ body }) => body.data.key)).toEqual(["1", "2"])
      })
    )
  })
})

describe("A server that is started with its kill switch on", () => {
  alone.effect("does nothing by itself of what its database has to do, until it is let go on", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const [hook, source] = [yield* receiver(), yield* eventSource()]
      const { agents, projectId } = yield* Effect.scoped(
        Effect.gen(function* () {
          const story = yield* newProject(yield* startServer(access), access)
          yield* addSource(story, source.url)
          const clerk = yield* story.post("/agents", listener())
          const watching = yield* story.post(
            "/agents",
            watcher({ name: "watcher", reactionConfig: { objectTypes: [], events: ["created"] } })
          )
          yield* subscribing(story, hook.url)
          yield* asTimePasses(20, story.get("/mcp-servers"), ({ items }) =>
            items[0].eventSources.every(({ status }: { status: string }) => status === "listening")
          )
          yield* turn(story, true)
          yield* isLeft(story)
          yield* happening({ agent: clerk, hook, source, story }, "1")
          return { agents: [clerk, watching], projectId: story.projectId }
        })
      )
      // As in a backup of a moment before the switch.
      yield* ask(access, "delete from kb.kill_switches")
      const asked = source.asked.length
      const reason = "Restored from Tuesday"
      const doors = yield* startServer(access, [], undefined, undefined, undefined, undefined, reason)
      const story = storyIn(doors, access, projectId)
      yield* passing(5 * outboxLimits.lookIntervalMs, outboxLimits.lookIntervalMs)
      expect((yield* story.send("GET", "/api/kill-switch")).body.stopped).toMatchObject({
        scope: "server",
        reason,
        stoppedBy: "admin"
      })
      const isDone = Effect.map(
        Effect.forEach(agents, (agent) => runsOf(story, agent)),
        (runs) => runs.flat().filter(({ startedAt }) => startedAt !== null)
      )
      expect(yield* isDone).toEqual([])
      expect([hook.events(), source.asked.length]).toEqual([[], asked])
      yield* story.send("PUT", "/api/kill-switch", { stopped: false })
      yield* asTimePasses(20, isDone, (runs) => runs.length === 2)
      yield* hook.until(1)
    })
  )
})
