/**
 * The floor: what one row and one commit cost through the same client, pool and database.
 *
 * No program that keeps each step before it takes the next can be faster.
 */
import type { Redacted } from "effect"
import { openRows } from "./database.ts"
import { withHands } from "./doors.ts"
import { quantile, type Report } from "./figures.ts"
import type { AttemptContext } from "./measures.ts"

export const measureFloor = async (
  url: Redacted.Redacted,
  ms: number,
  report: Report
): Promise<AttemptContext["floor"]> => {
  const rows = openRows(url)
  await rows.alone([
    `create table if not exists public.bench_floor (id bigint generated always as identity primary key, payload jsonb not null)`
  ])
  const payload = JSON.stringify({ number: 1, text: "one row" })
  const commit = async () =>
    void (await rows.ask(
      (sql) => sql`insert into public.bench_floor (payload) values (${payload}::text::jsonb)`
    ))
  const select = async () =>
    void (await rows.ask((sql) => sql`select payload from public.bench_floor where id = ${1}`))
  const endless = Number.MAX_SAFE_INTEGER
  await withHands(16, { ms: 300, times: endless }, commit)
  const alone = await withHands(1, { ms, times: endless }, commit)
  const together = await withHands(16, { ms, times: endless }, commit)
  const reads = await withHands(1, { ms: ms / 2, times: endless }, select)
  await rows.close()
  const floor = {
    commitMs: quantile(alone.durations, 0.5),
    commitsPerSecond16: (together.durations.length * 1_000) / together.elapsedMs
  }
  report({ name: "floor: one plain commit, p50", load: "1 client", value: floor.commitMs, unit: "ms" })
  report({ name: "floor: plain commits", load: "16 clients", value: floor.commitsPerSecond16, unit: "/s" })
  report({
    name: "floor: one plain read, p50",
    load: "1 client",
    value: quantile(reads.durations, 0.5),
    unit: "ms"
  })
  return floor
}
