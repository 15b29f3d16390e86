/**
 * Keeps our own dialect out of what people read: the console, the command line, the documents, the server's messages.
 *
 * The texts of the console and the command line are counted for each file, those of the server in the list that
 * `npm run sentences` writes, so that a file which moves keeps no count behind.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { overAndUnder, proseOf, wordsToReplace } from "./plain-words.ts"
import { surfaces, textsOf } from "./sentences.ts"

const root = join(import.meta.dirname, "..")

const read = (path: string): string => readFileSync(join(root, path), "utf8")

const filesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map(
    (path) => `${folder}/${path.replaceAll("\\", "/")}`
  )

const documents = ["README.md", ...readdirSync(join(root, "docs")).map((name) => `docs/${name}`)]
  .filter((path) => path.endsWith(".md"))
  .map((path) => [path, proseOf(read(path))] as const)

const programs = [...filesIn("packages/console/src"), ...filesIn("packages/cli/src")]
  .filter((path) => /\.tsx?$/.test(path))
  .map((path) => ({ path, text: read(path) }))
  .flatMap((file) =>
    [surfaces.console, surfaces.cli].map((surface) => [file.path, textsOf(file, surface).join("\n")] as const)
  )
  .filter(([, text]) => text !== "")

/** The lists of sentences without the paths between them. */
const lists = ["server", "openapi"]
  .map((name) => `scripts/sentences/${name}.txt`)
  .map((path) => [path, read(path).replaceAll(/^packages.*$/gm, "")] as const)

describe("the words that people read", () => {
  it("have no more of our own dialect than is listed, and no file is listed with too many", () => {
    const texts = Object.fromEntries([...documents, ...programs, ...lists])
    expect(overAndUnder(texts, JSON.parse(read("scripts/plain-words.json")))).toEqual([])
  })
})

describe("finding the dialect", () => {
  it("finds each word in any case, with what to write instead", () => {
    const found = wordsToReplace("Nobody is told what becomes of it. It says why, and lets the agent go on.")
    expect(found.map(({ word }) => word)).toEqual([
      "Nobody",
      "told",
      "what becomes of",
      "lets the agent go on",
      "go on",
      "says why"
    ])
    expect(found.every(({ write }) => write !== "")).toBe(true)
  })

  it("leaves plain English alone", () => {
    expect(
      wordsToReplace(
        "The run is no longer queued. It stands out; it says hello. There is no limit; use --nobody."
      )
    ).toEqual([])
  })

  it("leaves out a document's code, commands and addresses", () => {
    expect(
      proseOf("A run. `Runs.wake` [why](woken.md 'is told')\n```ts\nconst told = 1\n```\nThe end.").trim()
    ).toBe("A run.  [why]\n\nThe end.")
  })

  it("complains of a count that grew, one that is too high, and a file that is gone", () => {
    const complaints = overAndUnder(
      { "more.md": "told and told", "less.md": "told", "same.md": "told", "none.md": "" },
      { "more.md": 1, "less.md": 3, "same.md": 1, "gone.md": 2 }
    )
    expect(complaints.map((complaint) => complaint.split(",")[0])).toEqual([
      "gone.md has 0",
      "less.md has 1",
      "more.md has 2"
    ])
  })
})
