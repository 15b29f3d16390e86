/**
 * The page of an object against the whole program: why each value is there, what it was before, and changing it.
 */
import type { Locator, Page } from "playwright-core"
import { expect, it } from "vitest"
import { promptWithObject } from "../../server/testing/platform.ts"
import { calling, entriesWhen, make, watcher } from "../../server/testing/story-words.ts"
import { cutLine } from "./cut-line.ts"
import { axeFaultsInBoth, screenshot, submitTwice } from "./page-checks.ts"
import { inTime, told } from "./inbox-words.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** Greets each new Person and says why. */
const greeter = watcher({
  name: "greeter",
  prompt: promptWithObject,
  model: calling({
    tool: "update_object",
    arguments: {
      objectId: "{{ input.object.id }}",
      properties: { greeting: "<b>Hello</b>" },
      reasoning: "Everybody is greeted.",
      confidence: 0.9
    }
  })
})

/** The row of a property. */
const rowOf = (page: Page, name: string): Locator =>
  page
    .getByRole("list", { name: "Properties" })
    .getByRole("listitem")
    .filter({ has: page.getByRole("heading", { name, exact: true }) })

/** The heading of what differs: from which version to which, or none of either at the beginning. */
const between = (page: Page, versions: RegExp): Locator =>
  page.getByRole("tabpanel").getByRole("heading", { level: 2, name: versions })

it("says of each value why it is there, back to the root, and what it was in each version", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", greeter))
  const ada = await run(
    story.post("/objects", { type: "Person", key: "ada", properties: { name: "Ada", langs: ["ts"] } })
  )
  await run(entriesWhen(story, agent, 1))
  const { page, goTo } = await real.visit(story, `/objects/${ada.id}`)
  await page.getByRole("heading", { level: 1, name: /ada/ }).waitFor()
  const properties = page.getByRole("list", { name: "Properties" })
  // What an agent wrote is text and nothing else.
  await properties.getByText("<b>Hello</b>", { exact: true }).waitFor()
  const greeting = rowOf(page, "greeting")
  const maker = await greeting.innerText()
  for (const value of [/\b2\b/, /greeter/, /update_object/]) expect(maker).toMatch(value)
  await greeting.getByRole("button", { name: /^Why/, disabled: false }).press("Enter")
  await greeting.getByText("Everybody is greeted.").waitFor()
  await greeting.getByText(/\b90\b/).waitFor()
  const hops = greeting.getByRole("listitem")
  await inTime(() => hops.allInnerTexts()).toEqual([
    // The object, what happened to it, its version, and whose work it was.
    expect.stringMatching(/^(?=.*\bada\b)(?=.*\bupdated\b)(?=.*\b2\b)(?=.*\bgreeter\b)/s),
    expect.stringMatching(/^(?=.*\bada\b)(?=.*\bcreated\b)(?=.*\b1\b)(?=.*\badmin\b)/s)
  ])
  expect(await hops.first().locator('a[href*="/runs/"]').innerText()).toContain("greeter")
  await screenshot(page, "object")
  expect(await axeFaultsInBoth(page)).toEqual([])

  await page.getByRole("tab", { name: "History" }).press("Enter")
  await between(page, /(?=.*\b1\b)(?=.*\b2\b)/).waitFor()
  expect(await page.getByRole("deletion").count()).toBe(0)
  await page.getByRole("insertion").getByText("<b>Hello</b>").waitFor()
  await screenshot(page, "object-history")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.getByRole("slider", { name: /\b2\b.*\b2\b/ }).press("ArrowLeft")
  await between(page, /^\D+$/).waitFor()
  expect(new URL(page.url()).searchParams.get("version")).toBe("1")
  await page
    .getByRole("region", { name: "About this version" })
    .filter({ hasText: "created" })
    .filter({ hasText: "admin" })
    .waitFor()
  await goTo(`/objects/${ada.id}?tab=history&version=1&against=2`)
  await between(page, /(?=.*\b1\b)(?=.*\b2\b)/).waitFor()
})

it("changes an object against the version that was shown, relates it, deletes it and brings it back", async () => {
  const story = await real.newStory()
  const ada = await run(story.post("/objects", { type: "Person", key: "ada", properties: { name: "Ada" } }))
  const bob = await run(story.post("/objects", { type: "Person", key: "bob", properties: {} }))
  const reader = await real.visit(story, `/objects/${ada.id}`, { role: "viewer" })
  await reader.page.getByTestId("editors-only").waitFor()
  expect(await reader.page.getByRole("button", { name: /Edit|Delete|Add/ }).count()).toBe(0)

  const { page } = await real.visit(story, `/objects/${ada.id}`)
  await page.getByRole("button", { name: "Edit name", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  const properties = page.getByRole("list", { name: "Properties" })
  await run(story.patch(`/objects/${ada.id}`, { properties: { name: "Countess" } }))
  await dialog.getByLabel("Value").fill("Lady Ada")
  await dialog.getByRole("button", { name: "Save", exact: true, disabled: false }).press("Enter")
  // Nothing is written over what somebody else wrote meanwhile.
  await dialog.getByRole("alert").waitFor()
  expect((await run(story.get(`/objects/${ada.id}`))).properties).toEqual({ name: "Countess" })
  // It says what it is now, and what was typed need not be typed again.
  const moved = dialog.getByTestId("moved-notice")
  await moved.filter({ hasText: "Countess" }).waitFor()
  await moved.getByRole("button").click()
  await dialog.getByRole("button", { name: "Save", exact: true, disabled: false }).press("Enter")
  // Closed first: until then what was typed is on the page too, saved or not.
  await dialog.waitFor({ state: "detached" })
  await properties.getByText("Lady Ada").waitFor()
  await run(story.patch(`/objects/${ada.id}`, { properties: { name: "Countess" } }))
  await properties.getByText("Countess").waitFor()
  await page.getByRole("button", { name: "Edit name", disabled: false }).press("Enter")
  await dialog.getByLabel("Value").fill("Lady Ada")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await dialog.getByRole("button", { name: "Save", exact: true, disabled: false }).press("Enter")
  await dialog.waitFor({ state: "detached" })
  await properties.getByText("Lady Ada").waitFor()

  await page.getByRole("button", { name: "Add property", disabled: false }).press("Enter")
  await dialog.getByLabel("Name").fill("born")
  await dialog.getByLabel("Format").selectOption("json")
  await dialog.getByLabel("Value").fill("18_15")
  await dialog.getByRole("button", { name: "Save", exact: true, disabled: false }).press("Enter")
  await inTime(() => dialog.getByLabel("Value").getAttribute("aria-invalid")).toBe("true")
  await dialog.getByLabel("Value").fill("1815")
  await dialog.getByRole("button", { name: "Save", exact: true, disabled: false }).press("Enter")
  await page.getByRole("button", { name: "Edit born" }).waitFor()
  expect((await run(story.get(`/objects/${ada.id}`))).properties).toEqual({ name: "Lady Ada", born: 1815 })

  await page.getByRole("tab", { name: "Relationships" }).press("Enter")
  await page.getByTestId("relate").press("Enter")
  await dialog.getByLabel("Type").fill("KNOWS")
  await dialog.getByLabel(/^Find/).fill("bob")
  await dialog
    .getByLabel("The other object")
    .getByText(/\bbob\b.*\bPerson\b/)
    .waitFor({ state: "attached" })
  await dialog.getByRole("button", { name: "Add", exact: true, disabled: false }).press("Enter")
  await page.getByRole("list", { name: "Relationships" }).getByRole("link", { name: /bob/ }).waitFor()
  expect((await run(story.get("/relationships"))).items).toMatchObject([{ fromId: ada.id, toId: bob.id }])
  expect(await axeFaultsInBoth(page)).toEqual([])

  await page.getByRole("button", { name: "Delete", exact: true, disabled: false }).press("Enter")
  await dialog.getByRole("button", { name: "Delete it", disabled: false }).press("Enter")
  await page.getByTestId("deleted-notice").filter({ hasText: "admin" }).waitFor()
  expect((await run(story.ask("GET", `/objects/${ada.id}`))).status).toBe(404)
  await page.getByRole("button", { name: "Restore", disabled: false }).press("Enter")
  await page.getByRole("button", { name: "Delete", exact: true }).waitFor()
  await page.getByRole("list", { name: "Relationships" }).getByRole("link", { name: /bob/ }).waitFor()
})

it("removes an object for good when an admin has read what goes and what stays", async () => {
  const story = await real.newStory()
  const ada = await run(story.post("/objects", { type: "Person", key: "ada", properties: { name: "Ada" } }))
  const bob = await run(story.post("/objects", { type: "Person", key: "bob", properties: {} }))
  await run(story.post("/relationships", { type: "KNOWS", fromId: ada.id, toId: bob.id }))
  await run(story.patch(`/objects/${ada.id}`, { properties: { name: "Lady Ada" } }))
  const other = await real.visit(story, `/objects/${ada.id}`, { role: "reviewer" })
  await other.page.getByRole("button", { name: "Delete", exact: true }).waitFor()
  expect(await other.page.getByRole("button", { name: "Delete permanently" }).count()).toBe(0)

  const { page, goTo } = await real.visit(story, `/objects/${ada.id}`)
  await page.getByRole("button", { name: "Delete permanently", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog", { name: /\bada\b/ })
  // How many versions there are, the relationships, and what events have of it.
  const goes = dialog.getByRole("list", { name: "Deleted" }).getByRole("listitem")
  expect(await goes.allInnerTexts()).toEqual([
    expect.stringMatching(/\b2\b/),
    expect.anything(),
    expect.anything()
  ])
  expect(await dialog.getByRole("list", { name: "Kept" }).getByRole("listitem").count()).toBe(2)
  expect(await axeFaultsInBoth(page)).toEqual([])
  await screenshot(page, "object-purge")
  // Nobody removes what somebody else has just changed, whether their page heard of it by then or not.
  const heard = Promise.withResolvers<void>()
  await page.route(
    (url) => url.pathname.endsWith("/provenance"),
    async (route) => {
      await heard.promise
      await route.continue()
    }
  )
  const remove = dialog.getByRole("button", { name: /^Delete/ })
  await run(story.patch(`/objects/${ada.id}`, { properties: { name: "Countess" } }))
  await remove.press("Enter")
  await dialog.getByRole("alert").waitFor()
  expect((await run(story.get(`/objects/${ada.id}`))).version).toBe(3)
  heard.resolve()
  for (const versions of [3, 4]) {
    const moved = dialog.getByTestId("moved-notice")
    await moved.filter({ hasText: new RegExp(`\\b${versions}\\b`) }).waitFor()
    expect(await dialog.getByRole("alert").count()).toBe(0)
    expect(await remove.isDisabled()).toBe(true)
    expect(await axeFaultsInBoth(page)).toEqual([])
    await moved.getByRole("button").press("Enter")
    await goes.filter({ hasText: new RegExp(`\\b${versions}\\b`) }).waitFor()
    if (versions === 3) await run(story.patch(`/objects/${ada.id}`, { properties: { name: "Ada" } }))
  }
  await dialog.getByRole("button", { name: /^Delete/, disabled: false }).press("Enter")
  await told(page, "done", "ada")
  await page.getByRole("list", { name: "Objects" }).getByRole("link", { name: "bob" }).waitFor()
  expect((await run(story.ask("GET", `/objects/${ada.id}/history`))).status).toBe(404)
  expect((await run(story.get("/purges"))).items).toMatchObject([{ entityId: ada.id, versions: 5 }])
  expect((await run(story.get("/relationships"))).items).toEqual([])

  // What is deleted already can be removed, too.
  await run(story.ask("DELETE", `/objects/${bob.id}`))
  await goTo(`/objects/${bob.id}`)
  await page.getByRole("button", { name: "Delete permanently", disabled: false }).press("Enter")
  const second = page.getByRole("dialog", { name: /\bbob\b/ })
  await second.getByRole("button", { name: /^Delete/, disabled: false }).press("Enter")
  await told(page, "done", "bob")
})

it("says of an object that was deleted while somebody wrote which it is and by whom, and keeps what was written", async () => {
  const story = await real.newStory()
  const ada = await run(story.post("/objects", { type: "Person", key: "ada", properties: { name: "Ada" } }))
  const { page } = await real.visit(story, `/objects/${ada.id}`)
  await page.getByRole("button", { name: "Edit name", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  await dialog.getByLabel("Value").fill("Lady Ada")
  await run(story.ask("DELETE", `/objects/${ada.id}`))
  await dialog.locator("form").evaluate(submitTwice)
  const deleted = dialog.getByTestId("moved-notice")
  await deleted.filter({ hasText: "ada" }).filter({ hasText: "admin" }).waitFor()
  expect(await dialog.innerText()).not.toContain(ada.id)
  expect(await dialog.getByLabel("Value").inputValue()).toBe("Lady Ada")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await deleted.getByRole("button").click()
  await deleted.waitFor({ state: "detached" })
  await dialog.getByRole("button", { name: "Save", exact: true, disabled: false }).press("Enter")
  await dialog.waitFor({ state: "detached" })
  expect((await run(story.get(`/objects/${ada.id}`))).properties).toEqual({ name: "Lady Ada" })
})

it("says that the server does not answer, and that what it shows is from before", async () => {
  const story = await real.newStory()
  const note = await run(story.post("/objects", { type: "Note", properties: { t: "old" } }))
  const line = await cutLine(story.url)
  const { page } = await real.visit({ ...story, url: line.url }, `/objects/${note.id}`)
  await page.getByRole("button", { name: "Edit t" }).waitFor()
  line.cut()
  const failure = page.locator("[role=alert][data-failure=unreachable][data-has-older]")
  await failure.waitFor()
  line.mend()
  await failure.waitFor({ state: "detached" })
})

it("an object that is not there is told as what it is", async () => {
  const story = await real.newStory()
  const note = await run(make(await real.newStory(), "Note"))
  const { page } = await real.visit(story, `/objects/${note.id}`)
  await page.locator("[role=alert][data-failure=not-found]").waitFor()
})

it("names of properties may be those of JavaScript's own, and a property is not added where there is one", async () => {
  const story = await real.newStory()
  const odd = { toString: "x", valueOf: 1, hasOwnProperty: { a: true }, a: "precious" }
  const object = await run(story.post("/objects", { type: "Odd", key: "odd", properties: odd }))
  const { page, goTo } = await real.visit(story, `/objects/${object.id}?tab=history`)
  const differences = page.getByLabel("Differences")
  for (const name of Object.keys(odd)) await differences.getByText(name, { exact: true }).waitFor()
  expect(await differences.locator("ins").count()).toBe(Object.keys(odd).length)
  expect(await differences.locator("del").count()).toBe(0)
  const [event] = (await run(story.get("/events"))).items
  await goTo(`/events/${event.id}`)
  await differences.getByText("valueOf", { exact: true }).waitFor()

  await goTo(`/objects/${object.id}`)
  await page.getByRole("button", { name: "Add property", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  await dialog.getByLabel("Name").fill("a")
  await dialog.getByRole("status").filter({ hasText: "precious" }).waitFor()
  expect(await dialog.getByLabel("Name").getAttribute("aria-invalid")).toBe("true")
  await dialog.getByLabel("Value").fill("over")
  await page.keyboard.press("Control+Enter")
  expect(await dialog.getByRole("button", { name: "Save" }).isDisabled()).toBe(true)
  await dialog.getByLabel("Name").fill("b")
  await dialog.getByRole("button", { name: "Save", disabled: false }).press("Enter")
  await dialog.waitFor({ state: "detached" })
  const now = await run(story.get(`/objects/${object.id}`))
  expect(now.properties).toEqual({ ...odd, b: "over" })
})

it("a save whose answer was lost is not told as somebody else's", async () => {
  const story = await real.newStory()
  const object = await run(story.post("/objects", { type: "Note", properties: { a: "old" } }))
  const { page } = await real.visit(story, `/objects/${object.id}`)
  await page.route(`**/objects/${object.id}`, async (route) => {
    if (route.request().method() !== "PATCH") return route.fallback()
    await route.fetch()
    await route.abort("connectionreset")
  })
  await page.getByRole("button", { name: "Edit a", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  await dialog.getByLabel("Value").fill("new")
  await dialog.getByRole("button", { name: "Save", disabled: false }).press("Enter")
  await dialog.getByRole("alert").waitFor()
  await inTime(async () => (await run(story.get(`/objects/${object.id}`))).version).toBe(2)
  await page
    .getByRole("list", { name: "Properties", includeHidden: true })
    .getByText("new", { exact: true })
    .waitFor({ state: "attached" })
  expect(await dialog.getByTestId("moved-notice").count()).toBe(0)
  await page.unroute(`**/objects/${object.id}`)
  await dialog.getByRole("button", { name: "Save", disabled: false }).press("Enter")
  await dialog.waitFor({ state: "detached" })
  expect(await run(story.get(`/objects/${object.id}`))).toMatchObject({ properties: { a: "new" } })
})
