/**
 * Every command that the console offers is one that the command line accepts, with the project and the server named.
 */
import { Effect } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { exitCodes } from "../../cli/src/exit-codes.ts"
import { invokeWith } from "../../cli/testing/invoke.ts"
import { offeredCommand } from "../src/words/offered-command.ts"

const root = join(import.meta.dirname, "..")

/** What stands for a value that the page knows: a number for a number, else an id. */
const filled = (text: string): string =>
  text
    .replaceAll(/\$?\{(?:days|maxEvents)\}/g, "7")
    .replaceAll(/\$?\{[^}]*\}/g, "00000000-0000-4000-8000-000000000000")

/** All that is written in a file, each once. */
const written = (file: string, pattern: RegExp): ReadonlyArray<string> =>
  [...readFileSync(file, "utf8").matchAll(pattern)].map(([, command = ""]) => filled(command).trim())

const pages = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((name) =>
  name.endsWith(".tsx")
)

/** What the server says to do about the health of a project. */
const remedies = join(root, "../domain/src/vital-signs.ts")

const offered = new Set([
  ...pages.flatMap((name) =>
    written(join(root, "src", name), /npx (tropism (?:\$?\{[^}\n]*\}|[^"`<{\n])+)/g)
  ),
  ...written(remedies, /["`](tropism (?:\$\{[^}\n]*\}|[^"`\n])+)["`]/g)
])

const nowhere = "http://127.0.0.1:1"

/** Starting a server is the one thing that is not tried here. */
const startsServer = (command: string): boolean => /^tropism (?:start|demo)/.test(command)

it("every command that is offered is accepted by the command line", async () => {
  expect(offered.size).toBeGreaterThan(15)
  const refused: Array<string> = []
  for (const command of offered) {
    if (startsServer(command)) continue
    const told = offeredCommand(`npx ${command}`, { projectId: "a-project", origin: nowhere })
    const [, , ...words] = told.split(" ")
    const { error, exitCode } = await Effect.runPromise(invokeWith({ TROPISM_TOKEN: "a-token" }, ...words))
    if (exitCode === exitCodes.usage) refused.push(`${told}: ${error}`)
  }
  expect(refused).toEqual([])
})

it("a command names the project of several and a server that is not where the command line looks", () => {
  const own = { projectId: undefined, origin: "http://127.0.0.1:4400" }
  const there = { projectId: "p1", origin: "https://graph.example" }
  expect(offeredCommand("npx tropism tail", own)).toBe("npx tropism tail")
  expect(offeredCommand("npx tropism tail", there)).toBe(
    "npx tropism tail --project p1 --url https://graph.example"
  )
  for (const command of ["npm start", "npx tropism demo", "npx tropism mcp-servers --help"])
    expect(offeredCommand(command, there)).toBe(command)
})
