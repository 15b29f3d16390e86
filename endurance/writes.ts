/**
 * Writes to the graph at a steady rate for long: none is slow, none is lost, and the server does not grow.
 *
 * Every second write makes an object and every other one changes one that is
 * there. A write's time begins when it is due, so that one that had to wait to be
 * sent is not told to be quicker than it was.
 */
import type { Rows } from "../bench/database.ts"
import { atRate, newProject, nowMs } from "../bench/doors.ts"
import { quantile } from "../bench/figures.ts"
import { atMost, exactly, type Finding, flatness, told, type Trial } from "./trial.ts"
import { watch } from "./watch.ts"

const slowestMs = 100
/** So many of the newest objects are changed in turn. */
const changed = 1_000
const warmUpShare = 0.02

export const keepWriting = async ({ rows, send, server, size }: Trial): Promise<ReadonlyArray<Finding>> => {
  const { id, path } = await newProject(send)
  const newest: Array<string> = []
  let made = 0
  const write = async (index: number): Promise<void> => {
    const target = index % 2 === 0 ? undefined : newest[index % newest.length]
    if (target !== undefined) {
      await send("PATCH", `${path}/objects/${target}`, { properties: { index } })
      return
    }
    const { id: objectId } = await send("POST", `${path}/objects`, { type: "Reading", properties: { index } })
    newest[made++ % changed] = objectId
  }
  const times = Math.round((size.writtenPerSecond * size.writtenMs) / 1_000)
  const warmUp = Math.ceil(times * warmUpShare)
  await steadily(size.writtenPerSecond, 0, warmUp, write)
  const before = await server.heapBytes()
  const stop = watch(server, rows, size.lookEveryMs)
  const tookMs = await steadily(size.writtenPerSecond, warmUp, times - warmUp, write)
  const looks = await stop()
  const after = await server.heapBytes()
  const quarter = Math.floor(tookMs.length / 4)
  return [
    ...(await kept(rows, id, { times, made })),
    told("a write, p50", quantile(tookMs, 0.5), "ms"),
    atMost("a write, p99", quantile(tookMs, 0.99), slowestMs, "ms"),
    told("a write in the second quarter, p99", quantile(tookMs.slice(quarter, 2 * quarter), 0.99), "ms"),
    told("a write in the last quarter, p99", quantile(tookMs.slice(-quarter), 0.99), "ms"),
    told("the slowest write", quantile(tookMs, 1), "ms"),
    ...flatness(looks, { before, after })
  ]
}

/** Writes so often in a second and answers how long each took from when it was due. */
const steadily = async (
  perSecond: number,
  first: number,
  times: number,
  write: (index: number) => Promise<void>
): Promise<ReadonlyArray<number>> => {
  const tookMs: Array<number> = []
  await atRate(perSecond, times, async (index, dueMs) => {
    await write(first + index)
    tookMs[index] = nowMs() - dueMs
  })
  return tookMs
}

/** Each acknowledged write is there, with its version and its event, once. */
const kept = async (
  rows: Rows,
  projectId: string,
  { made, times }: { readonly made: number; readonly times: number }
): Promise<ReadonlyArray<Finding>> => {
  const [row] = await rows.ask((sql) =>
    sql.unsafe<Record<"objects" | "versions" | "events" | "indexes", number>>(
      `select (select count(*) from kb.graph_objects where project_id = $1)::int as objects,
         (select count(*) from kb.graph_object_versions where project_id = $1)::int as versions,
         (select count(*) from kb.graph_events where project_id = $1)::int as events,
         (select count(distinct properties->>'index') from kb.graph_object_versions where project_id = $1)::int as indexes`,
      [projectId]
    )
  )
  return [
    exactly("objects that were made", row?.objects ?? Number.NaN, made),
    exactly("versions, one for each write", row?.versions ?? Number.NaN, times),
    exactly("events, one for each write", row?.events ?? Number.NaN, times),
    exactly("writes whose value is kept", row?.indexes ?? Number.NaN, times)
  ]
}
