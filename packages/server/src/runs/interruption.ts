/**
 * Detects messages and cancellations that interrupt a turn during a model request.
 *
 * The log decides: a notification only triggers a read, and a periodic sweep covers lost notifications. This module decides and writes
 * nothing; its caller aborts the request.
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

  /** Waits until the log has gained an event that ends the turn, and returns which. */
  const broken = Effect.fnUntraced(function* (
    { contextName, projectId, trigger }: ClaimedRun,
    { nextEventNumber }: ReducedContext
  ) {
    const mailbox = yield* notifier.listen(`context:${projectId}/${contextName}`)
    let after = nextEventNumber - 1
    // Most runs' own logs receive no messages, so these read only after a notification.
    if (trigger.type !== "context") yield* nextNotification(mailbox, runLimits.breakInSweepMs)
    while (true) {
      // A failed read counts as no interruption, because the running request is worth more.
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
