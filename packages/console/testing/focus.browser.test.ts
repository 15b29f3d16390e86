/**
 * Where the keyboard goes on after something was done, against the whole program: never from the top of the page.
 */
import { Effect } from "effect"
import { expect, it } from "vitest"
import type { Page } from "playwright-core"
import { asked, asking } from "../../server/testing/question-words.ts"
import { make } from "../../server/testing/story-words.ts"
import { pendingOf, suggesting, suggestingOnce, updating } from "../../server/testing/suggestion-words.ts"
import { card, cardOf, heard, inTime, listed, press, refusedAt } from "./inbox-words.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** What has the keyboard: the id of the card, or the words of what else it is. */
const focusOf = (page: Page): Promise<string> =>
  page.evaluate(() => {
    const active = document.activeElement
    if (active === null || active === document.body) return "nothing"
    return active.id.startsWith("task-") ? active.id : (active.textContent ?? "")
  })

it("the keyboard stays at the card after Escape and after a refusal, and goes to the next after an answer", async () => {
  const story = await real.newStory()
  const agent = await run(suggesting(story))
  const person = await run(make(story, "Person", { name: "Ada" }))
  await run(suggestingOnce(story, agent, updating(person, { name: "Ada L." })))
  const [suggestion] = await run(pendingOf(story))
  const options = ["MIT", "ISC"]
  await run(Effect.asVoid(asked(story, asking("Which of them?", options), asking("And why?", options))))
  await run(story.post("/tasks", { title: "Look at Ada" }))
  const tasks = await run(pendingOf(story))
  const byTitle = (title: string) => tasks.find((task) => task.title.startsWith(title))
  const questions = tasks.filter(({ type }) => type === "question")
  const { page } = await real.visit(story)
  await listed(page, 4)

  // j and k reach whatever waits, in the order in which it stands there.
  const places: Array<string> = []
  for (const key of ["j", "j", "j", "j", "k"]) {
    await press(page, key)
    places.push(await focusOf(page))
  }
  const [first, second] = questions.toSorted((one, other) => one.number - other.number)
  const todo = byTitle("Look at Ada")
  expect(places).toEqual([first, second, suggestion, todo, suggestion].map(({ id }) => `task-${id}`))

  await heard(page, "r", async () => (await page.getByRole("dialog").count()) === 1)
  await page.keyboard.press("Escape")
  await page.getByRole("dialog").waitFor({ state: "detached" })
  await inTime(() => focusOf(page)).toBe(`task-${suggestion.id}`)

  const capabilities = { canCreateObjects: false, canUpdateObjects: false }
  await page.route("**/approve", async (route) => {
    await run(story.patch(`/agents/${agent.id}`, { capabilities }))
    await route.continue()
  })
  const refusal = await refusedAt(page, "**/approve", () =>
    cardOf(page, suggestion)
      .getByRole("button", { name: /^Approve/, disabled: false })
      .press("Enter")
  )
  expect(refusal).toMatchObject({ reason: "notPermitted" })
  await cardOf(page, suggestion).locator("[data-denied=true]").waitFor()
  await inTime(() => focusOf(page)).toBe(`task-${suggestion.id}`)

  await cardOf(page, first).getByRole("button", { name: "MIT", disabled: false }).press("Enter")
  await listed(page, 3)
  await inTime(() => focusOf(page)).toBe(`task-${second.id}`)
  await page.route("**/answer", (route) => route.abort())
  await cardOf(page, second).getByRole("button", { name: "MIT", disabled: false }).press("Enter")
  await cardOf(page, second).getByRole("status").waitFor()
  await inTime(() => focusOf(page)).toBe(`task-${second.id}`)
  await card(page, "Look at Ada").getByRole("button", { name: "Complete", disabled: false }).press("Enter")
  await listed(page, 2)
  await inTime(() => focusOf(page)).toBe(`task-${suggestion.id}`)
  await heard(page, "r", async () => (await page.getByRole("dialog").count()) === 1)
  await page.keyboard.press("Control+Enter")
  await listed(page, 1)
  await inTime(() => focusOf(page)).toBe(`task-${second.id}`)
  await page.unroute("**/answer")
  await cardOf(page, second).getByRole("button", { name: "ISC", disabled: false }).press("Enter")
  await listed(page, 0)
  await inTime(() => focusOf(page)).toBe("Inbox")
})

it("the keyboard goes to the heading of an object that was deleted or brought back", async () => {
  const story = await real.newStory()
  const ada = await run(story.post("/objects", { type: "Person", key: "ada", properties: {} }))
  const { page } = await real.visit(story, `/objects/${ada.id}`)
  await page.getByRole("button", { name: "Delete", exact: true, disabled: false }).press("Enter")
  await page.getByRole("dialog").getByRole("button", { name: "Delete it", disabled: false }).press("Enter")
  await page.getByTestId("deleted-notice").filter({ hasText: "admin" }).waitFor()
  await inTime(() => focusOf(page)).toMatch(/ada/)
  await page.getByRole("button", { name: "Restore", disabled: false }).press("Enter")
  await page.getByRole("button", { name: "Delete", exact: true }).waitFor()
  await inTime(() => focusOf(page)).toMatch(/ada/)
})

it("the keyboard goes to the first field that is at fault when an agent is not saved", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/agents/new")
  const form = page.getByRole("form", { name: "Agent" })
  const make = page.getByRole("button", { name: "Create agent", disabled: false })
  await form.getByLabel("Name").fill("not a name")
  await form.getByLabel("Prompt", { exact: true }).fill("Greet.")
  await form.getByLabel("Object types", { exact: true }).fill("Person")
  await form.getByLabel("Provider", { exact: true }).selectOption("scripted")
  await form.getByLabel("Model", { exact: true }).fill("story")
  const script = form.getByLabel("Script")
  const prompt = form.getByLabel("Prompt", { exact: true })
  const hasFocus = (field: typeof script) =>
    inTime(() => field.evaluate((it) => it === document.activeElement))
  const isWrong = (field: typeof script) => inTime(() => field.getAttribute("aria-invalid")).toBe("true")
  await script.fill("{")
  await make.press("Enter")
  await isWrong(script)
  await hasFocus(form.getByLabel("Name")).toBe(true)
  await form.getByLabel("Name").fill("greeter")
  await make.press("Enter")
  await hasFocus(script).toBe(true)
  // What the server refuses as well.
  await script.fill('{"rules": [{"say": "Hello."}]}')
  await prompt.fill("{{ nothing.of.it }}")
  await make.press("Enter")
  await isWrong(prompt)
  await hasFocus(prompt).toBe(true)
})

it("the keyboard goes on from the page's content when the button that was pressed is gone", async () => {
  const story = await real.newStory()
  await run(story.post("/members", { userId: "grace", role: "editor" }))
  await run(Effect.asVoid(asked(story, asking("Which of them?"))))
  const [question] = await run(pendingOf(story))
  const { page, goTo } = await real.visit(story, "/settings?tab=members")
  const isAtContent = () => page.evaluate(() => document.activeElement?.id === "content")
  const dialog = page.getByRole("dialog")

  await page.getByRole("button", { name: /^Remove/ }).press("Enter")
  await dialog.getByRole("button", { name: /^Remove/, disabled: false }).press("Enter")
  await page.getByText("grace", { exact: true }).waitFor({ state: "detached" })
  await inTime(isAtContent).toBe(true)

  await goTo(`/runs/${question.runId}`)
  await page.getByRole("button", { name: "Cancel run" }).press("Enter")
  await dialog.getByRole("button", { name: "Cancel run", disabled: false }).press("Enter")
  await page.getByRole("button", { name: "Cancel run" }).waitFor({ state: "detached" })
  await inTime(isAtContent).toBe(true)
})
