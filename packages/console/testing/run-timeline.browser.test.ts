/**
 * A run along its time, against the whole program: what is under way, what was broken off, the gaps, and the way into the log.
 */
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { asOwner } from "../../server/testing/fresh-database.ts"
import { scripted } from "../../server/testing/platform.ts"
import { calling, saying, watcher } from "../../server/testing/story-words.ts"
import { inTime } from "./inbox-words.ts"
import { axeFaultsInBoth, screenshot } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()
/** What stands in the timeline of a kind. */
const lines = (page: Page, kind: "wait" | "model" | "tool") =>
  page
    .getByRole("list", { name: "Timeline" })
    .getByRole("listitem")
    .filter({ has: page.locator(`[data-bar=${kind}]`) })

const manual = { triggerType: "manual", reactionConfig: null }

it("tells the request that is under way, and that it was broken off when the run was", async () => {
  const story = await real.newStory()
  const model = scripted([{ say: "At last.", latencyMs: 600_000 }])
  const agent = await run(story.post("/agents", watcher({ name: "slow", ...manual, model })))
  const going = await run(story.post(`/agents/${agent.id}/trigger?wait=false`))
  const { page } = await real.visit(story, `/runs/${going.id}?tab=timeline`)
  const lineIs = (state: string) => lines(page, "model").and(page.locator(`[data-state=${state}]`))
  await lineIs("open").waitFor()
  await run(story.post(`/runs/${going.id}/cancel`))
  await lineIs("failed").waitFor()
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
  await lines(page, "model").nth(1).getByRole("link").click()
  await page.waitForURL(/tab=log/)
  const event = page.getByRole("button", { expanded: true, name: /AssistantMessageEvent|Event/ })
  await event.waitFor()
  await inTime(() =>
    event.evaluate((row) => {
      const { top, bottom } = row.getBoundingClientRect()
      return top >= 0 && bottom <= innerHeight
    })
  ).toBe(true)
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
  await lines(page, "wait").getByTestId("waited").getByText("3 h").waitFor()
  await page.getByTestId("not-to-scale").getByText("3 h").waitFor()
  const bar = await timeline.locator("[data-bar=model]").boundingBox()
  const wait = await timeline.locator("[data-bar=wait]").first().boundingBox()
  expect(bar?.width).toBeGreaterThan(3 * (wait?.width ?? Infinity))
  expect(await axeFaultsInBoth(page)).toEqual([])
})

it("names the steps of a flow in the steps, the timeline and the log", async () => {
  const story = await real.newStory()
  const agent = await run(
    story.post(
      "/agents",
      watcher({
        name: "pipeline",
        ...manual,
        flowType: "sequential",
        steps: [
          { name: "draft", prompt: "Write it." },
          { name: "review", prompt: "Is it good?" }
        ],
        model: saying("Fine.")
      })
    )
  )
  const done = await run(story.post(`/agents/${agent.id}/trigger`))
  const { page } = await real.visit(story, `/runs/${done.id}`)
  const rowsOf = (label: string) => page.getByRole("list", { name: label }).getByRole("listitem")
  await inTime(() => rowsOf("Steps").allInnerTexts()).toEqual([
    expect.stringMatching(/^draft\s+\D*1\b/),
    expect.stringMatching(/^review\s+\D*2\b/)
  ])
  await page.getByRole("tab", { name: "Timeline" }).press("Enter")
  await inTime(() => lines(page, "model").allInnerTexts()).toEqual([
    expect.stringMatching(/^draft\s+\D*1\b/),
    expect.stringMatching(/^review\s+\D*2\b/)
  ])
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.getByRole("tab", { name: "Log" }).press("Enter")
  await page.getByRole("button", { name: /^AssistantMessageEvent draft Fine\./ }).waitFor()
  await page.getByRole("button", { name: /^AssistantMessageEvent review Fine\./ }).waitFor()
})

it("begins each row of the log with what happened, and ends it with a short id to copy", async () => {
  const story = await real.newStory()
  const model = calling({ tool: "search_objects", arguments: { type: "Thing" } })
  const agent = await run(
    story.post("/agents", watcher({ name: "looker", ...manual, tools: ["graph.*"], model }))
  )
  const done = await run(story.post(`/agents/${agent.id}/trigger`))
  const { page } = await real.visit(story, `/runs/${done.id}?tab=log`)
  const { items } = await run(story.get(`/runs/${done.id}/events?limit=200`))
  const place = items.findIndex(({ type }: { readonly type: string }) => type === "ToolCallCompletedEvent")
  const [call] = (await run(story.get(`/runs/${done.id}/tool-calls`))).items
  const row = page.getByRole("tabpanel").getByRole("listitem").nth(place)
  await inTime(() => row.innerText()).toMatch(
    new RegExp(`^ToolCallCompletedEvent\\s+search_objects\\s+\\+.*\\d+ ms.*\\s+#${place + 1}\\s+Copy$`)
  )
  await row.locator(`[data-took-ms="${call.durationMs}"]`).waitFor()
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"])
  await row.getByRole("button", { name: /^Copy/ }).click()
  await row.getByText("Copied").waitFor()
  expect(await page.evaluate("navigator.clipboard.readText()")).toBe(items[place].id)
  expect(await axeFaultsInBoth(page)).toEqual([])
})
