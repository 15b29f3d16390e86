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

const pagePath = fileURLToPath(new URL("../../../docs/cli.md", import.meta.url))
const page = readFileSync(pagePath, "utf8")

/** A page with other rows in the table under a heading. */
const withRows = (text: string, heading: string, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const table = rows.map((cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |\n`)
  return text.replace(
    new RegExp(`(\n## ${heading}\n[^#]*?\n\\| --- .*\n)(?:\\| .*\n)*`),
    (_, above: string) => above + table.join("")
  )
}

const allCommands = [{ command: tropism, path: [] as ReadonlyArray<string> }, ...commandsOf(tropism)]

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
        expect(JSON.parse(error).error).toEqual({
          exitCode: exitCodes.usage,
          message: expect.stringContaining(`"${["tropism", ...path].join(" ")} --help"`)
        })
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
          error: expect.not.stringMatching(/127\.0\.0\.1|tropism start|ken$/)
        })
    })
  )
})

describe("help", () => {
  it.live("has a line for each command, in groups, and examples at the end", () =>
    Effect.gen(function* () {
      const lines = yield* helpOf()
      const sections = lines.flatMap((line, index) => (/^[A-Z].*:$/.test(line) ? [index] : []))
      const { length } = tropism.subcommands
      const [groups = 0, rest = 0, examples = 0] = [sections[0], sections[length], sections.at(-1)]
      const listed = lines.slice(groups, rest)
      for (const line of listed) expect(line).toMatch(/^$|^[A-Z][a-z]+:$|^ {2}[a-z-]+ {2,}\S.*$/)
      expect(listed.filter((line) => line.startsWith(" ")).map((line) => line.trim().split(" ")[0])).toEqual(
        tropism.subcommands.flatMap(({ commands }) => commands.map(({ name }) => name))
      )
      for (const { id } of globalFlags) expect(lines.slice(rest, examples).join("\n")).toContain(`--${id}`)
      expect(lines.slice(examples).filter((line) => line.startsWith("  tropism ")).length).toBeGreaterThan(1)
      expect(lines.at(-1)).toContain('"tropism COMMAND --help"')
    })
  )

  it.live("is in help.txt, command by command", () =>
    Effect.gen(function* () {
      const texts = yield* Effect.forEach(allCommands, ({ path }) =>
        Effect.map(helpOf(...path), (lines) => [`$ tropism ${[...path, "--help"].join(" ")}`, ...lines, ""])
      )
      yield* Effect.promise(() => expect(texts.flat().join("\n")).toMatchFileSnapshot("help.txt"))
    })
  )

  it.live("fits a narrow terminal, with one line for whatever it lists", () =>
    Effect.gen(function* () {
      for (const { command, path } of allCommands) {
        const lines = yield* helpOf(...path)
        // An example is typed as it is, and the last line is about every command.
        const isExample = (line: string) => /^ {2}.*\btropism /.test(line)
        const wide = lines.slice(0, -1).filter((line) => line.length > helpColumns && !isExample(line))
        expect([path.join(" "), wide]).toEqual([path.join(" "), []])
        for (const { commands } of command.subcommands) {
          const names = commands.map(({ name }) => name)
          const from = lines.findIndex((line) => line.startsWith(`  ${names[0]} `))
          const listed = lines.slice(from, lines.indexOf("", from))
          expect(listed.map((line) => line.trim().split(" ")[0])).toEqual(names)
        }
      }
    })
  )

  it.live("tells a conversation's keys where it is asked about one", () =>
    Effect.map(helpOf("chat"), (lines) => expect(lines.join("\n")).toContain("/interrupt"))
  )
})

describe("docs/cli.md", () => {
  it("has each command of the program and no other, and the exit codes, in the program's words", () => {
    const commands = commandsOf(tropism).map(({ command, path }) => [
      `\`${path.join(" ")}\``,
      command.shortDescription ?? command.description ?? ""
    ])
    for (const heading of ["Commands", "Exit codes"]) expect(withRows(page, heading, [])).not.toBe(page)
    // After new wording, `npm test -- command-line.test.ts -u` writes both tables.
    return expect(
      withRows(withRows(page, "Commands", commands), "Exit codes", Object.entries(exitCodeMeanings))
    ).toMatchFileSnapshot(pagePath)
  })

  it("names each flag that every command takes", () => {
    for (const { id } of globalFlags) expect(page).toContain(`\`--${id}`)
  })
})
