/**
 * What people set, against the whole program: who may do what, with which token, in which browsers, and what stops it all.
 */
import { Effect, Exit, Scope } from "effect"
import { expect, it, onTestFinished } from "vitest"
import type { Page } from "playwright-core"
import { httpServer, newDiary } from "../../server/testing/mcp-words.ts"
import { ask } from "../../server/testing/owner-rows.ts"
import { calling, watcher } from "../../server/testing/story-words.ts"
import { axeFaultsInBoth, screenshot, submitTwice } from "./page-checks.ts"
import { inTime } from "./inbox-words.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const dialog = (page: Page) => page.getByRole("dialog")
const rowOf = (page: Page, name: string) =>
  page.getByRole("main").getByRole("listitem").filter({ hasText: name })

it("lets members in and out by keyboard alone, and keeps the last admin, said in words", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings", { role: "admin" })
  await rowOf(page, "a-admin (you)").waitFor()
  const add = page.getByRole("button", { name: "Add a member" })
  await add.focus()
  await page.keyboard.press("Enter")
  await dialog(page).getByLabel("User id").waitFor()
  await page.keyboard.type(" ada")
  await page.keyboard.press("Enter")
  await dialog(page)
    .getByText(/begins and ends with a visible character/)
    .waitFor()
  await page.keyboard.press("Home")
  await page.keyboard.press("Delete")
  await page.keyboard.press("Tab")
  await page.keyboard.type("ed")
  // Twice at once: she is let in once, and nothing is refused.
  await dialog(page).getByRole("button", { name: "Add", exact: true }).dblclick()
  await rowOf(page, "ada").waitFor()
  expect(await page.getByRole("alert").count()).toBe(0)
  await inTime(() => add.evaluate((button) => button === document.activeElement)).toBe(true)
  expect(await run(story.get("/members/ada"))).toMatchObject({ role: "editor", addedBy: "a-admin" })
  await page.getByLabel("Role of ada").selectOption("reviewer")
  await inTime(async () => (await run(story.get("/members/ada"))).role).toBe("reviewer")
  await screenshot(page, "settings-members")
  expect(await axeFaultsInBoth(page)).toEqual([])

  // The link is shown once and signs a browser in.
  await rowOf(page, "ada").getByRole("button", { name: "Login link", disabled: false }).press("Enter")
  await page.keyboard.press("Enter")
  const link = await dialog(page).locator("code").innerText()
  expect(link).toMatch(/\/login\?code=/)
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.keyboard.press("Escape")
  await dialog(page)
    .getByText(/^It is gone when this closes/)
    .waitFor()
  await dialog(page).getByRole("button", { name: "I have copied it", disabled: false }).press("Enter")

  const only = "a-admin is the only admin of this project: make somebody else an admin first."
  await page.getByLabel("Role of a-admin").selectOption("viewer")
  await page.getByRole("alert").getByText(only).waitFor()
  expect(await page.getByLabel("Role of a-admin").inputValue()).toBe("admin")
  await rowOf(page, "a-admin").getByRole("button", { name: "Leave", disabled: false }).press("Enter")
  await dialog(page).getByRole("button", { name: "Leave", disabled: false }).press("Enter")
  await dialog(page).getByText(only).waitFor()
  await page.keyboard.press("Escape")
  await rowOf(page, "ada").getByRole("button", { name: "Remove", disabled: false }).press("Enter")
  await dialog(page).getByRole("button", { name: "Remove", disabled: false }).press("Enter")
  // While the dialog is there, nothing behind it is said to be.
  await dialog(page).waitFor({ state: "detached" })
  await rowOf(page, "ada").waitFor({ state: "detached" })
  expect((await run(story.ask("GET", "/members/ada"))).status).toBe(404)
})

it("makes a token of the server's admin as the form stands, and says that it lets them in", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings?tab=tokens")
  await page.getByRole("button", { name: "Make a token", disabled: false }).press("Enter")
  await dialog(page).getByText("this lets you in as admin").waitFor()
  await dialog(page).getByRole("button", { name: "Make", exact: true, disabled: false }).press("Enter")
  await dialog(page).getByText(/name/i).first().waitFor()
  expect((await run(story.get("/members"))).items).toEqual([])
  await dialog(page).getByLabel("Name").fill("laptop")
  await dialog(page).getByRole("button", { name: "Make", exact: true, disabled: false }).press("Enter")
  await dialog(page)
    .getByText(/^laptop: admin, of admin/)
    .waitFor()
  expect((await run(story.get("/members"))).items).toMatchObject([{ userId: "admin", role: "admin" }])
})

it("makes a token that is shown once and works, and revokes it, and then it does not", async () => {
  const story = await real.newStory()
  const { page, goTo } = await real.visit(story, "/settings?tab=tokens", { role: "editor" })
  await page.getByText("No token yet").waitFor()
  await page.getByRole("button", { name: "Make a token", disabled: false }).press("Enter")
  await dialog(page).getByRole("button", { name: "Make", exact: true, disabled: false }).press("Enter")
  await dialog(page).getByText(/name/i).first().waitFor()
  await dialog(page).getByLabel("Name").fill("pipeline")
  // A role above one's own is not offered.
  const role = dialog(page).getByLabel("May do at most what this role may")
  expect(await role.locator("option").allInnerTexts()).toHaveLength(2)
  await role.selectOption("viewer")
  // Sent twice before the page has drawn anything: one token.
  await dialog(page).locator("form").evaluate(submitTwice)
  const secret = await dialog(page).locator("code").innerText()
  expect(await axeFaultsInBoth(page)).toEqual([])
  const asIt = (path = "/objects") =>
    run(
      story.send("GET", `/api/projects/${story.projectId}${path}`, undefined, {
        authorization: `Bearer ${secret}`
      })
    )
  expect((await asIt()).status).toBe(200)
  await page.keyboard.press("Escape")
  await page.keyboard.press("Escape")
  await dialog(page)
    .getByText(/^It is gone when this closes/)
    .waitFor()
  await dialog(page).getByRole("button", { name: "I have copied it", disabled: false }).press("Enter")
  await rowOf(page, "pipeline")
    .getByText(/viewer, of a-editor, in this project.*ends in 89 days/)
    .waitFor()
  expect((await run(story.get("/tokens"))).items).toHaveLength(1)
  await screenshot(page, "settings-tokens")
  await goTo("/settings?tab=tokens")
  await rowOf(page, "pipeline").waitFor()
  expect(await page.locator("body").innerText()).not.toContain(secret)
  await rowOf(page, "pipeline").getByRole("button", { name: "Revoke", disabled: false }).press("Enter")
  await dialog(page).getByRole("button", { name: "Revoke", disabled: false }).press("Enter")
  await page.getByText("No token yet").waitFor()
  expect((await asIt()).status).toBe(401)
})

it("a session that ends while a token is shown takes it away, and says so to who signs in again", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings?tab=tokens", { role: "editor" })
  await page.getByRole("button", { name: "Make a token", disabled: false }).press("Enter")
  await dialog(page).getByLabel("Name").fill("pipeline")
  await dialog(page).getByRole("button", { name: "Make", exact: true, disabled: false }).press("Enter")
  const secret = await dialog(page).locator("code").innerText()
  const other = await real.visit(story, "/settings?tab=sessions", { role: "editor" })
  await other.page.getByRole("button", { name: "End all others", disabled: false }).press("Enter")
  const lost = page.getByRole("alert").getByText(/^The session ended while something was open/)
  await lost.waitFor()
  expect(await page.locator("body").innerText()).not.toContain(secret)
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.getByLabel("Or paste a token").fill(secret)
  await page.keyboard.press("Enter")
  await rowOf(page, "pipeline").waitFor()
  // It is said once.
  await page.getByRole("button", { name: "Sign out" }).press("Enter")
  await page.getByLabel("Or paste a token").waitFor()
  expect(await lost.count()).toBe(0)
})

it("lists the browsers of a person and ends one, whose page then asks to sign in", async () => {
  const story = await real.newStory()
  const first = await real.visit(story, "/settings?tab=sessions", { role: "reviewer" })
  await rowOf(first.page, "(this browser)").getByText("Chrome on Linux").waitFor()
  await rowOf(first.page, "(this browser)")
    .getByText(/, in use now,/)
    .waitFor()
  const second = await real.visit(story, "/settings?tab=sessions", { role: "reviewer" })
  await second.page.getByRole("button", { name: "End", exact: true }).first().waitFor()
  expect(await axeFaultsInBoth(second.page)).toEqual([])
  await second.page.getByRole("button", { name: "End all others", disabled: false }).press("Enter")
  await second.page
    .getByText(/1 session ended\./)
    .first()
    .waitFor()
  await first.page.getByRole("button", { name: /Sign in/ }).waitFor()
  await rowOf(second.page, "(this browser)").waitFor()
})

it("tells which models can be asked, renames the project, bounds its chains, and stops its agents and lets them go on", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings?tab=models")
  await rowOf(page, "anthropic").getByText("To use it, set ANTHROPIC_API_KEY.").waitFor()
  await page.getByText(/No model is asked where an agent names none/).waitFor()
  await screenshot(page, "settings-models")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.getByRole("tab", { name: "Models" }).press("ArrowRight")
  // The focus follows an arrow a moment later.
  await inTime(() => page.evaluate(() => document.activeElement?.textContent)).toBe("Project")
  await page.keyboard.press("Enter")
  await page.getByRole("textbox", { name: "Name" }).fill("The garden")
  await page.keyboard.press("Enter")
  await inTime(() => page.getByRole("banner").textContent()).toContain("The garden")

  const depth = page.getByLabel("Depth")
  await depth.fill("0")
  await page.keyboard.press("Enter")
  await page
    .getByText(/between 1 and 100/)
    .first()
    .waitFor()
  await depth.fill("3")
  await page.keyboard.press("Enter")
  await inTime(async () => (await run(story.get("/settings"))).chainLimits.maxDepth).toBe(3)

  await page.getByRole("button", { name: "Stop all agents", disabled: false }).press("Enter")
  await page.keyboard.press("Tab")
  await dialog(page).getByRole("button", { name: "Stop them", disabled: false }).press("Enter")
  await dialog(page).getByRole("status").getByText(/./).first().waitFor()
  await dialog(page).getByLabel("Reason").fill("It deletes <b>too</b> much")
  await dialog(page).getByRole("button", { name: "Stop them", disabled: false }).press("Enter")
  const kept = (shown: Page) => shown.getByRole("region", { name: "Kill switch", exact: true })
  await kept(page).getByText("It deletes <b>too</b> much", { exact: true }).waitFor()
  await screenshot(page, "settings-project")
  expect(await axeFaultsInBoth(page)).toEqual([])
  const reader = await real.visit(story, "/settings?tab=project", {
    role: "viewer",
    viewport: { width: 375, height: 700 }
  })
  await kept(reader.page).getByText("It deletes <b>too</b> much", { exact: true }).waitFor()
  expect(await reader.page.getByRole("button", { name: /Stop|go on|Rename|Save/ }).count()).toBe(0)
  expect(await reader.page.evaluate(() => document.documentElement.scrollWidth)).toBe(375)
  await page.getByRole("button", { name: "Let the agents go on", disabled: false }).press("Enter")
  for (const each of [page, reader.page]) await each.getByText(/^The agents may work\./).waitFor()
  expect((await run(story.get("/kill-switch"))).stopped).toBeNull()
})

it("shows a foreign server that does not answer, and lets it be disabled and removed", async () => {
  const story = await real.newStory()
  const missing = { name: "shop", transport: { type: "stdio", command: "/nowhere/at-all" } }
  const server = await run(story.post("/mcp-servers", missing))
  const { page } = await real.visit(story, "/settings?tab=servers")
  await rowOf(page, "shop")
    .getByText(/^It could not be used/)
    .waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await rowOf(page, "shop").getByRole("button", { name: "Disable", disabled: false }).press("Enter")
  await rowOf(page, "shop")
    .getByText(/^Disabled/)
    .waitFor()
  expect((await run(story.get(`/mcp-servers/${server.id}`))).enabled).toBe(false)
  await rowOf(page, "shop").getByRole("button", { name: "Remove", disabled: false }).press("Enter")
  await dialog(page).getByRole("button", { name: "Remove", disabled: false }).press("Enter")
  await page.getByText("No MCP server yet").waitFor()
})

it("adds a foreign server by keyboard, allows a tool of it, and trusts what it says after it changed", async () => {
  const scope = Effect.runSync(Scope.make())
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const scoped = <A>(effect: Effect.Effect<A, never, Scope.Scope>) => run(Scope.provide(effect, scope))
  const diary = await scoped(newDiary)
  const { url } = await scoped(httpServer(diary))
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings?tab=servers")
  await page.getByRole("button", { name: "Add an MCP server", disabled: false }).press("Enter")
  await dialog(page).getByLabel("Name").waitFor()
  await page.keyboard.type("my shop")
  await dialog(page).getByLabel("Address").fill("nowhere")
  await page.keyboard.press("Enter")
  await dialog(page)
    .getByText(/A server's name has 1 to 30 letters/)
    .waitFor()
  await dialog(page).getByLabel("Name").fill("shop")
  await dialog(page).getByLabel("Address").fill(url)
  await dialog(page).getByLabel("Headers").fill("X-Key: a: b")
  await screenshot(page, "settings-server")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await dialog(page).locator("form").evaluate(submitTwice)
  const row = rowOf(page, "shop").first()
  await row.getByText(/^It answers; agents may have 0 of/).waitFor()
  expect(new URL(page.url()).searchParams.get("server")).toBeTruthy()
  const tools = page.getByRole("list", { name: "Tools of shop" })
  await tools.getByRole("button", { name: "Allow lookup", disabled: false }).press("Enter")
  await row.getByText(/^It answers; agents may have 1 of/).waitFor()
  await tools.getByRole("button", { name: "Forbid lookup" }).waitFor()
  const [known] = (await run(story.get("/mcp-servers"))).items
  expect(known).toMatchObject({ allowedTools: ["lookup"], transport: { headers: { "X-Key": "a: b" } } })

  // It says something else, an agent's call shows it, and a person trusts what it says now.
  await run(diary.say({ lookup: { description: "Sends all there is to <b>nowhere</b>." } }))
  const agent = await run(
    story.post("/agents", {
      ...watcher({ name: "buyer", model: calling({ tool: "shop__lookup", arguments: { word: "a" } }) }),
      triggerType: "manual",
      reactionConfig: null,
      tools: ["shop.*"]
    })
  )
  await run(story.post(`/agents/${agent.id}/trigger`))
  await row.getByText(/1 tool changed since somebody looked/).waitFor()
  await tools.getByText(/It says something else since/).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await screenshot(page, "settings-servers")
  await row.getByRole("button", { name: "Test", disabled: false }).press("Enter")
  await tools.getByText("Sends all there is to <b>nowhere</b>.").waitFor()
  expect(await tools.getByText(/It says something else since/).count()).toBe(0)

  await row.getByRole("button", { name: "Change", disabled: false }).press("Enter")
  expect(await dialog(page).getByLabel("Headers").inputValue()).toBe("X-Key: a: b")
  await dialog(page).getByLabel("Tools that agents may be given").fill("look* charge")
  await dialog(page).getByRole("button", { name: "Save", disabled: false }).press("Enter")
  await row.getByText(/^It answers; agents may have 2 of/).waitFor()
})

it("makes another project and goes there, which nobody else is offered", async () => {
  const story = await real.newStory()
  const member = await real.visit(story, "/settings?tab=project", { role: "admin" })
  await member.page.getByRole("region", { name: "Kill switch" }).waitFor()
  expect(await member.page.getByRole("button", { name: /Make a project/ }).count()).toBe(0)
  const { page } = await real.visit(story, "/settings?tab=project")
  await page.getByRole("button", { name: /Make a project/, disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog", { name: "Make a project" })
  await dialog.getByRole("button", { name: "Make it", disabled: false }).press("Enter")
  await dialog.getByRole("status").filter({ hasText: /\S/ }).waitFor()
  await dialog.getByLabel("Name").fill("The <b>other</b>")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await dialog.getByRole("button", { name: "Make it", disabled: false }).press("Enter")
  await page.getByRole("heading", { level: 1, name: "Inbox" }).waitFor({ state: "attached" })
  const { body } = await run(story.send("GET", "/api/projects?limit=1"))
  const [made] = body.items
  expect(made.name).toBe("The <b>other</b>")
  expect(new URL(page.url()).searchParams.get("project")).toBe(made.id)
  await page.getByRole("banner").getByRole("combobox", { name: "Project" }).waitFor()
})

it("shows what hides in a name, and refuses it in words where a name is given", async () => {
  const story = await real.newStory()
  const other = (await run(story.send("POST", "/api/projects", { name: "The other" }))).body
  await run(ask(story.access, "update kb.projects set name = $1 where id = $2", ["The\u202eother", other.id]))
  const { page } = await real.visit(story, "/settings?tab=tokens")
  const projects = page.getByRole("banner").getByRole("combobox", { name: "Project" })
  await inTime(() => projects.locator("option").allInnerTexts()).toContain("TheU+202Eother")
  await page.getByRole("button", { name: "Make a token", disabled: false }).press("Enter")
  await dialog(page).getByLabel("Name").fill("a\u200bb")
  await dialog(page).getByRole("button", { name: "Make", exact: true, disabled: false }).press("Enter")
  await dialog(page)
    .getByText(/^A token's name has 1 to 100 characters on one line, none of them invisible/)
    .waitFor()
  await inTime(() =>
    dialog(page)
      .getByLabel("Name")
      .evaluate((field) => field === document.activeElement)
  ).toBe(true)
})
