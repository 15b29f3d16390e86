/**
 * Dry runs in the console against the whole program: every event is reached, named, and one that takes too long is ended.
 */
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { eventually } from "../../server/testing/platform.ts"
import { make, saying, silentFor, watcher } from "../../server/testing/story-words.ts"
import { buttonOf, fieldAt, sending } from "./page-parts.ts"
import { inTime } from "./inbox-words.ts"
import { axeFaultsInBoth } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** The dry runs of a version that have this status. */
const dryRuns = (page: Page, version: number, status: string) =>
  page
    .getByRole("list", { name: "Backtests" })
    .locator(`[data-status=${status}]`)
    .filter({ hasText: new RegExp(`\\b${version}\\b`) })

/** How many of its events a dry run has behind it. */
const doneOf = (done: number, chosen: number): RegExp => new RegExp(`\\b${done}\\b\\D+\\b${chosen}\\b`)

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
  const maxEvents = fieldAt(page, "/maxEvents")
  expect(await maxEvents.inputValue()).toBe("20")
  await page.getByText(/npx tropism backtest trier --days 30 --max-events 20/).waitFor()
  await maxEvents.fill("100")
  await fieldAt(page, "/days").fill("3")
  await page.getByText(/npx tropism backtest trier --days 3 --max-events 100/).waitFor()
  await sending(page.locator("main form")).press("Enter")
  await dryRuns(page, 1, "completed")
    .filter({ hasText: doneOf(manyEvents, manyEvents) })
    .waitFor({ timeout: 120_000 })
  const events = page.getByRole("list", { name: "Events" })
  await inTime(() => events.locator(":scope > li").count()).toBe(50)
  await page.getByText(new RegExp(`\\b50\\b.*\\b${manyEvents}\\b`)).waitFor()
  await events.getByRole("link", { name: "Person ada", exact: true }).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await buttonOf(page, "more-events").press("Enter")
  await inTime(() => events.locator(":scope > li").count()).toBe(manyEvents)
  expect(await page.getByTestId("more-events").count()).toBe(0)
}, 180_000)

it("a dry run that is under way is cancelled where it is listed, and another one begins", async () => {
  const story = await real.newStory()
  await run(make(story, "Person"))
  await run(eventually(story.get("/events"), ({ items }) => items.length === 1))
  const agent = await run(story.post("/agents", watcher({ name: "sleeper", model: silentFor(600_000) })))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=backtests`)
  const begin = sending(page.locator("main form"))
  await begin.press("Enter")
  await dryRuns(page, 1, "running")
    .filter({ hasText: doneOf(0, 1) })
    .waitFor()
  await page.getByRole("button", { name: "Cancel", exact: true, disabled: false }).press("Enter")
  await buttonOf(page.getByRole("dialog"), "confirm").press("Enter")
  await dryRuns(page, 1, "cancelled").waitFor()
  expect(await page.getByRole("button", { name: "Cancel", exact: true }).count()).toBe(0)
  await run(story.patch(`/agents/${agent.id}`, { model: saying("Awake.") }))
  await begin.press("Enter")
  await dryRuns(page, 2, "completed")
    .filter({ hasText: doneOf(1, 1) })
    .waitFor()
  // Who may begin none may end none.
  const reader = await real.visit(story, `/agents/${agent.id}?tab=backtests`, { role: "viewer" })
  await reader.page.getByTestId("editors-only").waitFor()
})
