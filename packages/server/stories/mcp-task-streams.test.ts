/**
 * MCP task notifications: a subscriber gets the status of tasks it may see. Two servers: `mcp-task-streams.deep.test.ts`.
 *
 * The servers' clock stands still until a story moves it, so what is told without that was told by a wake-up and by no sweep.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { streamLimits } from "../src/http/limits.ts"
import { taskBounds } from "../src/mcp/run-task.ts"
import { addEvent } from "../testing/context-words.ts"
import { newConversation, talker } from "../testing/conversation-words.ts"
import { openListening, toldOf } from "../testing/mcp-event-stream.ts"
import { answering, filled, resultOf, rpc } from "../testing/mcp-extension-words.ts"
import { ask, holding } from "../testing/owner-rows.ts"
import { eventually, scripted, type Story } from "../testing/platform.ts"
import { answer, asked, asking } from "../testing/question-words.ts"
import { lockWaits } from "../testing/server-connections.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { watcher } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

const subscriptionKey = "io.modelcontextprotocol/subscriptionId"

const late = { model: scripted([{ say: "Late.", latencyMs: 600_000 }]) }

const begun = Effect.fnUntraced(function* (story: Story, overrides: Record<string, unknown> = late) {
  const agent = yield* story.post(
    "/agents",
    watcher({ name: "worker", triggerType: "manual", reactionConfig: null, ...overrides })
  )
  return yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
})

/** How many of the server's connections look, while something happens, at a table at which only tasks of MCP are looked at: each of them waits there. */
const looksDuring = ({ access }: Story, happens: (looks: Effect.Effect<number>) => Effect.Effect<unknown>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const holder = yield* holding(access, "lock table kb.declined_inputs in access exclusive mode")
      const looks = lockWaits(access)
      yield* happens(looks)
      const count = yield* looks
      yield* Effect.orDie(holder.query("rollback"))
      return count
    })
  )

layer(SharedServer.layer)((it) => {
  describe("Who listens to tasks", () => {
    it.effect(
      "is told first what is heard, then how each task stands, then whenever it stands otherwise",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { run } = yield* asked(story, asking("One?"), asking("Two?"))
          const stream = yield* openListening(story, { taskIds: [run.id] })
          const [acknowledged, first] = yield* stream.until((heard) => heard.length >= 2)
          expect(acknowledged).toEqual({
            jsonrpc: "2.0",
            method: "notifications/subscriptions/acknowledged",
            params: { notifications: { taskIds: [run.id] }, _meta: { [subscriptionKey]: 1 } }
          })
          expect(first).toMatchObject({
            method: "notifications/tasks",
            params: { taskId: run.id, status: "input_required", _meta: { [subscriptionKey]: 1 } }
          })
          const keys = Object.keys(first.params.inputRequests)
          expect(keys).toHaveLength(2)
          yield* answering(story, run, { [keys[0] ?? ""]: filled({ answer: "1" }) })
          const [, , second] = yield* stream.until((heard) => heard.length >= 3)
          expect(Object.keys(second.params.inputRequests)).toEqual([keys[1]])
          yield* answering(story, run, { [keys[1] ?? ""]: filled({ answer: "2" }) })
          yield* stream.ended
          const last = stream.heard.at(-2)
          expect(last.params).toMatchObject({
            status: "completed",
            result: { isError: false, structuredContent: { run: { id: run.id } } }
          })
          // What the stream says is what a look says.
          const {
            resultType: _type,
            _meta: _own,
            ...looked
          } = yield* resultOf(story, "tasks/get", {
            taskId: run.id
          })
          const { _meta, ...heardLast } = last.params
          expect(heardLast).toEqual(looked)
          expect(stream.heard.at(-1)).toMatchObject({
            id: 1,
            result: { resultType: "complete", _meta: { [subscriptionKey]: 1 } }
          })
        })
    )

    it.effect("S003-R46 hears nothing of what is missing, another project's or somebody else's own", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const elsewhere = yield* begun(yield* newStoryHere)
        const ann = yield* asUser(story, "reviewer", null, "ann")
        const ben = yield* asUser(story, "reviewer", null, "ben")
        const agent = yield* talker(
          story,
          [{ when: "step == 0", calls: [asking("Which secret?")] }, { say: "Thanks." }],
          { tools: ["run.ask_user"] }
        )
        const talks = yield* newConversation(story, agent, "Asking", "ann")
        yield* addEvent(ann, talks.contextName, "Ask me")
        const { items } = yield* eventually(ann.get("/runs"), ({ items: [run] }) => run?.status === "paused")
        const [own] = items
        const run = yield* begun(story)
        const taskIds = [own.id, elsewhere.id, crypto.randomUUID(), "nonsense", run.id, run.id]
        const stream = yield* openListening(ben, { taskIds })
        const [acknowledged] = yield* stream.until((heard) => heard.length >= 2)
        expect(acknowledged.params.notifications).toEqual({ taskIds: [run.id] })
        yield* answer(ann, own, "None")
        yield* resultOf(story, "tasks/cancel", { taskId: run.id })
        yield* stream.ended
        expect(toldOf(stream.heard)).toEqual([
          [run.id, "working"],
          [run.id, "cancelled"]
        ])
        const nothing = yield* openListening(ben, { taskIds: [own.id, elsewhere.id] })
        yield* nothing.ended
        expect(nothing.heard).toMatchObject([{ params: { notifications: { taskIds: [] } } }, { id: 1 }])
      })
    )

    it.effect("hears of what no wake-up told with the next sweep", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { run } = yield* asked(story, asking("Which?"))
        const stream = yield* openListening(story, { taskIds: [run.id] })
        yield* stream.until((heard) => toldOf(heard).length === 1)
        yield* ask(
          story.access,
          "update kb.agent_runs set status = 'cancelled', pause_reason = null, completed_at = now() where id = $1",
          [run.id]
        )
        yield* asTimePasses(
          taskBounds.sweepIntervalMs,
          Effect.sync(() => toldOf(stream.heard).length),
          (told) => told === 2
        )
        yield* stream.ended
        expect(toldOf(stream.heard).at(-1)).toEqual([run.id, "cancelled"])
      })
    )

    it.effect.each([
      ["the token is revoked", "update kb.api_tokens set revoked_at = now() where user_id = $1"],
      ["the token runs out", "update kb.api_tokens set expires_at = now() where user_id = $1"],
      [
        "the person is put out of the project",
        "with gone as (delete from kb.members where user_id = $1) update kb.api_tokens set project_ids = '{}' where user_id = $1"
      ]
    ] as const)("is told nothing more from the moment, and is cut off within a minute, when %s", ([, loss]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const userId = `listener-${story.projectId}`
        const person = yield* asUser(story, "editor", [story.projectId], userId)
        const { run } = yield* asked(story, asking("Which?"))
        const idle = yield* begun(story)
        const streams = [
          yield* openListening(person, { taskIds: [run.id] }),
          // Nothing happens to what this one listens to.
          yield* openListening(person, { taskIds: [idle.id] })
        ]
        for (const stream of streams) yield* stream.until((heard) => toldOf(heard).length === 1)
        yield* ask(story.access, loss, [userId])
        yield* answer(story, run, "This one")
        yield* eventually(story.get(`/runs/${run.id}`), ({ status }) => status === "completed")
        expect(streamLimits.permitIntervalMs).toBeLessThan(60_000)
        yield* TestClock.adjust(streamLimits.permitIntervalMs)
        for (const stream of streams) {
          yield* stream.ended
          expect(toldOf(stream.heard)).toHaveLength(1)
        }
        yield* resultOf(story, "tasks/cancel", { taskId: idle.id })
      })
    )

    it.effect("costs a look at each sweep, and nobody who listens costs nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { run } = yield* asked(story, asking("Which?"))
        const clock = yield* TestClock.testClockWith(Effect.succeed)
        const aMinute = Effect.gen(function* () {
          for (let past = 0; past < 60_000; past += taskBounds.sweepIntervalMs) {
            yield* clock.adjust(taskBounds.sweepIntervalMs)
            yield* story.get(`/runs/${run.id}`)
          }
        })
        const nothing = eventually(
          looksDuring(story, () => aMinute),
          (count) => count === 0
        )
        // The server hears a moment later that the streams of the story before are gone.
        yield* nothing
        yield* Effect.scoped(
          Effect.gen(function* () {
            const stream = yield* openListening(story, { taskIds: [run.id] })
            yield* stream.until((heard) => toldOf(heard).length === 1)
            const untilSeen = (looks: Effect.Effect<number>) =>
              asTimePasses(taskBounds.sweepIntervalMs, looks, (count) => count > 0)
            expect(yield* looksDuring(story, untilSeen)).toBe(1)
          })
        )
        yield* nothing
      })
    )

    it.effect("is refused in words where it asks for what cannot be told", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const run = yield* begun(story)
        const [unknowing, bad, many] = yield* Effect.all([
          rpc(story, "subscriptions/listen", { notifications: { taskIds: [run.id] } }, {}),
          rpc(story, "subscriptions/listen", { notifications: { taskIds: "all" } }),
          rpc(story, "subscriptions/listen", {
            notifications: { taskIds: Array.from({ length: 51 }, () => crypto.randomUUID()) }
          })
        ])
        expect(unknowing.error).toMatchObject({ code: -32_021 })
        expect(bad.error).toMatchObject({
          code: -32_602,
          message: expect.stringContaining("SubscriptionFilter")
        })
        expect(many.error).toMatchObject({ code: -32_602, message: expect.stringMatching(/\b50\b/) })
        yield* resultOf(story, "tasks/cancel", { taskId: run.id })
      })
    )
  })
})
