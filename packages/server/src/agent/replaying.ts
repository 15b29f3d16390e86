/**
 * Replays the log of a context: folds it from its beginning and judges each event.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * It reads a page at a time, each in a transaction of its own, and remembers no
 * more than the state: a log of any length is replayed beside those who write to
 * it. No model is asked, no tool is called, and nothing is written.
 */
import type { ContextName } from "@tropism/domain/context-event"
import type { ProjectId } from "@tropism/domain/ids"
import { beginReplay, replay, replayOf } from "@tropism/domain/replay"
import { Effect } from "effect"
import { Database } from "../database/database.ts"
import { agentLimits } from "../limits.ts"
import { Contexts } from "./contexts.ts"

/** Replays the first events of a context, so many as it had when somebody looked. */
export const replayContext = Effect.fn("replayContext")(function* (
  projectId: ProjectId,
  name: ContextName,
  eventCount: number
) {
  const database = yield* Database
  const contexts = yield* Contexts
  let replaying = beginReplay
  while (replaying.events < eventCount) {
    const wanted = Math.min(agentLimits.logPageEvents, eventCount - replaying.events)
    const page = yield* database.inProject(projectId, contexts.read(name, replaying.events, wanted))
    if (page.length === 0) break
    replaying = replay(replaying, page)
  }
  return replayOf(replaying)
})
