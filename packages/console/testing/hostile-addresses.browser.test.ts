/**
 * Addresses that nobody should make, opened as a person opens a broken link: each is answered in a sentence, with a way on.
 */
import type { Locator } from "playwright-core"
import { expect, it } from "vitest"
import { watcher } from "../../server/testing/story-words.ts"
import { axeFaultsInBoth } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** What no person should be shown. */
const rubbish = /\? ago|NaN|Invalid Date|undefined|\[object|^\s*\{/

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
      expect(await page.locator("[data-fault=failed]").count()).toBe(0)
    }
  const alert = (...values: ReadonlyArray<string>) =>
    values.reduce((found, hasText) => found.filter({ hasText }), page.getByRole("alert"))
  const refusal = (field: string) => page.locator("[role=alert][data-failure]").filter({ hasText: field })
  const sentence = page.getByRole("main").getByText(/\w+ .*\./)
  const said: ReadonlyArray<readonly [path: string, says: Locator]> = [
    ["/graph?asOf=banana", alert("banana", "As of")],
    ["/graph?tab=picture&asOf=banana&focus=nobody", alert("banana", "As of")],
    ["/graph?type=%00&where=%3D%3D&q=%00", alert("==")],
    ["/runs?from=banana&to=999999-01-01", alert("banana", "From")],
    ["/runs?status=banana&trigger=x&agentId=y", refusal("Status")],
    [
      `/objects/${ada.id}?tab=history&version=banana&against=-1`,
      page.getByRole("slider", { name: /\b1\b.*\b1\b/ })
    ],
    [
      `/agents/${agent.id}?tab=versions&version=banana&from=NaN`,
      page.getByRole("status").filter({ hasText: "banana" })
    ],
    [`/agents/${agent.id}?tab=backtests&backtest=banana`, page.getByTestId("no-dry-runs")],
    [`/reactions/${agent.id}?tab=why&event=banana`, refusal("Event id")],
    [`/reactions/${agent.id}?status=banana`, refusal("Status")],
    ["/live?filter=banana%3A%00", sentence],
    ["/settings?tab=servers&server=banana", sentence],
    ["/%E0%A4%A", page.locator("[data-fault=noSuchPage]")]
  ]
  for (const [path, says] of said) {
    await goTo(path)
    await says.first().waitFor()
    expect(await page.locator("[data-fault=failed]").count()).toBe(0)
    const text = await page.getByRole("main").innerText()
    expect({ path, text }).toEqual({ path, text: expect.not.stringMatching(rubbish) })
  }
  expect(await axeFaultsInBoth(page)).toEqual([])
}, 300_000)
