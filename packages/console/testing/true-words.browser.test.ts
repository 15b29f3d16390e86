/**
 * The console says what is so and shows what is chosen, against the whole program.
 */
import { expect, it } from "vitest"
import { creating as making, promoted, told } from "../../server/testing/autonomy-words.ts"
import { eventually } from "../../server/testing/platform.ts"
import { change, endedRuns, make, saying, watcher } from "../../server/testing/story-words.ts"
import { pendingOf, suggesting, suggestingOnce, updating } from "../../server/testing/suggestion-words.ts"
import { acted, undoRun } from "../../server/testing/undo-words.ts"
import { cardOf, heard, inTime, listed, press } from "./inbox-words.ts"
import { withAll, messages, numbered } from "./page-parts.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

it("the chosen tab is on the screen of a phone", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings?tab=project", { viewport: { width: 375, height: 700 } })
  const tab = page.getByRole("tab", { name: "Project" })
  const right = async () => {
    const box = await tab.boundingBox()
    return box === null ? Infinity : box.x + box.width
  }
  await inTime(right).toBeLessThanOrEqual(375)
})

it("a version that is not there is said to be none, and how long a run took does not contradict its age", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", watcher({ name: "one", model: saying("Hello.") })))
  await run(make(story, "Person"))
  const [ended] = await run(endedRuns(story, agent, 1))
  const { page, goTo } = await real.visit(story, `/agents/${agent.id}?tab=versions&version=99`)
  const none = page.getByRole("tabpanel").getByRole("status").filter({ hasText: "99" })
  await none.getByRole("button").press("Enter")
  await page.getByRole("heading", { level: 2 }).getByText(/\b1\b/).waitFor()
  expect(await none.count()).toBe(0)
  await page.getByRole("button", { name: "Delete", exact: true, disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  await dialog.getByRole("button", { name: "Keep it", disabled: false }).press("Enter")
  await dialog.waitFor({ state: "detached" })

  // How long a run took is told beside when it ended, not beside when it was made.
  await goTo(`/runs/${ended.id}`)
  await page.locator("[data-instant=ended] time").waitFor()
})

it("long texts are cut where the old and the new differ, so that the difference is seen", async () => {
  const story = await real.newStory()
  const agent = await run(suggesting(story))
  const alike = "The licence says so. ".repeat(60)
  const note = await run(make(story, "Note", { text: `${alike}It is MIT. ${alike}` }))
  await run(suggestingOnce(story, agent, updating(note, { text: `${alike}It is GPL. ${alike}` })))
  const [task] = await run(pendingOf(story))
  const { page } = await real.visit(story)
  await listed(page, 1)
  const shown = cardOf(page, task)
  await shown.locator("del").getByText("MIT", { exact: true }).waitFor()
  await shown.locator("ins").getByText("GPL", { exact: true }).waitFor()
  expect((await shown.locator("ins").innerText()).length).toBeLessThan(600)
  await shown.locator("ins").getByRole("button", { name: "Show all", disabled: false }).press("Enter")
  await inTime(async () => (await shown.locator("ins").innerText()).length).toBeGreaterThan(2_000)
})

it("a deletion says that it has nothing to edit, and what is gone is not looked at again", async () => {
  const story = await real.newStory()
  const agent = await run(suggesting(story))
  const spare = await run(make(story, "Note", { text: "spare" }))
  const gone = await run(make(story, "Note", { text: "gone" }))
  await run(suggestingOnce(story, agent, { tool: "delete_object", arguments: { objectId: spare.id } }))
  await run(suggestingOnce(story, agent, updating(gone, { text: "here" })))
  await run(story.delete(`/objects/${gone.id}`))
  const tasks = await run(pendingOf(story))
  const ofKind = (kind: string) => tasks.find(({ payload }) => payload.suggestedChanges.type === kind)
  const { page } = await real.visit(story)
  await listed(page, 2)
  await cardOf(page, ofKind("delete")).focus()
  const refused = (reason: string) => messages(page, "refused").and(page.locator(`[data-reason=${reason}]`))
  await heard(page, "e", async () => (await refused("deletion").count()) > 0)
  const card = cardOf(page, ofKind("update"))
  await card.locator("[data-staleness=gone]").waitFor()
  expect(await card.getByRole("button", { name: /^Re-evaluate/ }).count()).toBe(0)
  await card.focus()
  await press(page, "l")
  await refused("gone").first().waitFor()
})

it("a command that is offered names the project and the server, where the command line would not find them", async () => {
  const story = await real.newStory()
  await real.newStory()
  const agent = await run(story.post("/agents", watcher({ name: "one", model: saying("Hello.") })))
  const { page } = await real.visit(story, `/agents/${agent.id}`)
  const { origin } = new URL(story.url)
  await page.getByText(`npx tropism run one --project ${story.projectId} --url ${origin}`).waitFor()
})

it("a value that nobody was asked about says that the agent had earned it, and leads to what earned it", async () => {
  const story = await real.newStory()
  const { agent, promotion } = await run(promoted(story, { note: making("Note") }, "note"))
  const call = await run(told(story, agent, "note"))
  const { page } = await real.visit(story, `/objects/${call.result.object.id}`)
  await page.getByRole("button", { name: /^Why.*\bkind\b/, disabled: false }).press("Enter")
  await page.getByTestId("earned-trust").locator(`a[href*="/tasks/${promotion.taskId}"]`).press("Enter")
  await page.waitForURL(`**/tasks/${promotion.taskId}?*`)
})

it("earned trust that is taken back, or kept, says what holds now", async () => {
  const story = await real.newStory()
  await run(promoted(story, { note: making("Note") }, "note"))
  const [task] = await run(pendingOf(story))
  const { page } = await real.visit(story)
  await listed(page, 1)
  await cardOf(page, task).locator("[data-decision=reject]").press("Enter")
  await withAll(messages(page, "done", numbered(task)), "earner", "create", "Note").waitFor()
  expect(await cardOf(page, task).count()).toBe(0)
})

it("an undo that the graph moved under names the object and the button that plans it anew", async () => {
  const story = await real.newStory()
  const ada = await run(story.post("/objects", { type: "Person", key: "ada", properties: { age: 1 } }))
  const { run: done } = await run(acted(story, [updating(ada, { age: 2 })]))
  const { body: task } = await run(undoRun(story, done))
  const { page } = await real.visit(story)
  await listed(page, 1)
  await run(change(story, ada, { age: 3 }))
  const plan = cardOf(page, task)
  await plan.getByRole("button", { name: /^Undo 1 of 1/, disabled: false }).press("Enter")
  await withAll(plan.getByRole("status"), "Person ada", 3, 2).waitFor()
  expect(await page.locator("body").innerText()).not.toMatch(/POST|rerun|[0-9a-f]{8}-[0-9a-f]{4}/)
  await plan.getByRole("button", { name: "Refresh plan", disabled: false }).press("Enter")
  await plan.locator("[data-status=conflict]").waitFor()
})

it("an agent whose requests all failed is not said to have asked no model, and why it is off is a sentence", async () => {
  const story = await real.newStory()
  const agent = await run(
    story.post(
      "/agents",
      watcher({ name: "failing", disableAfterFailures: 1, model: { provider: "anthropic", name: "none" } })
    )
  )
  await run(make(story, "Person"))
  await run(eventually(story.get(`/agents/${agent.id}`), ({ enabled }) => enabled === false))
  const { page, goTo } = await real.visit(story, `/agents/${agent.id}`)
  const used = page.getByRole("region", { name: "Usage" })
  await used.getByText(/\b7\b/).waitFor()
  expect(await used.getByRole("table").count()).toBe(0)
  await goTo(`/reactions/${agent.id}`)
  const lead = page
    .getByRole("main")
    .getByRole("paragraph")
    .filter({ has: page.locator('a[href*="/agents/"]') })
  const link = await lead.getByRole("link").innerText()
  expect((await lead.innerText()).slice(0, -link.length).trimEnd()).toMatch(/[.!?…]$/)
})
