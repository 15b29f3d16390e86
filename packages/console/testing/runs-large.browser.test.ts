/**
 * Ten thousand runs in one list; `npm run test:console` runs it, and `npm test` does not.
 */
import { expect, it } from "vitest"
import { ask } from "../../server/testing/owner-rows.ts"
import { watcher } from "../../server/testing/story-words.ts"
import { watchLongTasks } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const count = 10_000

it("scrolls through ten thousand runs and draws only what is seen", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", watcher({ name: "busy" })))
  await run(
    ask(
      story.access,
      `insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, trigger, context_name, depth, summary, created_at, completed_at)
       select ('01990000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $1, $2, 1, 'completed', '{"type": "reaction"}', 'run-' || n, 0,
         'Looked at thing ' || n, now() - make_interval(secs => ${count} - n), now() - make_interval(secs => ${count} - n)
       from generate_series(1, ${count}) n`,
      [story.projectId, agent.id]
    )
  )
  const { page } = await real.visit(story, "/runs")
  const rows = page.getByRole("list", { name: "Runs" }).getByRole("listitem")
  await rows.filter({ hasText: `Looked at thing ${count}` }).waitFor()
  const longest = await watchLongTasks(page)
  let drawn = 0
  const last = page.locator(`[aria-posinset="${count}"]`)
  // Wheel by wheel, as a person does who never lets go; each page of the list is read on the way.
  while ((await last.count()) === 0) {
    await page.mouse.wheel(0, 4_000)
    drawn = Math.max(drawn, await rows.count())
  }
  await last.getByText("Looked at thing 1", { exact: true }).waitFor()
  expect(drawn).toBeLessThan(100)
  console.log(`ten thousand runs: at most ${drawn} rows drawn, longest task ${await longest()} ms`)
  // And back to the first at once, with the keys going on from there.
  await page.evaluate(() => window.scrollTo(0, 0))
  await rows.filter({ hasText: `Looked at thing ${count}` }).waitFor()
})
