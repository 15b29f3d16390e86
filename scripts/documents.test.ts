/**
 * The documents speak of what is there: a reader who follows a name finds it.
 *
 * What a document says cannot be proved here; that the verbs, states and files
 * that it names exist can, and so can that each decision has a number of its own.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, it } from "vitest"
import { ModelProvider } from "../packages/domain/src/model-config.ts"
import { entryTransitions } from "../packages/domain/src/processing.ts"
import { transitions } from "../packages/domain/src/run.ts"
import { taskTransitions } from "../packages/domain/src/task.ts"

const root = join(import.meta.dirname, "..")

const read = (path: string): string => readFileSync(join(root, path), "utf8")

const documents = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".md"))
  .map((path) => join("docs", path))

const source = readdirSync(join(root, "packages"), { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts") && !path.includes("node_modules"))
  .map((path) => ({ path: `packages/${path.replace("/src/", "/")}`, text: read(join("packages", path)) }))

/** The verbs, as `Runs.claim`, whose service has no member of that name. */
const findDeadVerbs = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/`([A-Z]\w+)\.([a-z]\w+)`/g)]
    .filter(([, service, member]) => {
      const declared = source.filter((file) =>
        new RegExp(`class ${service} extends Context\\.Service`).test(file.text)
      )
      return !declared.some((file) => new RegExp(`readonly ${member}\\b`).test(file.text))
    })
    .map(([name]) => name)

/** The files of the server, as `runs/stopping.ts`, that are nowhere. */
const findDeadFiles = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/`((?:[\w.-]+\/)+[\w.-]+\.ts)`/g)]
    .map(([, path = ""]) => path)
    .filter((path) => !source.some((file) => file.path.endsWith(`/${path}`)) && !existsSync(join(root, path)))

/** The headings of a document, as links name them. */
const anchorsOf = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-")
  )

/** The links of a document to files of this repository, or to headings in them, that are nowhere. */
const findDeadLinks = (path: string, text: string): ReadonlyArray<string> =>
  [...text.matchAll(/\]\((?![a-z]+:)([^)\s]+)\)/g)]
    .map(([, link = ""]) => link)
    .filter((link) => {
      const [file = "", anchor] = link.split("#")
      const target = file === "" ? path : join(dirname(path), file)
      if (!existsSync(join(root, target))) return true
      return anchor !== undefined && target.endsWith(".md") && !anchorsOf(read(target)).includes(anchor)
    })

/** The files, lines and decisions that a page of `specs/`, or a decision about it, refers to and that are nowhere. */
const findDeadReferences = (text: string): ReadonlyArray<string> => {
  const isThere = (path: string) =>
    ["", "specs", "docs/decisions"].some((at) => existsSync(join(root, at, path)))
  const files = [...text.matchAll(/(?<![\w/.-])\w[\w./-]*\.(?:md|ts)\b/g)].map(([path]) => path)
  const sources = new Map(
    [...text.matchAll(/(S\d{3}) ([\w-]+\.md)/g)].map(([, id = "", path = ""]) => [id, path] as const)
  )
  const lines = [...text.matchAll(/^- (S\d{3})-\w+[^(\n]*\(L(\d+)\)/gm)].filter(([, id = "", line = ""]) => {
    const path = sources.get(id)
    return path === undefined || (read(`specs/${path}`).split("\n")[Number(line) - 1] ?? "").trim() === ""
  })
  const records = [...text.matchAll(/\brecord (\d{4})\b/g)].filter(
    ([, number = ""]) => !documents.some((path) => path.includes(`decisions/${number}-`))
  )
  return [
    ...files.filter((path) => !isThere(path)),
    ...lines.map(([line]) => line),
    ...records.map(([record]) => record)
  ]
}

describe("Migration plan, phase 6: testing and documentation", () => {
  it("S001-R57 the lifecycles name every state of runs, entries and tasks", () => {
    const text = read("docs/lifecycles.md")
    for (const table of [transitions, entryTransitions, taskTransitions])
      for (const state of Object.keys(table).filter((name) => name !== "expired"))
        expect(text).toContain(state)
  })

  it("S001-R57 every verb and every file that a document names is there", () => {
    expect(findDeadVerbs(read("docs/lifecycles.md"))).toEqual([])
    for (const path of documents.filter((name) => !name.includes("decisions/")))
      expect([path, findDeadFiles(read(path))]).toEqual([path, []])
    expect(findDeadVerbs("`Runs.forget` and `Runs.claim`")).toEqual(["`Runs.forget`"])
    expect(findDeadFiles("`runs/never.ts` and `runs/stopping.ts`")).toEqual(["runs/never.ts"])
  })

  it("S001-R57 every link between documents leads to a file and to a heading that are there", () => {
    for (const path of ["README.md", "AGENTS.md", ...documents])
      expect([path, findDeadLinks(path, read(path))]).toEqual([path, []])
    const dead = "[a](docs/never.md), [b](docs/operations.md#never) and [c](#never)"
    expect(findDeadLinks("README.md", `${dead}, [d](docs/operations.md#upgrade)`)).toEqual([
      "docs/never.md",
      "docs/operations.md#never",
      "#never"
    ])
  })

  it("S001-R57 the README leads to every page, and the glossary has at most forty words", () => {
    const pages = documents.filter((path) => !path.includes("decisions/"))
    expect(pages.length).toBeGreaterThan(20)
    expect(pages.filter((path) => !read("README.md").includes(`](${path})`))).toEqual([])
    expect(
      (read("docs/concepts.md").split("## Glossary")[1] ?? "").match(/^\| [a-z].+ \|$/gm)?.length
    ).toBeLessThanOrEqual(40)
  })

  it("S001-R57 the checklist, what is left of it and its decisions refer to files, lines and records that are there", () => {
    const decisions = "docs/decisions/0002-where-the-specifications-disagree.md"
    for (const path of ["specs/requirements.md", "specs/later.md", decisions])
      expect([path, findDeadReferences(read(path))]).toEqual([path, []])
    const dead =
      "S000 mini-agent.md\n- S000-R01 (L9) a\n- S000-R02 (L9999) b\n- S007-R01 (L9) c, never.md, record 9999"
    expect(findDeadReferences(dead)).toEqual([
      "never.md",
      "- S000-R02 (L9999)",
      "- S007-R01 (L9)",
      "record 9999"
    ])
  })

  it("S001-R57 every decision has a number and a title of its own", () => {
    const decisions = documents.filter((path) => path.includes("decisions/"))
    const numbers = decisions.map((path) => /(\d{4})-[^/]*$/.exec(path)?.[1])
    expect(decisions.length).toBeGreaterThan(10)
    expect(new Set(numbers).size).toBe(decisions.length)
    for (const path of decisions)
      expect([path, read(path)]).toEqual([path, expect.stringMatching(/^# \d+\. \S/)])
  })
})

describe("the settings", () => {
  /** Names by which the program hands something to itself. */
  const inner = ["TROPISM_LAUNCHER_FD", "TROPISM_SOAK"]
  const isSetting =
    /\b(?:HOST|PORT|DATABASE_URL|(?:TROPISM|OPENAI|ANTHROPIC|GOOGLE|OTEL)_[A-Z][A-Z_]*[A-Z])\b/g
  const program = source.filter(
    ({ path }) => /^packages\/(server|cli)\/[^/]/.test(path) && !path.endsWith(".test.ts")
  )
  const inCode = program.filter(({ path }) => !/\/(stories|testing|simulation)\//.test(path))
  const known = new Set(
    inCode.flatMap(({ text }) =>
      [...text.matchAll(/"([A-Z][A-Z_]+)"/g)]
        .map(([, name = ""]) => name)
        .filter((name) => name.match(isSetting)?.[0] === name)
    )
  )
  const [, table = ""] = read("docs/configuration.md").split(/^## /m)
  const rows = table.split("\n").filter((line) => line.startsWith("|"))
  const told = new Set(rows.flatMap((row) => [...row.matchAll(isSetting)].map(([name]) => name)))

  it("are all in the table of docs/configuration.md, those of OpenTelemetry in docs/observability.md", () => {
    expect(known.size).toBeGreaterThan(30)
    const elsewhere = read("docs/observability.md")
    const untold = [...known].filter(
      (name) =>
        !inner.includes(name) && !told.has(name) && !(name.startsWith("OTEL_") && elsewhere.includes(name))
    )
    expect(untold).toEqual([])
  })

  it("in the table are all read by the program", () => {
    expect([...told].filter((name) => !known.has(name))).toEqual([])
  })
})

describe("the table of what was tried with each provider", () => {
  const [, table = ""] = read("docs/models.md").split("## What was tried")
  const rows = table
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) =>
      line
        .slice(1, -1)
        .split("|")
        .map((cell) => cell.trim())
    )

  /** What a cell may say without a test. */
  const claimless = ["untested", "none to carry", "not asked for"]

  /** The cells of a row that claim something which no test holds. */
  const findEmptyClaims = ([, ...cells]: ReadonlyArray<string>): ReadonlyArray<string> =>
    cells.filter((cell) => {
      if (claimless.includes(cell)) return false
      const [, file = "", title = ""] = /^\[[^\]]+\]\((\S+) "(.+)"\)$/.exec(cell) ?? []
      const path = join("docs", file)
      return file === "" || title === "" || !existsSync(join(root, path)) || !read(path).includes(title)
    })

  it("has a row for every provider that is asked over the network", () => {
    const asked = ModelProvider.literals.filter((each) => each !== "scripted" && each !== "replay")
    expect(new Set(rows.map(([name = ""]) => /`([^`]+)`/.exec(name)?.[1]))).toEqual(new Set(asked))
  })

  it("claims nothing that no test holds", () => {
    expect(rows.flatMap(findEmptyClaims)).toEqual([])
  })

  it("is found wanting where a test has another name, or is not named", () => {
    const path = "../packages/server/src/models/wire-answers.test.ts"
    const cells = [`[yes](${path} "does what it never did")`, '[yes](gone.test.ts "x")', "yes"]
    expect(findEmptyClaims(["`openai`", ...cells, "untested"])).toEqual(cells)
  })
})
