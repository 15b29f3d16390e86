/**
 * What waits for an agent whose row somebody holds, and what does not.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { poolLimits } from "../src/database/limits.ts"
import { runLimits } from "../src/limits.ts"
import { Interposed, newInterposedStory } from "../testing/interposed.ts"
import { ask, holding } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { endedRuns, entriesWhen, make, runsOf, saying, silentFor, watcher } from "../testing/story-words.ts"

/** Holds an agent's row until what is answered is done. */
const held = Effect.fnUntraced(function* ({ access }: Story, agent: Json, mode: string) {
  const holder = yield* holding(access, `select from kb.agents where id = '${agent.id}' for ${mode}`)
  return Effect.orDie(holder.query("commit"))
})

const isRunning = (runs: ReadonlyArray<Json>) => runs.length === 1 && runs[0].status === "running"

layer(Interposed.layer, { excludeTestServices: true })((it) => {
  describe("An agent that somebody holds", () => {
    it.effect(
      "keeps its own spent run from being given up, and no other project's run from being taken",
      () =>
        Effect.gen(function* () {
          const { access } = yield* Interposed
          const [one, two] = [yield* newInterposedStory, yield* newInterposedStory]
          const slow = yield* one.post("/agents", watcher({ model: silentFor(600_000) }))
          const quick = yield* two.post("/agents", watcher({ triggerType: "manual", model: saying("Hi") }))
          yield* make(one, "Person")
          yield* eventually(runsOf(one, slow), isRunning)
          const letGo = yield* held(one, slow, "share")
          yield* ask(
            access,
            `update kb.agent_runs set attempt = ${runLimits.maxAttemptsInAll}, attempt_token = null, lease_expires_at = now() where project_id = $1`,
            [one.projectId]
          )
          // It is being given up, and waits for its agent.
          yield* whenWaiting(access, 1)
          // Long before it has been waited for as often as it is.
          const triesMs = poolLimits.lockTries * poolLimits.lockWaitMs
          for (const _ of [1, 2, 3]) {
            const told = yield* Effect.timeoutOption(two.post(`/agents/${quick.id}/trigger`), triesMs / 2)
            expect(Option.getOrUndefined(told)?.status).toBe("completed")
          }
          expect(isRunning(yield* runsOf(one, slow))).toBe(true)
          yield* letGo
          yield* endedRuns(one, slow, 1)
        })
    )

    it.effect(
      "keeps its own events waiting, and neither other projects' nor their record from being told",
      () =>
        Effect.gen(function* () {
          const [one, two] = [yield* newInterposedStory, yield* newInterposedStory]
          const slow = yield* one.post(
            "/agents",
            watcher({
              model: saying("Hi"),
              reactionConfig: { objectTypes: ["Person"], events: ["created"], debounceMs: 1 }
            })
          )
          const quick = yield* two.post("/agents", watcher({ model: saying("Hi") }))
          const letGo = yield* held(one, slow, "no key update")
          yield* make(one, "Person")
          yield* entriesWhen(one, slow, 1, ({ status }) => status === "pending")
          yield* make(two, "Person")
          yield* endedRuns(two, quick, 1)
          expect(yield* runsOf(one, slow)).toEqual([])
          yield* letGo
          yield* endedRuns(one, slow, 1)
        })
    )
  })
})
