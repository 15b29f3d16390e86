/**
 * Dry runs in the console against the whole program: every event is reached, named, and one that takes too long is ended.
 */
import { Effect } from "effect"
import { expect, it } from "vitest"
import { eventually } from "../../server/testing/platform.ts"
import { make, saying, silentFor, watcher } from "../../server/testing/story-words.ts"
import { inTime } from "./inbox-words.ts"
import { axeFaultsInBoth } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const manyEvents = 53

it("a dry run lists its events page by page, says how many there are, and names the object of each", async () => {
  const story = await real.newStory()
  await run(story.post("/objects", { type: "Person", key: "ada", properties: {} }))
  await run(
    Effect.forEach(Array.from({ length: manyEvents - 1 }), () => make(story, "Person"), { concurrency: 4 })
  )
  await run(
    eventually(
      story.get("/events?limit=200"),
      ({ items }) =>
        items.filter(({ position }: { readonly position: number | null }) => position !== null).length ===
        manyEvents
    )
  )
  const agent = await run(story.post("/agents", watcher({ name: "trier", model: saying("Seen.") })))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=backtests`)
  // A first look costs little and shows something; the command is that of the form.
  expect(await page.getByLabel("Newest events").inputValue()).toBe("20")
  await page.getByText(/npx tropism backtest trier --days 30 --max-events 20/).waitFor()
  await page.getByLabel("Newest events").fill("100")
  await page.getByLabel("Of the last days").fill("3")
  await page.getByText(/npx tropism backtest trier --days 3 --max-events 100/).waitFor()
  await page.getByRole("button", { name: "Begin a dry run", disabled: false }).press("Enter")
  await page
    .getByRole("button", { name: `Version 1: completed, ${manyEvents} of ${manyEvents} events` })
    .waitFor({ timeout: 120_000 })
  const events = page.getByRole("list", { name: "Events" })
  await inTime(() => events.locator(":scope > li").count()).toBe(50)
  await page.getByText(`The first 50 of ${manyEvents} events.`).waitFor()
  await events.getByRole("link", { name: "Person ada", exact: true }).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.getByRole("button", { name: "Show more events", disabled: false }).press("Enter")
  await inTime(() => events.locator(":scope > li").count()).toBe(manyEvents)
  expect(await page.getByRole("button", { name: "Show more events" }).count()).toBe(0)
}, 180_000)

it("a dry run that is under way is cancelled where it is listed, and another one begins", async () => {
  const story = await real.newStory()
  await run(make(story, "Person"))
  await run(eventually(story.get("/events"), ({ items }) => items.length === 1))
  const agent = await run(story.post("/agents", watcher({ name: "sleeper", model: silentFor(600_000) })))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=backtests`)
  const begin = page.getByRole("button", { name: "Begin a dry run", disabled: false })
  await begin.press("Enter")
  await page.getByRole("button", { name: "Version 1: running, 0 of 1 event" }).waitFor()
  await page.getByRole("button", { name: "Cancel it", disabled: false }).press("Enter")
  await page
    .getByRole("dialog")
    .getByRole("button", { name: "Cancel the dry run", disabled: false })
    .press("Enter")
  await page.getByRole("button", { name: /^Version 1: cancelled/ }).waitFor()
  expect(await page.getByRole("button", { name: "Cancel it" }).count()).toBe(0)
  await run(story.patch(`/agents/${agent.id}`, { model: saying("Awake.") }))
  await begin.press("Enter")
  await page.getByRole("button", { name: "Version 2: completed, 1 of 1 event" }).waitFor()
  // Who may begin none may end none.
  const reader = await real.visit(story, `/agents/${agent.id}?tab=backtests`, { role: "viewer" })
  await reader.page.getByText("Editors may begin one.").waitFor()
})
