/**
 * The page of an object against the whole program: why each value is there, what it was before, and changing it.
 */
import { expect, it } from "vitest"
import { promptWithObject } from "../../server/testing/platform.ts"
import { calling, entriesWhen, make, watcher } from "../../server/testing/story-words.ts"
import { cutLine } from "./cut-line.ts"
import { axeFaultsInBoth, screenshot, submitTwice } from "./page-checks.ts"
import { inTime } from "./inbox-words.ts"
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
  await properties.getByText("Set in version 2 by the agent greeter, through update_object.").waitFor()
  await properties.getByRole("button", { name: "Why is greeting so?", disabled: false }).press("Enter")
  await properties.getByText("Everybody is greeted.").waitFor()
  await properties.getByText("It was 90 % sure.").waitFor()
  const hops = properties.getByRole("list", { name: "Back to the root" }).getByRole("listitem")
  await inTime(() => hops.allInnerTexts()).toEqual([
    expect.stringMatching(
      /^Person ada updated, version 2, by the agent greeter.*\s+in a run of greeter, version 1/s
    ),
    expect.stringMatching(/^Person ada created, version 1, by admin/)
  ])
  await screenshot(page, "object")
  expect(await axeFaultsInBoth(page)).toEqual([])

  await page.getByRole("tab", { name: "History" }).press("Enter")
  await page.getByText("From version 1 to version 2").waitFor()
  expect(await page.getByRole("deletion").count()).toBe(0)
  await page.getByRole("insertion").getByText("<b>Hello</b>").waitFor()
  await screenshot(page, "object-history")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.getByRole("slider", { name: "Version 2 of 2" }).press("ArrowLeft")
  await page.getByText("It began with").waitFor()
  expect(new URL(page.url()).searchParams.get("version")).toBe("1")
  await page.getByText(/created by admin/).waitFor()
  await goTo(`/objects/${ada.id}?tab=history&version=1&against=2`)
  await page.getByText("From version 1 to version 2").waitFor()
})

it("changes an object against the version that was shown, relates it, deletes it and brings it back", async () => {
  const story = await real.newStory()
  const ada = await run(story.post("/objects", { type: "Person", key: "ada", properties: { name: "Ada" } }))
  const bob = await run(story.post("/objects", { type: "Person", key: "bob", properties: {} }))
  const reader = await real.visit(story, `/objects/${ada.id}`, { role: "viewer" })
  await reader.page.getByText("Editors may change it.").waitFor()
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
  await dialog.getByText("Now it is “Countess”.").waitFor()
  await dialog.getByRole("button", { name: "Keep mine, to be saved over it" }).click()
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

  await page.getByRole("button", { name: "Add a property", disabled: false }).press("Enter")
  await dialog.getByLabel("Name").fill("born")
  await dialog.getByLabel("Written as").selectOption("json")
  await dialog.getByLabel("Value").fill("18_15")
  await dialog.getByRole("button", { name: "Save", exact: true, disabled: false }).press("Enter")
  await dialog.getByText("This is no JSON.").waitFor()
  await dialog.getByLabel("Value").fill("1815")
  await dialog.getByRole("button", { name: "Save", exact: true, disabled: false }).press("Enter")
  await page.getByRole("button", { name: "Edit born" }).waitFor()
  expect((await run(story.get(`/objects/${ada.id}`))).properties).toEqual({ name: "Lady Ada", born: 1815 })

  await page.getByRole("tab", { name: "Relationships" }).press("Enter")
  await page.getByRole("button", { name: "Relate it to something", disabled: false }).press("Enter")
  await dialog.getByLabel("Type").fill("KNOWS")
  await dialog.getByLabel("Find the other object by words").fill("bob")
  await dialog.getByLabel("The other object").getByText("bob (Person)").waitFor({ state: "attached" })
  await dialog.getByRole("button", { name: "Relate", exact: true, disabled: false }).press("Enter")
  await page.getByRole("list", { name: "Relationships" }).getByRole("link", { name: /bob/ }).waitFor()
  expect((await run(story.get("/relationships"))).items).toMatchObject([{ fromId: ada.id, toId: bob.id }])
  expect(await axeFaultsInBoth(page)).toEqual([])

  await page.getByRole("button", { name: "Delete", exact: true, disabled: false }).press("Enter")
  await dialog.getByRole("button", { name: "Delete it", disabled: false }).press("Enter")
  await page.getByText(/It was deleted .* by admin/).waitFor()
  expect((await run(story.ask("GET", `/objects/${ada.id}`))).status).toBe(404)
  await page.getByRole("button", { name: "Bring it back", disabled: false }).press("Enter")
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
  expect(await other.page.getByRole("button", { name: "Remove for good" }).count()).toBe(0)

  const { page, goTo } = await real.visit(story, `/objects/${ada.id}`)
  await page.getByRole("button", { name: "Remove for good", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog", { name: "Remove ada for good?" })
  const goes = await dialog.getByRole("list", { name: "What goes" }).innerText()
  expect(goes).toContain("its 2 versions")
  expect(goes).toContain("its relationships")
  expect(goes).toContain("what events say of it")
  const stays = await dialog.getByRole("list", { name: "What stays" }).innerText()
  expect(stays).toContain("runs, tool calls and tasks")
  expect(stays).toContain("that it was removed, by whom and when")
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
  const remove = dialog.getByRole("button", { name: "Remove it for good" })
  await run(story.patch(`/objects/${ada.id}`, { properties: { name: "Countess" } }))
  await remove.press("Enter")
  await dialog.getByRole("alert").waitFor()
  expect((await run(story.get(`/objects/${ada.id}`))).version).toBe(3)
  heard.resolve()
  for (const versions of [3, 4]) {
    await dialog.getByText(`Somebody has changed it meanwhile. It has ${versions} versions now.`).waitFor()
    expect(await dialog.getByRole("alert").count()).toBe(0)
    expect(await remove.isDisabled()).toBe(true)
    expect(await axeFaultsInBoth(page)).toEqual([])
    await dialog.getByRole("button", { name: "Read what goes now" }).press("Enter")
    await dialog.getByText(`its ${versions} versions`).waitFor()
    if (versions === 3) await run(story.patch(`/objects/${ada.id}`, { properties: { name: "Ada" } }))
  }
  await dialog.getByRole("button", { name: "Remove it for good", disabled: false }).press("Enter")
  await page.getByText("ada is removed for good.", { exact: true }).waitFor()
  await page.getByRole("list", { name: "Objects" }).getByRole("link", { name: "bob" }).waitFor()
  expect((await run(story.ask("GET", `/objects/${ada.id}/history`))).status).toBe(404)
  expect((await run(story.get("/purges"))).items).toMatchObject([{ entityId: ada.id, versions: 5 }])
  expect((await run(story.get("/relationships"))).items).toEqual([])

  // What is deleted already can be removed, too.
  await run(story.ask("DELETE", `/objects/${bob.id}`))
  await goTo(`/objects/${bob.id}`)
  await page.getByRole("button", { name: "Remove for good", disabled: false }).press("Enter")
  await page.getByRole("button", { name: "Remove it for good", disabled: false }).press("Enter")
  await page.getByText("bob is removed for good.", { exact: true }).waitFor()
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
  await dialog.getByText("Person ada was deleted meanwhile by admin.").waitFor()
  expect(await dialog.innerText()).not.toContain(ada.id)
  expect(await dialog.getByLabel("Value").inputValue()).toBe("Lady Ada")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await dialog.getByRole("button", { name: "Bring it back, to save mine" }).click()
  await dialog.getByText("was deleted meanwhile").waitFor({ state: "detached" })
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
  await page.getByText("The server does not answer. What you see is from before. Trying again.").waitFor()
  line.mend()
  await page.getByText("The server does not answer.").waitFor({ state: "detached" })
})

it("an object that is not there is told as a sentence", async () => {
  const story = await real.newStory()
  const note = await run(make(await real.newStory(), "Note"))
  const { page } = await real.visit(story, `/objects/${note.id}`)
  await page
    .getByRole("alert")
    .getByText(/no such object/i)
    .waitFor()
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
  await page.getByRole("button", { name: "Add a property", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  await dialog.getByLabel("Name").fill("a")
  await dialog.getByText("There is one already. It is “precious”; edit it to change it.").waitFor()
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
    .getByText(/Set in version 2/)
    .waitFor({ state: "attached" })
  expect(await dialog.getByText(/Somebody has changed it/).count()).toBe(0)
  await page.unroute(`**/objects/${object.id}`)
  await dialog.getByRole("button", { name: "Save", disabled: false }).press("Enter")
  await dialog.waitFor({ state: "detached" })
  expect(await run(story.get(`/objects/${object.id}`))).toMatchObject({ properties: { a: "new" } })
})
