/**
 * How agents keep up and what followed from what, against the whole program: queues, dead letters, chains and their undo.
 */
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { answering, chainAtRest, limitChains, rootOf } from "../../server/testing/chain-words.ts"
import { eventually } from "../../server/testing/platform.ts"
import { answer, asked, ended } from "../../server/testing/question-words.ts"
import { entriesWhen, make, saying, watcher } from "../../server/testing/story-words.ts"
import { handingOver, runThrough, worker } from "../../server/testing/sub-agent-words.ts"
import { inTime } from "./inbox-words.ts"
import { axeFaultsInBoth, screenshot } from "./page-checks.ts"
import { failure, withAll, messages } from "./page-parts.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** Where one of the newest events is chosen, and where any event is named. */
const newest = (page: Page) => page.getByRole("tabpanel").getByRole("combobox")
const anyEvent = (page: Page) => page.getByRole("tabpanel").getByRole("textbox")
/** Why an agent did not wake. */
const explained = (page: Page, outcome: string) => page.locator(`section[data-outcome=${outcome}]`)
/** The links of a chain. */
const linksOf = (page: Page) => page.getByRole("listitem").filter({ has: page.locator("[data-link]") })

it("shows who does not keep up, why an agent did not wake, and tries dead letters again by keyboard", async () => {
  const story = await real.newStory()
  const agent = await run(
    story.post("/agents", watcher({ name: "greeter", model: { provider: "anthropic", name: "none" } }))
  )
  const note = await run(make(story, "Note"))
  await run(story.post("/objects", { type: "Person", key: "ada", properties: {} }))
  await run(entriesWhen(story, agent, 1))
  const { page, goTo } = await real.visit(story, "/")
  // The inbox tells of what waits for nobody, and leads there.
  const aside = page.getByRole("list", { name: "Dead letters" })
  await aside.getByRole("link").press("Enter")
  await page.getByRole("heading", { level: 1, name: "greeter" }).waitFor()
  await page.getByRole("tab", { name: "Dead letters", selected: true }).waitFor()
  await page.getByRole("button", { name: "Retry all" }).waitFor()
  await goTo("/reactions")
  await page.locator("[data-dead-letters='1']").filter({ hasText: "1" }).waitFor()
  await screenshot(page, "reactions")
  expect(await axeFaultsInBoth(page)).toEqual([])

  await page.keyboard.press("j")
  await page.keyboard.press("Enter")
  await page.getByRole("heading", { level: 1, name: "greeter" }).waitFor()
  await page.getByRole("link", { name: /^Person ada created.* 1$/ }).waitFor()
  await page.getByRole("link", { name: "Person ada", exact: true }).waitFor()
  await screenshot(page, "reactions-log")
  expect(await axeFaultsInBoth(page)).toEqual([])

  await page.locator("[data-tab=why]").press("Enter")
  const [event] = (await run(story.get("/events"))).items
  expect(event).toMatchObject({ entityId: note.id, position: 1 })
  const option = newest(page).locator(`option[value="${event.id}"]`)
  await inTime(() => option.innerText()).toMatch(new RegExp(`^1: Note …${note.id.slice(-8)} created.* 1$`))
  await newest(page).selectOption(event.id)
  await explained(page, "refused").getByText(/Note/).first().waitFor()
  expect(new URL(page.url()).searchParams.get("event")).not.toBeNull()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await screenshot(page, "reactions-why")

  // The agent is mended elsewhere; its dead letter is tried again from here.
  await run(story.patch(`/agents/${agent.id}`, { model: saying("Hello.") }))
  await page.getByRole("tab", { name: "Dead letters" }).press("Enter")
  await page.getByRole("button", { name: "Retry all", disabled: false }).press("Enter")
  await messages(page, "done", "1").waitFor()
  await page.getByTestId("empty").waitFor()
  await page.getByRole("tab", { name: "Event log" }).press("Enter")
  await page.locator("[data-status=completed][data-attempt='2']").waitFor()
})

it("says what agents were denied, by whom it was tried and why", async () => {
  const story = await real.newStory()
  const creating = { tool: "create_object", arguments: { type: "Company", properties: { name: "Acme" } } }
  const clerk = worker("clerk", handingOver(creating), { capabilities: { allowedObjectTypes: ["Person"] } })
  const denied = await run(Effect.flatMap(story.post("/agents", clerk), (agent) => runThrough(story, agent)))
  const { page } = await real.visit(story, "/reactions")
  await page.getByRole("tab", { name: "Denied" }).press("Enter")
  await page
    .locator("[data-reason=notPermitted]")
    .getByText(/allowedObjectTypes.*Company/)
    .waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await screenshot(page, "reactions-denied")
  await page.getByRole("link", { name: /clerk/ }).first().press("Enter")
  await page.waitForURL(`**/runs/${denied.id}?*`)
})

it("runs an agent for what was there before it, and lets a viewer only look", async () => {
  const story = await real.newStory()
  await run(make(story, "Person"))
  await run(eventually(story.get("/events"), ({ items }) => items.length === 1))
  const agent = await run(story.post("/agents", watcher({ name: "late" })))
  const reader = await real.visit(story, `/reactions/${agent.id}?tab=pending`, { role: "viewer" })
  await reader.page.getByTestId("editors-only").waitFor()
  expect(await reader.page.getByRole("button", { name: /Run/ }).count()).toBe(0)
  const { page } = await real.visit(story, `/reactions/${agent.id}?tab=pending`)
  await page.getByRole("button", { name: "Run for it", disabled: false }).press("Enter")
  await page.getByTestId("empty").waitFor()
  expect(await run(entriesWhen(story, agent, 1))).toMatchObject([{ status: "completed" }])
})

it("S001-R04 draws what followed from a change up to its cap, and plans to take it back", async () => {
  const story = await real.newStory()
  await run(limitChains(story, { maxDepth: 2 }))
  await run(answering(story, "Person", ["Note"]))
  await run(answering(story, "Note", ["Label"]))
  await run(answering(story, "Label", ["Person"]))
  const root = await run(rootOf(story, await run(make(story, "Person"))))
  await run(chainAtRest(story, root))
  const { page } = await real.visit(story, "/chains")
  await page.locator("[data-state=atRest][data-is-stopped=true]").waitFor()
  await screenshot(page, "chains")
  expect(await axeFaultsInBoth(page)).toEqual([])

  await page.getByRole("link", { name: /Person.* created/ }).press("Enter")
  const stops = page.getByRole("region", { name: "Limits reached" }).getByRole("listitem")
  await withAll(stops, "Label-to-Person", 2).waitFor()
  // Two of two agents in a row, and none left.
  await withAll(page.getByRole("definition"), 2, 0).waitFor()
  const lanes = page.getByTestId("lanes")
  await inTime(async () => (await lanes.getByRole("listitem").allInnerTexts()).slice(1)).toEqual([
    "Person-to-Note",
    "Note-to-Label"
  ])
  await inTime(() => lanes.locator("svg rect").count()).toBe(2)
  await inTime(() => lanes.locator("svg circle").count()).toBe(3)
  await inTime(() => linksOf(page).count()).toBe(5)
  await screenshot(page, "chain")
  expect(await axeFaultsInBoth(page)).toEqual([])

  await page.getByRole("button", { name: "Undo this chain", disabled: false }).press("Enter")
  await page.getByRole("dialog").getByRole("button", { name: "Plan undo", disabled: false }).press("Enter")
  await page.waitForURL(/\/tasks\//)
  const [task] = (await run(story.get("/tasks?type=undo"))).items
  expect(new URL(page.url()).pathname).toBe(`/tasks/${task.id}`)
  await run(story.post(`/tasks/${task.id}/approve`, { digest: task.digest }))
  const left = (await run(story.get("/objects"))).items
  expect(left.map(({ type }: { readonly type: string }) => type)).toEqual(["Person"])
})

it("asks why an agent did not wake by the number of an event, and shows what the address names", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", watcher({ name: "one" })))
  await run(story.post("/objects", { type: "Note", key: "first", properties: {} }))
  await run(eventually(story.get("/events"), ({ items }) => items[0]?.position === 1))
  const { page, goTo } = await real.visit(story, `/reactions/${agent.id}?tab=why`)
  await newest(page)
    .getByText(/^1: Note first created.* 1$/)
    .waitFor({ state: "attached" })
  const field = anyEvent(page)
  await field.fill("99")
  await page.getByRole("button", { name: "Explain", disabled: false }).press("Enter")
  await failure(page, "404").filter({ hasText: "99" }).waitFor()
  await field.fill("1")
  await page.getByRole("button", { name: "Explain", disabled: false }).press("Enter")
  await explained(page, "refused").waitFor()
  const eventId = new URL(page.url()).searchParams.get("event")
  expect(eventId).toMatch(/^[0-9a-f-]{36}$/)
  expect(await newest(page).inputValue()).toBe(eventId)

  // What is not among the newest stands in the field.
  await run(Effect.forEach(Array.from({ length: 20 }), () => make(story, "Label")))
  await run(eventually(story.get("/events?limit=200"), ({ items }) => items.length === 21))
  await goTo(`/reactions/${agent.id}?tab=why&event=${eventId}`)
  await explained(page, "refused").waitFor()
  await inTime(() => field.inputValue()).toBe(eventId)
  expect(await axeFaultsInBoth(page)).toEqual([])
})

it("names the objects that an agent has not handled", async () => {
  const story = await real.newStory()
  await run(story.post("/objects", { type: "Person", key: "ada", properties: {} }))
  await run(eventually(story.get("/events"), ({ items }) => items.length === 1))
  const agent = await run(story.post("/agents", watcher({ name: "late" })))
  const { page } = await real.visit(story, `/reactions/${agent.id}?tab=pending`)
  await page.getByRole("link", { name: /^Person ada.* 1$/ }).waitFor()
})

it("a chain says what people still have to do, what was undone, and how many runs it has, in its list and on its page", async () => {
  const story = await real.newStory()
  await run(answering(story, "Person", ["Note"]))
  const maker = await run(
    story.post(
      "/agents",
      worker(
        "maker",
        handingOver({ tool: "create_object", arguments: { type: "Person", key: "ada", properties: {} } })
      )
    )
  )
  const began = await run(runThrough(story, maker))
  await run(chainAtRest(story, began.id))
  const { page, goTo } = await real.visit(story, "/chains")
  await page.locator("[data-events='2'][data-runs='2']").waitFor()
  await goTo(`/chains/${began.id}`)
  await withAll(page.getByRole("definition"), 2, 1, 100, 99).waitFor()
  const links = linksOf(page)
  await inTime(() => links.count()).toBeGreaterThan(2)

  const task = await run(story.post(`/chains/${began.id}/undo`))
  await run(story.post(`/tasks/${task.id}/approve`, { digest: task.digest }))
  await goTo(`/chains/${began.id}`)
  await inTime(() => page.getByTestId("undone-by").getByText(`#${task.number}`).count()).toBe(2)
  expect(await axeFaultsInBoth(page)).toEqual([])
})

it("a question of a chain that was answered waits for nobody, and a long summary ends with an ellipsis", async () => {
  const story = await real.newStory()
  const { run: resting, question } = await run(
    asked(story, {
      tool: "ask_user",
      arguments: { question: `Which one? ${"So long a question. ".repeat(30)}` }
    })
  )
  await run(answer(story, resting, "That one. ".repeat(60)))
  await run(ended(story, resting))
  const { page } = await real.visit(story, `/chains/${resting.rootEventId}`)
  await page
    .locator("[data-link=run]")
    .getByText(/asker.*…$/)
    .waitFor()
  await page.getByTestId("lanes").locator("[data-lane=tasks]").waitFor()
  const task = page.locator("[data-link=task]").filter({ hasText: "Which one?" })
  await task.getByRole("link", { name: new RegExp(`\\b${question.number}\\b`) }).waitFor()
  expect(await task.getAttribute("data-state")).toBe("completed")
})
