/**
 * The list of the graph's objects against the whole program: what a row says, in which order rows come, which stay, and how the filters stand.
 */
import type { Locator } from "playwright-core"
import { expect, it } from "vitest"
import { beginSending, hasCommitted } from "../../server/testing/import-sender.ts"
import { importLines, jsonl } from "../../server/testing/import-words.ts"
import { inTime } from "./inbox-words.ts"
import { axeFaultsInBoth, screenshot } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const phone = { width: 390, height: 844 }

it("a row says what an object is called, what it says of itself, and who changed it when", async () => {
  const story = await real.newStory()
  const properties = { title: "Left pad", license: "MIT", size: 3, tags: ["a", "b"], author: { name: "Ada" } }
  const made = await run(story.post("/objects", { type: "Package", properties }))
  const { page, goTo } = await real.visit(story, "/graph")
  const row = page.getByRole("list", { name: "Objects" }).getByRole("listitem")
  await row.getByRole("link", { name: "Left pad", exact: true }).waitFor()
  const words = await row.innerText()
  expect(words).toContain("Package")
  // Of what has parts it says how many.
  for (const said of [/license\W+MIT\b/, /size\W+3\b/, /tags\W+2\b/, /author\W+1\b/])
    expect(words).toMatch(said)
  expect(words).toContain(made.actorId)
  await row.locator(`time[datetime="${made.updatedAt}"]`).waitFor()
  expect(words).not.toMatch(/[{}[\]"]/)
  expect(await axeFaultsInBoth(page)).toEqual([])
  await screenshot(page, "graph-rows")

  // As it is kept it can be seen, by who unfolds it.
  await goTo(`/objects/${made.id}`)
  const json = page.getByText('"title": "Left pad"')
  const summary = page.getByRole("tabpanel").locator("summary")
  await summary.waitFor()
  expect(await json.isVisible()).toBe(false)
  await summary.click()
  await json.waitFor()
})

it("sorts objects by their last change, their name and their type, and the address keeps it", async () => {
  const story = await real.newStory()
  const make = (type: string, key: string | null, properties: object = {}) =>
    run(story.post("/objects", { type, key, properties }))
  const zebra = await make("Animal", "zebra")
  await make("Package", "Effect")
  await make("Animal", null, { name: "ape" })
  await run(story.patch(`/objects/${zebra.id}`, { properties: { legs: 4 } }))
  const { page } = await real.visit(story, "/graph")
  const links = page.getByRole("list", { name: "Objects" }).getByRole("link")
  await inTime(() => links.allInnerTexts()).toEqual(["ape", "Effect", "zebra"])
  const order = page.getByRole("combobox", { name: "Order" })
  await order.selectOption("updatedAt")
  await inTime(() => links.allInnerTexts()).toEqual(["zebra", "ape", "Effect"])
  await order.selectOption("name")
  await inTime(() => links.allInnerTexts()).toEqual(["ape", "Effect", "zebra"])
  await order.selectOption("type")
  await inTime(() => links.allInnerTexts()).toEqual(["ape", "zebra", "Effect"])
  expect(new URL(page.url()).searchParams.get("sort")).toBe("type")
  await page.reload()
  await inTime(() => links.allInnerTexts()).toEqual(["ape", "zebra", "Effect"])
  expect(await order.inputValue()).toBe("type")
  // A word is looked for in the same order; the order is no filter.
  await page.getByRole("searchbox", { name: "Search" }).fill("e")
  await inTime(() => links.allInnerTexts()).toEqual(["Effect"])
  await page.getByRole("button", { name: "Show all", disabled: false }).press("Enter")
  await inTime(() => links.allInnerTexts()).toEqual(["ape", "zebra", "Effect"])
})

it("a long list stays whole, and where it is read, when a page of it has changed down to a row from far below", async () => {
  const story = await real.newStory()
  const count = 450
  const last = count - 1
  const send = (version: number, ...numbers: ReadonlyArray<number>) =>
    run(
      importLines(
        story,
        jsonl(...numbers.map((n) => ({ type: "Note", key: `n${n}`, properties: { version } })))
      )
    )
  await send(1, ...Array.from({ length: count }, (_, n) => n))
  const { page } = await real.visit(story, "/graph?sort=updatedAt")
  const list = page.getByRole("list", { name: "Objects" })
  const row = (n: number) =>
    list.getByRole("listitem").filter({ has: page.getByRole("link", { name: `n${n}`, exact: true }) })
  await row(last).waitFor()
  await inTime(async () => {
    await page.mouse.wheel(0, 20_000)
    return row(0).count()
  }).toBe(1)
  /** Where a row stands in the list, above which imports are told. */
  const placeOf = async (n: number) => {
    const [top, box] = [await list.boundingBox(), await row(n).boundingBox()]
    return {
      number: await row(n).getAttribute("aria-posinset"),
      of: await row(n).getAttribute("aria-setsize"),
      px: (box?.y ?? 0) - (top?.y ?? 0)
    }
  }
  await inTime(() => row(25).count()).toBe(1)
  const before = await placeOf(5)
  expect(before).toMatchObject({ number: `${count - 5}`, of: `${count}` })
  // The newest page is of what has changed, and ends with the one that stood near the end of the list.
  const arrived = page.waitForResponse(
    async (response) =>
      /\/objects\?(?!.*cursor)/.test(response.url()) && (await response.json()).items.at(-1)?.key === "n25"
  )
  await send(2, 25, ...Array.from({ length: 199 }, (_, place) => last - place))
  await arrived
  await inTime(() => row(25).count()).toBe(0)
  expect(await placeOf(5)).toEqual(before)
  // What had not changed stands behind it.
  await page.evaluate(`scrollTo(0, document.querySelector("[role=list]").scrollHeight * ${200 / count})`)
  await row(last - 199).waitFor()
  expect(await row(last - 199).getAttribute("aria-posinset")).toBe("201")
})

it("shows the hints of the filters whole, and no filter changes its width", async () => {
  const story = await real.newStory()
  await run(story.post("/objects", { type: "Package", key: "effect", properties: {} }))
  const { page, goTo } = await real.visit(story, "/graph")
  const boxes = page.getByRole("search", { name: "Search the graph" }).getByRole("searchbox")
  for (const viewport of [{ width: 1280, height: 900 }, { width: 768, height: 900 }, phone]) {
    await page.setViewportSize(viewport)
    await goTo("/graph")
    await page.getByRole("link", { name: "effect", exact: true }).waitFor()
    for (const box of await boxes.all()) expect(await isHintWhole(box)).toBe(true)
    const widths = await widthsOf(boxes)
    await page.getByRole("searchbox", { name: "Search" }).fill("effect")
    await page.getByRole("button", { name: "Show all" }).waitFor()
    expect(await widthsOf(boxes)).toEqual(widths)
    expect(new Set(widths).size).toBe(1)
  }
})

it("says how far an import is while it is at work, and what came of it", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/graph")
  await page.getByText("npx tropism import package-lock.json").waitFor()
  const imports = page.getByRole("region", { name: "Imports" })
  expect(await imports.count()).toBe(0)
  const lines = (from: number) =>
    jsonl(
      ...Array.from({ length: 1_200 }, (_, n) => ({ type: "Package", key: `n${from + n}`, properties: {} }))
    )
  const sender = await run(beginSending(story, "?format=jsonl&name=packages.jsonl"))
  await run(sender.send(lines(0)))
  await run(sender.toldWhen(hasCommitted(1_000)))
  await imports
    .locator("li[data-status=running]")
    .filter({ hasText: "packages.jsonl" })
    .filter({ hasText: /1,\d{3} / })
    .waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await screenshot(page, "graph-import")
  await run(sender.send(`${lines(1_200)}nonsense\n`))
  await imports
    .getByText(/\b2,\d{3}\b/)
    .first()
    .waitFor()
  await run(sender.end)
  // Lines read, objects made, lines that failed.
  await imports
    .locator("li[data-status=finished]")
    .filter({ hasText: /(?=.*2,401\b)(?=.*2,400\b)(?=.*\b1\b)/s })
    .waitFor()
  await imports.getByRole("button", { name: /packages\.jsonl/ }).press("Enter")
  await imports.waitFor({ state: "detached" })
})

const widthsOf = async (boxes: Locator): Promise<ReadonlyArray<number>> =>
  Promise.all(
    (await boxes.all()).map((box) => box.evaluate((element) => element.getBoundingClientRect().width))
  )

/** Whether what a field says while it is empty has the room that its letters take. */
const isHintWhole = (box: Locator): Promise<boolean> =>
  box.evaluate((element) => {
    const { font, paddingLeft, paddingRight } = getComputedStyle(element)
    const context = document.createElement("canvas").getContext("2d")
    if (context === null || !(element instanceof HTMLInputElement)) return false
    context.font = font
    const room = element.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight)
    return context.measureText(element.placeholder).width <= room
  })
