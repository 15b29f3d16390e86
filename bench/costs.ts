/** What a reaction costs: rate, processor time, commits and rows written, with one event after the other and many at once. `bun bench/costs.ts [reactions]` */
import { Redacted } from "effect"
import { registerAgent, wakingType } from "./agents.ts"
import { countRuns, openRows } from "./database.ts"
import { doorsOf, newProject, until, withHands } from "./doors.ts"
import { startServerProcess } from "./server-process.ts"

const reactions = Number(process.argv[2] ?? 1_000)
const server = await startServerProcess()
const send = doorsOf(server)
const rows = openRows(server.ownerUrl)
const admin = new Bun.SQL(Redacted.value(server.adminUrl), { max: 1 })
const { path } = await newProject(send)
const agentId = await registerAgent(send, path, "says one sentence")

interface Counts {
  readonly commits: number
  readonly written: number
}

const counts = async (): Promise<Counts> => {
  // Each backend reports its counts at most once a second.
  await Bun.sleep(2_000)
  const [row] = await admin`
    select (select xact_commit from pg_stat_database where datname = current_database())::int as commits,
      (select sum(n_tup_ins + n_tup_upd + n_tup_del) from pg_stat_user_tables where schemaname = 'kb')::int as written`
  return row
}

let total = 0
const burst = async (count: number) => {
  await withHands(8, { ms: 600_000, times: count }, async (number) => {
    await send("POST", `${path}/objects`, {
      type: wakingType,
      properties: { number, name: `thing ${number}` }
    })
  })
  total += count
  await until(
    () => countRuns(rows, agentId),
    ({ rested }) => rested >= total,
    "not all runs have ended"
  )
}

try {
  await burst(300)
  const [cpu, before] = [await server.cpuMs(), await counts()]
  const beganMs = performance.now()
  await burst(reactions)
  const tookMs = performance.now() - beganMs
  const [cpuAfter, after] = [await server.cpuMs(), await counts()]
  const each = (from: number, to: number) => ((to - from) / reactions).toFixed(2)
  console.log(
    `${((reactions * 1_000) / tookMs).toFixed(0)} reactions/s; of each: server ${each(cpu.server, cpuAfter.server)} ms, ` +
      `PostgreSQL ${each(cpu.postgres, cpuAfter.postgres)} ms, commits ${each(before.commits, after.commits)}, rows ${each(before.written, after.written)}`
  )
} finally {
  await admin.end()
  await rows.close()
  await server.stop()
}
