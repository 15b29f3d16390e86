/**
 * Fails for a line of the specifications that nobody shows, settles or promises.
 *
 * The second half proves the judgement itself on small texts.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { idsIn, idsOfChecklist, judge, settledBy, titlesOf } from "./coverage.ts"

const root = join(import.meta.dirname, "..")
const read = (path: string): string => readFileSync(join(root, path), "utf8")

const tests = readdirSync(join(root, "packages"), { recursive: true, encoding: "utf8" })
  .map((path) => `packages/${path.replaceAll("\\", "/")}`)
  .filter((path) => /\.test\.tsx?$/.test(path) && !path.includes("/node_modules/"))
  // Of the tests beside this one, those that read the documents, the idioms and the imports show lines.
  .concat("scripts/documents.test.ts", "scripts/idioms.test.ts", "scripts/todo-reach.test.ts")
  .map((path) => ({ path, text: read(path) }))

const checklist = read("specs/requirements.md")

describe("the specifications", () => {
  const verdict = judge({
    checklist,
    decisions: read("docs/decisions/0002-where-the-specifications-disagree.md"),
    later: read("specs/later.md"),
    tests
  })

  it("have as many lines as their checklist counts", () => {
    const counted = [...checklist.matchAll(/^Count S\d{3}: (\d+)/gm)].reduce(
      (sum, match) => sum + Number(match[1]),
      0
    )
    const contracts = idsOfChecklist(checklist).filter((id) => id.startsWith("P3-MCP")).length
    expect(counted).toBeGreaterThan(300)
    expect(idsOfChecklist(checklist)).toHaveLength(counted + contracts)
  })

  it("are each shown by a test, settled by a decision or promised in specs/later.md", () => {
    expect(verdict.forgotten).toEqual([])
  })

  it("are promised only while no test shows them, and only once", () => {
    expect(verdict.alreadyShown).toEqual([])
    expect(verdict.listedTwice).toEqual([])
  })

  it("know every id that a title, a decision or a promise names", () => {
    expect(verdict.unknown).toEqual([])
  })
})

describe("reading ids", () => {
  it.each([
    ["S000-R07", ["S000-R07"]],
    ["S000-R07…R09", ["S000-R07", "S000-R08", "S000-R09"]],
    ["S000-R07 … S000-R09", ["S000-R07", "S000-R08", "S000-R09"]],
    ["S000-R07..R08 and S001-K02", ["S000-R07", "S000-R08", "S001-K02"]],
    ["(S000-R07, R08, S001-R01–R02)", ["S000-R07", "S000-R08", "S001-R01", "S001-R02"]],
    ["S001-R58, F01", ["S001-R58", "S001-F01"]],
    ["P3-MCP-01…03", ["P3-MCP-01", "P3-MCP-02", "P3-MCP-03"]],
    ["S000-R07: 12 objects", ["S000-R07"]],
    ["S000-R07, 12 objects", ["S000-R07"]],
    ["no id, R07", []]
  ] as const)("understands %s", (text, ids) => {
    expect(idsIn(text)).toEqual(ids)
  })

  it("finds titles of every form and none in comments", () => {
    const text = [
      'describe("S000-R01", () => {',
      '  it.effect("S000-R02: \\"x\\"", () => f)',
      '  it.each([["a", b("c")]])("S000-R03 %s", f)',
      "  layer(L)('S000-R04', (it) => {})",
      '  // it("S000-R05", f)',
      '  const other = "S000-R06"'
    ].join("\n")
    expect(titlesOf(text).flatMap(idsIn)).toEqual(["S000-R01", "S000-R02", "S000-R03", "S000-R04"])
  })

  it("counts a decision's row only when a document answers it", () => {
    const rows =
      "| Point | Lines | We do | Shown by |\n| x | S000-R01 | y | a test |\n| x | S000-R02 | S000-R03 | this page |"
    expect(settledBy(rows)).toEqual(["S000-R02"])
  })
})

describe("judging", () => {
  const checklistOf = (...ids: ReadonlyArray<string>) =>
    ids.map((id) => `- ${id} (L1) Something holds.`).join("\n")
  const test = (title: string) => [{ path: "packages/a/src/a.test.ts", text: `it("${title}", f)` }]

  it("names a line that nobody shows", () => {
    const verdict = judge({
      checklist: checklistOf("S000-R01", "S000-R02"),
      decisions: "",
      later: "",
      tests: test("S000-R01")
    })
    expect(verdict.forgotten).toEqual(["S000-R02"])
  })

  it("takes a rule of the domain alone for no proof, but for the reducer's own lines", () => {
    const rule = [{ path: "packages/domain/src/a.test.ts", text: 'it("S000-R01, S004-R01", f)' }]
    const verdict = judge({
      checklist: checklistOf("S000-R01", "S004-R01"),
      decisions: "",
      later: "",
      tests: rule
    })
    expect(verdict.forgotten).toEqual(["S000-R01"])
  })

  it("names a promise that is kept already, is doubled or promises what does not exist", () => {
    const verdict = judge({
      checklist: checklistOf("S000-R01"),
      decisions: "",
      later: "## Doors\n\n- S000-R01\n- S000-R01\n- S000-R99",
      tests: test("S000-R01")
    })
    expect(verdict).toEqual({
      forgotten: [],
      alreadyShown: ["S000-R01"],
      listedTwice: ["S000-R01"],
      unknown: ["S000-R99 in specs/later.md"]
    })
  })

  it("names an id in a title that the checklist does not know", () => {
    const verdict = judge({
      checklist: checklistOf("S000-R01"),
      decisions: "",
      later: "- S000-R01",
      tests: test("S009-R01")
    })
    expect(verdict.unknown).toEqual(["S009-R01 in packages/a/src/a.test.ts"])
  })
})
