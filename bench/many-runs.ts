/**
 * Many runs that wait for a slow model at once, on one server: `bun bench/many-runs.ts --runs 1000`.
 *
 * The model is an HTTP server in this process that answers after `--latency` milliseconds. A server with one slot queues the
 * runs and is stopped; the time counts from when the next server on its folder is ready to the end of the last run.
 */
import { rmSync } from "node:fs"
import { loadavg, tmpdir } from "node:os"
import { readNumber, readOptions } from "../scripts/program-options.ts"
import { openRows, type Rows } from "./database.ts"
import { doorsOf, newProject, nowMs, until, withHands } from "./doors.ts"
import { quantile } from "./figures.ts"
import { newDataFolder, startServerProcess } from "./server-process.ts"

const usage =
  "bun bench/many-runs.ts [--runs 1000] [--slots 1000] [--requests 1000] [--latency 10000]: runs in all, runs and model requests at once, milliseconds of an answer"

const { values } = readOptions(usage, {
  runs: { type: "string", default: "1000" },
  slots: { type: "string", default: "1000" },
  requests: { type: "string", default: "1000" },
  latency: { type: "string", default: "10000" }
})
const [runs, slots, requests, latencyMs] = [
  readNumber("runs", values.runs, 1),
  readNumber("slots", values.slots, 1),
  readNumber("requests", values.requests, 1),
  readNumber("latency", values.latency, 1)
]

const sse = (value: unknown) => `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`
const chunk = (delta: object, finish: string | null = null) => ({
  id: "x",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta, finish_reason: finish }]
})
const answer = [chunk({ role: "assistant", content: "Done." }), chunk({}, "stop"), "[DONE]"].map(sse).join("")

let open = 0
let mostOpen = 0
const model = Bun.serve({
  port: 0,
  idleTimeout: 255,
  fetch: async () => {
    open += 1
    mostOpen = Math.max(mostOpen, open)
    await Bun.sleep(latencyMs)
    open -= 1
    return new Response(answer, { headers: { "content-type": "text/event-stream" } })
  }
})

const environment = (slotsOf: number) => ({
  // As `tropism start` sets it: Bun would keep all requests beyond 256 waiting.
  BUN_CONFIG_MAX_HTTP_REQUESTS: "65336",
  OPENAI_COMPATIBLE_BASE_URL: `http://127.0.0.1:${model.port}/v1`,
  TROPISM_CONCURRENT_RUNS: String(slotsOf),
  TROPISM_MODEL_CONCURRENCY: String(requests)
})

/** Queues the runs, and answers their agent's id. */
const queueRuns = async (folder: string): Promise<string> => {
  const server = await startServerProcess(environment(1), undefined, folder)
  const rows = openRows(server.ownerUrl)
  const send = doorsOf(server)
  const { path } = await newProject(send)
  const agent = await send("POST", `${path}/agents`, {
    name: "reader",
    prompt: "Greet {{ object.properties.name }}.",
    triggerType: "reaction",
    executionMode: "execute",
    maxPendingRuns: 1_000_000,
    reactionConfig: { events: ["created"], objectTypes: ["Person"], concurrencyStrategy: "parallel" },
    tools: [],
    model: { provider: "openai-compatible", name: "m" }
  })
  await withHands(16, { ms: 300_000, times: runs }, async (index) => {
    await send("POST", `${path}/objects`, { type: "Person", properties: { name: `Person ${index}` } })
  })
  await until(
    () => countRuns(rows, agent.id, ["queued", "running"]),
    (found) => found === runs,
    "The runs were not all queued",
    250
  )
  await rows.close()
  await server.stop()
  return agent.id
}

const countRuns = async (rows: Rows, agentId: string, statuses: ReadonlyArray<string>): Promise<number> => {
  const [row] = await rows.ask(
    (sql) => sql<{ count: number }>`
      select count(*)::int as count from kb.agent_runs where agent_id = ${agentId} and status = any(${statuses})`
  )
  return row?.count ?? 0
}

const folder = await newDataFolder(tmpdir())
const agentId = await queueRuns(folder)
const server = await startServerProcess(environment(slots), undefined, folder)
const rows = openRows(server.ownerUrl)
try {
  const restBytes = await server.residentBytes()
  const cpuBefore = await server.cpuMs()
  let mostBytes = 0
  const watch = globalThis.setInterval(
    () => void server.residentBytes().then((bytes) => (mostBytes = Math.max(mostBytes, bytes))),
    100
  )
  const beganMs = nowMs()
  await until(
    () => countRuns(rows, agentId, ["completed"]),
    (completed) => completed === runs,
    "The runs did not all complete",
    100
  )
  const elapsedMs = nowMs() - beganMs
  clearInterval(watch)
  const cpuAfter = await server.cpuMs()
  const times = await rows.ask(
    (sql) =>
      sql<{
        ms: number
      }>`select extract(epoch from completed_at - started_at)::float8 * 1000 as ms from kb.agent_runs where agent_id = ${agentId}`
  )
  const megabytes = (bytes: number) => Math.round(bytes / 1_048_576)
  console.log(
    JSON.stringify({
      runs,
      slots,
      requests,
      latencyMs,
      mostOpenRequests: mostOpen,
      elapsedSeconds: Math.round(elapsedMs / 100) / 10,
      runSecondsP50:
        Math.round(
          quantile(
            times.map(({ ms }) => ms),
            0.5
          ) / 100
        ) / 10,
      runSecondsP99:
        Math.round(
          quantile(
            times.map(({ ms }) => ms),
            0.99
          ) / 100
        ) / 10,
      serverMegabytesBefore: megabytes(restBytes),
      serverMegabytesMost: megabytes(mostBytes),
      serverCpuSeconds: Math.round((cpuAfter.server - cpuBefore.server) / 100) / 10,
      postgresCpuSeconds: Math.round((cpuAfter.postgres - cpuBefore.postgres) / 100) / 10,
      load: loadavg().map((value) => Math.round(value * 10) / 10)
    })
  )
} finally {
  await rows.close()
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
  await model.stop(true)
}
