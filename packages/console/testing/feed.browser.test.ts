/**
 * The live feed against the whole program: what is written elsewhere appears, once, also over a cut; and what is sent wakes agents.
 */
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { watcher } from "../../server/testing/story-words.ts"
import { axeFaultsInBoth, screenshot } from "./page-checks.ts"
import { faultAt, sending } from "./page-parts.ts"
import { inTime } from "./inbox-words.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** The state of the feed as its page says it. */
const feedState = (page: Page, state: "live" | "lost" | "paused", waiting = 0) =>
  page.getByTestId("feed-state").and(page.locator(`[data-state=${state}][data-waiting="${waiting}"]`))

it("shows what is written elsewhere, each event once over a cut, and keeps its filter in the address", async () => {
  const story = await real.newStory()
  const write = (key: string) => run(story.post("/objects", { type: "Thing", key, properties: { size: 1 } }))
  await write("before")
  const { page, goTo } = await real.visit(story, "/live")
  const feed = page.getByRole("list", { name: "Live feed" })
  const rowOf = (key: string) => feed.getByRole("link", { name: `Thing ${key}`, exact: true })
  await rowOf("before").waitFor()
  const thing = await write("elsewhere")
  await rowOf("elsewhere").waitFor()

  // Nobody is heard of while the stream is cut; what lies between is there when it is open again.
  let isCut = true
  await page.route(
    (url) => url.pathname.endsWith("/events"),
    (route) =>
      isCut && route.request().headers()["accept"] === "text/event-stream" ? route.abort() : route.continue()
  )
  await page.reload()
  await feedState(page, "lost").waitFor()
  await rowOf("elsewhere").waitFor()
  await write("<b>cut</b>")
  await run(story.patch(`/objects/${thing.id}`, { properties: { size: 2 } }))
  isCut = false
  await feedState(page, "live").waitFor()
  await write("after")
  await rowOf("after").waitFor()
  await rowOf("<b>cut</b>").waitFor()
  await feed.locator("[data-version='2']").waitFor()
  await inTime(() => feed.getByRole("listitem").count()).toBe(5)

  await page.keyboard.press("p")
  await feedState(page, "paused", 0).waitFor()
  await write("held")
  await feedState(page, "paused", 1).filter({ hasText: /\b1\b/ }).waitFor()
  expect(await rowOf("held").count()).toBe(0)
  await page.getByRole("button", { name: "Resume" }).click()
  await rowOf("held").waitFor()
  await screenshot(page, "live")
  expect(await axeFaultsInBoth(page)).toEqual([])

  await page.getByRole("searchbox", { name: "Filter the feed" }).fill("type:Thing op:updated")
  await page.waitForURL(/filter=type%3AThing\+op%3Aupdated/)
  await inTime(() => feed.getByRole("listitem").count()).toBe(1)
  await page.reload()
  await feed.locator("[data-version='2']").waitFor()
  await inTime(() => feed.getByRole("listitem").count()).toBe(1)
  await goTo("/live?filter=kind%3AThing")
  await page.getByRole("alert").filter({ hasText: '"kind:Thing"' }).waitFor()

  await goTo("/live")
  await rowOf("held").waitFor()
  await page.keyboard.press("j")
  await page.keyboard.press("Enter")
  await page.waitForURL("**/events/*")
  await page.getByTestId("woken").waitFor()
  await page.keyboard.press("Escape")
  await rowOf("held").waitFor()
  await page.setViewportSize({ width: 375, height: 700 })
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(375)
})

it("sends an object that wakes an agent, says so, and tells an event before and after", async () => {
  const story = await real.newStory()
  await run(story.post("/agents", watcher({ name: "greeter" })))
  const { page, goTo } = await real.visit(story, "/live")
  await page.getByRole("button", { name: "Send event" }).click()
  const dialog = page.getByRole("dialog")
  const woken = (count: number) => dialog.locator(`[data-woken="${count}"]`)
  await dialog.getByLabel("Type").fill("Person")
  await dialog.getByLabel("Key").fill("ada")
  await dialog.getByLabel("Properties").fill("no json")
  await sending(dialog).click()
  await faultAt(dialog, "/properties").waitFor()
  await dialog.getByLabel("Properties").fill('{"field": "engines"}')
  await sending(dialog).click()
  await woken(1).waitFor()
  await dialog.getByRole("link", { name: "greeter" }).waitFor()
  await screenshot(page, "send-event")
  expect(await axeFaultsInBoth(page)).toEqual([])

  // What was sent is not lost: one Escape is enough.
  await page.keyboard.press("Escape")
  await dialog.waitFor({ state: "hidden" })
  await page.getByRole("button", { name: "Send event" }).click()
  await dialog.getByLabel("Type").fill("Person")
  await dialog.getByLabel("Key").fill("grace")
  await dialog.getByLabel("Properties").fill('{"field": "engines"}')
  await sending(dialog).click()
  await woken(1).waitFor()

  // The key is taken now: the same form changes the object, and nobody reacts to that.
  await dialog.getByRole("button", { name: "Send another" }).click()
  await dialog.getByLabel("Properties").fill('{"field": "numbers"}')
  await sending(dialog).click()
  await woken(0).waitFor()
  await dialog.getByRole("link", { name: "event" }).click()
  await page.getByRole("heading", { level: 1, name: /Person grace/ }).waitFor()
  await page.getByRole("deletion").getByText("engines").waitFor()
  await page.getByRole("insertion").getByText("numbers").waitFor()
  await page.locator("main li[data-outcome=refused]").first().waitFor()
  await screenshot(page, "event")
  expect(await axeFaultsInBoth(page)).toEqual([])

  await goTo("/live?filter=is%3Arun+op%3Aended")
  await page
    .getByRole("link", { name: /\bgreeter\b.*\bended$/ })
    .first()
    .click()
  await page.waitForURL("**/runs/*")
  const reader = await real.visit(story, "/live", { role: "viewer" })
  await reader.page.getByTestId("editors-only").waitFor()
})

it("says of a run that began whose it is, and which object woke it", async () => {
  const story = await real.newStory()
  await run(story.post("/agents", watcher({ name: "greeter" })))
  await run(story.post("/objects", { type: "Person", key: "ada", properties: {} }))
  const { page } = await real.visit(story, "/live?filter=is%3Arun+op%3Abegan")
  const row = page.getByRole("list", { name: "Live feed" }).getByRole("listitem")
  await inTime(() => row.innerText()).toMatch(/greeter began\s[^]*\bPerson ada created\b/)
  await row.getByRole("link", { name: "Person ada" }).click()
  await page.waitForURL("**/objects/*")
})
