/**
 * How a form that was not taken speaks of its fields, against the whole program: by their labels, all at once, before it asks anything else.
 */
import { expect, it } from "vitest"
import { faultAt, fieldAt, labelAt, sending } from "./page-parts.ts"
import { inTime } from "./inbox-words.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

it("the form of an agent tells all its faults by their labels, before it asks about a missing model", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/agents/new")
  const form = page.getByRole("form", { name: "Agent" })
  await form.getByLabel("Name").fill("not a name")
  await form.getByLabel("Prompt", { exact: true }).fill("Greet.")
  await fieldAt(form, "/reactionConfig/objectTypes").fill("Person")
  // A number that JSON cannot hold hides none of the others.
  await fieldAt(form, "/budget/perRun/maxTokens").fill("9007199254740993")
  await fieldAt(form, "/maxSteps").fill("0")
  await sending(form).press("Enter")
  const told = form.getByRole("alert")
  await told.waitFor()
  const words = await told.innerText()
  const faulty = ["/name", "/budget/perRun/maxTokens", "/maxSteps"]
  for (const pointer of faulty) {
    expect(await fieldAt(form, pointer).getAttribute("aria-invalid")).toBe("true")
    expect(words).toContain(`${await labelAt(form, pointer)}: ${await faultAt(form, pointer).innerText()}`)
  }
  // A field goes by what it is called on the page, not by its place in what is sent.
  expect(words).not.toMatch(/max steps|max tokens|budget/)
  expect(await page.getByRole("dialog").count()).toBe(0)
  // Only then.
  await form.getByLabel("Name").fill("greeter")
  await fieldAt(form, "/budget/perRun/maxTokens").fill("")
  await fieldAt(form, "/maxSteps").fill("5")
  await sending(form).press("Enter")
  await page
    .getByRole("dialog")
    .filter({ hasText: /_API_KEY/ })
    .waitFor()
})

it("the bounds of a chain are refused by their labels", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings?tab=project")
  await page.getByLabel("Max depth").fill("0")
  await page.getByLabel("Max cost ($)").fill("-1")
  await page.keyboard.press("Enter")
  const told = page.getByRole("alert")
  await told.getByText(/Max depth: /).waitFor()
  expect(await told.innerText()).toMatch(/Max cost \(\$\): /)
  expect(await told.innerText()).not.toMatch(/chain limits|max depth|max cost/)
  expect((await run(story.get("/settings"))).chainLimits.maxCostUsd).toBeNull()
})

it("what is no number is refused at its field, and no bound goes for it", async () => {
  const story = await real.newStory()
  await run(story.patch("/settings", { chainLimits: { maxCostUsd: 15 } }))
  const { page } = await real.visit(story, "/settings?tab=project")
  const dollars = page.getByLabel("Max cost ($)")
  for (const typed of ["2-5", "5e", "1,5", "9007199254740993"]) {
    await dollars.fill("")
    await dollars.pressSequentially(typed)
    await page.keyboard.press("Enter")
    await page
      .getByRole("alert")
      .getByText(/^Max cost \(\$\): /)
      .waitFor()
    await inTime(() => dollars.getAttribute("aria-invalid")).toBe("true")
    expect(await dollars.inputValue()).toBe(typed)
    await sending(page.locator("main form")).waitFor()
    expect((await run(story.get("/settings"))).chainLimits.maxCostUsd).toBe(15)
  }
  expect(await page.getByText(/undefined/).count()).toBe(0)
  await dollars.fill("2.5")
  await page.keyboard.press("Enter")
  await inTime(async () => (await run(story.get("/settings"))).chainLimits.maxCostUsd).toBe(2.5)
})
