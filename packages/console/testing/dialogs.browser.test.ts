/**
 * What dialogs do with the keyboard, against the whole program: what is refused costs nobody their place.
 */
import { expect, it } from "vitest"
import type { Page } from "playwright-core"
import { make } from "../../server/testing/story-words.ts"
import { suggesting, suggestingOnce, updating } from "../../server/testing/suggestion-words.ts"
import { inTime, listed } from "./inbox-words.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const dialog = (page: Page) => page.getByRole("dialog")

/** The words of what has the keyboard. */
const focusOf = (page: Page): Promise<string> =>
  page.evaluate(() => {
    const active = document.activeElement
    return active === null || active === document.body ? "nothing" : (active.textContent ?? "")
  })

it("what is refused leaves the keyboard at the button that was pressed, and the first Escape closes the dialog", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings", { role: "admin" })
  for (const how of ["key", "mouse"]) {
    await page.getByRole("button", { name: "Leave", disabled: false }).click()
    const leave = dialog(page).getByRole("button", { name: "Leave", disabled: false })
    await (how === "key" ? leave.press("Enter") : leave.click())
    await dialog(page)
      .getByText(/is the only admin of this project/)
      .waitFor()
    await inTime(() => focusOf(page)).toBe("Leave")
    await page.keyboard.press("Escape")
    await dialog(page).waitFor({ state: "detached" })
  }
  expect((await run(story.get("/members"))).items).toHaveLength(1)
})

it("the first Escape closes a dialog in which nothing is written, wherever it was clicked and whatever message appeared", async () => {
  const story = await real.newStory()
  const person = await run(make(story, "Person", { age: 36 }))
  const agent = await run(suggesting(story))
  await run(suggestingOnce(story, agent, updating(person, { age: 37 })))
  await run(story.patch(`/agents/${agent.id}`, { enabled: false }))
  const { page } = await real.visit(story)
  await listed(page, 1)
  await page.getByRole("button", { name: /^Edit/ }).click()
  await dialog(page).getByRole("button", { name: "Approve as edited" }).click()
  await dialog(page).getByRole("alert").getByText("The agent is disabled").waitFor()
  await page
    .locator("li")
    .getByText(/was not approved/)
    .waitFor()
  await inTime(() => focusOf(page)).toBe("Approve as edited")
  await dialog(page).getByRole("heading").click()
  await page.keyboard.press("Escape")
  await dialog(page).waitFor({ state: "detached", timeout: 2_000 })
  expect((await run(story.get(`/objects/${person.id}`))).properties).toEqual({ age: 36 })
})
