/**
 * Holds the code to the idioms that the specifications ask for, and shows each rule a text that breaks it.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import * as idioms from "./idioms.ts"
import { rules } from "./tidy-rules.ts"

const root = join(import.meta.dirname, "..")

const files = readdirSync(join(root, "packages"), { recursive: true, encoding: "utf8" })
  .map((path) => `packages/${path.replaceAll("\\", "/")}`)
  .filter((path) => /\.tsx?$/.test(path) && !/\/(?:node_modules|dist)\//.test(path))
  .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }))

const bad = (path: string, text: string) => [{ path: `packages/${path}`, text }]

/** The house keeps the rule, in at least so many places; each of the bad texts breaks it. */
const expectHeld = (
  idiom: (typeof idioms)[keyof typeof idioms],
  atLeast: number,
  ...breaches: ReadonlyArray<ReadonlyArray<{ readonly path: string; readonly text: string }>>
) => {
  const { complaints, judged } = idiom(files)
  expect(complaints).toEqual([])
  expect(judged).toBeGreaterThanOrEqual(atLeast)
  for (const breach of breaches)
    expect([breach, idiom(breach).complaints]).toEqual([breach, [expect.anything()]])
}

describe("Testability", () => {
  it("S004-R49 the words are pure functions: no effect, no clock, no chance", () => {
    expectHeld(
      idioms.pureWords,
      30,
      bad("domain/src/run.ts", "export const now = () => new Date()"),
      bad("domain/src/run.ts", "export const begin = Effect.succeed(1)")
    )
  })
})

describe("Effect Idioms", () => {
  it("S004-R51 a service is a Context.Service with a contract, and not an Effect.Service", () => {
    expectHeld(
      idioms.contracts,
      60,
      bad("server/src/runs/runs.ts", 'export class Runs extends Effect.Service<Runs>()("Runs", {}) {}'),
      bad("server/src/runs/runs.ts", 'const Runs = Context.Tag("Runs")'),
      bad(
        "server/src/runs/runs.ts",
        'export class Runs extends Context.Service<Runs, { readonly x: 1 }>()("@tropism/server/run/Rnus") {}'
      )
    )
  })

  it("S004-R52 a function of effects is an Effect.fn with the name of its span", () => {
    expectHeld(
      idioms.spans,
      250,
      bad("server/src/runs/runs.ts", "const claim = Effect.fn(function* () {})"),
      bad("server/src/runs/runs.ts", 'const claim = Effect.fn("to claim")(function* () {})')
    )
  })

  it("S004-R53 an event is a Schema class with its tag and the base fields", () => {
    expectHeld(
      idioms.events,
      30,
      bad("domain/src/context-event.ts", "export class LostEvent extends Thing {\n  x\n}"),
      bad(
        "domain/src/context-event.ts",
        'export class LostEvent extends Schema.Class<LostEvent>("LostEvent")({\n  type: Schema.tag("LostEvent")\n}) {}'
      )
    )
  })

  it("S004-R54 an error that leaves its file is a Schema.TaggedError", () => {
    expectHeld(
      idioms.errors,
      30,
      bad("server/src/runs/runs.ts", "export class RunLost extends Error {}"),
      bad("server/src/runs/runs.ts", 'export class RunLost extends Data.TaggedError("RunLost") {}')
    )
  })

  it("S004-R56 whoever tries again does so by a Schedule, or so many times", () => {
    expectHeld(
      idioms.retries,
      4,
      bad("server/src/runs/runs.ts", "const again = Effect.retry({ while: isFailing })"),
      bad("server/src/runs/runs.ts", "class RetryConfig {}")
    )
  })

  it("S004-R57, R58 a mailbox is a bounded Queue, and those who listen have bounded buffers", () => {
    expectHeld(
      idioms.mailboxes,
      3,
      bad("server/src/runs/runs.ts", "const inbox = Mailbox.make<string>()"),
      bad("server/src/runs/runs.ts", "const inbox = Queue.unbounded<string>()"),
      bad("server/src/runs/runs.ts", "const out = Stream.broadcastDynamic(events)")
    )
  })
})

describe("Observability", () => {
  it("S004-R60 what is logged is logged by Effect, with a level and fields", () => {
    expectHeld(
      idioms.logging,
      20,
      bad("server/src/runs/runs.ts", "console.log(run)"),
      bad("server/src/runs/runs.ts", "process.stdout.write(line)")
    )
  })
})

describe("Constraints", () => {
  it("S004-R62 the tests run on Bun, of the version that the program is delivered with", () => {
    const { dependencies } = JSON.parse(readFileSync(join(root, "packages/cli/package.json"), "utf8"))
    expect(process.versions["bun"]).toBe(dependencies.bun)
  })

  it("S004-R63 files are read through Effect's FileSystem", () => {
    expect(rules.rawRuntime.find(files)).toEqual([])
    expect(
      rules.rawRuntime.find(bad("server/src/runs/runs.ts", 'import { readFileSync } from "node:fs"'))
    ).toHaveLength(1)
  })

  it("S004-R55, R64 models are asked by a Prompt through a LanguageModel, and one folder knows providers", () => {
    expectHeld(
      idioms.models,
      10,
      bad("server/src/runs/runs.ts", 'import { createOpenAI } from "@ai-sdk/openai"')
    )
    const asked = files.filter(({ path }) =>
      /^packages\/server\/src\/models\/(?:retry|model-request)\.ts$/.test(path)
    )
    expect(
      asked.map(({ text }) =>
        /import (?:type )?\{[^}]*\b(?:Prompt|LanguageModel)\b[^}]*\} from "effect\/ai"/.test(text)
      )
    ).toEqual([true, true])
  })

  it("S004-R65 names of files are in kebab-case", () => {
    expect(rules.names.find(files)).toEqual([])
    expect(rules.names.find(bad("server/src/runs/claimedRun.ts", ""))).toHaveLength(1)
  })

  it("S004-R66 a test stands beside what it tests and is called .test.ts", () => {
    expectHeld(
      idioms.tests,
      100,
      bad("server/src/runs/runs.spec.ts", 'import { Runs } from "./runs.ts"'),
      bad("server/src/__tests__/runs.test.ts", "const nothing = 1")
    )
  })
})
