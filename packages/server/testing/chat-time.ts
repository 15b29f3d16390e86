/**
 * The words in which stories of chat let time pass.
 */
import { Effect } from "effect"
import type { Answer } from "./platform.ts"
import { asTimePasses } from "./shared-server.ts"

/** What a request is answered, while time passes in steps. */
export const inTime = (request: Effect.Effect<Answer>, stepMs: number) =>
  Effect.gen(function* () {
    const got: Array<Answer> = []
    yield* Effect.forkChild(Effect.tap(request, (answer) => Effect.sync(() => got.push(answer))))
    const [answer] = yield* asTimePasses(
      stepMs,
      Effect.sync(() => [...got]),
      (seen) => seen.length > 0
    )
    return answer
  })
