/**
 * What a server takes while it works, looked at again and again, and whether that stays flat.
 *
 * The operating system says how much memory and how many file handles the server
 * has, and PostgreSQL how many connections. A server warms up: what is compared is
 * the last quarter of the time with the second one.
 */
import { serverRole } from "@tropism/server/database/postgres-access"
import type { Rows } from "../bench/database.ts"
import type { ServerProcess } from "../bench/server-process.ts"

/** One look. */
export interface Look {
  readonly residentMb: number
  readonly handles: number
  readonly connections: number
}

/** What is looked at, its unit, and by how much more than in the second quarter it may be in the last. */
const watched: Readonly<
  Record<
    keyof Look,
    { readonly what: string; readonly unit: string; readonly mostTimes: number; readonly mostMore: number }
  >
> = {
  // A heap is as large as the collector lets it become, so it comes and goes by some dozens of megabytes.
  residentMb: { what: "memory", unit: "MB", mostTimes: 1.15, mostMore: 24 },
  handles: { what: "file handles", unit: "", mostTimes: 1, mostMore: 8 },
  connections: { what: "connections to PostgreSQL", unit: "", mostTimes: 1, mostMore: 4 }
}

/** How one of them went, by the medians of two quarters. */
interface Course {
  readonly what: string
  readonly unit: string
  readonly second: number
  readonly last: number
  readonly most: number
  readonly isFlat: boolean
}

/** How many looks a course needs: with fewer, a quarter is a coincidence. */
export const fewestLooks = 8

/** Judges looks that were taken at even distances. */
export const coursesOf = (looks: ReadonlyArray<Look>): ReadonlyArray<Course> => {
  if (looks.length < fewestLooks)
    throw new Error(`${looks.length} looks are too few to judge by; take ${fewestLooks}`)
  const quarter = Math.floor(looks.length / 4)
  return (Object.keys(watched) as Array<keyof Look>).map((name) => {
    const { what, unit, mostTimes, mostMore } = watched[name]
    const all = looks.map((look) => look[name])
    const second = median(all.slice(quarter, 2 * quarter))
    const last = median(all.slice(-quarter))
    const isFlat = last <= Math.max(second * mostTimes, second + mostMore)
    return { what, unit, second, last, most: Math.max(...all), isFlat }
  })
}

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

/** Looks at a server until it is told to stop, and answers what it saw. */
export const watch = (
  server: ServerProcess,
  rows: Rows,
  everyMs: number
): (() => Promise<ReadonlyArray<Look>>) => {
  const looks: Array<Look> = []
  const over = new AbortController()
  const ended = new Promise<void>((resolve) => over.signal.addEventListener("abort", () => resolve()))
  const looking = (async () => {
    while (!over.signal.aborted) {
      looks.push(await lookAt(server, rows))
      await Promise.race([Bun.sleep(everyMs), ended])
    }
  })()
  // Whoever stops it hears of a look that failed; until then it is nobody's.
  looking.catch(() => undefined)
  return async () => {
    over.abort()
    await looking
    return looks
  }
}

const lookAt = async (server: ServerProcess, rows: Rows): Promise<Look> => {
  const [row] = await rows.ask((sql) =>
    sql.unsafe<{ count: number }>("select count(*)::int as count from pg_stat_activity where usename = $1", [
      serverRole
    ])
  )
  return {
    residentMb: Math.round((await server.residentBytes()) / 1_000_000),
    handles: await server.handles(),
    connections: row?.count ?? Number.NaN
  }
}
