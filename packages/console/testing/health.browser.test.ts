/**
 * The page that says how the project fares, against the whole program: each fault, where it leads, and that mending it is enough.
 */
import { expect, it } from "vitest"
import type { Page } from "playwright-core"
import { saying, watcher } from "../../server/testing/story-words.ts"
import { axeFaultsInBoth, screenshot } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const manual = (overrides: Record<string, unknown>) =>
  watcher({ triggerType: "manual", reactionConfig: null, ...overrides })

/** Watches until all is well. */
const well = (page: Page) => page.locator("section[data-state=ok]").waitFor()

/** Watches until the next step is in a part of the project, about one kind of thing, which is named. */
const wrong = (page: Page, part: string, subject: string, name = "") =>
  page
    .locator(`section[data-part=${part}][data-subject=${subject}]:not([data-state=ok])`)
    .filter({ hasText: name })
    .waitFor()

it("says of a fresh project that all is well and why, and tells each fault with the step that mends it, until it is mended", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/status")
  await well(page)
  for (const name of ["Flow", "Execution", "Liveness"])
    await page.getByRole("region", { name }).getByRole("listitem").first().waitFor()
  await screenshot(page, "health-well")
  expect(await axeFaultsInBoth(page)).toEqual([])

  // A model without a key: known before anything has failed.
  const keyless = { provider: "anthropic", name: "none" }
  const agent = await run(
    story.post("/agents", manual({ name: "tidy", model: keyless, disableAfterFailures: 3 }))
  )
  await wrong(page, "liveness", "agent", "tidy")
  await page
    .getByRole("region", { name: "Verdict" })
    .getByText(/ANTHROPIC_API_KEY/)
    .waitFor()
  // Failed three times: it is disabled now, and that comes first.
  for (const _ of [1, 2, 3]) await run(story.post(`/agents/${agent.id}/trigger`))
  await wrong(page, "execution", "agent", "tidy")
  await screenshot(page, "health")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.keyboard.press("n")
  await page.waitForURL(`**/agents/${agent.id}*`)
  await run(story.patch(`/agents/${agent.id}`, { enabled: true, model: saying("Done.") }))
  await page.keyboard.press("g")
  await page.keyboard.press("h")
  await well(page)

  // Stopped: what somebody wrote is quoted and is not the page's own word.
  const path = `/api/projects/${story.projectId}/kill-switch`
  await run(story.send("PUT", path, { stopped: true, reason: "<b>No worries</b>" }))
  await wrong(page, "flow", "killSwitch")
  await page.getByRole("blockquote").first().getByText("<b>No worries</b>", { exact: true }).waitFor()
  await run(story.send("PUT", path, { stopped: false }))
  await well(page)
})

it("is readable on a phone, for a viewer, and says when the server cannot be asked", async () => {
  const story = await real.newStory()
  const missing = {
    name: "shop",
    transport: { type: "stdio", command: "/nowhere/at-all" },
    allowedTools: ["*"]
  }
  await run(story.post("/mcp-servers", missing))
  const { page } = await real.visit(story, "/status", {
    role: "viewer",
    viewport: { width: 375, height: 700 }
  })
  await wrong(page, "liveness", "mcpServer", "shop")
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(375)
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.context().setOffline(true)
  await page.locator("[role=alert][data-failure=unreachable][data-has-older]").waitFor()
  await page.context().setOffline(false)
  await page.getByRole("alert").waitFor({ state: "detached" })
})
