/**
 * Help as a person reads it, and docs/cli.md against the program that it tells of.
 */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { commandsOf } from "../testing/commands.ts"
import { invokeWith } from "../testing/invoke.ts"
import { tropism } from "./command-line.ts"
import { exitCodeMeanings, exitCodes } from "./exit-codes.ts"
import { globalFlags } from "./settings.ts"
import { helpColumns } from "./help-text.ts"

const page = readFileSync(fileURLToPath(new URL("../../../docs/cli.md", import.meta.url)), "utf8")

/** The rows of the table under a heading, without its head. */
const rowsUnder = (heading: string): ReadonlyArray<ReadonlyArray<string>> => {
  const [, section = ""] = page.split(`\n## ${heading}\n`)
  const [table = ""] = section.split("\n## ")
  return table
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .slice(2)
    .map((line) =>
      line
        .slice(2, -2)
        .split(/ (?<!\\)\| /)
        .map((cell) => cell.trim())
    )
}

const helpOf = (...path: ReadonlyArray<string>) =>
  Effect.map(invokeWith({}, ...path, "--help"), ({ exitCode, out }) => {
    expect(exitCode).toBe(0)
    return out.join("\n").split("\n")
  })

describe("flags that stand anywhere", () => {
  it.live("take nothing that stands behind them for their value", () =>
    Effect.gen(function* () {
      const nobody = { TROPISM_TOKEN: "a token", TROPISM_URL: "http://127.0.0.1:9" }
      const behind = yield* invokeWith(nobody, "tasks", "show", "1", "--json", "--quiet")
      for (const args of [
        ["tasks", "show", "--quiet", "--json", "1"],
        ["--json", "tasks", "show", "-q", "1"]
      ])
        expect(yield* invokeWith(nobody, ...args)).toEqual(behind)
      expect(JSON.parse(behind.error)).toHaveProperty("error")
      expect(behind.exitCode).toBe(exitCodes.failed)
    })
  )
})

describe("a command that only has others below it", () => {
  it.live("tells a program that as a problem, and help is JSON where it was asked for as that", () =>
    Effect.gen(function* () {
      for (const path of [[], ["undo"], ["webhooks"]]) {
        const { error, exitCode, out } = yield* invokeWith({}, ...path, "--json")
        expect([path, exitCode, out]).toEqual([path, exitCodes.usage, []])
        expect(JSON.parse(error).error.message).toContain(
          `${["tropism", ...path].join(" ")} does nothing alone`
        )
        const help = yield* invokeWith({}, ...path, "--help", "--json")
        expect([help.exitCode, JSON.parse(help.out.join("\n")).help]).toEqual([
          exitCodes.done,
          (yield* helpOf(...path)).join("\n")
        ])
      }
      const { out } = yield* invokeWith({}, "--version", "--json")
      expect(JSON.parse(out.join("\n"))).toHaveProperty("version")
    })
  )
})

describe("a token that no request could carry", () => {
  it.live("is told as that, and not as a server that does not answer", () =>
    Effect.gen(function* () {
      for (const token of ["a\ntoken", "t\u00f6ken"])
        expect(yield* invokeWith({ TROPISM_TOKEN: token }, "tasks")).toEqual({
          exitCode: exitCodes.usage,
          out: [],
          error: expect.stringContaining("The token has a line break or another character")
        })
    })
  )
})

describe("help", () => {
  it.live("has a line for each command, in groups, and examples at the end", () =>
    Effect.gen(function* () {
      const lines = yield* helpOf()
      const [groups, rest] = [lines.indexOf("Server:"), lines.indexOf("Flags of every command:")]
      const listed = lines.slice(groups, rest)
      for (const line of listed) expect(line).toMatch(/^$|^[A-Z][a-z]+:$|^ {2}[a-z-]+ {2,}\S.*$/)
      expect(listed.filter((line) => line.startsWith(" ")).map((line) => line.trim().split(" ")[0])).toEqual(
        tropism.subcommands.flatMap(({ commands }) => commands.map(({ name }) => name))
      )
      expect(lines.indexOf("Examples:")).toBeGreaterThan(rest)
      expect(lines.at(-1)).toBe('"tropism COMMAND --help" says more of each.')
    })
  )

  it.live("fits a narrow terminal, with one line for whatever it lists", () =>
    Effect.gen(function* () {
      for (const { command, path } of [{ command: tropism, path: [] }, ...commandsOf(tropism)]) {
        const lines = yield* helpOf(...path)
        const isExample = (line: string) => lines.indexOf(line) > lines.indexOf("Examples:")
        const wide = lines.filter((line) => line.length > helpColumns && !isExample(line))
        expect([path.join(" "), wide]).toEqual([path.join(" "), []])
        for (const { commands } of command.subcommands)
          for (const { name } of commands)
            expect(lines.filter((line) => line.startsWith(`  ${name} `)).length).toBe(1)
        const from = lines.indexOf("Commands:")
        if (from === -1) continue
        const until = lines.indexOf("", from)
        expect(lines.slice(from + 1, until)).toHaveLength(
          command.subcommands.reduce((sum, { commands }) => sum + commands.length, 0)
        )
      }
    })
  )

  it.live("tells a conversation's keys where it is asked about one", () =>
    Effect.map(helpOf("chat"), (lines) => expect(lines.join("\n")).toContain("/interrupt"))
  )
})

describe("docs/cli.md", () => {
  it("names each command of the program and no other, with what its help says", () => {
    expect(rowsUnder("Commands")).toEqual(
      commandsOf(tropism).map(({ command, path }) => [
        `\`${path.join(" ")}\``,
        (command.shortDescription ?? command.description ?? "").replaceAll("|", "\\|")
      ])
    )
  })

  it("has the exit codes as they are", () => {
    expect(rowsUnder("Exit codes")).toEqual(
      Object.entries(exitCodeMeanings).map(([code, meaning]) => [code, meaning.replaceAll("|", "\\|")])
    )
  })

  it("names each flag that every command takes", () => {
    for (const { id } of globalFlags) expect(page).toContain(`\`--${id}`)
  })
})
