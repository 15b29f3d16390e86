/**
 * Those who look after the runs of a simulation: one answers what agents ask, one
 * lets go on what a limit has paused.
 */
import type { UserId } from "@tropism/domain/ids"
import { isResumable, type LimitOverrides } from "@tropism/domain/run"
import { isQuestion } from "@tropism/domain/task"
import { Effect } from "effect"
import { Resumptions } from "../src/reactions/manual-retries.ts"
import { Answers } from "../src/runs/questions.ts"
import { Runs } from "../src/runs/run-store.ts"
import { Tasks } from "../src/review/tasks.ts"
import type { Person } from "./people.ts"

const by = "ada" as UserId

/** Answers whatever is asked, sooner or later, as long as the simulation lasts. */
export const answer = Effect.fnUntraced(function* ({ chance, ask }: Person) {
  while (true) {
    yield* Effect.sleep(chance.between(300, 3_000))
    const seen = yield* ask(
      Effect.flatMap(Tasks, (tasks) => tasks.list({ status: "pending", type: "question" }, by, undefined, 50))
    )
    for (const task of seen.type === "done" ? seen.value.filter(isQuestion) : []) {
      if (chance.oneIn(3)) continue
      yield* ask(
        Effect.gen(function* () {
          const runs = yield* Runs
          const run = yield* runs.get(task.runId)
          if (run !== undefined) yield* (yield* Answers).give(run, "The first", task.id, by)
        })
      )
    }
  }
})

/** Lets paused runs go on, with more to spend or with as little as they had. */
export const resume = Effect.fnUntraced(function* ({ chance, ask }: Person) {
  for (let n = chance.between(2, 5); n > 0; n--) {
    yield* Effect.sleep(chance.between(100, 1_500))
    const limits = chance.pick<LimitOverrides>([
      {},
      { maxTokens: 100_000, maxSteps: 10 },
      { timeoutMs: 60_000 }
    ])
    yield* ask(
      Effect.gen(function* () {
        const runs = yield* Runs
        const paused = yield* runs.list({ status: ["paused"] }, undefined, 3)
        for (const run of paused)
          if (run.pauseReason !== null && isResumable(run.pauseReason))
            yield* (yield* Resumptions).resume(run, { by, limits })
      })
    )
  }
})
