/**
 * Watches runs as tasks, and says when they stand otherwise.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * What is said is read from committed rows, by whichever server program the
 * client is connected to: wake-ups only save the time until the next sweep. A
 * look is the same few statements for all tasks of a stream; the whole task is
 * read only when it stands otherwise than it was told. Who watches is looked up
 * with each look, so whoever has lost the token or the right is told nothing more.
 * Nobody who does not watch costs anything.
 */
import type { RunId } from "@tropism/domain/ids"
import { Effect, Queue, type Scope } from "effect"
import { nextWakeUp, type Topic, WakeUps } from "../outbox/wake-ups.ts"
import { isOver } from "./core-task.ts"
import type { DetailedTask } from "./run-task.ts"
import { RunTasks } from "./run-tasks.ts"
import { taskBounds } from "./task-bounds.ts"
import type { TaskCaller } from "./task-caller.ts"

/** Watches on the services of the platform. */
export const makeTaskWatching = Effect.gen(function* () {
  const tasks = yield* RunTasks
  const wakeUps = yield* WakeUps

  /** A bell that rings when one of these runs may stand otherwise. */
  const bellOf = Effect.fnUntraced(function* (runIds: ReadonlyArray<RunId>) {
    const bell = yield* Queue.sliding<void>(1)
    for (const id of runIds) {
      const mailbox = yield* wakeUps.listen(`run:${id}` satisfies Topic)
      const ring = Effect.andThen(Queue.take(mailbox), Queue.offer(bell, undefined))
      yield* Effect.forkScoped(Effect.forever(ring))
    }
    return bell
  })

  /** Tells how each run stands now, and then whenever that is otherwise; ends when none can change any more, or there is nobody to be told. */
  return Effect.fnUntraced(function* (
    /** Who watches by now; undefined when nobody may. */
    findCaller: Effect.Effect<TaskCaller | undefined>,
    runIds: ReadonlyArray<RunId>,
    tell: (task: DetailedTask) => Effect.Effect<void>
  ): Effect.fn.Return<void, never, Scope.Scope> {
    const bell = yield* bellOf(runIds)
    const told = new Map<string, string>()
    let open: ReadonlyArray<RunId> = runIds
    while (open.length > 0) {
      const caller = yield* findCaller
      if (caller === undefined) return
      const glances = yield* Effect.orElseSucceed(tasks.glance(caller, open), () => [])
      const stillOpen: Array<RunId> = []
      for (const { keys, task } of glances) {
        const runId = task.taskId as RunId
        const standing = JSON.stringify([task.status, keys])
        if (!isOver(task.status)) stillOpen.push(runId)
        if (told.get(runId) === standing) continue
        // Whoever may not read it any more since that glance is told nothing.
        const whole = yield* Effect.orElseSucceed(tasks.get(caller, runId), () => undefined)
        if (whole === undefined) continue
        told.set(runId, JSON.stringify([whole.status, Object.keys(whole.inputRequests ?? {})]))
        yield* tell(whole)
      }
      open = stillOpen
      if (open.length > 0) yield* nextWakeUp(bell, taskBounds.sweepIntervalMs)
    }
  })
})
