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
  await page.getByText("There is no version 99.").waitFor()
  await page.getByRole("button", { name: "Show version 1, the newest", disabled: false }).press("Enter")
  await page.getByText("Version 1 was the first").waitFor()
  await page.getByRole("button", { name: "Delete", exact: true, disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  await dialog.getByRole("button", { name: "Keep it", disabled: false }).press("Enter")
  await dialog.waitFor({ state: "detached" })

  // How long a run took is told beside when it ended, not beside when it was made.
  await goTo(`/runs/${ended.id}`)
  await page.getByText(/ended .*, took/).waitFor()
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
  const told = page.getByText("A deletion has nothing to edit.")
  await heard(page, "e", async () => (await told.count()) > 0)
  const card = cardOf(page, ofKind("update"))
  await card.getByText("What this would change was deleted after it was suggested.").waitFor()
  expect(await card.getByRole("button", { name: /^Look again/ }).count()).toBe(0)
  await card.focus()
  await press(page, "l")
  await page.getByText("What it is about was deleted.").first().waitFor()
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
  await page.getByRole("button", { name: "Why is kind so?", disabled: false }).press("Enter")
  await page.getByText("Nobody was asked: the agent had earned it.").waitFor()
  await page.getByRole("link", { name: "How it earned that", exact: true }).press("Enter")
  await page.waitForURL(`**/tasks/${promotion.taskId}?*`)
})

it("earned trust that is taken back, or kept, says what holds now", async () => {
  const story = await real.newStory()
  await run(promoted(story, { note: making("Note") }, "note"))
  const [task] = await run(pendingOf(story))
  const { page } = await real.visit(story)
  await listed(page, 1)
  await cardOf(page, task).getByRole("button", { name: "Let it ask again", disabled: false }).press("Enter")
  await page.getByText(`Rejected #${task.number}`).first().waitFor()
  await page.getByText("earner asks again: create of Note.").first().waitFor()
  expect(await page.getByText(/without asking/).count()).toBe(0)
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
  await plan.getByText(/the Person ada is at version 3, not 2\. Plan it anew\./).waitFor()
  expect(await page.locator("body").innerText()).not.toMatch(/POST|rerun|[0-9a-f]{8}-[0-9a-f]{4}/)
  await plan.getByRole("button", { name: "Plan anew", disabled: false }).press("Enter")
  await plan.getByText("1 stays, because somebody came after.").waitFor()
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
  await page.getByText("No model has answered it in the last 7 days.").waitFor()
  await goTo(`/reactions/${agent.id}`)
  await page.getByText(/[.!?…] Its definition$/).waitFor()
})
