/**
 * Runs every check that needs no database, and says how long each took: `npm run check`.
 *
 * All parts run even when one fails, so that one call shows everything that is
 * wrong. It runs no product test; `npm test` does.
 */
import { spawnSync } from "node:child_process"
import { join } from "node:path"

interface Part {
  readonly name: string
  readonly program: string
  readonly args: ReadonlyArray<string>
}

const root = join(import.meta.dirname, "..")

const parts: ReadonlyArray<Part> = [
  { name: "types", program: "tsc", args: ["-p", "tsconfig.json", "--noEmit"] },
  { name: "lint", program: "oxlint", args: ["--deny-warnings", "."] },
  { name: "format", program: "oxfmt", args: ["--check", "."] },
  { name: "tidy", program: "bun", args: ["--bun", "vitest", "run", "--config", "scripts/vitest.config.ts"] }
]

/** The whole check should not be longer than a person is willing to wait before every commit. */
const patienceSeconds = 30

const took = (from: number): number => (performance.now() - from) / 1_000

const begun = performance.now()
const outcomes = parts.map(({ name, program, args }) => {
  console.log(`\n── ${name}: ${program} ${args.join(" ")}`)
  const from = performance.now()
  const answer = spawnSync(join(root, "node_modules/.bin", program), args, { cwd: root, stdio: "inherit" })
  if (answer.error) console.error(`${program} could not be started: ${answer.error.message}`)
  return { name, passed: answer.status === 0, seconds: took(from) }
})

console.log("")
for (const { name, passed, seconds } of outcomes) {
  console.log(`${passed ? "passed" : "FAILED"}  ${name.padEnd(8)}${seconds.toFixed(1).padStart(6)} s`)
}
console.log(`${took(begun).toFixed(1)} s in all`)
if (took(begun) > patienceSeconds)
  console.warn(`The check took longer than ${patienceSeconds} s; find out which part grew.`)
process.exit(outcomes.every(({ passed }) => passed) ? 0 : 1)
