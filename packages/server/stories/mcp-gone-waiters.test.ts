/**
 * Who waits in a session of 2025-11-25 for the end of a task and goes away makes room for others.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { taskBounds } from "../src/mcp/run-task.ts"
import { type Answering, newSession, type Session } from "../testing/mcp-sessions.ts"
import { eventually } from "../testing/platform.ts"
import { asked, asking } from "../testing/question-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

/** The ways in which a client goes that waits. */
const goings: ReadonlyArray<
  readonly [string, (wait: Answering, session: Session) => Effect.Effect<unknown>]
> = [
  ["whose connection breaks", ({ cut }) => cut],
  ["that takes its request back", (wait, { takeBack }) => takeBack(wait)],
  ["that ends its session", (_, { end }) => end]
]

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A client of 2025-11-25", () => {
    for (const [how, go] of goings)
      it.effect(`${how} waits for the end of a task no more`, () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { run } = yield* asked(story, asking("Which?"))
          const forms = { elicitation: { form: {} } }
          const [session, other] = [yield* newSession(story, forms), yield* newSession(story, forms)]
          const waiting = ({ open }: Session) => open("tasks/result", { taskId: run.id })
          // Whoever waits is asked what the task asks.
          const places = Array.from({ length: taskBounds.waitsOfUser })
          const waits = yield* Effect.forEach(places, () => waiting(session), { concurrency: 5 })
          for (const { first } of waits) expect(yield* first).toMatchObject({ method: "elicitation/create" })
          const comesLate = Effect.scoped(Effect.flatMap(waiting(other), ({ first }) => first))
          expect(yield* comesLate).toMatchObject({
            error: { code: -32_603, message: expect.stringContaining("tasks/get") }
          })
          const [wait] = waits
          if (wait !== undefined) yield* go(wait, session)
          yield* eventually(comesLate, ({ method }) => method === "elicitation/create")
        })
      )
  })
})
