/**
 * The palette finds by words in any order, and puts first what begins with them.
 */
import { describe, expect, it } from "@effect/vitest"
import { type Entry, fits, fitting, inOrder, isId } from "./entries.ts"

const entry = (group: string, title: string, hint = ""): Entry => ({
  id: `${group} ${title}`,
  group,
  title,
  hint,
  open: () => {}
})

describe("the palette", () => {
  it.each([
    ["Licence review", "rev lic", true],
    ["Licence review", "LICENCE", true],
    ["Licence review", "  ", true],
    ["Licence review", "licence tidy", false]
  ])("%s fits %j: %s", (text, words, isFitting) => {
    expect(fits(text, words)).toBe(isFitting)
  })

  it("puts what begins with the words first, and bounds each group", () => {
    const entries = [
      entry("Agents", "the tidy one"),
      entry("Agents", "tidy"),
      entry("Agents", "tidy again"),
      entry("Pages", "Runs", "tidy"),
      entry("Pages", "Graph")
    ]
    expect(fitting(entries, "tidy", 2).map(({ title }) => title)).toEqual(["tidy", "tidy again", "Runs"])
  })

  it("puts what is named so first, then what it knows, then keys that begin so, then words", () => {
    const known = [entry("Pages", "Runs"), entry("Agents", "ada-watcher")]
    const objects = [entry("Objects", "of ada"), entry("Objects", "adamant"), entry("Objects", "Ada")]
    const titles = inOrder(known, [...objects, ...objects], " ada ", 3).map(({ title }) => title)
    expect(titles).toEqual(["Ada", "Runs", "ada-watcher", "adamant", "of ada"])
  })

  it("knows an id from a word", () => {
    expect(isId(" 0199aaaa-0000-7000-8000-00000000000A ")).toBe(true)
    expect(isId("0199aaaa")).toBe(false)
  })
})
