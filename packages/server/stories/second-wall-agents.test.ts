/**
 * What an agent may not write, the database refuses as well, told with the server's own rights.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Json } from "../testing/platform.ts"
import { type Columns, rawUpdate, refusalOfServer } from "../testing/raw-writes.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { make, runsOf, silentFor, suggestionsOf, watcher } from "../testing/story-words.ts"
import { begin, boss, isRunning, isWaiting, runWhen, spawning, worker } from "../testing/sub-agent-words.ts"
import { suggested, updating } from "../testing/suggestion-words.ts"
import { atWork, by, expectRefused, unknownId as unknown, wall } from "../testing/wall-words.ts"

layer(SharedServer.layer)((it) => {
  describe("Decision: the database refuses what an agent may not write", () => {
    it.effect("an agent writes in a run of its own that is at work", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { id: objectId } = yield* make(story, "Person")
        const { agent, by: own, run } = yield* atWork(story)
        const over = yield* story.post(
          "/agents",
          worker("over", { provider: "scripted", name: "s", script: { rules: [{ say: "Done." }] } })
        )
        const ended = yield* story.post(`/agents/${over.id}/trigger`)
        yield* expectRefused(
          story,
          {
            "no run": rawUpdate({ objectId, ...own, event: {} }),
            "a run that is not": rawUpdate({ objectId, ...own, event: { run_id: unknown } }),
            "another agent's run": rawUpdate({ objectId, ...by(over, run) }),
            "a run that has ended": rawUpdate({ objectId, ...by(over, ended) }),
            nobody: rawUpdate({ objectId, entity: { actor_type: "'agent'", actor_id: "null" } }),
            "no agent's id": rawUpdate({ objectId, entity: { actor_type: "'agent'", actor_id: "'admin'" } })
          },
          "no run of the agent"
        )
        expect(
          yield* refusalOfServer(story.access, story.projectId, rawUpdate({ objectId, ...own }))
        ).toBeUndefined()
        expect(yield* story.get(`/objects/${objectId}`)).toMatchObject({
          version: 2,
          actorType: "agent",
          actorId: agent.id
        })
      })
    )

    it.effect("an agent that may only suggest writes nothing without its approved suggestion", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { id: objectId } = yield* make(story, "Person")
        const suggesting = yield* atWork(story, { executionMode: "suggest" })
        const words = "may only suggest"
        yield* expectRefused(story, { "no task": rawUpdate({ objectId, ...suggesting.by }) }, words)
        // A sub-agent that may do everything, for an agent that may not.
        yield* story.post("/agents", worker("child", silentFor(600_000)))
        const above = yield* boss(story, [spawning("child")], { executionMode: "suggest" })
        const parent = yield* begin(story, above)
        yield* runWhen(story, parent, isWaiting)
        const child = (yield* story.get("/agents?limit=50")).items.find((one: Json) => one.name === "child")
        const [childRun] = yield* runsOf(story, child)
        yield* runWhen(story, childRun, isRunning)
        yield* expectRefused(
          story,
          { "a sub-agent's write": rawUpdate({ objectId, ...by(child, childRun) }) },
          words
        )
      })
    )

    it.effect(
      "an approval is of the agent's own suggestion, by who is named, and in its own transaction",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const ada = yield* make(story, "Person")
          const { agent, run, task } = yield* suggested(story, updating(ada, { seen: true }))
          const other = yield* story.post(
            "/agents",
            watcher({
              name: "other",
              executionMode: "suggest",
              model: silentFor(600_000),
              reactionConfig: { objectTypes: ["Other"], events: ["created"] }
            })
          )
          const approving = (columns: Columns, whose = agent) =>
            rawUpdate({
              objectId: ada.id,
              ...by(whose, run, { task_id: `'${task.id}'::uuid`, approved_by: "'admin'", ...columns })
            })
          const deciding = (id: string, status = "completed") =>
            `update kb.tasks set status = '${status}', resolved_by = 'admin', resolved_at = now() where id = '${id}'`
          const words = "no suggestion of the agent was approved for it"
          yield* expectRefused(
            story,
            { "it waits still": approving({}), "no task": approving({ task_id: unknown }) },
            words
          )
          /** What is said of an approval that was given in the same transaction, which is undone. */
          const refusedAfter = (decision: string, write: string) =>
            Effect.map(refusalOfServer(story.access, story.projectId, decision, write), (refusal) => [
              refusal?.code,
              refusal?.sentence
            ])
          const refused = [wall, expect.stringContaining(words)]
          expect(yield* refusedAfter(deciding(task.id, "rejected"), approving({}))).toEqual(refused)
          expect(yield* refusedAfter(deciding(task.id), approving({ approved_by: "'bob'" }))).toEqual(refused)
          expect(yield* refusedAfter(deciding(task.id), approving({ approved_by: "null" }))).toEqual(refused)
          expect(yield* refusedAfter(deciding(task.id), approving({}, other))).toEqual([
            wall,
            expect.stringContaining("no run of the agent")
          ])
          expect(yield* suggestionsOf(story, 1)).toMatchObject([{ id: task.id, status: "pending" }])

          // As the gateway does it, it is done; and the approval serves once.
          expect(
            yield* refusalOfServer(story.access, story.projectId, deciding(task.id), approving({}))
          ).toBeUndefined()
          yield* expectRefused(story, { "an approval of before": approving({}) }, words)
        })
    )
  })
})
