/**
 * Ten thousand objects as a picture; `npm run test:console` runs it, and `npm test` does not.
 */
import { expect, it } from "vitest"
import { importLines, jsonl } from "../../server/testing/import-words.ts"
import { inTime } from "./inbox-words.ts"
import { screenshot, watchLongTasks } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const count = 10_000

/** Every tenth is a team. The first 200 teams have nine members, the next 300 have two, and one knows a thousand; the rest is related to nothing. */
const lines = () => {
  const objects = Array.from({ length: count }, (_, n) => ({
    type: n % 10 === 0 ? "Team" : "Person",
    key: `n${n}`,
    properties: { n }
  }))
  const end = (n: number) => ({ type: n % 10 === 0 ? "Team" : "Person", key: `n${n}` })
  const relate = (from: number, to: number) => ({
    relationship: { type: "HAS", from: end(from), to: end(to) }
  })
  const teams = Array.from({ length: 500 }, (_, team) =>
    Array.from({ length: team < 200 ? 9 : 2 }, (__, member) => relate(team * 10, team * 10 + member + 1))
  ).flat()
  const circle = Array.from({ length: 1_000 }, (_, n) => [
    ...(n % 100 === 0 ? [] : [relate(6_000 + (n - (n % 100)), 6_000 + n)]),
    ...(n % 100 === 0 && n > 0 ? [relate(6_000, 6_000 + n)] : [])
  ]).flat()
  return [...objects, ...teams, ...circle]
}

it("draws ten thousand objects, and answers while it does", async () => {
  const story = await real.newStory()
  const all = lines()
  await run(importLines(story, jsonl(...all)))
  const { page } = await real.visit(story, "/graph?tab=picture")
  const longest = await watchLongTasks(page)
  const progress = page.locator("[data-state][data-objects]")
  await inTime(async () => Number(await progress.getAttribute("data-objects"))).toBeGreaterThanOrEqual(1_000)
  expect(await progress.getAttribute("data-state")).toBe("reading")
  // The page answers in the middle of it.
  await page.keyboard.press("?")
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor()
  await page.keyboard.press("Escape")
  await page
    .locator(`[data-state=whole][data-objects="${count}"][data-relationships="${all.length - count}"]`)
    .waitFor({ timeout: 90_000 })
  await page
    .getByRole("list", { name: "Types" })
    .getByRole("button", { name: /Team\s*1,000/ })
    .waitFor()
  await screenshot(page, "graph-large")
  console.log(`ten thousand objects: longest task ${await longest()} ms`)
})
