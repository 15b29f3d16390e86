/**
 * For whom and until when a suggestion or a question waits, and what it said before, as a person sees and changes it.
 */
import { Effect } from "effect"
import { expect, it } from "vitest"
import { asked, asking } from "../../server/testing/question-words.ts"
import { make } from "../../server/testing/story-words.ts"
import { pendingOf, suggesting, suggestingOnce, updating } from "../../server/testing/suggestion-words.ts"
import { card, cardOf, inTime, listed, press } from "./inbox-words.ts"
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
  await shown.getByText("said 2 times, this is the newest").click()
  const before = shown.getByRole("list", { name: "What it said before" })
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
  const dialog = page.getByRole("dialog", { name: `For whom #${one.number} waits` })
  await dialog.getByLabel("For whom").selectOption("grace")
  await dialog.getByLabel("Until").selectOption("3 days from now")
  // The keys of the inbox are the dialog's meanwhile.
  await press(page, "j")
  await dialog.getByRole("button", { name: "Assign", disabled: false }).click()
  await cardOf(page, one).getByText("for grace").waitFor()
  await cardOf(page, one)
    .getByText(/^expires in [23] d/)
    .waitFor()
  expect(await run(story.get(`/tasks/${one.id}`))).toMatchObject({ assignee: "grace", status: "pending" })
  await inTime(() =>
    page.evaluate(() => document.activeElement?.closest("article")?.getAttribute("id") ?? "")
  ).toBe(`task-${one.id}`)

  // A question waits as long as its run does.
  await card(page, "Which of them?").getByRole("button", { name: "Assign" }).press("Enter")
  const asks = page.getByRole("dialog", { name: /^For whom/ })
  expect(await asks.getByLabel("Until").count()).toBe(0)
  await asks.getByLabel("For whom").selectOption({ label: "yourself" })
  await asks.getByRole("button", { name: "Assign", disabled: false }).click()
  await card(page, "Which of them?").getByText("for you", { exact: true }).waitFor()

  // Only what waits for oneself, and everything again.
  await page.getByRole("checkbox", { name: "Only what waits for me" }).check()
  await listed(page, 1)
  await card(page, "Which of them?").waitFor()
  await page.getByRole("checkbox", { name: "Only what waits for me" }).uncheck()
  await listed(page, 3)

  // Taken back again: anybody.
  await cardOf(page, one).getByRole("button", { name: "Assign" }).press("Enter")
  await dialog.getByLabel("For whom").selectOption({ label: "anybody who may decide" })
  await dialog.getByLabel("Until").selectOption("without an end")
  await dialog.getByRole("button", { name: "Assign", disabled: false }).click()
  await inTime(() =>
    cardOf(page, one)
      .getByText(/for grace|expires/)
      .count()
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
  const dialog = page.getByRole("dialog", { name: `For whom #${task.number} waits` })
  await dialog.getByLabel("Until").selectOption("3 days from now")
  await run(story.patch(`/tasks/${task.id}`, { assignee: "grace" }))
  await cardOf(page, task).getByText("for grace").waitFor()
  await dialog.getByRole("button", { name: "Assign", disabled: false }).click()
  await cardOf(page, task)
    .getByText(/^expires in [23] d/)
    .waitFor()
  expect(await run(story.get(`/tasks/${task.id}`))).toMatchObject({ assignee: "grace" })
})

it("whoever leaves an answer that is written or on its way is asked, and not by a link within the inbox", async () => {
  const story = await real.newStory()
  const { questions } = await run(asked(story, asking("Which of them?"), asking("When?"), asking("Where?")))
  const question = questions.find(({ payload }) => payload.question === "Which of them?")
  const { page } = await real.visit(story, "/runs")
  const inbox = page.getByRole("link", { name: /^Inbox/ })
  const runs = page.getByRole("link", { name: "Runs", exact: true })
  const field = page.getByLabel("Answer: Which of them?")
  await inbox.click()
  await field.fill("The second")
  await page.getByRole("link", { name: `Link to question ${question.number}`, exact: true }).click()
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
  await page.getByText(`#${question.number} was not answered`).first().waitFor()
  expect(await field.inputValue()).toBe("The second")
  await page.unroute("**/answer")
  await send.press("Enter")
  await page.getByText(`Answered #${question.number}`).first().waitFor()
  await inTime(() => asksBeforeReload(page)).toBe(false)

  // What is taken away again is nothing to lose; and whoever is asked may go.
  const when = page.getByLabel("Answer: When?")
  await when.fill("Now")
  await when.fill("")
  await inTime(() => asksBeforeReload(page)).toBe(false)
  await page.getByLabel("Answer: Where?").fill("Here")
  await goWhenAsked(page, () => runs.click())
  await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor()
})
