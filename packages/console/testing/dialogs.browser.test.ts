/**
 * What dialogs do with the keyboard, against the whole program: what is refused costs nobody their place.
 */
import { expect, it } from "vitest"
import type { Page } from "playwright-core"
import { make } from "../../server/testing/story-words.ts"
import {
  creating,
  pendingOf,
  suggesting,
  suggestingOnce,
  updating
} from "../../server/testing/suggestion-words.ts"
import { cardOf, inTime, listed } from "./inbox-words.ts"
import { axeFaultsInBoth } from "./page-checks.ts"
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
  await dialog(page).waitFor({ state: "detached" })
  expect((await run(story.get(`/objects/${person.id}`))).properties).toEqual({ age: 36 })
})

it("what somebody else decides while its dialog is open is said there, and nothing is offered that would be refused", async () => {
  const story = await real.newStory()
  const agent = await run(suggesting(story))
  for (const key of ["one", "two", "three"])
    await run(
      suggestingOnce(story, agent, {
        tool: "create_object",
        arguments: { type: "Note", key, properties: { key } }
      })
    )
  const [one, two, three] = await run(pendingOf(story))
  const { page } = await real.visit(story, "/", { role: "reviewer" })
  await listed(page, 3)

  // Of one: the dialog says who was first, keeps what was written, and offers to close.
  await cardOf(page, one)
    .getByRole("button", { name: /^Reject/ })
    .click()
  await page.keyboard.type("There is one")
  await run(story.post(`/tasks/${one.id}/approve`, { digest: one.digest }))
  await dialog(page).getByText(`admin has approved #${one.number} already.`).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  expect(await dialog(page).getByRole("textbox").inputValue()).toBe("There is one")
  expect(await dialog(page).getByRole("button", { name: "Reject", exact: true }).count()).toBe(0)
  await page.keyboard.press("Control+Enter")
  await dialog(page).getByRole("button", { name: "Close", exact: true }).last().click()
  await dialog(page).waitFor({ state: "detached" })
  expect((await run(story.get(`/tasks/${one.id}`))).status).toBe("completed")

  // Of several: those that are left.
  for (const task of [two, three]) await cardOf(page, task).getByRole("checkbox").check()
  await page.getByRole("button", { name: "Reject the 2 selected suggestions" }).click()
  await run(story.post(`/tasks/${two.id}/reject`, { digest: two.digest, reason: "No" }))
  await dialog(page).getByText(`admin has rejected #${two.number} already. The reason: “No”.`).waitFor()
  await dialog(page)
    .getByRole("heading", { name: `Reject #${three.number}?` })
    .waitFor()
  await page.keyboard.press("Escape")

  // What is edited stays on the page as well.
  await cardOf(page, three).getByRole("button", { name: /^Edit/ }).click()
  await dialog(page).getByLabel("key", { exact: true }).fill("four")
  await run(story.post(`/tasks/${three.id}/reject`, { digest: three.digest }))
  await dialog(page).getByText(`admin has rejected #${three.number} already.`).waitFor()
  expect(await dialog(page).getByLabel("key", { exact: true }).inputValue()).toBe("four")
  expect(await dialog(page).getByRole("button", { name: "Approve as edited" }).count()).toBe(0)
  await page.keyboard.press("Escape")
  await page.keyboard.press("Escape")
  await dialog(page).waitFor({ state: "detached" })
  await listed(page, 0)
})

it("an edit names only what has moved since it began, and goes on by keyboard for how it is now", async () => {
  const story = await real.newStory()
  const person = await run(make(story, "Person", { age: 36, town: "Ulm" }))
  const agent = await run(suggesting(story))
  await run(suggestingOnce(story, agent, updating(person, { age: 37, colour: "red" })))
  const { page } = await real.visit(story)
  await listed(page, 1)
  await page.getByRole("button", { name: /^Edit/ }).click()
  await dialog(page).getByRole("textbox").first().fill("38")
  await run(story.patch(`/objects/${person.id}`, { properties: { age: 40 } }))
  await dialog(page).getByText("age is 40 now.").waitFor()
  expect(
    await dialog(page)
      .getByText(/colour is/)
      .count()
  ).toBe(0)
  await dialog(page).getByRole("button", { name: "Keep mine, for how it is now" }).press("Enter")
  await inTime(() => page.evaluate(() => document.activeElement?.tagName)).toBe("TEXTAREA")
  await page.keyboard.press("Control+Enter")
  await dialog(page).waitFor({ state: "detached" })
  const { properties } = await run(story.get(`/objects/${person.id}`))
  expect(properties).toEqual({ age: 38, town: "Ulm", colour: "red" })
})

it("an edit whose suggestion is refined meanwhile says what is suggested now, and is saved for that", async () => {
  const story = await real.newStory()
  const agent = await run(suggesting(story))
  await run(suggestingOnce(story, agent, creating("ada", { age: 37, colour: "red" })))
  const { page } = await real.visit(story)
  await listed(page, 1)
  await page.getByRole("button", { name: /^Edit/ }).click()
  await dialog(page).getByLabel("age as JSON").fill("39")
  await run(suggestingOnce(story, agent, creating("ada", { age: 38, town: "Bonn" })))
  await dialog(page).getByText("It suggests 38 for age.").waitFor()
  await dialog(page).getByText('It suggests "Bonn" for town.').waitFor()
  await dialog(page).getByText("It no longer suggests anything for colour.").waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  // Unread it is refused, and what was typed stays.
  const approve = dialog(page).getByRole("button", { name: "Approve as edited", disabled: false })
  await approve.press("Enter")
  await dialog(page)
    .getByRole("alert")
    .getByText(/read it again/)
    .waitFor()
  await dialog(page).getByRole("button", { name: "Keep mine, for how it is now" }).press("Enter")
  expect(await dialog(page).getByRole("alert").count()).toBe(0)
  expect(await dialog(page).getByLabel("age as JSON").inputValue()).toBe("39")
  expect(await dialog(page).getByLabel("town", { exact: true }).inputValue()).toBe("Bonn")
  await approve.press("Enter")
  await dialog(page).waitFor({ state: "detached" })
  const { items } = await run(story.get("/objects?type=Note"))
  expect(items).toMatchObject([{ key: "ada", properties: { age: 39, town: "Bonn" } }])
})
