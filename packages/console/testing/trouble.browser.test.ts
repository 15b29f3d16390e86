/**
 * What is in trouble comes to a person's eyes by itself, against the whole program: agents that stopped, and runs that rest.
 */
import { expect, it } from "vitest"
import type { Json } from "../../server/testing/platform.ts"
import { calling, endedRuns, make, saying, watcher } from "../../server/testing/story-words.ts"
import { inTime, listed, press } from "./inbox-words.ts"
import { axeFaultsInBoth } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const unreachable = { provider: "anthropic", name: "none" }

it("an agent that disabled itself and a run that rests at a limit wait in the inbox, each with its next step", async () => {
  const story = await real.newStory()
  const weak = await run(
    story.post("/agents", watcher({ name: "weak", model: unreachable, disableAfterFailures: 1 }))
  )
  await run(make(story, "Person"))
  await run(endedRuns(story, weak, 1))
  const manual = { triggerType: "manual", reactionConfig: null }
  const note = { tool: "create_object", arguments: { type: "Note", properties: {} } }
  const tired = await run(
    story.post(
      "/agents",
      watcher({ name: "tired", ...manual, maxSteps: 1, executionMode: "execute", model: calling(note) })
    )
  )
  await run(story.post(`/agents/${tired.id}/trigger`))
  const [rested] = (await run(story.get("/runs?status=paused"))).items
  expect(rested).toMatchObject({ agentId: tired.id, pauseReason: "stepLimit" })
  const { page } = await real.visit(story)
  await listed(page, 2)
  const stopped = page.getByRole("region", { name: /^Stopped/ })
  await stopped.locator("[data-stopped=agent]").filter({ hasText: "weak" }).waitFor()
  await press(page, "j", "j")
  const card = stopped.locator("[data-stopped=run]").filter({ hasText: "tired" })
  await inTime(() => card.getAttribute("aria-current")).toBe("true")
  expect(await page.getByTestId("empty-inbox").count()).toBe(0)
  expect(await axeFaultsInBoth(page)).toEqual([])
  await card.getByRole("link").press("Enter")
  await page.waitForURL(new RegExp(`/runs/${rested.id}`))
})

it("of many agents that disabled themselves ten are named, and how many more there are is said", async () => {
  const story = await real.newStory()
  for (const number of Array.from({ length: 12 }, (_, index) => index)) {
    const definition = watcher({ name: `weak-${number}`, model: unreachable, disableAfterFailures: 1 })
    await run(story.post("/agents", definition))
  }
  await run(make(story, "Person"))
  const disabled = () => run(story.get("/agents/health?limit=50"))
  await inTime(
    async () => (await disabled()).items.filter(({ disabledReason }: Json) => disabledReason).length
  ).toBe(12)
  const { page } = await real.visit(story)
  await listed(page, 11)
  const rest = page.locator("[data-stopped=agents]").filter({ hasText: /\b2\b/ })
  expect(await axeFaultsInBoth(page)).toEqual([])
  await rest.getByRole("link").press("Enter")
  await page.waitForURL(/\/agents/)
})

it("the list of agents is searched by name, and who is in trouble comes first", async () => {
  const story = await real.newStory()
  const quiet = { triggerType: "manual", reactionConfig: null }
  const failing = await run(story.post("/agents", watcher({ name: "failing", ...quiet, model: unreachable })))
  await run(story.post(`/agents/${failing.id}/trigger`))
  for (const [name, more] of [
    ["mute", { model: unreachable }],
    ["asleep", { model: saying("Hi."), enabled: false }],
    ["well", { model: saying("Hi.") }]
  ] as const)
    await run(story.post("/agents", watcher({ name, ...quiet, ...more })))
  const { page, goTo } = await real.visit(story, "/agents")
  const names = () => page.getByRole("link", { name: /^(failing|mute|asleep|well)/ }).allInnerTexts()
  await inTime(async () => (await names()).slice(0, 2)).toEqual(["failing", "mute"])
  await page.getByRole("searchbox", { name: "Name" }).fill("EL")
  await inTime(names).toEqual(["well"])
  await page.getByRole("searchbox", { name: "Name" }).fill("nobody")
  await page.getByTestId("empty").waitFor()
  await goTo("/agents?enabled=false")
  await inTime(names).toEqual(["asleep"])
  expect(await axeFaultsInBoth(page)).toEqual([])
})

it("an empty project says how its first agent is made, in the inbox and among the agents, until there is one", async () => {
  const story = await real.newStory()
  const { page, goTo } = await real.visit(story)
  const hint = page.getByRole("region", { name: "The first agent" })
  await hint.getByText(/tropism agents apply -f/).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await goTo("/agents")
  await hint.getByRole("link").click()
  await page.waitForURL("**/agents/new?*")
  await run(story.post("/agents", watcher()))
  await goTo("/agents")
  await page.getByRole("link", { name: /watcher/ }).waitFor()
  expect(await hint.count()).toBe(0)
})
