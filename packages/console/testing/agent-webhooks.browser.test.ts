/**
 * The addresses of an agent that other systems wake, and what an agent used: against the whole program, with real deliveries.
 */
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { deliver } from "../../server/testing/delivery-words.ts"
import { endedRuns, saying, watcher } from "../../server/testing/story-words.ts"
import { inTime } from "./inbox-words.ts"
import { axeFaultsInBoth, screenshot } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const hooked = (overrides: Record<string, unknown> = {}) =>
  watcher({
    name: "hooked",
    triggerType: "webhook",
    reactionConfig: null,
    model: saying("I heard it."),
    ...overrides
  })

interface Hook {
  readonly url: string
  readonly signingSecret: string
}

/** What the dialog that opens a webhook shows. */
const opened = async (page: Page): Promise<Hook> => {
  const dialog = page.getByRole("dialog", { name: "The webhook is open" })
  const said = async (label: string) =>
    dialog.locator("dt", { hasText: label }).locator("xpath=following-sibling::dd//code").innerText()
  const words = { url: await said("the address"), signingSecret: await said("the signing secret") }
  // What nobody is shown again is not lost by a key, nor by a click beside it.
  await page.keyboard.press("Escape")
  await page.keyboard.press("Escape")
  await dialog.getByText(/^They are gone when this closes/).waitFor()
  await page.mouse.click(5, 5)
  await dialog.getByRole("button", { name: "Close" }).click()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await dialog.getByRole("button", { name: "I have copied them", disabled: false }).press("Enter")
  await dialog.waitFor({ state: "detached" })
  return words
}

it("makes a webhook whose secret is shown once and works, gives it a new token, and ends it", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", hooked()))
  const delivered = async (hook: Hook, id: string) => (await run(deliver(story, hook, "{}", { id }))).status
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=webhooks`)
  await page.getByText("No webhook yet").waitFor()
  await page.getByRole("button", { name: "Make a webhook", disabled: false }).press("Enter")
  const form = page.getByRole("dialog", { name: "Make a webhook" })
  await form.getByLabel("Deliveries taken within a minute").fill("0")
  await form.getByRole("button", { name: "Make", exact: true, disabled: false }).press("Enter")
  await form.getByRole("status").filter({ hasText: /\S/ }).first().waitFor()
  // Without a name nobody would know later who delivers to it.
  expect(await form.getByLabel("Name").getAttribute("aria-invalid")).toBe("true")
  expect((await run(story.get(`/agents/${agent.id}/webhooks`))).items).toEqual([])
  await form.getByLabel("Deliveries taken within a minute").fill("30")
  await form.getByLabel("Name").fill("the <b>shop</b>")
  await form.getByRole("button", { name: "Make", exact: true, disabled: false }).press("Enter")
  const first = await opened(page)
  await inTime(() => page.evaluate(() => document.activeElement?.textContent)).toBe("Make a webhook")
  expect(await delivered(first, "one")).toBe(202)
  await run(endedRuns(story, agent, 1))
  const row = page.getByRole("list", { name: "Webhooks" }).getByRole("listitem")
  await row.getByText("the <b>shop</b>").waitFor()
  await row.getByRole("button", { name: "Copy the address of the <b>shop</b>" }).waitFor()
  await row.getByText(/At most 30 a minute, untrusted.*last delivery/).waitFor()
  await screenshot(page, "agent-webhooks")
  expect(await axeFaultsInBoth(page)).toEqual([])

  await row.getByRole("button", { name: "New token", disabled: false }).press("Enter")
  const rotation = page.getByRole("dialog", { name: "Give it a new token" })
  await rotation.getByLabel("The token before stays good for").selectOption({ label: "no time: it leaked" })
  await rotation.getByRole("button", { name: "Make the token", disabled: false }).press("Enter")
  const second = await opened(page)
  expect(second.url).toBe(first.url)
  expect(await delivered(first, "two")).toBe(401)
  expect(await delivered(second, "three")).toBe(202)

  await row.getByRole("button", { name: "End it", disabled: false }).press("Enter")
  const end = page.getByRole("dialog", { name: /^End the <b>shop<\/b>\?/ })
  await end.getByRole("button", { name: "End it", disabled: false }).press("Enter")
  await page.getByText("No webhook yet").waitFor()
  expect(await delivered(second, "four")).toBe(401)
  await page.getByRole("link", { name: "What deliveries began" }).press("Enter")
  const runs = page.getByRole("list", { name: "Runs" }).getByRole("listitem")
  await inTime(() => runs.count()).toBe(2)
})

it("lets who is no admin see the addresses and change none", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", hooked()))
  await run(story.post(`/agents/${agent.id}/webhooks`, { name: "shop" }))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=webhooks`, { role: "editor" })
  await page.getByRole("list", { name: "Webhooks" }).getByText("shop").waitFor()
  await page.getByText("Admins make and end webhooks.").waitFor()
  expect(await page.getByRole("button", { name: /Make a webhook|New token|End it/ }).count()).toBe(0)
})

it("tells what an agent used day by day, and what of its day is left", async () => {
  const story = await real.newStory()
  const budget = { perDay: { maxTokens: 1_000_000, maxCostUsd: 2 } }
  const agent = await run(
    story.post("/agents", hooked({ triggerType: "manual", budget, prompt: "Say something short." }))
  )
  const { page } = await real.visit(story, `/agents/${agent.id}`)
  const used = page.getByRole("region", { name: "What it used" })
  await used.getByText("No model has answered it in the last 7 days.").waitFor()
  await used.getByText("Left of today's budget (UTC): 1 M tokens of 1 M tokens, $2.00 of $2.00.").waitFor()
  await run(story.post(`/agents/${agent.id}/trigger`))
  const { items } = await run(story.get(`/agents/${agent.id}/usage`))
  const { inputTokens, outputTokens } = items[0].usage
  const today = used.getByRole("row").filter({ hasText: /^(today|\d{4}-\d\d-\d\d)/ })
  await inTime(() => today.innerText()).toMatch(
    new RegExp(`^(today|[\\d-]+)\\s+1\\s+${inputTokens} tokens?\\s+${outputTokens} tokens?\\s+\\$0$`)
  )
  await used.getByText(/^Left of today's budget \(UTC\): 999\.\d k tokens of 1 M tokens/).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
})
