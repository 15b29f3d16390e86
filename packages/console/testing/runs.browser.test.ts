/**
 * The list of runs and the page of one, against the whole program: what an agent did, why, and what its model was asked.
 */
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { scripted } from "../../server/testing/platform.ts"
import { endedRuns, watcher } from "../../server/testing/story-words.ts"
import { inTime } from "./inbox-words.ts"
import { axeFaultsInBoth, screenshot } from "./page-checks.ts"
import { withAll } from "./page-parts.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** That none of the runs fits the filter; where there are no runs at all, a command that makes one is offered. */
const noRun = (page: Page) => page.getByTestId("empty").filter({ hasNot: page.locator("code") })

/** An agent that looks, says what it found, and says `<b>` where somebody could take it for the console's own. */
const looking = watcher({
  name: "looking",
  triggerType: "manual",
  reactionConfig: null,
  tools: ["graph.*"],
  model: scripted([
    {
      when: "step == 0",
      say: "I look.",
      calls: [{ tool: "search_objects", arguments: { type: "Thing" } }]
    },
    { say: "Nothing <b>new</b>." }
  ])
})

it("tells what a run did, step by step, what its model was asked, and each event of its log", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", looking))
  const done = await run(story.post(`/agents/${agent.id}/trigger`))
  const { page, goTo } = await real.visit(story, "/runs")
  await page.getByRole("link", { name: /looking/ }).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])

  await page.getByRole("link", { name: /looking/ }).press("Enter")
  await page.getByRole("heading", { level: 1, name: /looking/ }).waitFor()
  expect(new URL(page.url()).pathname).toBe(`/runs/${done.id}`)
  // What an agent says is text and nothing else.
  await page.getByText("Nothing <b>new</b>.", { exact: true }).first().waitFor()
  const steps = page.getByRole("list", { name: "Steps", exact: true })
  await inTime(() => steps.getByRole("heading").count()).toBe(2)
  await steps.getByText("search_objects", { exact: true }).click()
  await steps.getByText('"Thing"').first().waitFor()
  await screenshot(page, "run")
  expect(await axeFaultsInBoth(page)).toEqual([])
  // It has ended: there is nothing to cancel or to resume, and it wrote nothing that could be undone.
  await page.getByTestId("nothing-to-undo").waitFor()
  expect(await page.getByRole("button", { name: /Cancel|Resume|Undo/ }).count()).toBe(0)

  await page.getByRole("button", { name: "Replay", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  const { engineEvents, events } = await run(story.get(`/runs/${done.id}/replay`))
  await withAll(dialog.locator("[data-replay=same]"), events, engineEvents).waitFor()
  await screenshot(page, "run-replay")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.keyboard.press("Escape")
  await dialog.waitFor({ state: "detached" })

  await page.getByRole("tab", { name: "Model calls" }).press("Enter")
  const first = page.getByTestId("call-1")
  await first.getByRole("button", { expanded: false }).click()
  await first.locator("[data-called='1']").getByText("search_objects").waitFor()
  const answered = first.locator("[data-part=answered]").getByRole("list")
  expect(await answered.innerText()).toMatch(/^assistant\s+I look\.\s+\D+search_objects$/)
  await first.getByRole("button", { expanded: true }).click()
  await page.getByTestId("call-2").getByRole("button", { expanded: false }).click()
  const read = page.getByTestId("call-2").locator("[data-part=read]")
  const shown = read.getByRole("listitem")
  await inTime(() => shown.last().innerText()).toMatch(/^tool\s+\D+search_objects$/)
  // Whoever wants what was sent to the letter has it as JSON.
  await read.getByRole("button", { name: "As JSON", disabled: false }).press("Enter")
  await page.getByText('"role": "tool"').waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])

  await page.getByRole("tab", { name: "Log" }).press("Enter")
  const { items } = await run(story.get(`/runs/${done.id}/events?limit=200`))
  const started = items.find(({ type }: { readonly type: string }) => type === "ToolCallStartedEvent")
  await goTo(`/runs/${done.id}?tab=log&event=${encodeURIComponent(started.id)}`)
  await page.getByRole("button", { expanded: true, name: /ToolCallStartedEvent.*search_objects/ }).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  const log = page.getByRole("tabpanel")
  await log.getByRole("searchbox").fill("nothing <B>NEW")
  await inTime(() => log.getByRole("listitem").allInnerTexts()).toEqual([
    expect.stringMatching(/AssistantMessageEvent\s+Nothing <b>new<\/b>\.\s+\+\d/)
  ])
  await log.getByRole("searchbox").fill("no such words")
  await log
    .getByTestId("nothing-found")
    .filter({ hasText: String(items.length) })
    .waitFor()
})

it("leads from a run that failed to where it is tried again", async () => {
  const story = await real.newStory()
  const model = { provider: "anthropic", name: "none" }
  const agent = await run(story.post("/agents", watcher({ name: "unlucky", model })))
  await run(story.post("/objects", { type: "Person", properties: {} }))
  const [failed] = await run(endedRuns(story, agent, 1))
  const { page } = await real.visit(story, `/runs/${failed.id}`)
  await page.getByRole("main").locator('a[href*="tab=dead"]').press("Enter")
  await page.getByRole("tab", { name: "Dead letters", selected: true }).waitFor()
  await page.waitForURL(`**/reactions/${agent.id}?*`)
})

it("tells what a run read, wrote and suggests, and leads there", async () => {
  const story = await real.newStory()
  const ada = await run(story.post("/objects", { type: "Person", key: "ada", properties: { age: 1 } }))
  const calls = [
    { tool: "get_object", arguments: { objectId: ada.id } },
    { tool: "create_object", arguments: { type: "Note", key: "<b>n</b>", properties: {} } },
    { tool: "update_object", arguments: { objectId: ada.id, properties: { age: 3 }, suggest: true } }
  ]
  const model = scripted([{ when: "step == 0", calls }, { say: "Done." }])
  const agent = await run(story.post("/agents", { ...looking, executionMode: "execute", model }))
  const done = await run(story.post(`/agents/${agent.id}/trigger`))
  await run(story.patch(`/objects/${ada.id}`, { properties: { age: 2 } }))
  const { page } = await real.visit(story, `/runs/${done.id}?tab=objects`)
  const version1 = (region: string) =>
    page.getByRole("region", { name: region }).locator('a[href*="version=1"]')
  await version1("Wrote").getByText("Note <b>n</b>").waitFor()
  await page.getByRole("region", { name: "Suggested" }).locator("[data-status=pending]").waitFor()
  const read = page.getByRole("region", { name: "Read" }).getByRole("listitem")
  const own = read.filter({ has: page.getByTestId("own-write") })
  await inTime(() => own.allInnerTexts()).toEqual([expect.stringMatching(/^Note <b>n<\/b>/)])
  await screenshot(page, "run-objects")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await version1("Read").filter({ hasText: "Person ada" }).press("Enter")
  await page.waitForURL(/tab=history&version=1/)
})

it("names the object that woke a run, and leads to it and to its event", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", watcher({ name: "greeter" })))
  const ada = await run(story.post("/objects", { type: "Person", key: "a<d>a", properties: {} }))
  const [woken] = await run(endedRuns(story, agent, 1))
  const { page, goTo } = await real.visit(story, "/runs")
  const row = page.getByRole("list", { name: "Runs" }).getByRole("listitem").filter({ hasText: "greeter" })
  await row.getByText("Person a<d>a created").waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await screenshot(page, "runs")
  // A click on the name leads to the object, though the row leads to the run.
  await row.getByRole("link", { name: "Person a<d>a" }).click()
  await page.waitForURL(`**/objects/${ada.id}*`)
  await goTo(`/runs/${woken.id}`)
  await page.getByRole("link", { name: "created", exact: true }).press("Enter")
  await page.waitForURL(`**/events/${woken.trigger.events[0].id}*`)
})

it("finds runs by words, agent and time, and keeps what was asked in the address", async () => {
  const story = await real.newStory()
  const [looks, fails] = [
    looking,
    { ...looking, name: "failing", model: { provider: "anthropic", name: "none" } }
  ]
  const first = await run(
    Effect.flatMap(story.post("/agents", looks), ({ id }) => story.post(`/agents/${id}/trigger`))
  )
  await run(Effect.flatMap(story.post("/agents", fails), ({ id }) => story.post(`/agents/${id}/trigger`)))
  const { page } = await real.visit(story, "/runs")
  const rows = page.getByRole("list", { name: "Runs" }).getByRole("listitem")
  await inTime(() => rows.count()).toBe(2)
  const search = page.getByRole("searchbox", { name: "Search" })
  await search.fill("noth new")
  await page.waitForURL(/query=noth\+new/)
  await inTime(() => rows.allInnerTexts()).toEqual([expect.stringContaining("looking")])
  await search.fill("no such words")
  await noRun(page).waitFor()
  await page.getByRole("button", { name: "Show all", disabled: false }).press("Enter")
  await inTime(() => rows.count()).toBe(2)

  await page.getByLabel("Agent", { exact: true }).selectOption("failing")
  await inTime(() => rows.allInnerTexts()).toEqual([expect.stringContaining("failing")])
  await page.reload()
  await inTime(() => rows.allInnerTexts()).toEqual([expect.stringContaining("failing")])
  await page.getByRole("button", { name: "Show all", disabled: false }).press("Enter")

  // The fields are on the reader's clock, to the minute; what is asked is an instant.
  const minute = (by: number) =>
    page.evaluate(
      (ms) => new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16),
      Date.parse(first.createdAt) + by * 60_000
    )
  await page.getByLabel("until").fill(await minute(-1))
  await noRun(page).waitFor()
  await page.getByLabel("until").fill(await minute(3))
  await inTime(() => rows.count()).toBe(2)
  await page.getByLabel("From").fill(await minute(2))
  await noRun(page).waitFor()
  expect(new URL(page.url()).searchParams.get("from")).toMatch(/:00\.000Z$/)
  expect(await axeFaultsInBoth(page)).toEqual([])
})

it("follows a run as it goes on, and lets an editor cancel it and a viewer not", async () => {
  const story = await real.newStory()
  const agent = await run(
    story.post("/agents", {
      ...looking,
      name: "slow",
      model: scripted([{ say: "At last.", latencyMs: 600_000 }])
    })
  )
  const going = await run(story.post(`/agents/${agent.id}/trigger?wait=false`))
  const reader = await real.visit(story, `/runs/${going.id}`, { role: "viewer" })
  await reader.page.getByTestId("editors-only").waitFor()
  const { page } = await real.visit(story, `/runs/${going.id}`)
  await page.locator("h1 [data-status=running]").waitFor()
  await page.getByTestId("outcome").getByText(/\b0\b/).waitFor()
  await page.getByRole("button", { name: "Cancel run" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Cancel run" }).click()
  for (const each of [page, reader.page]) await each.locator("h1 [data-status=cancelled]").waitFor()
  expect((await run(story.get(`/runs/${going.id}`))).status).toBe("cancelled")
  // What its model was being asked is there all the same.
  await page.getByRole("tab", { name: "Model calls" }).press("Enter")
  const open = page.getByTestId("call-open")
  await open.getByRole("button", { expanded: false }).press("Enter")
  await open.locator("[data-state=brokenOff]").waitFor()
  const read = open.locator("[data-part=read]").getByRole("listitem")
  await read.filter({ hasText: /^user/ }).first().waitFor()
  await screenshot(page, "run-cancelled")
  expect(await axeFaultsInBoth(page)).toEqual([])
})

/** Lets the answers to such requests wait until they may go; answers whether one waits, and how they go. */
const holding = async (page: Page, asks: (url: URL) => boolean) => {
  const waiting: Array<() => void> = []
  let isOpen = false
  await page.route(asks, async (route) => {
    if (!isOpen) await new Promise<void>((go) => waiting.push(go))
    await route.continue()
  })
  const release = () => {
    isOpen = true
    waiting.splice(0).forEach((go) => go())
  }
  return { count: () => waiting.length, release }
}

it("a row stays where it is while a filtered list is on its way, and a press that began on it ends on it", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", looking))
  const done = await run(story.post(`/agents/${agent.id}/trigger`))
  const { page, goTo } = await real.visit(story, "/runs")
  const link = page.getByRole("list", { name: "Runs" }).getByRole("link", { name: /looking/ })
  await link.waitFor()
  const asksFor = (words: string) => (url: URL) =>
    url.pathname.endsWith("/runs") && url.searchParams.get("query") === words
  const found = await holding(page, asksFor("new"))
  await page.getByRole("searchbox").fill("new")
  await inTime(found.count).toBe(2)
  expect(await link.isVisible()).toBe(true)
  await inTime(() => page.getByRole("list", { name: "Runs" }).getAttribute("aria-busy")).toBe("true")
  await page.getByTestId("reading").waitFor({ state: "attached" })
  expect(await axeFaultsInBoth(page)).toEqual([])
  await link.click()
  await page.waitForURL(`**/runs/${done.id}**`)

  // A press that begins while somebody still types, and ends when nothing is found.
  await goTo("/runs")
  await link.waitFor()
  const missed = await holding(page, asksFor("nowhere"))
  await page.getByRole("searchbox").fill("nowhere")
  await link.hover()
  await page.mouse.down()
  await inTime(missed.count).toBe(2)
  missed.release()
  await page.getByTestId("reading").waitFor({ state: "detached" })
  await page.mouse.up()
  await page.waitForURL(`**/runs/${done.id}**`)
  await page.goBack()
  await noRun(page).waitFor()
  // What is found again is there at once, and no older rows with it.
  await page.getByRole("button", { name: "Show all", disabled: false }).press("Enter")
  await link.waitFor()
})
