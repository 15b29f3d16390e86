/**
 * Snapshots of contexts: opening a long one costs what is new, and the log stays the truth.
 *
 * A snapshot that was changed by hand shows where it is read; one that is gone,
 * broken or of another version changes nothing but the time that it takes.
 */
import { describe, expect, layer } from "@effect/vitest"
import { foldVersion } from "@tropism/domain/context-snapshot"
import { Effect } from "effect"
import { agentLimits } from "../src/limits.ts"
import { addEvent, isQuiet, newContext, say } from "../testing/context-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

/** Says what the agent was told to be, as it reads it. */
const confiding = scripted([{ say: "I was told: {{ system }}" }])

const mention = (story: Story, count: number) =>
  Effect.forEach(
    Array.from({ length: count }, (_, n) => n),
    (n) => say(story, "talk", `Remark ${n}`, false),
    { concurrency: 8, discard: true }
  )

/** Asks, waits until the agent has answered, and says what. */
const answered = Effect.fn("answered")(function* (story: Story) {
  const { nextEventNumber } = yield* stateOf(story, "talk")
  yield* addEvent(story, "talk", "Well?")
  yield* eventually(story.get("/runs?limit=200"), isQuiet)
  const { items } = yield* story.get(`/contexts/talk/events?after=${nextEventNumber - 1}&limit=200`)
  return items.find(({ type }: Json) => type === "AssistantMessageEvent").content
})

const stateOf = (story: Story, name: string): Effect.Effect<Json> => story.get(`/contexts/${name}/state`)

const snapshotsOf = ({ access, projectId }: Story) =>
  ask(access, "select context_name, version, number from kb.context_snapshots where project_id = $1", [
    projectId
  ])

const change = ({ access, projectId }: Story, set: string) =>
  ask(access, `update kb.context_snapshots set ${set} where project_id = $1`, [projectId])

const faultsOf = (story: Story) =>
  Effect.map(story.get("/verify"), ({ differences }): ReadonlyArray<readonly [string, string]> =>
    differences.map(({ id, rule }: Json) => [rule, id])
  )

/** A conversation with a snapshot behind it. */
const longTalk = Effect.gen(function* () {
  const story = yield* newStoryHere
  yield* newContext(story, "talk", confiding, { systemPrompt: "Be brief." })
  const reducer = { type: "truncating", maxMessages: 40, maxTokens: null }
  yield* story.ask("POST", "/contexts/talk/events", { type: "SetReducerEvent", reducer })
  yield* mention(story, agentLimits.snapshotEvents + 10)
  expect(yield* answered(story)).toBe("I was told: Be brief.")
  return story
})

layer(SharedServer.layer)((it) => {
  describe("Opening a long context", () => {
    it.effect("begins with its newest snapshot, and there is one", () =>
      Effect.gen(function* () {
        const story = yield* longTalk
        const [[name, version, number] = []] = yield* snapshotsOf(story)
        expect([name, version]).toEqual(["talk", foldVersion])
        expect(Number(number)).toBeGreaterThan(agentLimits.snapshotEvents)
        expect(yield* faultsOf(story)).toEqual([])

        // Its window is small, so it is, too.
        const [[bytes] = []] = yield* ask(
          story.access,
          "select length(state::text) from kb.context_snapshots where project_id = $1",
          [story.projectId]
        )
        expect(Number(bytes)).toBeLessThan(10_000)

        // A little later there is nothing new to keep; much later it is replaced.
        yield* answered(story)
        expect(yield* snapshotsOf(story)).toEqual([["talk", foldVersion, number]])
        yield* mention(story, agentLimits.snapshotEvents)
        yield* answered(story)
        const later = yield* snapshotsOf(story)
        expect(later).toHaveLength(1)
        expect(Number(later[0]?.[2])).toBeGreaterThan(Number(number) + agentLimits.snapshotEvents)
        expect(yield* faultsOf(story)).toEqual([])
      })
    )

    it.effect(
      "reads nothing before it; one that is wrong is told, and without it everything is the same",
      () =>
        Effect.gen(function* () {
          const story = yield* longTalk
          const before = yield* stateOf(story, "talk")
          yield* change(story, `state = jsonb_set(state, '{systemPrompt}', '"Be planted."')`)
          expect(yield* answered(story)).toBe("I was told: Be planted.")
          expect(yield* faultsOf(story)).toEqual([["snapshot", "talk"]])

          // A fork behind it begins with it, and one before it with the log.
          yield* story.post("/contexts/talk/fork", { name: "behind" })
          yield* story.post("/contexts/talk/fork", { name: "before", at: agentLimits.snapshotEvents + 3 })
          expect((yield* stateOf(story, "behind")).messages[0].content).toBe("Be planted.")
          expect((yield* stateOf(story, "before")).messages[0].content).toBe("Be brief.")

          yield* change(story, "number = 100000")
          expect(yield* faultsOf(story)).toEqual([["snapshot", "talk"]])
          const events = before.nextEventNumber - 1
          const [[state] = []] = yield* ask(
            story.access,
            `delete from kb.context_snapshots where project_id = $1 returning state ->> 'systemPrompt'`,
            [story.projectId]
          )
          expect(state).toBe("Be planted.")
          expect((yield* stateOf(story, "talk")).messages[0].content).toBe("Be brief.")
          yield* story.post("/contexts/talk/fork", { name: "again", at: events })
          const again = yield* stateOf(story, "again")
          expect(again.messages).toEqual(before.messages)
          expect(again.droppedMessages).toBe(before.droppedMessages)
          expect(yield* faultsOf(story)).toEqual([])

          // Where it is gone, broken or of another version, the log is read, and folds to the same.
          yield* answered(story)
          const now = yield* stateOf(story, "talk")
          const [run] = (yield* story.get("/runs?limit=1")).items
          const exchange = yield* story.get(`/runs/${run.id}/model-calls/1`)
          yield* change(
            story,
            `version = ${foldVersion + 1}, state = jsonb_set(state, '{systemPrompt}', '"Be later."')`
          )
          expect(yield* stateOf(story, "talk")).toEqual(now)
          expect(yield* faultsOf(story)).toEqual([])
          yield* change(story, `version = ${foldVersion}, state = '{}'`)
          expect(yield* stateOf(story, "talk")).toEqual(now)
          expect(yield* faultsOf(story)).toEqual([["snapshot", "talk"]])
          expect(yield* story.get(`/runs/${run.id}/model-calls/1`)).toEqual(exchange)
          yield* ask(story.access, "delete from kb.context_snapshots where project_id = $1", [
            story.projectId
          ])
          expect(yield* stateOf(story, "talk")).toEqual(now)
          expect(yield* story.get(`/runs/${run.id}/model-calls/1`)).toEqual(exchange)
          // Whoever opens it next keeps another.
          yield* answered(story)
          expect(yield* snapshotsOf(story)).toHaveLength(1)
          expect(yield* faultsOf(story)).toEqual([])
        })
    )
  })
})
