/**
 * `npm run mutants`: breaks the server on purpose, one way after another, and asks whether the simulation finds it.
 *
 * Each mutant is one change of the source that takes a promise away (`list.ts`).
 * It is made in a copy of the source, never in the checkout, and simulated until
 * a seed complains or `--seeds N` did not. `--seed S` says from which seed,
 * `--only WORDS` which mutants, by what they say. It ends with 1 where one was
 * not found: then a checker is missing, or the simulation never comes to where it
 * would look.
 */
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { readNumber, readOptions, refuse } from "../scripts/program-options.ts"
import { type Mutant, mutants } from "./list.ts"
import { mutated } from "./mutated.ts"

const { values } = readOptions("npm run mutants -- [--seed S] [--seeds N] [--only WORDS]", {
  seeds: { type: "string", default: "100" },
  seed: { type: "string", default: "90000000" },
  only: { type: "string", default: "" }
})
const seeds = readNumber("seeds", values.seeds, 1)
const seed = readNumber("seed", values.seed, 0)
const wanted = mutants.filter(({ fault }) => fault.includes(values.only))
if (wanted.length === 0)
  refuse(`No mutant says "${values.only}". There are:\n${mutants.map(({ fault }) => fault).join("\n")}`)

const checkout = join(import.meta.dirname, "..")

/** Whoever breaks it off ends the simulation, too. */
const stop = new AbortController()
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort())

/** A mutant that keeps a server busy for ever comes to no end. */
const withinMs = 900_000

/** The source alone, with what is installed beside it. */
const copySource = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "tropism-mutants-"))
  for (const name of ["packages", "scripts", "package.json", "tsconfig.json"])
    cpSync(join(checkout, name), join(folder, name), {
      recursive: true,
      filter: (path) => !/\/(?:node_modules|dist)$/.test(path)
    })
  const installed = join(folder, "node_modules")
  mkdirSync(join(installed, "@tropism"), { recursive: true })
  for (const name of readdirSync(join(checkout, "node_modules")))
    if (name !== "@tropism") symlinkSync(join(checkout, "node_modules", name), join(installed, name))
  for (const name of readdirSync(join(folder, "packages")))
    symlinkSync(join(folder, "packages", name), join(installed, "@tropism", name))
  return folder
}

/** Simulates the copy, and answers what the checkers said of the first seed that broke something. */
const simulateIn = async (folder: string) => {
  const options = ["--seed", String(seed), "--seeds", String(seeds), "--lanes", "5", "--until-broken"]
  const child = Bun.spawn([process.execPath, "packages/server/simulation/main.ts", ...options], {
    cwd: folder,
    stdout: "pipe",
    stderr: "inherit",
    timeout: withinMs,
    signal: stop.signal
  })
  const text = await new Response(child.stdout).text()
  const code = await child.exited
  const checkers = new Set([...text.matchAll(/^ {2}(\w+): /gm)].map(([, name = ""]) => name))
  for (const word of ["fault", "alone"]) checkers.delete(word)
  return { checkers: [...checkers].toSorted(), wasBroken: code === 1 && checkers.size > 0, code }
}

/** Makes a mutant in the copy while something is done. */
const withMutant = async <A>(folder: string, { edits }: Mutant, doing: () => Promise<A>): Promise<A> => {
  const before = new Map(edits.map(({ file }) => [file, readFileSync(join(folder, file), "utf8")]))
  for (const edit of edits) {
    const path = join(folder, edit.file)
    writeFileSync(path, mutated(readFileSync(path, "utf8"), edit))
  }
  try {
    return await doing()
  } finally {
    for (const [file, text] of before) writeFileSync(join(folder, file), text)
  }
}

const folder = copySource()
process.once("exit", () => rmSync(folder, { recursive: true, force: true }))
const missed: Array<string> = []
for (const mutant of wanted) {
  const from = performance.now()
  const { checkers, code, wasBroken } = await withMutant(folder, mutant, () => simulateIn(folder))
  if (stop.signal.aborted) break
  if (!wasBroken) missed.push(mutant.fault)
  const told = wasBroken ? `found by ${checkers.join(", ")}` : code === 0 ? "NOT FOUND" : `ENDED WITH ${code}`
  console.log(`${mutant.fault}: ${told}, in ${Math.round((performance.now() - from) / 1_000)} s`)
}
if (!stop.signal.aborted)
  console.log(`${wanted.length - missed.length} of ${wanted.length} mutants were found`)
process.exitCode = stop.signal.aborted || missed.length > 0 ? 1 : 0
