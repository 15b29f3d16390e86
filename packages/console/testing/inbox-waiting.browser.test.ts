/**
 * For whom and until when a suggestion or a question waits, and what it said before, as a person sees and changes it.
 */
import { Effect } from "effect"
import { expect, it } from "vitest"
import { asked, asking } from "../../server/testing/question-words.ts"
import { make } from "../../server/testing/story-words.ts"
import { pendingOf, suggesting, suggestingOnce, updating } from "../../server/testing/suggestion-words.ts"
import { card, cardOf, inTime, linkOf, listed, numbered, press, told } from "./inbox-words.ts"
import { asksBeforeReload, goWhenAsked, stayWhenAsked } from "./leaving-words.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

it("what a suggestion said before it was refined stands on its card, with its reasons", async () => {
  const story = await real.newStory()
  const agent = await run(suggesting(story))
  const person = await run(make(story, "Person", { name: "Ada", age: 36 }))
  const first = { ...updating(person, { age: 37 }), reasoning: "She had her birthday." }
  await run(suggestingOnce(story, agent, first))
  await run(suggestingOnce(story, agent, updating(person, { age: 38 })))
  const [task] = await run(pendingOf(story))
  expect(task.revision).toBe(2)
  const { page } = await real.visit(story)
  const shown = cardOf(page, task)
  expect(await shown.getByText("She had her birthday.").count()).toBe(0)
  const revisions = shown.locator("details").filter({ has: page.locator("summary", { hasText: /\b2\b/ }) })
  await revisions.locator("summary").click()
  const before = revisions.getByRole("list")
  await before.getByText("She had her birthday.").waitFor()
  await before.getByText("37", { exact: true }).waitFor()
  expect(await before.getByText("38", { exact: true }).count()).toBe(0)
})

it("who decides is said on the card, and whoever may decide changes it there", async () => {
  const story = await real.newStory()
  await run(story.post("/members", { userId: "grace", role: "reviewer" }))
  const agent = await run(suggesting(story))
  for (const name of ["Ada", "Barbara"]) {
    const person = await run(make(story, "Person", { name, age: 36 }))
    await run(suggestingOnce(story, agent, updating(person, { age: 37 })))
  }
  await run(Effect.asVoid(asked(story, asking("Which of them?"))))
  const [one, other] = (await run(pendingOf(story))).filter(({ type }) => type !== "question")
  const { page } = await real.visit(story)
  await listed(page, 3)

  await cardOf(page, one).getByRole("button", { name: "Assign" }).press("Enter")
  const dialog = page.getByRole("dialog", { name: numbered(one) })
  await dialog.getByLabel("Assignee").selectOption("grace")
  await dialog.getByLabel("Due").selectOption("3")
  // The keys of the inbox are the dialog's meanwhile.
  await press(page, "j")
  await dialog.getByRole("button", { name: "Assign", disabled: false }).click()
  await cardOf(page, one).locator("[data-assignee=grace]").waitFor()
  const assigned = await run(story.get(`/tasks/${one.id}`))
  expect(assigned).toMatchObject({ assignee: "grace", status: "pending" })
  expect((Date.parse(assigned.expiresAt) - Date.now()) / 86_400_000).toBeCloseTo(3, 1)
  await cardOf(page, one).locator(`time[datetime="${assigned.expiresAt}"]`).waitFor()
  await inTime(() =>
    page.evaluate(() => document.activeElement?.closest("article")?.getAttribute("id") ?? "")
  ).toBe(`task-${one.id}`)

  // A question waits as long as its run does.
  await card(page, "Which of them?").getByRole("button", { name: "Assign" }).press("Enter")
  const asks = page.getByRole("dialog")
  expect(await asks.getByLabel("Due").count()).toBe(0)
  await asks.getByLabel("Assignee").selectOption("admin")
  await asks.getByRole("button", { name: "Assign", disabled: false }).click()
  await card(page, "Which of them?").locator("[data-assignee=admin]").waitFor()

  // Only what waits for oneself, and everything again.
  const onlyMine = page.getByTestId("only-mine").getByRole("checkbox")
  await onlyMine.check()
  await listed(page, 1)
  await card(page, "Which of them?").waitFor()
  await onlyMine.uncheck()
  await listed(page, 3)

  // Taken back again: anybody.
  await cardOf(page, one).getByRole("button", { name: "Assign" }).press("Enter")
  await dialog.getByLabel("Assignee").selectOption("")
  await dialog.getByLabel("Due").selectOption("withoutEnd")
  await dialog.getByRole("button", { name: "Assign", disabled: false }).click()
  await inTime(() =>
    cardOf(page, one).locator(`[data-assignee], time[datetime="${assigned.expiresAt}"]`).count()
  ).toBe(0)
  expect(await run(story.get(`/tasks/${one.id}`))).toMatchObject({ assignee: null, expiresAt: null })
  expect(await run(story.get(`/tasks/${other.id}`))).toMatchObject({ assignee: null })
})

it("for whom somebody else lets it wait meanwhile stays, where only until when is changed", async () => {
  const story = await real.newStory()
  await run(story.post("/members", { userId: "grace", role: "reviewer" }))
  const agent = await run(suggesting(story))
  const person = await run(make(story, "Person", { name: "Ada", age: 36 }))
  await run(suggestingOnce(story, agent, updating(person, { age: 37 })))
  const [task] = await run(pendingOf(story))
  const { page } = await real.visit(story)
  await listed(page, 1)
  await cardOf(page, task).getByRole("button", { name: "Assign" }).press("Enter")
  const dialog = page.getByRole("dialog", { name: numbered(task) })
  await dialog.getByLabel("Due").selectOption("3")
  await run(story.patch(`/tasks/${task.id}`, { assignee: "grace" }))
  await cardOf(page, task).locator("[data-assignee=grace]").waitFor()
  await dialog.getByRole("button", { name: "Assign", disabled: false }).click()
  await inTime(() => run(story.get(`/tasks/${task.id}`))).toMatchObject({
    assignee: "grace",
    expiresAt: expect.any(String)
  })
  const { expiresAt } = await run(story.get(`/tasks/${task.id}`))
  await cardOf(page, task).locator(`time[datetime="${expiresAt}"]`).waitFor()
})

it("whoever leaves an answer that is written or on its way is asked, and not by a link within the inbox", async () => {
  const story = await real.newStory()
  const { questions } = await run(asked(story, asking("Which of them?"), asking("When?"), asking("Where?")))
  const question = questions.find(({ payload }) => payload.question === "Which of them?")
  const { page } = await real.visit(story, "/runs")
  const inbox = page.getByRole("link", { name: /^Inbox/ })
  const runs = page.getByRole("link", { name: "Runs", exact: true })
  const field = card(page, "Which of them?").getByRole("textbox")
  await inbox.click()
  await field.fill("The second")
  await linkOf(page, question).click()
  await page.waitForURL(`**/tasks/${question.id}*`)
  await inbox.click()
  await page.waitForURL((url) => url.pathname === "/")
  expect(await field.inputValue()).toBe("The second")
  await inTime(() => asksBeforeReload(page)).toBe(true)
  await stayWhenAsked(page, () => runs.click())
  await stayWhenAsked(page, () => page.evaluate("history.go(-3)"))

  const held = Promise.withResolvers<void>()
  await page.route("**/answer", async (route) => {
    await held.promise
    await route.fulfill({ status: 503, json: { title: "Not now" } })
  })
  const send = card(page, "Which of them?").getByRole("button", { name: "Answer", disabled: false })
  await send.press("Enter")
  await page.getByRole("button", { name: "Answering…" }).waitFor()
  await stayWhenAsked(page, () => runs.click())
  held.resolve()
  await told(page, "refused", numbered(question))
  expect(await field.inputValue()).toBe("The second")
  await page.unroute("**/answer")
  await send.press("Enter")
  await told(page, "done", numbered(question))
  await inTime(() => asksBeforeReload(page)).toBe(false)

  // What is taken away again is nothing to lose; and whoever is asked may go.
  const when = card(page, "When?").getByRole("textbox")
  await when.fill("Now")
  await when.fill("")
  await inTime(() => asksBeforeReload(page)).toBe(false)
  await card(page, "Where?").getByRole("textbox").fill("Here")
  await goWhenAsked(page, () => runs.click())
  await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor()
})
