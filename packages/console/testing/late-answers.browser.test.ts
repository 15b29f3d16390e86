/**
 * What becomes of a press whose answer is late, against the whole program: its dialog waits for it, and whoever is elsewhere is told and stays there.
 */
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { make, watcher } from "../../server/testing/story-words.ts"
import { pendingOf, suggesting, suggestingOnce, updating } from "../../server/testing/suggestion-words.ts"
import { inTime, listed, toasts, told } from "./inbox-words.ts"
import { goWhenAsked } from "./leaving-words.ts"
import { axeFaultsInBoth } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const dialog = (page: Page) => page.getByRole("dialog")
/** What the dialog says where it does not close because its request is under way. */
const busy = (page: Page) => dialog(page).locator("[data-kept-open=busy]")
const outcomeUnknown = (page: Page) => dialog(page).locator("[role=alert][data-failure=outcomeUnknown]")

/** Keeps what is asked for by a method at an address from the server until it is let through, or lost. */
const holdRequests = async (page: Page, method: string, address: string) => {
  const asked = Promise.withResolvers<void>()
  const end = Promise.withResolvers<"told" | "lost">()
  await page.route(address, async (route) => {
    if (route.request().method() !== method) return route.fallback()
    asked.resolve()
    await ((await end.promise) === "told" ? route.fallback() : route.abort("connectionreset"))
  })
  return { asked: asked.promise, tell: () => end.resolve("told"), lose: () => end.resolve("lost") }
}

it("a token is shown although Escape and Cancel were pressed while it was being made", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings?tab=tokens", { role: "editor" })
  await page.getByRole("button", { name: "Create token", disabled: false }).press("Enter")
  await dialog(page).getByLabel("Name").fill("pipeline")
  const { asked, tell } = await holdRequests(page, "POST", "**/tokens")
  await dialog(page).getByRole("button", { name: "Create", exact: true, disabled: false }).press("Enter")
  await asked
  await dialog(page).getByRole("button", { name: "Create", exact: true, disabled: true }).waitFor()
  await page.keyboard.press("Escape")
  await busy(page).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.keyboard.press("Escape")
  await dialog(page).getByRole("button", { name: "Cancel", disabled: false }).press("Enter")
  await dialog(page).getByRole("button", { name: "Close", disabled: false }).press("Enter")
  await page.mouse.click(3, 3)
  tell()
  const secret = await dialog(page).locator("code").innerText()
  const { body } = await run(
    story.send("GET", `/api/projects/${story.projectId}/objects`, undefined, {
      authorization: `Bearer ${secret}`
    })
  )
  expect(body.items).toEqual([])
})

it("a question stays open while what it asked about is done, and closes by one Escape once that was refused", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", watcher({ name: "clerk" })))
  const { page } = await real.visit(story, `/agents/${agent.id}`)
  const { asked, lose } = await holdRequests(page, "DELETE", `**/agents/${agent.id}`)
  await page.getByRole("button", { name: "Delete", disabled: false }).press("Enter")
  await dialog(page).getByRole("button", { name: "Delete it", disabled: false }).press("Enter")
  await asked
  await dialog(page).getByRole("button", { name: "Delete it", disabled: true }).waitFor()
  await dialog(page).getByRole("button", { name: "Keep it", disabled: false }).press("Enter")
  await busy(page).waitFor()
  lose()
  await outcomeUnknown(page).waitFor()
  expect(await busy(page).count()).toBe(0)
  await page.keyboard.press("Escape")
  await dialog(page).waitFor({ state: "detached" })
})

it("a dialog whose request is never answered says after a while that it is not known what became of it, and closes", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/settings?tab=tokens", { role: "editor" })
  await page.getByRole("button", { name: "Create token", disabled: false }).press("Enter")
  await dialog(page).getByLabel("Name").fill("pipeline")
  const { asked, lose } = await holdRequests(page, "POST", "**/tokens")
  const keys: Array<string | undefined> = []
  page.on("request", (request) => {
    if (request.method() === "POST") keys.push(request.headers()["idempotency-key"])
  })
  await page.clock.install()
  const make = dialog(page).getByRole("button", { name: "Create", exact: true, disabled: false })
  await make.press("Enter")
  await asked
  await page.keyboard.press("Escape")
  await busy(page).waitFor()
  await page.clock.fastForward(130_000)
  await outcomeUnknown(page).waitFor()
  lose()
  await page.unrouteAll({ behavior: "wait" })
  await make.press("Enter")
  await dialog(page).locator("code").waitFor()
  expect(new Set(keys).size).toBe(1)
  expect((await run(story.get("/tokens"))).items).toHaveLength(1)
})

/** Sends the form of a new agent, and goes to another page while the answer is on its way. */
const leftWhileMade = async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/agents/new")
  const form = page.getByRole("form", { name: "Agent" })
  await form.getByLabel("Trigger type").selectOption("manual")
  await form.getByLabel("Prompt", { exact: true }).fill("Greet.")
  await form.getByLabel("Name").fill("greeter")
  await form.getByLabel(/^Enabled/).press("Space")
  const held = await holdRequests(page, "POST", "**/agents")
  await page.getByRole("button", { name: "Create agent", disabled: false }).press("Enter")
  await held.asked
  await page.getByRole("button", { name: "Create agent", disabled: true }).waitFor()
  await goWhenAsked(page, () => page.getByRole("link", { name: "Runs", exact: true }).first().press("Enter"))
  await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor()
  return { page, ...held }
}

it("whoever left a form that was being sent is told that it was done, and is taken nowhere", async () => {
  const { page, tell } = await leftWhileMade()
  tell()
  await told(page, "done")
  expect(new URL(page.url()).pathname).toBe("/runs")
  await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor()
})

it("whoever left a form whose answer was lost is told that it is not known", async () => {
  const { page, lose } = await leftWhileMade()
  lose()
  await told(page, "unknown")
  expect(new URL(page.url()).pathname).toBe("/runs")
})

it("whoever went on while an undo was being planned is told where the plan is, and is taken nowhere", async () => {
  const story = await real.newStory()
  const person = await run(make(story, "Person", { age: 36 }))
  const agent = await run(suggesting(story))
  await run(suggestingOnce(story, agent, updating(person, { age: 37 })))
  const { page } = await real.visit(story)
  await listed(page, 1)
  const { asked, tell } = await holdRequests(page, "POST", "**/undo")
  const planning = page.waitForRequest("**/undo")
  await page.getByRole("button", { name: /^Approve/ }).click()
  await page.getByRole("button", { name: "Undo" }).click()
  await asked
  // Sent again by whatever lies between, it plans nothing twice.
  expect((await planning).headers()["idempotency-key"]).toMatch(/^[0-9a-f]{32}$/)
  await page.getByRole("link", { name: "Runs", exact: true }).first().press("Enter")
  await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor()
  tell()
  const message = toasts(page, "done").filter({ has: page.getByRole("button", { name: "Open" }) })
  await message.waitFor()
  expect(new URL(page.url()).pathname).toBe("/runs")
  const [plan] = await run(pendingOf(story))
  await message.getByRole("button", { name: "Open" }).click()
  await page.waitForURL(`**/tasks/${plan.id}**`)
  await inTime(() => new URL(page.url()).searchParams.get("only")).toBe(person.id)
})
