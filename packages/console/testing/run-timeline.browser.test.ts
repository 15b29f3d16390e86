/**
 * A run along its time, against the whole program: what is under way, what was broken off, the gaps, and the way into the log.
 */
import { Effect } from "effect"
import { expect, it } from "vitest"
import { asOwner } from "../../server/testing/fresh-database.ts"
import { scripted } from "../../server/testing/platform.ts"
import { calling, watcher } from "../../server/testing/story-words.ts"
import { axeFaultsInBoth, screenshot } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()
const manual = { triggerType: "manual", reactionConfig: null }

it("tells the request that is under way, and that it was broken off when the run was", async () => {
  const story = await real.newStory()
  const model = scripted([{ say: "At last.", latencyMs: 600_000 }])
  const agent = await run(story.post("/agents", watcher({ name: "slow", ...manual, model })))
  const going = await run(story.post(`/agents/${agent.id}/trigger?wait=false`))
  const { page } = await real.visit(story, `/runs/${going.id}?tab=timeline`)
  const line = page
    .getByRole("list", { name: "Timeline" })
    .getByRole("listitem")
    .filter({ hasText: /^Step 1/ })
  await line.getByText(/under way/).waitFor()
  await line.getByText(/so far/).waitFor()
  await run(story.post(`/runs/${going.id}/cancel`))
  await line.getByText(/broken off/).waitFor()
  await screenshot(page, "run-timeline-open")
  expect(await axeFaultsInBoth(page)).toEqual([])
})

it("leads from a bar to its event in the log, which is then in view", async () => {
  const story = await real.newStory()
  const model = calling(
    ...Array.from({ length: 18 }, (_, n) => ({ tool: "search_objects", arguments: { type: `Thing${n}` } }))
  )
  const agent = await run(
    story.post("/agents", watcher({ name: "maker", ...manual, tools: ["graph.*"], model }))
  )
  const done = await run(story.post(`/agents/${agent.id}/trigger`))
  const { page } = await real.visit(story, `/runs/${done.id}?tab=timeline`)
  await page
    .getByRole("list", { name: "Timeline" })
    .getByRole("link", { name: /^Step 2/ })
    .click()
  await page.waitForURL(/tab=log/)
  const event = page.getByRole("button", { expanded: true, name: /AssistantMessageEvent|Event/ })
  await event.waitFor()
  await expect
    .poll(() =>
      event.evaluate((row) => {
        const { top, bottom } = row.getBoundingClientRect()
        return top >= 0 && bottom <= innerHeight
      })
    )
    .toBe(true)
})

it("draws a wait of hours as a marked break, so that the seconds of work can be read", async () => {
  const story = await real.newStory()
  const model = scripted([{ say: "At last.", latencyMs: 1_500 }])
  const agent = await run(story.post("/agents", watcher({ name: "patient", ...manual, model })))
  const done = await run(story.post(`/agents/${agent.id}/trigger`))
  await run(
    asOwner(story.access, (owner) =>
      owner.query(`update kb.agent_runs set created_at = created_at - interval '3 hours' where id = $1`, [
        done.id
      ])
    ).pipe(Effect.orDie)
  )
  const { page } = await real.visit(story, `/runs/${done.id}?tab=timeline`)
  const timeline = page.getByRole("list", { name: "Timeline" })
  await timeline
    .getByRole("listitem")
    .filter({ hasText: /^Waits for a worker/ })
    .getByText("waited 3 h")
    .waitFor()
  await page.getByText(/Not to scale: it waited 3 h/).waitFor()
  const bar = await timeline.locator("[data-bar=model]").boundingBox()
  const wait = await timeline.locator("[data-bar=wait]").first().boundingBox()
  expect(bar?.width).toBeGreaterThan(3 * (wait?.width ?? Infinity))
  expect(await axeFaultsInBoth(page)).toEqual([])
})
