/**
 * A subscriber whose address is slow holds up nobody but himself; the clock stands still, so none of his deliveries runs out of time.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { outboxLimits } from "../src/limits.ts"
import { eventLimits } from "../src/mcp/events.ts"
import { resultOf } from "../testing/mcp-extension-words.ts"
import { receiver, subscribing } from "../testing/mcp-receiver.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { feedOf } from "../testing/story-words.ts"

const thing = (story: Story, key: string) => story.post("/objects", { type: "Thing", key })

const subscriptionsOf = (story: Story): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(
    ask(story.access, "select to_jsonb(kept) from kb.event_subscriptions kept where project_id = $1", [
      story.projectId
    ]),
    (rows) => rows.map(([row]) => row)
  )

layer(SharedServer.layer)((it) => {
  describe("A subscriber whose address does not answer", () => {
    it.effect("takes a part of the places, and another project is told at once", () =>
      Effect.gen(function* () {
        const slow = yield* newStoryHere
        const slowHook = yield* receiver()
        const subscriptions = eventLimits.deliverers + 1
        for (let n = 1; n <= subscriptions; n += 1) yield* subscribing(slow, `${slowHook.url}?${n}`)
        const quick = yield* newStoryHere
        const quickHook = yield* receiver()
        yield* subscribing(quick, quickHook.url)
        yield* slowHook.hold
        yield* thing(slow, "1")
        yield* slowHook.until(eventLimits.deliverersPerProject)
        yield* thing(quick, "1")
        yield* quickHook.until(1)
        // None of the slow ones has ended meanwhile, by whatever means.
        expect(slowHook.events()).toHaveLength(eventLimits.deliverersPerProject)

        // Each place that comes free is for the next.
        yield* eventually(Effect.andThen(slowHook.letGo, subscriptionsOf(slow)), (rows) =>
          rows.every(({ claimed_until, position }) => position === 1 && claimed_until === null)
        )
        expect(slowHook.events()).toHaveLength(subscriptions)
      })
    )

    it.effect("is told some events, and more when the others have had their turn", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const hook = yield* receiver()
        const { cursor } = yield* resultOf(story, "events/poll", { name: "object.created" })
        for (const key of ["1", "2", "3"]) yield* thing(story, key)
        yield* feedOf(story, 3)
        yield* hook.hold
        yield* subscribing(story, hook.url, { cursor })
        // No wake-up tells of events that were there before: the lookout finds them.
        yield* TestClock.adjust(outboxLimits.lookIntervalMs)
        const claimAt = Effect.fnUntraced(function* (count: number) {
          yield* hook.until(count)
          const [row] = yield* subscriptionsOf(story)
          yield* TestClock.adjust(0.6 * eventLimits.turnMs)
          yield* hook.letGo
          return row.claim_token
        })
        const [first, second, third] = [yield* claimAt(1), yield* claimAt(2), yield* claimAt(3)]
        expect(second).toBe(first)
        expect(third).not.toBe(first)
        yield* eventually(subscriptionsOf(story), ([row]) => row.position === 3 && row.last_error === null)
        expect(hook.events().map(({ body }) => body.data.key)).toEqual(["1", "2", "3"])
      })
    )
  })
})
