/**
 * What people set, against the whole program: who may do what, with which token, in which browsers, and what stops it all.
 */
import { Effect, Exit, Scope } from "effect"
import { expect, it, onTestFinished } from "vitest"
import type { Page } from "playwright-core"
import { httpServer, newDiary } from "../../server/testing/mcp-words.ts"
import { ask } from "../../server/testing/owner-rows.ts"
import { calling, watcher } from "../../server/testing/story-words.ts"
import { inTime } from "./inbox-words.ts"
import { axeFaultsInBoth, screenshot, submitTwice } from "./page-checks.ts"
import { failure, faultAt, fieldAt, withAll, messages } from "./page-parts.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const dialog = (page: Page) => page.getByRole("dialog")
const rowOf = (page: Page, name: string) =>
  page.getByRole("main").getByRole("listitem").filter({ hasText: name })

/** A secret that is shown once stays, whatever key is pressed, until somebody has it. */
const copied = async (page: Page) => {
  await dialog(page).locator("[data-kept-open=held]").waitFor()
  await dialog(page).getByTestId("copied").press("Enter")
}

it("lets members in and out by keyboard alone, and keeps the last admin, said in words", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings", { role: "admin" })
  await rowOf(page, "a-admin").waitFor()
  const add = page.getByRole("button", { name: "Add member" })
  await add.focus()
  await page.keyboard.press("Enter")
  await dialog(page).getByLabel("User id").waitFor()
  await page.keyboard.type(" ada")
  await page.keyboard.press("Enter")
  await faultAt(dialog(page), "/userId").waitFor()
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
  await copied(page)

  await page.getByLabel("Role of a-admin").selectOption("viewer")
  await failure(rowOf(page, "a-admin"), "lastAdmin").waitFor()
  expect(await page.getByLabel("Role of a-admin").inputValue()).toBe("admin")
  await rowOf(page, "a-admin").getByRole("button", { name: "Leave", disabled: false }).press("Enter")
  await dialog(page).getByRole("button", { name: "Leave", disabled: false }).press("Enter")
  await failure(dialog(page), "lastAdmin").waitFor()
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
  await page.getByRole("button", { name: "Create token", disabled: false }).press("Enter")
  await dialog(page).getByTestId("lets-in").waitFor()
  await dialog(page).getByRole("button", { name: "Create", exact: true, disabled: false }).press("Enter")
  await faultAt(dialog(page), "/name").waitFor()
  expect((await run(story.get("/members"))).items).toEqual([])
  await dialog(page).getByLabel("Name").fill("laptop")
  await dialog(page).getByRole("button", { name: "Create", exact: true, disabled: false }).press("Enter")
  const made = dialog(page).filter({ has: page.getByTestId("copied") })
  await withAll(made, "laptop", "admin").waitFor()
  expect((await run(story.get("/members"))).items).toMatchObject([{ userId: "admin", role: "admin" }])
})

it("makes a token that is shown once and works, and revokes it, and then it does not", async () => {
  const story = await real.newStory()
  const { page, goTo } = await real.visit(story, "/settings?tab=tokens", { role: "editor" })
  await page.getByTestId("empty").waitFor()
  await page.getByRole("button", { name: "Create token", disabled: false }).press("Enter")
  await dialog(page).getByRole("button", { name: "Create", exact: true, disabled: false }).press("Enter")
  await faultAt(dialog(page), "/name").waitFor()
  await dialog(page).getByLabel("Name").fill("pipeline")
  // A role above one's own is not offered.
  const role = fieldAt(dialog(page), "/role")
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
  await copied(page)
  await withAll(rowOf(page, "pipeline"), "viewer", "a-editor", 89).waitFor()
  expect((await run(story.get("/tokens"))).items).toHaveLength(1)
  await screenshot(page, "settings-tokens")
  await goTo("/settings?tab=tokens")
  await rowOf(page, "pipeline").waitFor()
  expect(await page.locator("body").innerText()).not.toContain(secret)
  await rowOf(page, "pipeline").getByRole("button", { name: "Revoke", disabled: false }).press("Enter")
  await dialog(page).getByRole("button", { name: "Revoke", disabled: false }).press("Enter")
  await page.getByTestId("empty").waitFor()
  expect((await asIt()).status).toBe(401)
})

it("a session that ends while a token is shown takes it away, and says so to who signs in again", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings?tab=tokens", { role: "editor" })
  await page.getByRole("button", { name: "Create token", disabled: false }).press("Enter")
  await dialog(page).getByLabel("Name").fill("pipeline")
  await dialog(page).getByRole("button", { name: "Create", exact: true, disabled: false }).press("Enter")
  const secret = await dialog(page).locator("code").innerText()
  const other = await real.visit(story, "/settings?tab=sessions", { role: "editor" })
  await other.page.getByRole("button", { name: "End all others", disabled: false }).press("Enter")
  const lost = page.getByRole("main").getByRole("alert")
  await lost.waitFor()
  expect(await page.locator("body").innerText()).not.toContain(secret)
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.locator("input[type=password]").fill(secret)
  await page.keyboard.press("Enter")
  await rowOf(page, "pipeline").waitFor()
  // It is said once.
  await page.getByRole("button", { name: "Sign out" }).press("Enter")
  await page.locator("input[type=password]").waitFor()
  expect(await lost.count()).toBe(0)
})

it("lists the browsers of a person and ends one, whose page then asks to sign in", async () => {
  const story = await real.newStory()
  const first = await real.visit(story, "/settings?tab=sessions", { role: "reviewer" })
  const thisBrowser = (page: Page) => page.locator("[data-is-current=true]")
  await thisBrowser(first.page)
    .getByText(/Chrome.*Linux/)
    .waitFor()
  const second = await real.visit(story, "/settings?tab=sessions", { role: "reviewer" })
  await second.page.getByRole("button", { name: "End", exact: true }).first().waitFor()
  expect(await axeFaultsInBoth(second.page)).toEqual([])
  await second.page.getByRole("button", { name: "End all others", disabled: false }).press("Enter")
  await messages(second.page, "done", "1").waitFor()
  await first.page.locator("input[type=password]").waitFor()
  await thisBrowser(second.page).waitFor()
})

it("tells which models can be asked, renames the project, bounds its chains, and stops its agents and lets them go on", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings?tab=models")
  await rowOf(page, "anthropic").getByText("ANTHROPIC_API_KEY").waitFor()
  await page.locator("[data-default-model=none]").waitFor()
  await screenshot(page, "settings-models")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.getByRole("tab", { name: "Models" }).press("ArrowRight")
  // The focus follows an arrow a moment later.
  await inTime(() => page.evaluate(() => document.activeElement?.textContent)).toBe("Project")
  await page.keyboard.press("Enter")
  await page.getByRole("textbox", { name: "Name" }).fill("The garden")
  await page.keyboard.press("Enter")
  await inTime(() => page.getByRole("banner").textContent()).toContain("The garden")

  const depth = page.getByLabel("Max depth")
  await depth.fill("0")
  await page.keyboard.press("Enter")
  await withAll(faultAt(page, "/chainLimits/maxDepth"), 1, 100).waitFor()
  await depth.fill("3")
  await page.keyboard.press("Enter")
  await inTime(async () => (await run(story.get("/settings"))).chainLimits.maxDepth).toBe(3)

  await page.getByRole("button", { name: "Stop all agents", disabled: false }).press("Enter")
  await page.keyboard.press("Tab")
  await dialog(page).getByRole("button", { name: "Stop agents", disabled: false }).press("Enter")
  await faultAt(dialog(page), "/reason").waitFor()
  await dialog(page).getByLabel("Reason").fill("It deletes <b>too</b> much")
  await dialog(page).getByRole("button", { name: "Stop agents", disabled: false }).press("Enter")
  const kept = (shown: Page) => shown.getByRole("region", { name: "Kill switch", exact: true })
  await kept(page).getByText("It deletes <b>too</b> much", { exact: true }).waitFor()
  await screenshot(page, "settings-project")
  expect(await axeFaultsInBoth(page)).toEqual([])
  const reader = await real.visit(story, "/settings?tab=project", {
    role: "viewer",
    viewport: { width: 375, height: 700 }
  })
  await kept(reader.page).getByText("It deletes <b>too</b> much", { exact: true }).waitFor()
  expect(await reader.page.getByRole("tabpanel").getByRole("button").count()).toBe(0)
  expect(await reader.page.evaluate(() => document.documentElement.scrollWidth)).toBe(375)
  await kept(page).getByRole("button", { disabled: false }).press("Enter")
  for (const each of [page, reader.page]) await kept(each).locator("[data-switch=off]").waitFor()
  expect((await run(story.get("/kill-switch"))).stopped).toBeNull()
})

it("shows a foreign server that does not answer, and lets it be disabled and removed", async () => {
  const story = await real.newStory()
  const missing = { name: "shop", transport: { type: "stdio", command: "/nowhere/at-all" } }
  const server = await run(story.post("/mcp-servers", missing))
  const { page } = await real.visit(story, "/settings?tab=servers")
  await rowOf(page, "shop").locator("[data-state=failed]").waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await rowOf(page, "shop").getByRole("button", { name: "Disable", disabled: false }).press("Enter")
  await rowOf(page, "shop").locator("[data-state=disabled]").waitFor()
  expect((await run(story.get(`/mcp-servers/${server.id}`))).enabled).toBe(false)
  await rowOf(page, "shop").getByRole("button", { name: "Remove", disabled: false }).press("Enter")
  await dialog(page).getByRole("button", { name: "Remove", disabled: false }).press("Enter")
  await page.getByTestId("empty").waitFor()
})

it("adds a foreign server by keyboard, allows a tool of it, and trusts what it says after it changed", async () => {
  const scope = Effect.runSync(Scope.make())
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const scoped = <A>(effect: Effect.Effect<A, never, Scope.Scope>) => run(Scope.provide(effect, scope))
  const diary = await scoped(newDiary)
  const { url } = await scoped(httpServer(diary))
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings?tab=servers")
  await page.getByTestId("add-server").press("Enter")
  await dialog(page).getByLabel("Name").waitFor()
  await page.keyboard.type("my shop")
  await dialog(page).getByLabel("Address").fill("nowhere")
  await page.keyboard.press("Enter")
  await withAll(faultAt(dialog(page), "/name"), 1, 30).waitFor()
  await dialog(page).getByLabel("Name").fill("shop")
  await dialog(page).getByLabel("Address").fill(url)
  await dialog(page).getByLabel("Headers").fill("X-Key: a: b")
  await screenshot(page, "settings-server")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await dialog(page).locator("form").evaluate(submitTwice)
  const row = rowOf(page, "shop").first()
  /** That it answers, and agents may have so many of its tools. */
  const allows = (count: number) => row.locator(`[data-state=answers][data-allowed="${count}"]`)
  await allows(0).waitFor()
  expect(new URL(page.url()).searchParams.get("server")).toBeTruthy()
  const tools = page.getByRole("list", { name: "Tools of shop" })
  await tools.getByRole("button", { name: "Allow lookup", disabled: false }).press("Enter")
  await allows(1).waitFor()
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
  const changed = tools.locator("[data-is-changed=true]").filter({ hasText: "lookup" })
  await row.locator("[data-changed='1']").waitFor()
  await changed.waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await screenshot(page, "settings-servers")
  await row.getByRole("button", { name: "Test", disabled: false }).press("Enter")
  await tools.getByText("Sends all there is to <b>nowhere</b>.").waitFor()
  expect(await changed.count()).toBe(0)

  await row.getByRole("button", { name: "Change", disabled: false }).press("Enter")
  expect(await dialog(page).getByLabel("Headers").inputValue()).toBe("X-Key: a: b")
  await fieldAt(dialog(page), "/allowedTools").fill("look* charge")
  await dialog(page).getByRole("button", { name: "Save", disabled: false }).press("Enter")
  await allows(2).waitFor()
})

it("makes another project and goes there, which nobody else is offered", async () => {
  const story = await real.newStory()
  const member = await real.visit(story, "/settings?tab=project", { role: "admin" })
  await member.page.getByRole("region", { name: "Kill switch" }).waitFor()
  expect(await member.page.getByRole("button", { name: /Create project/ }).count()).toBe(0)
  const { page } = await real.visit(story, "/settings?tab=project")
  await page.getByRole("button", { name: /Create project/, disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog", { name: "Create project" })
  await dialog.getByRole("button", { name: "Create", disabled: false }).press("Enter")
  await faultAt(dialog, "/name").waitFor()
  await dialog.getByLabel("Name").fill("The <b>other</b>")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await dialog.getByRole("button", { name: "Create", disabled: false }).press("Enter")
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
  await page.getByRole("button", { name: "Create token", disabled: false }).press("Enter")
  await dialog(page).getByLabel("Name").fill("a\u200bb")
  await dialog(page).getByRole("button", { name: "Create", exact: true, disabled: false }).press("Enter")
  await withAll(faultAt(dialog(page), "/name"), 1, 100).waitFor()
  await inTime(() =>
    dialog(page)
      .getByLabel("Name")
      .evaluate((field) => field === document.activeElement)
  ).toBe(true)
})
