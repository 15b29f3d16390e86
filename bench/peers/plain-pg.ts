/**
 * The floor: `pg` alone, one row and one commit for a step, one read for a log.
 */
import { Pool } from "pg"
import { databaseUrl, medianPerStep, nowMs, serveActs, toolCall } from "./acts.ts"

const pool = new Pool({ connectionString: databaseUrl })
await pool.query(
  "create table if not exists steps (id bigint generated always as identity primary key, payload jsonb not null)"
)

/** Pools on databases that are not its own. */
const others = new Map<string, Pool>()

const payload = JSON.stringify({ role: "assistant", text: "", calls: [toolCall] })

serveActs({
  /** One plain commit for each step. */
  steps: async (input: { readonly steps: number; readonly times: number }) => {
    const client = await pool.connect()
    try {
      return await medianPerStep(input, async () => {
        for (let step = 0; step < input.steps; step++)
          await client.query({
            name: "step",
            text: "insert into steps (payload) values ($1)",
            values: [payload]
          })
      })
    } finally {
      client.release()
    }
  },
  /** Reads the rows of somebody's table and answers how long that took and how many there are. */
  read: async ({ url, text, values }: { url: string; text: string; values: ReadonlyArray<unknown> }) => {
    const other = others.get(url) ?? new Pool({ connectionString: url })
    others.set(url, other)
    await other.query("select 1")
    const begun = nowMs()
    const { rows } = await other.query(text, [...values])
    return { ms: nowMs() - begun, count: rows.length }
  }
})
