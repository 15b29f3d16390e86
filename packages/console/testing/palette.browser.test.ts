/**
 * The palette leads to anything by keyboard alone, and tells those who do not see it what it has found.
 */
import type { Page } from "playwright-core"
import { describe, expect, it } from "vitest"
import { saying, watcher } from "../../server/testing/story-words.ts"
import { inTime } from "./inbox-words.ts"
import { axeFaultsInBoth } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const fieldOf = (page: Page) => page.locator("[data-palette-field]")

/** What is read out of the search once it has come to this. */
const searchIs = (page: Page, state: "searching" | "nothing") =>
  page.locator(`[role=status][data-state=${state}]`).filter({ hasText: /\S/ })

describe("the palette", () => {
  it("keeps each letter that comes before it is there, also those that lead to a page elsewhere", async () => {
    const story = await real.newStory()
    const { page, goTo } = await real.visit(story, "/nowhere")
    const { promise: isTyped, resolve: stopTyping } = Promise.withResolvers<void>()
    await page.route(/\/assets\/palette[^/]*\.js/, (route) => isTyped.then(() => route.continue()))
    await goTo("/")
    await page.getByRole("heading", { level: 1, name: "Inbox" }).waitFor({ state: "attached" })
    await page.keyboard.press("Control+k")
    // g r leads to the runs.
    await page.keyboard.type("grand engines")
    stopTyping()
    const field = fieldOf(page)
    await inTime(() => field.inputValue()).toBe("grand engines")
    expect(new URL(page.url()).pathname).toBe("/")
  })

  it("gives the keyboard back to where it was when nothing is opened", async () => {
    const story = await real.newStory()
    const { page } = await real.visit(story, "/runs")
    const link = page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Chains" })
    for (let time = 1; time <= 2; time++) {
      await link.focus()
      await page.keyboard.press("Control+k")
      const field = fieldOf(page)
      await inTime(() => field.evaluate((it) => it === document.activeElement)).toBe(true)
      await page.keyboard.press("Escape")
      await field.waitFor({ state: "detached" })
      await inTime(() => link.evaluate((it) => it === document.activeElement)).toBe(true)
    }
  })

  it("opens what is found where Enter came before it was", async () => {
    const story = await real.newStory()
    const ada = await run(
      story.post("/objects", { type: "Person", key: "ada", properties: { field: "engines" } })
    )
    const { page } = await real.visit(story)
    await page.getByRole("heading", { level: 1, name: "Inbox" }).waitFor({ state: "attached" })
    const { promise: isPressed, resolve: press } = Promise.withResolvers<void>()
    await page.route(/\/objects\?/, (route) => isPressed.then(() => route.continue()))
    await page.keyboard.press("Control+k")
    await page.keyboard.type("engines")
    await searchIs(page, "searching").waitFor()
    await page.getByRole("option").waitFor({ state: "detached" })
    await page.keyboard.press("Enter")
    press()
    await page.waitForURL(`**/objects/${ada.id}?*`)
  })

  it("finds pages, objects by their words and by their id, and does what it names", async () => {
    const story = await real.newStory()
    const ada = await run(
      story.post("/objects", { type: "Person", key: "ada", properties: { field: "analytical engines" } })
    )
    // By their words all of them fit better than the one that has the name.
    const namesakes = Array.from({ length: 12 }, (_, n) => ({
      type: "Note",
      key: `note ${n} ada`,
      properties: { text: "ada ada ada", also: "ada" }
    }))
    for (const namesake of namesakes) await run(story.post("/objects", namesake))
    await run(story.post("/objects", { type: "Note", key: "adamant", properties: {} }))
    const agent = await run(
      story.post("/agents", {
        ...watcher({ name: "weather", model: saying("A zephyr was felt.") }),
        triggerType: "manual",
        reactionConfig: null
      })
    )
    const felt = await run(story.post(`/agents/${agent.id}/trigger`))
    const { page } = await real.visit(story, "/", { role: "admin" })
    await page.getByRole("heading", { level: 1, name: "Inbox" }).waitFor({ state: "attached" })
    const asked: Array<string> = []
    page.on("request", (request) => asked.push(request.url()))
    const field = fieldOf(page)
    const chosen = page.getByRole("option", { selected: true })

    await page.keyboard.press("Control+k")
    await page.keyboard.type("reac")
    await chosen.getByText("Reactions").waitFor()
    expect(await axeFaultsInBoth(page)).toEqual([])
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { level: 1, name: "Reactions" }).waitFor()

    // By the page's time somebody types fast: on a machine that is busy, a pause between two letters may be long.
    await page.clock.install()
    await page.clock.pauseAt(new Date(Date.now() + 1_000))
    await page.keyboard.press("/")
    for (const letter of "engines analyt") {
      await page.keyboard.type(letter)
      await page.clock.runFor(20)
    }
    await inTime(() => field.inputValue()).toBe("engines analyt")
    await page.clock.resume()
    await chosen.getByText("ada").waitFor()
    // Far fewer than letters.
    expect(asked.filter((url) => /objects\?.*query=engines/.test(url)).length).toBeLessThan(5)
    await page.keyboard.press("Enter")
    await page.waitForURL(`**/objects/${ada.id}?*`)

    await page.keyboard.press("Control+k")
    await page.keyboard.type("mcp serv")
    await chosen.getByText("MCP servers").waitFor()
    await page.keyboard.press("Enter")
    await page.getByRole("tab", { name: "MCP servers", selected: true }).waitFor()

    const [event] = (await run(story.get("/events?limit=1"))).items
    await page.keyboard.press("Control+k")
    await field.fill(event.id)
    await chosen.getByText("Person ada").waitFor()
    await page.keyboard.press("Enter")
    await page.waitForURL(`**/events/${event.id}?*`)

    await page.keyboard.press("Control+k")
    await page.keyboard.type("zephyr")
    await chosen.getByText("A zephyr was felt.").waitFor()
    await page.keyboard.press("Enter")
    await page.waitForURL(`**/runs/${felt.id}?*`)

    await page.keyboard.press("Control+k")
    await page.keyboard.type("ada")
    await chosen.getByText("ada", { exact: true }).waitFor()
    await page.getByRole("option").nth(1).getByText("adamant").waitFor()
    await field.fill(ada.id)
    await chosen.getByText("ada").waitFor()
    await field.fill("no such thing anywhere")
    await searchIs(page, "nothing").waitFor()
    await page.keyboard.press("Escape")
    await field.waitFor({ state: "detached" })

    await page.keyboard.press("Control+k")
    await page.keyboard.type("sign o")
    await chosen.getByText("Sign out").waitFor()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await page.locator("input[type=password]").waitFor()
  })
})
