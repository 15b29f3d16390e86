/**
 * The graph against the whole program: found by words, drawn as a picture. `graph-large.browser.test.ts` draws ten thousand objects.
 */
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { importLines, jsonl } from "../../server/testing/import-words.ts"
import { inTime } from "./inbox-words.ts"
import { axeFaultsInBoth, screenshot, submitTwice } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** Watches until the picture is whole. */
const drawn = (page: Page, objects: number, relationships: number): Promise<void> =>
  page
    .locator(`[data-state=whole][data-objects="${objects}"][data-relationships="${relationships}"]`)
    .waitFor()

it("finds objects by words, makes one, and draws what they are related to", async () => {
  const story = await real.newStory()
  const names = ["effect", "vitest", "vite", "react"]
  const made = []
  for (const key of names)
    made.push(await run(story.post("/objects", { type: "Package", key, properties: { license: "MIT" } })))
  const team = await run(story.post("/objects", { type: "Team", key: "core", properties: { name: "Core" } }))
  for (const { id } of made)
    await run(story.post("/relationships", { type: "USES", fromId: team.id, toId: id }))
  const { page, goTo } = await real.visit(story, "/graph")
  await page.getByRole("link", { name: "core", exact: true }).waitFor()
  await screenshot(page, "graph-list")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.getByRole("searchbox", { name: "Search" }).fill("vit")
  const links = page.getByRole("list", { name: "Objects" }).getByRole("link")
  await inTime(async () => (await links.allInnerTexts()).toSorted()).toEqual(["vite", "vitest"])
  expect(new URL(page.url()).searchParams.get("q")).toBe("vit")
  await page.getByRole("button", { name: "Show all", disabled: false }).press("Enter")
  const properties = page.getByRole("searchbox", { name: "Properties" })
  await properties.fill("name^Co !license")
  await inTime(() => links.allInnerTexts()).toEqual(["core"])
  await properties.fill("license=MIT nonsense")
  await page.getByRole("alert").getByText("nonsense").waitFor()
  await inTime(async () => (await links.allInnerTexts()).toSorted()).toEqual(names.toSorted())
  await page.getByRole("button", { name: "Show all", disabled: false }).press("Enter")

  // As it was before the last of them was made, and so is the picture.
  const { createdAt } = made[1]
  await goTo(`/graph?asOf=${encodeURIComponent(createdAt)}`)
  await page.getByRole("status").locator(`time[datetime="${createdAt}"]`).waitFor()
  await inTime(async () => (await links.allInnerTexts()).toSorted()).toEqual(["effect", "vitest"])
  await page.getByRole("tab", { name: "Graph view" }).press("Enter")
  await drawn(page, 2, 0)
  await page.getByRole("button", { name: "Show all", disabled: false }).press("Enter")
  await page.getByRole("tab", { name: "List" }).press("Enter")

  await page.getByRole("tab", { name: "Graph view" }).press("Enter")
  await drawn(page, 5, 4)
  await page
    .getByRole("list", { name: "Types" })
    .getByRole("button", { name: /Package\s*4/ })
    .waitFor()
  const { pathname, origin } = new URL(page.url())
  await page.goto(`${origin}${pathname}?project=${story.projectId}&tab=picture&focus=${team.id}`)
  const related = page.getByRole("list", { name: "Related objects" }).getByRole("listitem")
  await inTime(() => related.count()).toBe(4)
  // All by keyboard: the picture moves and zooms, and what is related can be chosen.
  await page.getByRole("group", { name: /^Graph view/ }).focus()
  for (const key of ["+", "ArrowLeft", "0"]) await page.keyboard.press(key)
  await screenshot(page, "graph-picture")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await related.getByRole("button", { name: /vitest/, disabled: false }).press("Enter")
  await page.getByRole("heading", { name: "vitest" }).waitFor()
  expect(new URL(page.url()).searchParams.get("focus")).toBe(made[1].id)

  await page.getByRole("button", { name: "New object", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  await dialog.getByLabel("Type").fill("1 Person")
  await dialog.getByRole("button", { name: "Create", disabled: false }).press("Enter")
  await inTime(() => dialog.getByLabel("Type").getAttribute("aria-invalid")).toBe("true")
  await dialog.getByLabel("Type").fill("Person")
  await dialog.getByLabel("Properties").fill('{"name":"Ada"}')
  // Sent twice before the page has drawn anything: one object.
  await dialog.locator("form").evaluate(submitTwice)
  await page.getByRole("heading", { level: 1, name: /Ada/ }).waitFor()
  expect((await run(story.get("/objects?type=Person"))).items).toHaveLength(1)
})

it("reads relationships while there are more objects to be read", async () => {
  const story = await real.newStory()
  const end = (n: number) => ({ type: "Package", key: `n${n}` })
  const objects = Array.from({ length: 250 }, (_, n) => end(n))
  const relationships = [1, 2, 3, 4, 5].map((n) => ({
    relationship: { type: "USES", from: end(0), to: end(n) }
  }))
  await run(importLines(story, jsonl(...objects, ...relationships)))
  const { page, goTo } = await real.visit(story, "/health")
  const held = Promise.withResolvers<void>()
  await page.route(/\/objects\?.*cursor=/, async (route) => {
    await held.promise
    await route.continue()
  })
  await goTo("/graph?tab=picture")
  // The newest objects come first, and the ends of these relationships are the oldest.
  await page.locator("[data-state=reading][data-objects='200'][data-relationships='5']").waitFor()
  held.resolve()
  await drawn(page, 250, 5)
})

it("draws anew only for another search, and not while a condition is half typed or the list is ordered", async () => {
  const story = await real.newStory()
  for (const key of ["effect", "vite"])
    await run(story.post("/objects", { type: "Package", key, properties: { license: key } }))
  const { page } = await real.visit(story, "/graph?tab=picture")
  await drawn(page, 2, 0)
  const asked: Array<string | null> = []
  page.on("request", (request) => {
    const { pathname, searchParams } = new URL(request.url())
    if (pathname.endsWith("/objects")) asked.push(searchParams.get("where"))
  })
  const properties = page.getByRole("searchbox", { name: "Properties" })
  await properties.fill("licen")
  await page.getByRole("alert").getByText("licen").first().waitFor()
  await page.getByRole("combobox", { name: "Order" }).selectOption("name")
  await page.waitForURL((url) => url.searchParams.get("sort") === "name")
  await properties.fill("license=effect")
  await drawn(page, 1, 0)
  await properties.fill("license=effect nonsense")
  await page.getByRole("alert").getByText("nonsense").waitFor()
  await properties.fill("license=vite")
  await page.waitForURL((url) => url.searchParams.get("where") === "license=vite")
  await inTime(() => asked.length).toBe(2)
  await drawn(page, 1, 0)
  const condition = (license: string) => expect.stringContaining(license)
  expect(asked).toEqual([condition("effect"), condition("vite")])
})

it("each fault of a new object stands at its field, and nowhere else", async () => {
  const story = await real.newStory()
  await run(story.post("/objects", { type: "Person", key: "ada", properties: {} }))
  const { page } = await real.visit(story, "/graph")
  await page.getByRole("button", { name: "New object", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  const fields = {
    Type: dialog.getByLabel("Type"),
    Key: dialog.getByLabel("Key"),
    Properties: dialog.getByLabel("Properties")
  }
  const answers: Array<number> = []
  page.on("response", (response) => {
    if (response.request().method() === "POST") answers.push(response.status())
  })
  /** What is said at each field that is marked as wrong. */
  const faults = async () => {
    const said: Record<string, string> = {}
    for (const [name, field] of Object.entries(fields))
      if ((await field.getAttribute("aria-invalid")) === "true")
        said[name] = await field.evaluate((element) => {
          const [, id = ""] = element.getAttribute("aria-describedby")?.split(" ") ?? []
          return document.getElementById(id)?.innerText.trim() ?? ""
        })
    return said
  }
  const wrong = [
    { Type: "1 Person", said: { Type: /./ }, sent: [422] },
    { Key: "k".repeat(501), said: { Key: /500/ }, sent: [422] },
    { Key: "ada", said: { Key: /(?=.*\bPerson\b)(?=.*\bada\b)/ }, sent: [409] },
    { Properties: "{", said: { Properties: /./ }, sent: [] },
    { Properties: "[1]", said: { Properties: /\{.*\}/ }, sent: [] },
    { Properties: '{"a": 1, "a": 2}', said: { Properties: /^a: / }, sent: [] },
    { Properties: '{"a": {"b": 9007199254740993}}', said: { Properties: /^a › b: / }, sent: [] },
    { Properties: '{"a": 1e999}', said: { Properties: /^a: / }, sent: [] },
    { Properties: '{"__proto__": 1}', said: { Properties: /^__proto__: / }, sent: [] },
    { Properties: `{"a": "${"x".repeat(270_000)}"}`, said: { Properties: /\d/ }, sent: [] },
    { Type: "2", Key: "k".repeat(501), said: { Type: /./, Key: /500/ }, sent: [422] }
  ]
  for (const { said, sent, ...written } of wrong) {
    answers.splice(0)
    const whole = { Type: "Person", Key: "", Properties: "{}", ...written }
    for (const [name, field] of Object.entries(fields)) await field.fill(whole[name as keyof typeof whole])
    await dialog.getByRole("button", { name: "Create", disabled: false }).press("Enter")
    const expected = Object.fromEntries(
      Object.entries(said).map(([name, words]) => [name, expect.stringMatching(words)])
    )
    await inTime(faults).toEqual(expected)
    expect(await dialog.getByRole("alert").count()).toBe(0)
    expect({ written, answers }).toEqual({ written, answers: sent })
  }
  expect((await run(story.get("/objects?type=Person"))).items).toHaveLength(1)
  expect(await axeFaultsInBoth(page)).toEqual([])
})
