/**
 * Runs that rest because they have used what they may, against the whole program: they go on with more, from the console.
 */
import type { Locator, Page } from "playwright-core"
import { expect, it } from "vitest"
import { limitChains } from "../../server/testing/chain-words.ts"
import { scripted } from "../../server/testing/platform.ts"
import { watcher } from "../../server/testing/story-words.ts"
import { reader } from "../../server/testing/time-words.ts"
import { axeFaults, axeFaultsInBoth, screenshot } from "./page-checks.ts"
import { failure, faultAt, fieldAt, sending } from "./page-parts.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** Looks once and says so. */
const looker = (overrides: Record<string, unknown>) =>
  watcher({
    name: "looker",
    triggerType: "manual",
    reactionConfig: null,
    tools: ["graph.*"],
    model: scripted([
      { when: "step == 0", calls: [{ tool: "search_objects", arguments: { type: "Thing" } }] },
      { say: "I have looked." }
    ]),
    ...overrides
  })

const completed = (page: Page) => page.locator("h1 [data-status=completed]").waitFor()

/** What a dialog says of why the run rests. */
const reason = (dialog: Locator, pauseReason: string, text: string | RegExp = /\S/) =>
  dialog.locator(`[data-pause-reason=${pauseReason}]`).filter({ hasText: text })

it("a run that has spent its budget goes on with more, and says first why it rests", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", looker({ budget: { perRun: { maxTokens: 1 } } })))
  const resting = await run(story.post(`/agents/${agent.id}/trigger`))
  expect(resting.pauseReason).toBe("budget")
  const { page } = await real.visit(story, `/runs/${resting.id}`)
  await page.getByRole("list", { name: "Steps" }).waitFor()
  expect(await axeFaults(page, "heading-order")).toEqual([])
  await page.getByRole("button", { name: "Resume …", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  // The server says whose budget it is, of how much.
  expect(resting.errorMessage).toMatch(/\b1\b/)
  await reason(dialog, "budget", resting.errorMessage).waitFor()
  const tokens = fieldAt(dialog, "/maxTokens")
  expect(await tokens.inputValue()).toBe("1")
  await screenshot(page, "run-resume")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await tokens.fill("-5")
  await sending(dialog).press("Enter")
  await faultAt(dialog, "/maxTokens").waitFor()
  await tokens.fill("1000000")
  await fieldAt(dialog, "/message").fill("Go on.")
  await sending(dialog).press("Enter")
  await completed(page)
  expect((await run(story.get(`/runs/${resting.id}`))).limits.maxTokens).toBe(1_000_000)
})

it("a run that has used its steps goes on with more of them", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", looker({ maxSteps: 1 })))
  const resting = await run(story.post(`/agents/${agent.id}/trigger`))
  expect(resting.pauseReason).toBe("stepLimit")
  const { page } = await real.visit(story, `/runs/${resting.id}`)
  await page.getByRole("button", { name: "Resume …", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  await reason(dialog, "stepLimit").waitFor()
  await fieldAt(dialog, "/maxSteps").fill("5")
  await sending(dialog).press("Enter")
  await completed(page)
})

it("a run whose time was up goes on at once, and a refusal stands below the buttons", async () => {
  const story = await real.newStory()
  const slow = reader({ say: "I have read a part." }, { defaultTimeoutMs: 1_000 })
  const agent = await run(story.post("/agents", slow))
  const resting = await run(story.post(`/agents/${agent.id}/trigger`))
  expect(resting.pauseReason).toBe("timeout")
  await run(story.patch(`/agents/${agent.id}`, { enabled: false, defaultTimeoutMs: 600_000 }))
  const { page } = await real.visit(story, `/runs/${resting.id}`)
  const resume = page.getByRole("button", { name: "Resume", exact: true, disabled: false })
  await resume.press("Enter")
  const refusal = failure(page, "agentDisabled")
  await refusal.waitFor()
  const row = [resume, page.getByRole("button", { name: "Cancel run" })]
  const boxes = await Promise.all([refusal, ...row].map((each) => each.boundingBox()))
  const [top = 0, ...ends] = boxes.map(
    (box, place) => (box?.y ?? NaN) + (place === 0 ? 0 : (box?.height ?? NaN))
  )
  expect(Math.max(...ends)).toBeLessThanOrEqual(top)
  await run(story.patch(`/agents/${agent.id}`, { enabled: true }))
  await resume.press("Enter")
  await page.getByRole("button", { name: "Resume", exact: true }).waitFor({ state: "detached" })
  await page.getByRole("button", { name: "Cancel run" }).waitFor()
  expect((await run(story.get(`/runs/${resting.id}`))).status).not.toBe("paused")
})

it("a run that the chain's budget stopped says whose budget it is, and leads to where that is raised", async () => {
  const story = await real.newStory()
  await run(limitChains(story, { maxTokens: 1 }))
  const agent = await run(story.post("/agents", looker({})))
  const resting = await run(story.post(`/agents/${agent.id}/trigger`))
  expect(resting.pauseReason).toBe("budget")
  const { errorMessage } = resting
  expect(errorMessage).toMatch(/\b1\b/)
  // The way is offered where the budget is the chain's, and nowhere else.
  const way = 'a[href*="/settings"][href*="tab=project"]'
  const { page, goTo } = await real.visit(story, "/")
  const card = page.locator("[data-stopped=run]").filter({ hasText: "looker" })
  await card.getByText(errorMessage).waitFor()
  await card.locator(way).waitFor()
  await goTo(`/runs/${resting.id}`)
  await page.getByTestId("outcome").filter({ hasText: errorMessage }).locator(way).waitFor()
  await page.getByRole("button", { name: "Resume …", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  await reason(dialog, "budget", errorMessage).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await dialog.locator(way).press("Enter")
  await page.getByRole("tab", { name: "Project", selected: true }).waitFor()
  await run(limitChains(story, { maxTokens: 1_000_000 }))
  await goTo(`/runs/${resting.id}`)
  await page.getByRole("button", { name: "Resume …", disabled: false }).press("Enter")
  expect(await dialog.locator(way).count()).toBe(0)
  await sending(dialog).press("Enter")
  await completed(page)
})
