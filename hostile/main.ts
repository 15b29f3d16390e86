/**
 * `npm run hostile -- FOLDER`: sends a real server what nobody should send, and looks whether it holds.
 *
 * The folder has `naughty-strings.json` (a list of texts) and `json-test-suite/`
 * (files by name: `y_` is JSON, `n_` is none, `i_` may be either); without one,
 * it sends what needs none. `--requests N` says how many requests are drawn from
 * the OpenAPI document, `--seed S` from which seed, `--minutes M` when to stop,
 * `--only texts,files,wire,generated` what to send, and `--places "a member"` to
 * which places of texts, by what their names contain. It prints figures and ends
 * with 1 when it found anything.
 */
import { existsSync, statSync } from "node:fs"
import { join } from "node:path"
import { readNumber, readOptions, refuse } from "../scripts/program-options.ts"
import { startServerProcess } from "../bench/server-process.ts"
import { Findings } from "./findings.ts"
import { sendGenerated } from "./generated-requests.ts"
import { sendJsonFiles } from "./json-files.ts"
import { sendTexts } from "./naughty-texts.ts"
import { aimAt } from "./target.ts"
import { sendNumbers } from "./wire-faults.ts"

/** What the server may hold in memory when all has been sent and it is at rest: no request leaves anything behind. */
const residentMaxBytes = 1_200_000_000

/** What of the folder a part sends. */
const sources = { texts: "naughty-strings.json", files: "json-test-suite" }
const parts = ["texts", "files", "wire", "generated"]
const { positionals, values } = readOptions(
  `npm run hostile -- [FOLDER] [--requests N] [--minutes N] [--seed S] [--only ${parts.join(",")}] [--places WORDS]`,
  {
    requests: { type: "string", default: "20000" },
    minutes: { type: "string", default: "60" },
    seed: { type: "string", default: "1" },
    only: { type: "string", default: parts.join(",") },
    places: { type: "string", default: "" }
  },
  true
)
const [folder] = positionals
const requests = readNumber("requests", values.requests, 1)
const minutes = readNumber("minutes", values.minutes, 1)
const wanted = values.only.split(",")
for (const part of wanted) if (!parts.includes(part)) refuse(`--only knows ${parts.join(", ")}, not ${part}`)
if (folder === undefined && !wanted.includes("wire") && !wanted.includes("generated"))
  refuse(`${values.only} come out of a folder: name it`)
if (positionals.length > 1) refuse(`name one folder, and not ${positionals.length}`)
if (folder !== undefined) {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) refuse(`${folder} is no folder`)
  for (const [part, name] of Object.entries(sources))
    if (wanted.includes(part) && !existsSync(join(folder, name)))
      refuse(`${folder} has no ${name} for ${part}`)
}
const isWanted = (part: string) => wanted.includes(part)

const findings = new Findings()
const server = await startServerProcess({ TROPISM_LOCAL_MCP_SERVERS: "false" }, (line) => {
  if (/level=(?:ERROR|FATAL)/i.test(line)) findings.add("the server's log", line, "")
})
try {
  const target = await aimAt(server, findings)
  const beganMs = performance.now()
  /** A part ends when so much of all the time is gone, so that a slow machine sends something of each. */
  const timed = async (part: string, share: number, work: (untilMs: number) => Promise<void>) => {
    if (!isWanted(part)) return
    const from = performance.now()
    await work(beganMs + share * minutes * 60_000)
    console.log(`${part}: ${((performance.now() - from) / 1_000).toFixed(1)} s`)
  }
  if (folder !== undefined) {
    await timed("texts", 0.45, (untilMs) => sendTexts(target, folder, values.places, untilMs))
    await timed("files", 0.6, (untilMs) => sendJsonFiles(target, folder, untilMs))
  }
  await timed("wire", 1, () => sendNumbers(target))
  await timed("generated", 0.9, (untilMs) => sendGenerated(target, values.seed, requests, untilMs))
  for (const path of ["/health", "/ready"]) {
    const { status } = await target.send({ method: "GET", path })
    if (status !== 200) findings.add("not ready at the end", `${path} answered ${status}`, "")
  }
  const residentBytes = await server.residentBytes()
  findings.count("resident MB at the end", Math.round(residentBytes / 1_000_000))
  findings.count("heap MB at the end", Math.round((await server.heapBytes()) / 1_000_000))
  if (residentBytes > residentMaxBytes)
    findings.add("memory", `${residentBytes} bytes are resident`, `at most ${residentMaxBytes}`)
} catch (error) {
  findings.add("the run broke off", error instanceof Error ? String(error.stack) : String(error), "")
} finally {
  await server.stop()
}
for (const [figure, value] of findings.figures) console.log(`${figure}: ${value}`)
for (const [kind, count] of findings.kinds) console.log(`FOUND ${count} × ${kind}`)
console.log(findings.kinds.length === 0 ? `Nothing was found (seed ${values.seed}).` : `seed ${values.seed}`)
process.exitCode = findings.kinds.length === 0 ? 0 : 1
