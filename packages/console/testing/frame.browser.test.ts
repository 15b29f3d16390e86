/**
 * What stands around every page, against the whole program: pages that cannot be fetched, the kill switch, runs at work, a lost connection.
 */
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { scripted } from "../../server/testing/platform.ts"
import { endedRuns, saying, watcher } from "../../server/testing/story-words.ts"
import { inTime } from "./inbox-words.ts"
import { axeFaultsInBoth, screenshot } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const manual = (overrides: Record<string, unknown>) =>
  watcher({ triggerType: "manual", reactionConfig: null, ...overrides })

const toPage = (page: Page, name: string) =>
  page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true }).click()

/** What stands where code did not come. */
const notFetched = (page: Page) => page.locator("[data-fault=notFetched]")

/** The sign of the live feed in one state. */
const feedSign = (page: Page, state: "live" | "lost") =>
  page.getByRole("banner").locator(`[data-testid=feed][data-state=${state}]`)

it("keeps the frame where the code of a page cannot be fetched, and fetches it when asked again", async () => {
  const story = await real.newStory()
  const { page, goTo } = await real.visit(story, "/nowhere")
  await page.route(/\/assets\/runs-page[^/]*\.js/, (route) => route.abort("internetdisconnected"))
  await goTo("/")
  await page.getByRole("navigation", { name: "Pages" }).waitFor()
  await toPage(page, "Runs")
  await notFetched(page).waitFor()
  await page.getByRole("banner").waitFor()
  await screenshot(page, "page-not-fetched")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.unroute(/\/assets\/runs-page[^/]*\.js/)
  await page.getByRole("button", { name: "Try again" }).click()
  await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor()

  // Whoever was away need not press anything.
  await page.route(/\/assets\/chains-page[^/]*\.js/, (route) => route.abort("internetdisconnected"))
  await goTo("/chains")
  await notFetched(page).waitFor()
  await page.unroute(/\/assets\/chains-page[^/]*\.js/)
  await page.context().setOffline(true)
  await page.context().setOffline(false)
  await page.getByRole("heading", { level: 1, name: "Chains" }).waitFor()
})

it("shows a page whose parts could not be fetched either, once the server answers again", async () => {
  const story = await real.newStory()
  const { page, goTo } = await real.visit(story, "/nowhere")
  // No code is fetched before it is asked for.
  await page.addInitScript("window.requestIdleCallback = () => 0")
  let isCut = false
  await page.route(/\/assets\/.*\.js/, (route) =>
    isCut ? route.abort("internetdisconnected") : route.continue()
  )
  await goTo("/")
  await page.getByRole("heading", { level: 1, name: "Inbox" }).waitFor({ state: "attached" })
  isCut = true
  await toPage(page, "Chains")
  await notFetched(page).waitFor()
  isCut = false
  await page.getByRole("button", { name: "Try again" }).click()
  await page.getByRole("heading", { level: 1, name: "Chains" }).waitFor()
})

it("keeps the page where what finds anything cannot be fetched, and opens it when asked again", async () => {
  const story = await real.newStory()
  const { page, goTo } = await real.visit(story, "/nowhere")
  await page.route(/\/assets\/palette[^/]*\.js/, (route) => route.abort("internetdisconnected"))
  await goTo("/")
  await page.getByRole("navigation", { name: "Pages" }).waitFor()
  await page.keyboard.press("Control+k")
  const dialog = page.getByRole("dialog").filter({ has: notFetched(page) })
  await dialog.waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.keyboard.press("Escape")
  await dialog.waitFor({ state: "hidden" })
  await page.keyboard.press("Control+k")
  await dialog.waitFor()
  await page.unroute(/\/assets\/palette[^/]*\.js/)
  await dialog.getByRole("button", { name: "Try again" }).click()
  await page.getByRole("combobox").waitFor()
})

it("keeps the graph's list where what draws its picture cannot be fetched, and draws when asked again", async () => {
  const story = await real.newStory()
  await run(story.post("/objects", { type: "Person", key: "ada", properties: {} }))
  const { page, goTo } = await real.visit(story, "/nowhere")
  await page.route(/\/assets\/graph-canvas[^/]*\.js/, (route) => route.abort("internetdisconnected"))
  await goTo("/graph")
  await page.getByRole("link", { name: /ada/ }).waitFor()
  await page.getByRole("tab", { name: "Graph view" }).click()
  await notFetched(page).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.getByRole("tab", { name: "List" }).click()
  await page.getByRole("link", { name: /ada/ }).waitFor()
  await page.getByRole("tab", { name: "Graph view" }).click()
  await notFetched(page).waitFor()
  await page.unroute(/\/assets\/graph-canvas[^/]*\.js/)
  await page.getByRole("button", { name: "Try again" }).click()
  await page.locator("[data-state=whole][data-objects='1'][data-relationships='0']").waitFor()
})

it("has fetched every page while the browser was idle, so that they open without a server", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story)
  const fetched = () =>
    page.evaluate(() =>
      performance.getEntriesByType("resource").flatMap(({ name }) => /([a-z-]+-page)-/.exec(name)?.[1] ?? [])
    )
  await inTime(async () => new Set(await fetched()).size).toBeGreaterThan(14)
  // They come one after the other, and the one that is opened below may be the last.
  await inTime(fetched).toContain("settings-page")
  await page.context().setOffline(true)
  await toPage(page, "Settings")
  await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor()
  await page.context().setOffline(false)
})

it("says in words that the connection is lost, until it is there again", async () => {
  const story = await real.newStory()
  const { page, goTo } = await real.visit(story, "/nowhere")
  const feed = /\/api\/projects\/[^/]+\/events(?:\?|$)/
  await page.route(feed, (route) => route.abort("connectionrefused"))
  await goTo("/")
  const sign = feedSign(page, "lost")
  await sign.waitFor()
  expect(await sign.innerText()).not.toBe("")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.unroute(feed)
  await sign.waitFor({ state: "detached" })
})

it("says in a sentence that a page has failed, and shows it again when it can", async () => {
  const story = await real.newStory()
  const { page, faults } = await real.visit(story)
  await page.route("**/health", (route) => route.fulfill({ json: { state: "well", verdict: {} } }))
  await toPage(page, "Health")
  await page.locator("[data-fault=failed]").waitFor()
  await page.getByRole("banner").waitFor()
  expect(await page.getByRole("main").innerText()).not.toMatch(/TypeError|\n\s+at |Show Error/)
  await page.unroute("**/health")
  await page.getByRole("button", { name: "Try again" }).click()
  await page.locator("section[data-state=ok]").waitFor()
  // The browser logs what was thrown; the page says it in words.
  expect(faults.length).toBeGreaterThan(0)
  if (Array.isArray(faults)) faults.splice(0)
})

it("says on every page who stopped the agents, why, and where they are let go on", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story)
  const strip = page.getByTestId("kill-switch")
  await page.getByRole("navigation", { name: "Pages" }).waitFor()
  expect(await strip.count()).toBe(0)
  const path = `/api/projects/${story.projectId}/kill-switch`
  await run(story.send("PUT", path, { stopped: true, reason: "It <b>spends</b> too much." }))
  await strip.filter({ hasText: "admin" }).waitFor()
  await strip.getByText("It <b>spends</b> too much.").waitFor()
  await strip.locator("time").waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await toPage(page, "Chains")
  await page.getByRole("heading", { level: 1, name: "Chains" }).waitFor()
  await screenshot(page, "kill-switch")
  await strip.getByRole("link").click()
  await page.waitForURL(/\/settings\?.*tab=project/)
  await page.getByRole("region", { name: "Kill switch", exact: true }).getByRole("button").click()
  await strip.waitFor({ state: "detached" })
})

it("counts the runs at work, and puts them first among the recent ones", async () => {
  const story = await real.newStory()
  const slow = await run(
    story.post(
      "/agents",
      manual({ name: "slow", model: scripted([{ say: "At last.", latencyMs: 600_000 }]) })
    )
  )
  const going = await run(story.post(`/agents/${slow.id}/trigger?wait=false`))
  const quick = await run(story.post("/agents", manual({ name: "quick", model: saying("Done.") })))
  for (const _ of [1, 2, 3]) await run(story.post(`/agents/${quick.id}/trigger`))
  await run(endedRuns(story, quick, 3))
  const { page } = await real.visit(story)
  const atWork = page.getByRole("banner").locator('a[href*="status=running"]')
  await atWork.filter({ hasText: /^\D*1\D*$/ }).waitFor()
  const recent = page.getByRole("complementary", { name: "Recent runs" }).getByRole("listitem")
  await inTime(async () =>
    (await recent.allInnerTexts()).map((text) => /slow|quick/.exec(text)?.[0])
  ).toEqual(["slow", "quick", "quick", "quick"])
  expect(await axeFaultsInBoth(page)).toEqual([])
  await atWork.click()
  await page.waitForURL(/\/runs\?.*status=running/)
  await run(story.post(`/runs/${going.id}/cancel`))
  await atWork.waitFor({ state: "detached" })
})

it("says within seconds that the browser has lost the server, and that it is there again", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/")
  await feedSign(page, "live").waitFor({ state: "attached" })
  await page.context().setOffline(true)
  // The page may hear that it is offline, and open its stream anew, a moment before it is.
  await page.waitForFunction(() =>
    fetch("/health").then(
      () => false,
      () => true
    )
  )
  await page.evaluate(() => void globalThis.dispatchEvent(new Event("offline")))
  await feedSign(page, "lost").waitFor({ timeout: 20_000 })
  await page.context().setOffline(false)
  await feedSign(page, "live").waitFor({ state: "attached", timeout: 20_000 })
})

it("names the key of the palette as this machine's keyboard does", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/")
  await page.getByRole("banner").getByText("Ctrl K").waitFor()
  expect(await page.getByText("⌘").count()).toBe(0)
})

it("says to who signs in with what no token is that it is none", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/")
  await page.context().clearCookies()
  await page.reload()
  const answers: Array<number> = []
  page.on("response", (response) => {
    if (new URL(response.url()).pathname === "/login") answers.push(response.status())
  })
  const field = page.locator("input[type=password]")
  const said = () => page.getByRole("main").getByRole("status").innerText()
  let before = await said()
  // What can be no token is not sent.
  for (const [text, value, sent] of [
    ["мой токен", "", []],
    ["x".repeat(100_000), "100,000", []],
    ["wrong", "", [401]]
  ] as const) {
    await field.fill(text)
    await field.press("Enter")
    await inTime(
      async () => (await field.getAttribute("aria-invalid")) === "true" && (await said()) !== before
    ).toBe(true)
    before = await said()
    expect(before).toContain(value)
    expect(answers).toEqual(sent)
  }
})

it("shows what a person may do since their role was changed, and to sign in since they were removed, without a reload", async () => {
  const story = await real.newStory()
  const ada = await run(story.post("/objects", { type: "Person", key: "ada", properties: { name: "Ada" } }))
  const { page } = await real.visit(story, `/objects/${ada.id}`, { role: "viewer" })
  await page.locator("[data-role=viewer]").waitFor()
  await run(story.patch("/members/a-viewer", { role: "editor" }))
  await page.locator("[data-role=editor]").waitFor()
  await page.getByRole("button", { name: "Edit name", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  await dialog.getByLabel("Value").fill("Lady Ada")
  await run(story.patch("/members/a-viewer", { role: "viewer" }))
  await dialog.getByRole("button", { name: "Save", exact: true, disabled: false }).press("Enter")
  // The refusal is told, what was written stays, and behind it nothing more is offered.
  await dialog.getByRole("alert").waitFor()
  expect(await dialog.getByLabel("Value").inputValue()).toBe("Lady Ada")
  await page.keyboard.press("Escape")
  await page.locator("[data-role=viewer]").waitFor()
  expect(await page.getByRole("button", { name: /Edit|Delete|Add/ }).count()).toBe(0)
  await run(story.ask("DELETE", "/members/a-viewer"))
  await page.locator("input[type=password]").waitFor()
  // Who runs the server prints a link, or takes the token from its file.
  await page.getByText("npx tropism link").waitFor()
  await page.getByRole("main").getByText("token", { exact: true }).waitFor()
})
