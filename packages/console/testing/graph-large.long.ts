/**
 * Ten thousand objects as a picture; `npm run test:console` runs it, and `npm test` does not.
 */
import { it } from "vitest"
import { importLines, jsonl } from "../../server/testing/import-words.ts"
import { watchLongTasks } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

it("draws ten thousand objects, and answers while it does", async () => {
  const story = await real.newStory()
  const count = 10_000
  const objects = Array.from({ length: count }, (_, n) => ({
    type: n % 10 === 0 ? "Team" : "Person",
    key: `n${n}`,
    properties: { n }
  }))
  await run(importLines(story, jsonl(...objects)))
  const { page } = await real.visit(story, "/graph?tab=picture")
  const longest = await watchLongTasks(page)
  await page.getByText(/[1-9],\d00 objects, .* so far, reading more/).waitFor()
  // The page answers in the middle of it.
  await page.keyboard.press("?")
  await page.getByRole("dialog").getByText("Show these keys").waitFor()
  await page.keyboard.press("Escape")
  await page.getByText("10,000 objects, 0 relationships drawn.").waitFor({ timeout: 90_000 })
  await page
    .getByRole("list", { name: "Types" })
    .getByRole("button", { name: /Team\s*1,000/ })
    .waitFor()
  console.log(`ten thousand objects: the page was busy for at most ${await longest()} ms at a time`)
})
