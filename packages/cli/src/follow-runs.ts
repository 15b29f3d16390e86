/**
 * Sees each run as it begins, changes and ends, by looking at the newest runs again and again.
 *
 * The server streams what happens inside a run but not that there is a new one,
 * so this looks: often while runs are open, seldom while none is. `noteRuns` is
 * pure and decides what is new; a run that had ended before the first look is
 * never told, and no state of a run is told twice.
 */
import type { RunId } from "@tropism/domain/ids"
import { isTerminal, type Run } from "@tropism/domain/run"
import { Effect, Stream } from "effect"
import { type Access, readPages } from "./access.ts"
import { limits } from "./limits.ts"
import { whenAnswered } from "./waiting-for-server.ts"

/** What is known of the runs after a look. */
export interface SeenRuns {
  /** The runs that are not over, with the state that was told last. */
  readonly open: ReadonlyMap<
    RunId,
    { readonly state: string; readonly createdAt: string; readonly isPaused: boolean }
  >
  /** Runs that are over and were told, with the time of their creation, in the order they were told. */
  readonly over: ReadonlyMap<RunId, string>
  /** Runs that were created until this instant are known, whether they are listed here or not. */
  readonly knownUntil: string
}

/** What one look brought. */
export interface Look {
  /** The runs whose state is new, oldest first. */
  readonly changed: ReadonlyArray<Run>
  /** The runs that still have something to do. */
  readonly openCount: number
}

export const nothingSeen: SeenRuns = { open: new Map(), over: new Map(), knownUntil: "" }

/** Judges runs against what is known. */
export const noteRuns = (
  seen: SeenRuns,
  runs: ReadonlyArray<Run>
): { readonly seen: SeenRuns; readonly changed: ReadonlyArray<Run> } => {
  const open = new Map(seen.open)
  const over = new Map(seen.over)
  const changed: Array<Run> = []
  for (const run of runs.toSorted((a, b) =>
    a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : 0
  )) {
    if (isKnown(seen, run) || over.has(run.id)) continue
    const state = `${run.status} ${run.attempt}`
    if (open.get(run.id)?.state === state) continue
    changed.push(run)
    if (isTerminal(run.status)) {
      open.delete(run.id)
      over.set(run.id, run.createdAt)
    } else open.set(run.id, { state, createdAt: run.createdAt, isPaused: run.status === "paused" })
  }
  let knownUntil = seen.knownUntil
  for (const [id, createdAt] of over) {
    if (over.size <= limits.rememberedRuns) break
    over.delete(id)
    if (createdAt > knownUntil) knownUntil = createdAt
  }
  return { seen: { open, over, knownUntil }, changed }
}

const isKnown = (seen: SeenRuns, run: Run): boolean =>
  !seen.open.has(run.id) && (seen.over.has(run.id) || run.createdAt <= seen.knownUntil)

/** A stream of looks; the first comes as soon as what was there before is known. */
export const followRuns = (access: Access) =>
  Stream.unwrap(
    Effect.map(whenAnswered(firstLook(access)), (first) =>
      Stream.unfold({ seen: first, pauseMs: 0 }, ({ pauseMs, seen }) =>
        Effect.gen(function* () {
          yield* Effect.sleep(pauseMs)
          const next = noteRuns(seen, yield* whenAnswered(readRuns(access, seen)))
          const openCount = [...next.seen.open.values()].filter((run) => !run.isPaused).length
          const isBusy = openCount > 0 || next.changed.length > 0
          const look: Look = { changed: next.changed, openCount }
          return [
            look,
            { seen: next.seen, pauseMs: isBusy ? limits.runPollBusyMs : limits.runPollIdleMs }
          ] as const
        })
      )
    )
  )

/** Everything that is over counts as told; what is open is told when it changes. */
const firstLook = (access: Access) =>
  Effect.gen(function* () {
    const newest = yield* listRuns(access, {})
    const open = yield* Effect.forEach(["queued", "running", "paused"] as const, (status) =>
      readPages((query) => listRuns(access, { ...query, status: [status] }), limits.rememberedRuns)
    )
    const known = noteRuns(nothingSeen, [...open.flatMap((page) => page.items), ...newest.items])
    const knownUntil = newest.nextCursor === null ? "" : (newest.items.at(-1)?.createdAt ?? "")
    return { ...known.seen, knownUntil }
  })

/** Reads the newest runs down to those that are known, and the older ones that are open. */
const readRuns = (access: Access, seen: SeenRuns) =>
  Effect.gen(function* () {
    const runs: Array<Run> = []
    const unread = new Set([...seen.open].filter(([, run]) => !run.isPaused).map(([id]) => id))
    let cursor: string | null = null
    for (let page = 0; page < limits.runPagesPerLook; page++) {
      const answer: { readonly items: ReadonlyArray<Run>; readonly nextCursor: string | null } =
        yield* listRuns(access, cursor === null ? {} : { cursor })
      runs.push(...answer.items)
      for (const run of answer.items) unread.delete(run.id)
      cursor = answer.nextCursor
      const hasNew = answer.items.some((run) => !seen.open.has(run.id) && !isKnown(seen, run))
      if (cursor === null || (!hasNew && unread.size <= limits.openRunsPerLook)) break
    }
    const older = yield* Effect.forEach([...unread].slice(0, limits.openRunsPerLook), (runId) =>
      access.client.runs.get({ params: { ...access.params, runId } })
    )
    return [...runs, ...older]
  })

const listRuns = (
  access: Access,
  query: { readonly cursor?: string; readonly status?: ReadonlyArray<Run["status"]> }
) => access.client.runs.list({ params: access.params, query: { ...query, limit: 200 } })
