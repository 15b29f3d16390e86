/**
 * Addresses that nobody should make, opened as a person opens a broken link: each is answered in a sentence, with a way on.
 */
import { expect, it } from "vitest"
import { watcher } from "../../server/testing/story-words.ts"
import { axeFaultsInBoth } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** What no person should be shown. */
const rubbish = /\? ago|NaN|Invalid Date|undefined|\[object|^\s*\{|The console has failed/

it("answers an address that names nothing, or nonsense, with a sentence and a way on", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", watcher()))
  const ada = await run(story.post("/objects", { type: "Thing", key: "ada", properties: {} }))
  const { page, goTo } = await real.visit(story)
  const nobody = "00000000-0000-7000-8000-000000000000"
  for (const name of ["a%2Fb%00", "banana?tab=nonsense&event=%00", nobody])
    for (const folder of ["runs", "objects", "agents", "chains", "events", "reactions", "chat", "tasks"]) {
      await goTo(`/${folder}/${name}`)
      await page
        .getByRole("main")
        .locator("[role=alert], section")
        .getByText(/\w+ .*\./)
        .first()
        .waitFor()
      await page.getByRole("main").locator("a, button").first().waitFor()
      expect(await page.getByRole("main").innerText()).not.toMatch(rubbish)
    }
  const left = (what: string) => `“banana” is no point in time, so “${what}” is left out.`
  const said: ReadonlyArray<readonly [path: string, says: string | RegExp]> = [
    ["/graph?asOf=banana", left("As of")],
    ["/graph?tab=picture&asOf=banana&focus=nobody", left("As of")],
    ["/graph?type=%00&where=%3D%3D&q=%00", /is no condition/],
    ["/runs?from=banana&to=999999-01-01", left("From")],
    ["/runs?status=banana&trigger=x&agentId=y", /Status: This must be .*\.$/],
    [`/objects/${ada.id}?tab=history&version=banana&against=-1`, "Version 1 of 1"],
    [`/agents/${agent.id}?tab=versions&version=banana&from=NaN`, "There is no version banana."],
    [`/agents/${agent.id}?tab=backtests&backtest=banana`, "There was none yet."],
    [`/reactions/${agent.id}?tab=why&event=banana`, /Event id: This must be/],
    [`/reactions/${agent.id}?status=banana`, /Status: This must be .*\.$/],
    ["/live?filter=banana%3A%00", /\./],
    ["/settings?tab=servers&server=banana", /\./],
    ["/%E0%A4%A", "There is no such page"]
  ]
  for (const [path, says] of said) {
    await goTo(path)
    await page.getByText(says).first().waitFor()
    const text = await page.getByRole("main").innerText()
    expect({ path, text }).toEqual({ path, text: expect.not.stringMatching(rubbish) })
  }
  expect(await axeFaultsInBoth(page)).toEqual([])
}, 300_000)
