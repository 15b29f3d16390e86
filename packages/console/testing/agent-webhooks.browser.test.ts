/**
 * The addresses of an agent that other systems wake, and what an agent used: against the whole program, with real deliveries.
 */
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { deliver } from "../../server/testing/delivery-words.ts"
import { endedRuns, saying, watcher } from "../../server/testing/story-words.ts"
import { buttonOf, fieldAt, sending } from "./page-parts.ts"
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
  const dialog = page.getByRole("dialog").filter({ has: page.locator("code") })
  const shown = (text: RegExp) => dialog.locator("code").filter({ hasText: text }).innerText()
  const words = { url: await shown(/^http/), signingSecret: await shown(/^whsec_/) }
  // What nobody is shown again is not lost by a key, nor by a click beside it.
  await page.keyboard.press("Escape")
  await page.keyboard.press("Escape")
  await dialog.locator("[data-kept-open=held]").waitFor()
  await page.mouse.click(5, 5)
  await dialog.getByRole("button", { name: "Close" }).click()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await buttonOf(dialog, "copied").press("Enter")
  await dialog.waitFor({ state: "detached" })
  return words
}

it("makes a webhook whose secret is shown once and works, gives it a new token, and ends it", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", hooked()))
  const delivered = async (hook: Hook, id: string) => (await run(deliver(story, hook, "{}", { id }))).status
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=webhooks`)
  await page.getByTestId("empty").waitFor()
  const make = page.getByRole("button", { name: "Create webhook", disabled: false })
  await make.press("Enter")
  const form = page.getByRole("dialog")
  await fieldAt(form, "/ratePerMinute").fill("0")
  await sending(form).press("Enter")
  await form.getByRole("status").filter({ hasText: /\S/ }).first().waitFor()
  // Without a name nobody would know later who delivers to it.
  expect(await form.getByLabel("Name").getAttribute("aria-invalid")).toBe("true")
  expect((await run(story.get(`/agents/${agent.id}/webhooks`))).items).toEqual([])
  await fieldAt(form, "/ratePerMinute").fill("30")
  await form.getByLabel("Name").fill("the <b>shop</b>")
  await sending(form).press("Enter")
  const first = await opened(page)
  await inTime(() => make.evaluate((button) => button === document.activeElement)).toBe(true)
  expect(await delivered(first, "one")).toBe(202)
  await run(endedRuns(story, agent, 1))
  const row = page.getByRole("list", { name: "Webhooks" }).getByRole("listitem")
  await row.getByText("the <b>shop</b>").waitFor()
  await row.getByRole("button", { name: /<b>shop<\/b>/ }).waitFor()
  expect((await run(story.get(`/agents/${agent.id}/webhooks`))).items).toMatchObject([
    { ratePerMinute: 30, untrusted: true }
  ])
  await row.getByText(/\b30\b/).waitFor()
  // When it was made, and when somebody delivered last.
  await inTime(() => row.locator("time").count()).toBe(2)
  await screenshot(page, "agent-webhooks")
  expect(await axeFaultsInBoth(page)).toEqual([])

  await row.getByRole("button", { name: "New token", disabled: false }).press("Enter")
  const rotation = page.getByRole("dialog")
  await fieldAt(rotation, "/graceSeconds").selectOption("0")
  await sending(rotation).press("Enter")
  const second = await opened(page)
  expect(second.url).toBe(first.url)
  expect(await delivered(first, "two")).toBe(401)
  expect(await delivered(second, "three")).toBe(202)

  await row.getByRole("button", { name: "Revoke", disabled: false }).press("Enter")
  const end = page.getByRole("dialog", { name: /the <b>shop<\/b>/ })
  await buttonOf(end, "confirm").press("Enter")
  await page.getByTestId("empty").waitFor()
  expect(await delivered(second, "four")).toBe(401)
  await page.locator("main a[href*='trigger=webhook']").press("Enter")
  const runs = page.getByRole("list", { name: "Runs" }).getByRole("listitem")
  await inTime(() => runs.count()).toBe(2)
})

it("lets who is no admin see the addresses and change none", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", hooked()))
  await run(story.post(`/agents/${agent.id}/webhooks`, { name: "shop" }))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=webhooks`, { role: "editor" })
  const list = page.getByRole("list", { name: "Webhooks" })
  await list.getByText("shop").waitFor()
  await page.getByTestId("admins-only").waitFor()
  // All that is left is to copy the address.
  expect(await list.getByRole("button").count()).toBe(1)
  expect(await page.getByRole("button", { name: "Create webhook" }).count()).toBe(0)
})

it("tells what an agent used day by day, and what of its day is left", async () => {
  const story = await real.newStory()
  const budget = { perDay: { maxTokens: 1_000_000, maxCostUsd: 2 } }
  const agent = await run(
    story.post("/agents", hooked({ triggerType: "manual", budget, prompt: "Say something short." }))
  )
  const { page } = await real.visit(story, `/agents/${agent.id}`)
  const used = page.getByTestId("usage")
  // Of its day's tokens and dollars all are left, and no day of the last seven has a row.
  await used.getByText(/\b1 M\b.*\b1 M\b.*\$2\.00\b.*\$2\.00\b/).waitFor()
  await used.getByText(/\b7\b/).waitFor()
  expect(await used.getByRole("row").count()).toBe(0)
  await run(story.post(`/agents/${agent.id}/trigger`))
  const { items } = await run(story.get(`/agents/${agent.id}/usage`))
  const { inputTokens, outputTokens } = items[0].usage
  const today = used.locator("tbody tr").first()
  await inTime(() => today.innerText()).toMatch(
    new RegExp(`^[^\\t]+\\t1\\t${inputTokens} tokens?\\t0%\\t${outputTokens} tokens?\\t\\$0$`)
  )
  const model = used.getByTestId("model-usage").locator("tbody tr")
  await inTime(() => model.innerText()).toMatch(
    new RegExp(`^scripted:[^\\t]+\\t1\\t${inputTokens} tokens?\\t0%\\t${outputTokens} tokens?\\t\\$0$`)
  )
  await used.getByText(/\b999\.\d k\b.*\b1 M\b/).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
})
