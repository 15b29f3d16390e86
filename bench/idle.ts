/**
 * What servers ask of their database when nobody asks anything of them: one by itself, and three that work together.
 */
import { nameOf } from "@tropism/server/cluster/peers"
import { withDatabase } from "@tropism/server/database/postgres-access"
import { Effect } from "effect"
import { freeAddress } from "../packages/server/testing/cluster-servers.ts"
import { countTransactions, openRows, type Rows } from "./database.ts"
import type { AttemptContext, Size } from "./measures.ts"
import { startClusterProcess } from "./server-process.ts"

/** Transactions of a database in a second, and what `beside` counts meanwhile. */
const whileIdle = async (rows: Rows, { idleMs, restMs }: Size, beside: () => Promise<number>) => {
  // Nothing tells that a server has come to rest, nor that each backend has counted what it did.
  await Bun.sleep(restMs)
  const before = await countTransactions(rows)
  const besideBefore = await beside()
  await Bun.sleep(idleMs)
  const besideAfter = await beside()
  // The bench's own looks are one transaction each, which may be counted only later.
  const count = Math.max(0, (await countTransactions(rows)) - before - 1)
  return { perSecond: (count * 1_000) / idleMs, besides: ((besideAfter - besideBefore) * 1_000) / idleMs }
}

export const measureIdle = async (bench: AttemptContext): Promise<void> => {
  const { report, rows, server, size } = bench
  const load = "nothing to do"
  const { besides, perSecond } = await whileIdle(rows, size, async () => {
    const cpu = await server.cpuMs()
    return cpu.server + cpu.postgres
  })
  report({ name: "idle: transactions", load, value: perSecond, unit: "/s" })
  report({ name: "idle: processor time of a second", load, value: besides, unit: "ms" })
  await measureCluster(bench)
}

const serversTogether = 3

/** The same of each of three servers, on a database of their own. */
const measureCluster = async ({ report, server, size }: AttemptContext): Promise<void> => {
  const admin = openRows(server.adminUrl)
  await admin.ask((sql) => sql.unsafe("create database idle_cluster"))
  await admin.close()
  const url = withDatabase(server.adminUrl, "idle_cluster")
  const servers: Array<Awaited<ReturnType<typeof startClusterProcess>>> = []
  const rows = openRows(url)
  try {
    while (servers.length < serversTogether)
      servers.push(await startClusterProcess(url, nameOf(await Effect.runPromise(freeAddress))))
    const { perSecond } = await whileIdle(rows, size, () => Promise.resolve(0))
    report({
      name: "idle: transactions of each server",
      load: `${serversTogether} in a cluster`,
      value: perSecond / serversTogether,
      unit: "/s"
    })
  } finally {
    await rows.close()
    await Promise.all(servers.map((one) => one.stop()))
  }
}
