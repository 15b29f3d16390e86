/**
 * Ends runs from outside: a person cancels one, or nobody is left to work on it.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * The run's row decides against completion, once; its log is closed in the same
 * transaction. An actor that is still at work finds its token gone.
 */
import type { ContextName } from "@tropism/domain/context-event"
import type { RunId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { Contexts } from "../agent/contexts.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { type Closing, closingEvents } from "./closing.ts"
import type { RunNotInState } from "./holding.ts"
import { Runs } from "./runs.ts"

export class Endings extends Context.Service<
  Endings,
  {
    /** Cancels a run that has not ended and keeps what it said so far as its summary. */
    readonly cancel: (run: {
      readonly id: RunId
      readonly contextName: string
    }) => Effect.Effect<void, RunNotInState, ProjectTransaction>
    /** Fails the runs whose worker went silent too often. */
    readonly giveUp: Effect.Effect<void, never, ProjectTransaction>
  }
>()("@tropism/server/run/Endings") {
  static readonly layer = Layer.effect(
    Endings,
    Effect.gen(function* () {
      const runs = yield* Runs
      const contexts = yield* Contexts

      const close = Effect.fnUntraced(function* (name: ContextName, closing: Closing) {
        const context = yield* contexts.load(name)
        yield* contexts.append(name, closingEvents(context, closing))
        return context
      })

      const cancel = Effect.fn("Endings.cancel")(function* (run: {
        readonly id: RunId
        readonly contextName: string
      }) {
        const name = run.contextName as ContextName
        yield* contexts.lock(name)
        const { lastText } = yield* contexts.load(name)
        yield* runs.cancel(run.id, lastText.slice(0, runLimits.summaryMaxChars))
        yield* close(name, { type: "interrupted", reason: "cancelled" })
      })

      const giveUp = Effect.gen(function* () {
        for (const { contextName } of yield* runs.giveUp)
          yield* close(contextName, { type: "interrupted", reason: "crash" })
      })

      return Endings.of({ cancel, giveUp })
    })
  )
}
