/**
 * What a server costs that nobody uses yet: how long it takes to be ready, what it holds, what it asks of its database.
 *
 * It starts on folders that were served before, one with hardly anything in it
 * and one with many objects, and each time has a database program to start too.
 */
import { countTransactions, openRows } from "../database.ts"
import { doorsOf, newProject, nowMs } from "../doors.ts"
import { newDataFolder, type ServerProcess, startServerProcess } from "../server-process.ts"
import type { Bound, Prepared, Units } from "./comparison.ts"
import type { Stage } from "./stage.ts"

const small = "ready on a folder that was served before"
const full = "ready on a folder with 100,000 objects"
const resident = "resident memory of an idle server"
const residentFull = "resident memory with 100,000 objects"
const idle = "transactions of an idle server"

export const startUnits: Units = {
  [small]: "ms",
  [full]: "ms",
  [resident]: "MB",
  [residentFull]: "MB",
  [idle]: "/s"
}

const ours = (figure: string) => ({ subject: "Tropism", figure })

const bounds: ReadonlyArray<Bound> = [
  { of: ours(small), most: 2_500 },
  { of: ours(full), most: 3_000 },
  { of: ours(resident), most: 200 },
  { of: ours(residentFull), most: 200 },
  { of: ours(idle), most: 5 }
]

/** Sends a file of objects to be imported into a project and waits until all are there. */
export const importObjects = async (
  { token, url }: Pick<ServerProcess, "token" | "url">,
  path: string,
  type: string,
  count: number
): Promise<void> => {
  const lines = Array.from(
    { length: count },
    (_, number) => `${JSON.stringify({ id: Bun.randomUUIDv7(), type, properties: { number } })}\n`
  )
  const response = await fetch(`${url}${path}/import?format=jsonl`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/octet-stream" },
    body: lines.join("")
  })
  const answer = await response.text()
  if (!answer.includes('"finished"')) throw new Error(`Not all was imported: ${answer.slice(-500)}`)
}

/** A folder as a server leaves it that was stopped with so many objects. */
const servedFolder = async (inside: string, objects: number): Promise<string> => {
  const folder = await newDataFolder(inside)
  const server = await startServerProcess({}, undefined, folder)
  const { path } = await newProject(doorsOf(server))
  if (objects > 0) await importObjects(server, path, "Plain", objects)
  await server.stop()
  return folder
}

/** Starts a server on a folder, looks at it, stops it, and answers how long it took to be ready. */
const started = async <A>(folder: string, look: (server: ServerProcess) => Promise<A>) => {
  const begun = nowMs()
  const server = await startServerProcess({}, undefined, folder)
  try {
    const { ok } = await fetch(`${server.url}/ready`)
    const readyMs = nowMs() - begun
    if (!ok) throw new Error("The server that said that it was ready is not")
    return { readyMs, seen: await look(server) }
  } finally {
    await server.stop()
  }
}

const transactionsPerSecond = async ({ ownerUrl }: ServerProcess, restMs: number, idleMs: number) => {
  const rows = openRows(ownerUrl)
  // Nothing tells that a server has come to rest, nor that each backend has counted what it did.
  await Bun.sleep(restMs)
  const before = await countTransactions(rows)
  await Bun.sleep(idleMs)
  // The look before this one is a transaction as well.
  const count = Math.max(0, (await countTransactions(rows)) - before - 1)
  await rows.close()
  return (count * 1_000) / idleMs
}

const megabytes = async ({ residentBytes }: ServerProcess): Promise<number> =>
  (await residentBytes()) / 1_000_000

export const prepareStarts = async ({ scale, server }: Stage): Promise<Prepared> => {
  const few = await servedFolder(server.dataFolder, 0)
  const many = await servedFolder(server.dataFolder, scale.objects)
  const measure = async () => {
    const first = await started(few, async (server) => ({
      idle: await transactionsPerSecond(server, scale.restMs, scale.idleMs),
      megabytes: await megabytes(server)
    }))
    const second = await started(many, megabytes)
    return {
      [small]: first.readyMs,
      [full]: second.readyMs,
      [resident]: first.seen.megabytes,
      [residentFull]: second.seen,
      [idle]: first.seen.idle
    }
  }
  return {
    subjects: [{ name: "Tropism", measure }],
    bounds,
    close: () => Promise.resolve()
  }
}
