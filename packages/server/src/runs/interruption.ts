/**
 * Notices that somebody speaks, or wants the turn to end, while a model is asked.
 *
 * The log is what counts: a wake-up, from this server or another, only says when
 * to look, and a sweep looks where none came. Nothing is decided here and nothing
 * is written; whoever waits aborts the request.
 */
import type { ReducedContext } from "@tropism/domain/context"
import { Effect } from "effect"
import { Contexts } from "../contexts/contexts.ts"
import { Database } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { nextNotification, survive, Notifier } from "../outbox/notifier.ts"
import type { ClaimedRun } from "./run-types.ts"

export const makeInterruption = Effect.gen(function* () {
  const database = yield* Database
  const contexts = yield* Contexts
  const notifier = yield* Notifier

  /** Waits until the log, as it was folded, has grown by something that ends the turn, and says what it was. */
  const broken = Effect.fnUntraced(function* (
    { contextName, projectId, trigger }: ClaimedRun,
    { nextEventNumber }: ReducedContext
  ) {
    const mailbox = yield* notifier.listen(`context:${projectId}/${contextName}`)
    let after = nextEventNumber - 1
    // Nobody speaks in most runs' own logs, so there no question is asked before something has come.
    if (trigger.type !== "context") yield* nextNotification(mailbox, runLimits.breakInSweepMs)
    while (true) {
      // Who could not be asked has said nothing yet: the request under way is worth more than the look.
      const grown = yield* survive(
        "A look at who breaks into a turn",
        database.inProject(projectId, contexts.read(contextName, after, runLimits.breakInPageEvents)),
        []
      )
      if (grown.some(({ type }) => type === "InterruptRequestedEvent")) return "user" as const
      if (grown.some(({ triggersAgentTurn }) => triggersAgentTurn)) return "message" as const
      after += grown.length
      if (grown.length < runLimits.breakInPageEvents)
        yield* nextNotification(mailbox, runLimits.breakInSweepMs)
    }
  }, Effect.scoped)

  return { broken }
})
