/**
 * The two phases of a simulation, one after the other: safety, then liveness.
 *
 * In **safety** anything may go wrong at any moment, and nothing that was promised
 * may ever be broken; what was broken stays in the rows for the checkers to find.
 * It goes on for a while behind the last person's deed. In **liveness** nothing
 * goes wrong any more: no fault strikes, foreign servers behave, the database
 * answers at once, nobody asks for anything new and the calendar has no more
 * instants. Some servers may have died for good, but one at least stays up. Then
 * everything must become final, and nothing may stand still for longer than the
 * server's own intervals explain (`open-work.ts`).
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { CrashPointName } from "../src/crash-point.ts"
import { outboxLimits } from "../src/limits.ts"
import type { Chance } from "./chance.ts"
import type { FaultPlan } from "./faults.ts"
import { endCalendar, readOpenWork } from "./open-work.ts"
import { makeStandstill } from "./standstill.ts"
import type { WorldClock } from "./world-clock.ts"

/** How the phases went. */
export interface Phases {
  /** How long each took, in the simulation's time. */
  readonly safetyMs: number
  readonly livenessMs: number
  /** What had not become final when it should have; empty where everything did. */
  readonly overdue: ReadonlyArray<string>
}

/** Faults go on for so long at most when nobody asks for anything more. */
const mostAftermathMs = 20_000

/** So long they go on for the sake of the crash point that is aimed at, if nobody has died there yet. */
const mostAimMs = 10_000
const aimLookMs = 500

/** The rest of the phase of safety, behind the last deed of a person: short in half of all worlds, so that much is left to do. */
export const aftermath = Effect.fnUntraced(function* (
  { hasStruck }: FaultPlan,
  aim: CrashPointName,
  chance: Chance
) {
  if (chance.oneIn(2)) yield* Effect.sleep(chance.between(1, mostAftermathMs))
  for (let leftMs = mostAimMs; leftMs > 0 && !hasStruck(aim); leftMs -= aimLookMs)
    yield* Effect.sleep(aimLookMs)
})

/**
 * What is open moves all the time and comes to no end: work goes round in circles.
 *
 * **Details** What is open when the phase begins, and all that follows from it, is finite, for chains are capped. Each of it
 * that moves may take as long as a model is silent; the most that was seen is a fifth of this.
 */
const circlesMs = 3_600_000

/** Between two looks: the lookout's look lies in between, and each of ours is a turn. */
const lookIntervalMs = 2 * outboxLimits.lookIntervalMs

/** Looks until nothing is open, or something has stood still for too long; answers what. */
export const becomesFinal = Effect.fnUntraced(function* (
  clock: WorldClock,
  projectId: ProjectId,
  toldAll: string | undefined
) {
  const sql = yield* SqlClient.SqlClient
  yield* endCalendar(sql, projectId)
  const beginMs = clock.nowMs()
  const standstill = makeStandstill(beginMs)
  while (true) {
    const open = yield* readOpenWork(sql, projectId, toldAll)
    const nowMs = clock.nowMs()
    const overdue = standstill.look(open, nowMs)
    if (open.length === 0 || overdue.length > 0) return overdue
    if (nowMs - beginMs > circlesMs)
      return open.map(({ name, standing }) => `${name}: it goes round in circles, and stands at ${standing}`)
    yield* Effect.sleep(lookIntervalMs)
  }
})
