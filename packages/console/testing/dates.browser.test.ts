/**
 * Points in time are told in one way on every page, against the whole program.
 */
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { watcher } from "../../server/testing/story-words.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const day = String.raw`(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{1,2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)( \d{4})?`

it("a date is written the same way wherever it stands", async () => {
  const story = await real.newStory()
  await run(story.post("/objects", { type: "Person", key: "ada", properties: {} }))
  await run(
    story.post(
      "/agents",
      watcher({ name: "early", triggerType: "schedule", cronSchedule: "30 9 * * *", reactionConfig: null })
    )
  )
  const { page, goTo } = await real.visit(story, "/graph")
  await page.getByRole("link", { name: "ada" }).waitFor()
  await expectOneStyle(page)
  await goTo("/agents")
  const nextFire = page.getByRole("listitem").filter({ hasText: "early" }).locator("time")
  expect(await nextFire.innerText()).toMatch(new RegExp(`^${day}, \\d\\d:\\d\\d$`))
  await expectOneStyle(page)
  await run(story.ask("POST", "/members", { userId: "bob", role: "viewer" }))
  await run(
    story.post("/tokens", {
      name: "reader",
      userId: "bob",
      role: "viewer",
      expiresAt: "2099-01-01T00:00:00Z"
    })
  )
  for (const tab of ["members", "tokens"]) {
    await goTo(`/settings?tab=${tab}`)
    await page.locator("main time").first().waitFor()
    await expectOneStyle(page)
  }
})

/** What a page says of a point in time when one points at it. */
const expectOneStyle = async (page: Page) => {
  const titles = await page
    .locator("main time")
    .evaluateAll((times) => times.map((time) => time.getAttribute("title")))
  expect(titles.length).toBeGreaterThan(0)
  for (const title of titles) expect(title).toMatch(new RegExp(`^${day}, \\d\\d:\\d\\d:\\d\\d$`))
}
