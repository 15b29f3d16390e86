/**
 * A server is killed while a call waits for a client, when the answer comes, and when its time is over: nothing is lost, and nothing
 * happens twice.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { answerTool, clientConversation, picking, untilWaiting } from "../testing/client-tool-words.ts"
import { addEvent, quietLog } from "../testing/context-words.ts"
import { newestRun } from "../testing/define-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { prepareMortal, startMortal } from "../testing/mortal-servers.ts"
import { newProject, storyIn } from "../testing/platform.ts"
import { ofType } from "../testing/run-words.ts"
import { callsOf } from "../testing/story-words.ts"

describe("A server that is killed around a call of a client tool", () => {
  it.live(
    "S004-F02 kill -9 while it waits, then before the answer is kept, then before the run goes on",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const access = yield* freshDatabase
          const [startSecond, startThird, startLast] = [
            yield* prepareMortal(access),
            yield* prepareMortal(access),
            yield* prepareMortal(access)
          ]
          const first = yield* startMortal(access)
          const { projectId } = yield* newProject(first, access)
          const here = storyIn(first, access, projectId)
          yield* clientConversation(here)
          yield* first.dieAt("run.afterWait", 1)
          yield* addEvent(here, "talk", "Go")
          yield* first.died

          const second = yield* startSecond
          const there = storyIn(second, access, projectId)
          const run = yield* newestRun(there)
          expect(run).toMatchObject({ status: "paused", pauseReason: "toolResult" })
          const [call] = yield* callsOf(there, run)
          yield* second.dieAt("tool.beforeCommit", 1)
          yield* Effect.forkChild(Effect.exit(answerTool(there, call.callId, { result: "lost" })))
          yield* second.died

          const third = yield* startThird
          const again = storyIn(third, access, projectId)
          yield* third.dieAt("run.afterClaim", 1)
          yield* Effect.forkChild(Effect.exit(answerTool(again, call.callId, { result: "kept" })))
          yield* third.died

          const last = storyIn(yield* startLast, access, projectId)
          // The client does not know whether its answer was kept, and sends it again.
          const repeated = yield* answerTool(last, call.callId, { result: "kept" })
          expect([repeated.status, repeated.body.reason]).toEqual([409, "answered"])
          const log = yield* quietLog(last, "talk")
          expect(ofType(log, "ToolCallStartedEvent")).toHaveLength(1)
          expect(ofType(log, "ToolCallCompletedEvent")).toMatchObject([{ result: "kept" }])
          expect(yield* newestRun(last)).toMatchObject({
            id: run.id,
            status: "completed",
            summary: 'pick_colour: "kept"; '
          })
          expect((yield* last.get("/verify")).differences).toEqual([])
        })
      )
  )

  it.live("S004-F02 kill -9 before the timeout is kept: the next server fails the call, once", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const startSecond = yield* prepareMortal(access)
        const first = yield* startMortal(access)
        const { projectId } = yield* newProject(first, access)
        const here = storyIn(first, access, projectId)
        yield* clientConversation(here, [picking()], { timeoutMs: 5_000 })
        const { callId, run } = yield* untilWaiting(here)
        yield* first.dieAt("tool.beforeCommit", 1)
        yield* first.died
        const there = storyIn(yield* startSecond, access, projectId)
        const log = yield* quietLog(there, "talk")
        expect(ofType(log, "ToolCallFailedEvent")).toMatchObject([{ callId, error: { reason: "timeout" } }])
        expect(yield* newestRun(there)).toMatchObject({ id: run.id, status: "completed", stepCount: 2 })
        expect((yield* callsOf(there, run)).map(({ status }) => status)).toEqual(["failed"])
      })
    )
  )
})
