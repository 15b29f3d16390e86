/**
 * What dialogs do with the keyboard, against the whole program: what is refused costs nobody their place.
 */
import { expect, it } from "vitest"
import type { Locator, Page } from "playwright-core"
import type { Json } from "../../server/testing/platform.ts"
import { make } from "../../server/testing/story-words.ts"
import {
  creating,
  pendingOf,
  suggesting,
  suggestingOnce,
  updating
} from "../../server/testing/suggestion-words.ts"
import { buttonOf, sending } from "./page-parts.ts"
import { cardOf, inTime, listed } from "./inbox-words.ts"
import { axeFaultsInBoth } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const dialog = (page: Page) => page.getByRole("dialog")

/** Watches until something has the keyboard. */
const focused = (locator: Locator): Promise<void> =>
  inTime(() => locator.evaluate((element) => element === document.activeElement)).toBe(true)

/** Presses what the server refuses at an address, and answers why. */
const refusal = async (page: Page, address: string, press: () => Promise<void>): Promise<unknown> => {
  const answered = page.waitForResponse(address)
  await press()
  return (await (await answered).json()).reason
}

const movedNotice = (page: Page) => dialog(page).getByTestId("moved-notice")

/** Who decided a task, as a dialog about it says. */
const decidedBy = (page: Page, user: string, { number }: Json) =>
  movedNotice(page).getByText(new RegExp(`\\b${user}\\b.*#${number}\\b`))

it("what is refused leaves the keyboard at the button that was pressed, and the first Escape closes the dialog", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings", { role: "admin" })
  for (const how of ["key", "mouse"]) {
    await page.getByRole("button", { name: "Leave", disabled: false }).click()
    const leave = dialog(page).getByRole("button", { name: "Leave", disabled: false })
    await (how === "key" ? leave.press("Enter") : leave.click())
    await dialog(page).locator("[data-failure=lastAdmin]").waitFor()
    await focused(leave)
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
  const { page } = await real.visit(story)
  await listed(page, 1)
  await page.getByRole("button", { name: /^Edit/ }).click()
  const approve = sending(dialog(page))
  await run(story.patch(`/agents/${agent.id}`, { capabilities: { canUpdateObjects: false } }))
  expect(await refusal(page, "**/approve", () => approve.click())).toBe("notPermitted")
  await dialog(page).getByRole("alert").waitFor()
  await page.locator("li[data-outcome=refused]").waitFor()
  await focused(approve)
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
  await decidedBy(page, "admin", one).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  expect(await dialog(page).getByRole("textbox").inputValue()).toBe("There is one")
  expect(await dialog(page).getByRole("button", { name: "Reject", exact: true }).count()).toBe(0)
  await page.keyboard.press("Control+Enter")
  await dialog(page).getByRole("button", { name: "Close", exact: true }).last().click()
  await dialog(page).waitFor({ state: "detached" })
  expect((await run(story.get(`/tasks/${one.id}`))).status).toBe("completed")

  // Of several: those that are left.
  for (const task of [two, three]) await cardOf(page, task).getByRole("checkbox").check()
  await page
    .locator("[data-bottom-bar]")
    .getByRole("button", { name: /^Reject\b.*\b2\b/ })
    .click()
  await run(story.post(`/tasks/${two.id}/reject`, { digest: two.digest, reason: "Sheep" }))
  await decidedBy(page, "admin", two).filter({ hasText: "“Sheep”" }).waitFor()
  await dialog(page)
    .getByRole("heading", { name: `#${three.number}` })
    .waitFor()
  await page.keyboard.press("Escape")

  // What is edited stays on the page as well.
  await cardOf(page, three).getByRole("button", { name: /^Edit/ }).click()
  await dialog(page).getByLabel("key", { exact: true }).fill("four")
  await run(story.post(`/tasks/${three.id}/reject`, { digest: three.digest }))
  await decidedBy(page, "admin", three).waitFor()
  expect(await dialog(page).getByLabel("key", { exact: true }).inputValue()).toBe("four")
  expect(await dialog(page).locator("[type=submit]").count()).toBe(0)
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
  const moved = movedNotice(page).getByRole("listitem")
  await moved.filter({ hasText: /\bage\b.*\b40\b/ }).waitFor()
  expect(await moved.count()).toBe(1)
  await buttonOf(dialog(page), "keep-mine").press("Enter")
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
  const now = movedNotice(page).getByRole("listitem")
  await now
    .filter({ hasText: "38" })
    .filter({ hasText: /\bage\b/ })
    .waitFor()
  await now
    .filter({ hasText: '"Bonn"' })
    .filter({ hasText: /\btown\b/ })
    .waitFor()
  await now
    .filter({ hasText: /\bcolour\b/ })
    .filter({ hasNotText: "red" })
    .waitFor()
  expect(await now.count()).toBe(3)
  expect(await axeFaultsInBoth(page)).toEqual([])
  // Unread it is refused, and what was typed stays.
  const approve = sending(dialog(page))
  expect(await refusal(page, "**/approve", () => approve.press("Enter"))).toBe("digestMismatch")
  await dialog(page).getByRole("alert").waitFor()
  await buttonOf(dialog(page), "keep-mine").press("Enter")
  expect(await dialog(page).getByRole("alert").count()).toBe(0)
  expect(await dialog(page).getByLabel("age as JSON").inputValue()).toBe("39")
  expect(await dialog(page).getByLabel("town", { exact: true }).inputValue()).toBe("Bonn")
  await approve.press("Enter")
  await dialog(page).waitFor({ state: "detached" })
  const { items } = await run(story.get("/objects?type=Note"))
  expect(items).toMatchObject([{ key: "ada", properties: { age: 39, town: "Bonn" } }])
})
