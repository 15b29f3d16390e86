/**
 * What counting requests costs: a server that limits its callers beside one that does not.
 *
 * Both are asked in turns for the same page, which needs no database, so that
 * what differs is the counting; both servers are new and there for this alone.
 */
import { withHands } from "./doors.ts"
import type { AttemptContext } from "./measures.ts"
import { type ServerProcess, startServerProcess } from "./server-process.ts"

const hands = 8

/** Processor microseconds of one request, in each round of each server. */
const roundsOf = async (servers: ReadonlyArray<ServerProcess>, rounds: number, requests: number) => {
  const spent = servers.map((): Array<number> => [])
  for (let round = 0; round <= rounds; round++) {
    for (const [index, server] of servers.entries()) {
      const before = await server.cpuMs()
      await withHands(hands, { ms: Number.MAX_SAFE_INTEGER, times: requests }, () => ask(server, "/problems"))
      const after = await server.cpuMs()
      // The first round is the programs' own warming up.
      if (round > 0) spent[index]?.push(((after.server - before.server) * 1_000) / requests)
    }
  }
  return spent
}

const ask = async ({ token, url }: ServerProcess, path: string): Promise<void> => {
  const response = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })
  await response.arrayBuffer()
  if (!response.ok) throw new Error(`${path} answered ${response.status}`)
}

/** With a limit and without one, in one run. */
export const measureLimits = async ({ report, size }: AttemptContext): Promise<void> => {
  const servers: Array<ServerProcess> = []
  try {
    for (const limit of ["1000000", "off"])
      servers.push(await startServerProcess({ TROPISM_RATE_LIMIT: limit }))
    // A token is counted by itself once it was found to be good.
    for (const each of servers) await ask(each, "/api/me")
    const [limited = [], free = []] = await roundsOf(servers, size.limitRounds, size.limitRequests)
    report({
      name: "processor time of a request, limited",
      load: `${hands} clients, a page`,
      value: mean(limited),
      unit: "µs",
      beside: { name: "without a limit", value: mean(free) }
    })
  } finally {
    for (const each of servers) await each.stop()
  }
}

const mean = (values: ReadonlyArray<number>): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length
