/**
 * What somebody writes while a form is being saved, against the whole program: it stays, is saved by the next press, and whoever leaves is asked.
 */
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { watcher } from "../../server/testing/story-words.ts"
import { inTime } from "./inbox-words.ts"
import { asksBeforeReload, goWhenAsked, stayWhenAsked } from "./leaving-words.ts"
import { messages, sending } from "./page-parts.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** Keeps the answer to a change of an address until it is asked for: as a slow line does. */
const holdAnswer = async (page: Page, address: string): Promise<() => void> => {
  const asked = Promise.withResolvers<void>()
  await page.route(address, async (route) => {
    if (route.request().method() !== "PATCH") return route.fallback()
    const response = await route.fetch()
    await asked.promise
    await route.fulfill({ response })
  })
  return asked.resolve
}

it("of a definition, whose field keeps the focus", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", watcher({ name: "clerk", role: "Keeps order" })))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=definition`)
  const answer = await holdAnswer(page, `**/agents/${agent.id}`)
  const form = page.getByRole("form", { name: "Agent" })
  const atVersion = (version: number) => page.locator(`h1 [data-version="${version}"]`).waitFor()
  const role = form.getByLabel("Role")
  await role.fill("Keeps order, slowly")
  await page.keyboard.press("Enter")
  await atVersion(2)
  // Of what is on its way nobody knows yet whether it is taken.
  const lookElsewhere = () => page.getByRole("tab", { name: "Versions" }).press("Enter")
  await stayWhenAsked(page, lookElsewhere)
  await inTime(() => asksBeforeReload(page)).toBe(true)
  await role.press("End")
  await page.keyboard.type(" and well")
  // A press in haste sends nothing, and does not count as sent.
  await page.keyboard.press("Enter")
  answer()
  await messages(page, "done", "2").waitFor()
  expect(await role.inputValue()).toBe("Keeps order, slowly and well")
  expect(await role.evaluate((field) => field === document.activeElement)).toBe(true)
  // It is not what is saved, so who leaves is asked.
  await stayWhenAsked(page, lookElsewhere)
  await sending(form).press("Enter")
  await atVersion(3)
  const kept = { version: 3, role: "Keeps order, slowly and well" }
  expect(await run(story.get(`/agents/${agent.id}`))).toMatchObject(kept)
})

it("of the bounds of a chain", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings?tab=project")
  const answer = await holdAnswer(page, "**/settings")
  await page.getByLabel("Max depth").fill("3")
  await page.getByLabel("Max runs").fill("40")
  await page.keyboard.press("Enter")
  await page.getByRole("button", { name: "Save limits", disabled: true }).waitFor()
  await stayWhenAsked(page, () => page.getByRole("tab", { name: "Models" }).click())
  await page.getByLabel("Max runs").fill("50")
  await page.getByLabel("Max tokens").fill("9000")
  answer()
  await messages(page, "done").waitFor()
  expect(await page.getByLabel("Max depth").inputValue()).toBe("3")
  expect(await page.getByLabel("Max runs").inputValue()).toBe("50")
  expect(await page.getByLabel("Max tokens").inputValue()).toBe("9000")
  expect((await run(story.get("/settings"))).chainLimits).toMatchObject({ maxRuns: 40, maxTokens: null })
  await page.getByRole("button", { name: "Save limits", disabled: false }).press("Enter")
  const limits = async () => (await run(story.get("/settings"))).chainLimits
  await inTime(limits).toMatchObject({ maxRuns: 50, maxTokens: 9_000 })

  // What another admin says meanwhile takes the place of what was not typed here alone.
  await page.getByLabel("Max cost ($)").fill("7")
  await run(story.patch("/settings", { chainLimits: { maxRuns: 60 } }))
  await inTime(() => page.getByLabel("Max runs").inputValue()).toBe("60")
  expect(await page.getByLabel("Max cost ($)").inputValue()).toBe("7")

  // Who leaves is asked first, also by another part of the same page.
  await stayWhenAsked(page, () => page.getByRole("tab", { name: "Models" }).click())
  expect(await page.getByLabel("Max cost ($)").inputValue()).toBe("7")
  await goWhenAsked(page, () => page.getByRole("link", { name: /^Inbox/ }).click())
  await page.getByRole("heading", { level: 1, name: "Inbox" }).waitFor({ state: "attached" })
})

it("of the project's name", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings?tab=project")
  const project = `/api/projects/${story.projectId}`
  const answer = await holdAnswer(page, `**${project}`)
  const name = page.getByRole("textbox", { name: "Name", exact: true })
  await name.fill("Garden")
  await inTime(() => asksBeforeReload(page)).toBe(true)
  await page.keyboard.press("Enter")
  const rename = (disabled: boolean) => page.getByRole("button", { name: "Rename", disabled })
  await rename(true).waitFor()
  await page.keyboard.type(" of Eden")
  await stayWhenAsked(page, () => page.getByRole("tab", { name: "Models" }).click())
  answer()
  await messages(page, "done", "Garden").waitFor()
  expect(await name.inputValue()).toBe("Garden of Eden")
  await stayWhenAsked(page, () => page.getByRole("link", { name: /^Inbox/ }).click())
  await rename(false).press("Enter")
  await messages(page, "done", "Garden of Eden").waitFor()
  expect(await run(story.send("GET", project))).toMatchObject({ body: { name: "Garden of Eden" } })
  // What is saved is left as one likes.
  await inTime(() => asksBeforeReload(page)).toBe(false)
  await page.getByRole("link", { name: /^Inbox/ }).click()
  await page.getByRole("heading", { level: 1, name: "Inbox" }).waitFor({ state: "attached" })
})

it("of a form that goes once it is saved, which takes no letter meanwhile", async () => {
  const story = await real.newStory()
  const note = await run(story.post("/objects", { type: "Note", properties: { t: "old" } }))
  const { page, goTo } = await real.visit(story, `/objects/${note.id}`)
  const answer = await holdAnswer(page, `**/objects/${note.id}`)
  await page.getByRole("button", { name: "Edit t", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  const value = dialog.getByLabel("Value")
  await value.fill("new")
  await dialog.getByRole("button", { name: "Save", disabled: false }).press("Enter")
  await dialog.getByRole("button", { name: "Save", disabled: true }).waitFor()
  await value.press("End")
  await page.keyboard.type(" and more")
  expect(await value.inputValue()).toBe("new")
  answer()
  await dialog.waitFor({ state: "detached" })
  expect(await run(story.get(`/objects/${note.id}`))).toMatchObject({ properties: { t: "new" } })

  await goTo("/agents/new")
  const form = page.getByRole("form", { name: "Agent" })
  const made = Promise.withResolvers<void>()
  await page.route("**/agents", async (route) => {
    if (route.request().method() !== "POST") return route.fallback()
    await made.promise
    await route.fallback()
  })
  await form.getByLabel("Trigger type").selectOption({ label: "Manual" })
  await form.getByLabel("Prompt", { exact: true }).fill("Greet.")
  await form.getByLabel("Name").fill("greeter")
  await form.getByLabel(/^Enabled/).press("Space")
  await page.getByRole("button", { name: "Create agent", disabled: false }).press("Enter")
  await page.getByRole("button", { name: "Create agent", disabled: true }).waitFor()
  await stayWhenAsked(page, () => page.getByRole("link", { name: /^Inbox/ }).click())
  await form.getByLabel("Role").focus()
  await page.keyboard.type("Late")
  expect(await form.getByLabel("Role").inputValue()).toBe("")
  made.resolve()
  await page.getByRole("heading", { level: 1, name: /greeter/ }).waitFor()
})

/** Keeps what is to be made at an address from the server until it is asked for. */
const holdMaking = async (page: Page, address: string): Promise<() => void> => {
  const asked = Promise.withResolvers<void>()
  await page.route(address, async (route) => {
    if (route.request().method() !== "POST") return route.fallback()
    await asked.promise
    await route.fallback()
  })
  return asked.resolve
}

it("of a form that goes, no box, choice or row of which changes meanwhile", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/agents/new")
  const make = await holdMaking(page, "**/agents")
  const form = page.getByRole("form", { name: "Agent" })
  await form.getByLabel("Prompt", { exact: true }).fill("Greet.")
  await form.getByLabel("Name").fill("greeter")
  const enabled = form.getByLabel(/^Enabled/)
  await enabled.press("Space")
  await page.getByRole("button", { name: "Create agent", disabled: false }).press("Enter")
  await page.getByRole("button", { name: "Create agent", disabled: true }).waitFor()
  await enabled.press("Space")
  expect(await enabled.isChecked()).toBe(false)
  const creates = form.locator("[data-change=create]").getByRole("checkbox")
  await creates.click()
  expect(await creates.isChecked()).toBe(true)
  await form.getByLabel("Mode").selectOption("execute")
  await inTime(() => form.getByLabel("Mode").inputValue()).toBe("suggest")
  await form.getByRole("button", { name: "Add a condition" }).press("Enter")
  expect(await form.getByRole("button", { name: "Add a condition" }).count()).toBe(1)
  make()
  await page.getByRole("heading", { level: 1, name: /greeter/ }).waitFor()
})

it("of a dialog that goes, no box or choice of which changes meanwhile", async () => {
  const story = await real.newStory()
  const hooked = watcher({ name: "hooked", triggerType: "webhook", reactionConfig: null })
  const agent = await run(story.post("/agents", hooked))
  const { page, goTo } = await real.visit(story, "/settings?tab=tokens")
  const dialog = page.getByRole("dialog")
  const makeToken = await holdMaking(page, "**/tokens")
  await page.getByRole("button", { name: "Create token", disabled: false }).press("Enter")
  await dialog.getByLabel("Name").fill("pipeline")
  await dialog.getByRole("button", { name: "Create", exact: true, disabled: false }).press("Enter")
  await dialog.getByRole("button", { name: "Create", exact: true, disabled: true }).waitFor()
  const ends = dialog.getByLabel("Expires")
  await ends.selectOption("30")
  await inTime(() => ends.inputValue()).toBe("90")
  makeToken()
  await dialog.getByTestId("copied").press("Enter")

  await goTo(`/agents/${agent.id}?tab=webhooks`)
  const makeWebhook = await holdMaking(page, "**/webhooks")
  await page.getByRole("button", { name: "Create webhook", disabled: false }).press("Enter")
  await dialog.getByLabel("Name").fill("shop")
  await dialog.getByRole("button", { name: "Create", exact: true, disabled: false }).press("Enter")
  await dialog.getByRole("button", { name: "Create", exact: true, disabled: true }).waitFor()
  const untrusted = dialog.getByRole("checkbox")
  await untrusted.click()
  expect(await untrusted.isChecked()).toBe(true)
  makeWebhook()
  await dialog.locator("code").first().waitFor()
})

it("of a project whose name and bounds are both not saved, for which one is asked once", async () => {
  const story = await real.newStory()
  const { page, goTo } = await real.visit(story, "/settings?tab=project")
  const inbox = () => page.getByRole("link", { name: /^Inbox/ }).click()
  const heading = page.getByRole("heading", { level: 1, name: "Inbox" })
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("Garden")
  await page.getByLabel("Max depth").fill("3")
  await stayWhenAsked(page, inbox)
  expect(await page.getByLabel("Max depth").inputValue()).toBe("3")
  await goWhenAsked(page, inbox)
  await heading.waitFor({ state: "attached" })

  // What was typed and taken back is nothing that could be lost.
  await goTo("/settings?tab=project")
  const depth = page.getByLabel("Max depth")
  const before = await depth.inputValue()
  await depth.fill("3")
  await inTime(() => asksBeforeReload(page)).toBe(true)
  await depth.fill(before)
  await inTime(() => asksBeforeReload(page)).toBe(false)
  await inbox()
  await heading.waitFor({ state: "attached" })
})

/** Lets the page draw late what came from elsewhere, and what is typed at once: as on a machine that is busy. */
const drawLate = (page: Page, lateMs: number) =>
  page.evaluate((ms) => {
    const { setTimeout: wait } = window
    const post = Reflect.get(MessagePort.prototype, "postMessage")
    MessagePort.prototype.postMessage = function (this: MessagePort, ...given: ReadonlyArray<unknown>) {
      wait(() => Reflect.apply(post, this, given), ms)
    }
    const later = (act: () => void, after = 0) => wait(act, Math.max(after, ms))
    window.setTimeout = later as typeof window.setTimeout
  }, lateMs)

it("of the bounds of a chain, letter by letter while the answer comes", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings?tab=project")
  const answer = await holdAnswer(page, "**/settings")
  await page.getByLabel("Max runs").fill("50")
  await page.keyboard.press("Enter")
  await page.getByRole("button", { name: "Save limits", disabled: true }).waitFor()
  await drawLate(page, 300)
  const dollars = page.getByLabel("Max cost ($)")
  const typing = dollars.pressSequentially("123456789", { delay: 100 })
  await inTime(() => dollars.inputValue()).toMatch(/^12/)
  answer()
  await typing
  await messages(page, "done").waitFor()
  expect(await dollars.inputValue()).toBe("123456789")
  // What was saved is not typed any more: what another admin says takes its place.
  await run(story.patch("/settings", { chainLimits: { maxRuns: 60 } }))
  await inTime(() => page.getByLabel("Max runs").inputValue()).toBe("60")
})
