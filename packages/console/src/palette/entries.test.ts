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

  it("puts what is named so first, then what begins so, then what has a word that does, then the rest", () => {
    const known = [entry("Pages", "Runs", "of ada"), entry("Agents", "ada-watcher")]
    const objects = [entry("Objects", "of ada"), entry("Objects", "adamant"), entry("Objects", "Ada")]
    const said = [entry("Runs", "It saw Ada."), entry("Runs", "A cicada.")]
    const titles = inOrder(known, [...objects, ...objects], said, " ada ", 3).map(({ title }) => title)
    expect(titles).toEqual(["Ada", "ada-watcher", "adamant", "of ada", "It saw Ada.", "Runs", "A cicada."])
  })

  it.each(["7", "#7"])(
    "puts the task with the number %s first, then what begins so, then the rest",
    (words) => {
      const known = [
        entry("Agents", "wave 17"),
        entry("Tasks", "Rename it", "#17"),
        entry("Tasks", "Merge 17 notes", "#71"),
        entry("Tasks", "Close it", "#7"),
        entry("Tasks", "Is 7 enough?", "#3")
      ]
      expect(fitting(known, words, 2).map(({ hint }) => hint)).toEqual(
        words === "7" ? ["", "#7", "#71"] : ["#7", "#71"]
      )
      expect(inOrder(known, [entry("Objects", "7zip")], [], words, 2).map(({ title }) => title)).toEqual(
        words === "7"
          ? ["Close it", "7zip", "Merge 17 notes", "Is 7 enough?", "wave 17", "Rename it"]
          : ["Close it", "Merge 17 notes", "wave 17", "Rename it", "Is 7 enough?", "7zip"]
      )
    }
  )

  it("knows an id from a word", () => {
    expect(isId(" 0199aaaa-0000-7000-8000-00000000000A ")).toBe(true)
    expect(isId("0199aaaa")).toBe(false)
  })
})
