/**
 * The words in which browser tests look at the inbox and press its keys.
 *
 * Nothing here waits for time: a page is watched until it shows what is expected.
 */
import type { Locator, Page } from "playwright-core"
import { expect } from "vitest"
import type { Json } from "../../server/testing/platform.ts"

/** The card whose title begins so. */
export const card = (page: Page, title: string) =>
  page.getByRole("article", { name: new RegExp(`^${title.replaceAll(/[^\w ]/g, "\\$&")}`) })

/** The card of a suggestion, whatever else is called like it. */
export const cardOf = (page: Page, task: Json) => page.locator(`#task-${task.id}`)

/** The number of the suggestion that the keys act on. */
export const currentNumber = (page: Page): Promise<number | undefined> =>
  page.evaluate(() => {
    const current = document.querySelector<HTMLElement>("article[aria-current=true][data-number]")
    return current === null ? undefined : Number(current.dataset["number"])
  })

/** Presses keys one by one, each after the page has drawn what the one before did. */
export const press = async (page: Page, ...keys: ReadonlyArray<string>) => {
  for (const key of keys) {
    await page.keyboard.press(key)
    await page.evaluate(drawn)
  }
}

/** Resolves after the work that is queued in the page. */
const drawn = () =>
  new Promise<void>((resolve) => {
    const { port1, port2 } = new MessageChannel()
    port1.addEventListener("message", () => resolve(), { once: true })
    port1.start()
    port2.postMessage(null)
  })

/** Watches until what is read is as expected. */
export const inTime = <A>(read: () => Promise<A> | A) => expect.poll(read, { timeout: 30_000 })

/** The messages of one outcome in which a value stands: a number, a name. */
export const toasts = (
  page: Page,
  outcome: "done" | "refused" | "unknown",
  value: string | RegExp = ""
): Locator => page.locator(`li[data-outcome=${outcome}]`).filter({ hasText: value })

/** Watches until there is such a message. */
export const told = (...message: Parameters<typeof toasts>): Promise<void> =>
  toasts(...message)
    .first()
    .waitFor()

/** The number of a task as people read it, and no longer number that begins with it. */
export const numbered = ({ number }: Json): RegExp => new RegExp(`#${number}(?!\\d)`)

/** The link of a card to the task that it shows. */
export const linkOf = (page: Page, task: Json): Locator =>
  cardOf(page, task).locator(`a[href*="/tasks/${task.id}"]`)

/** Does what the server refuses at an address, and answers the problem. */
export const refusedAt = async (page: Page, address: string, act: () => Promise<unknown>): Promise<Json> => {
  const answered = page.waitForResponse(address)
  await act()
  const response = await answered
  expect(response.status()).toBeGreaterThanOrEqual(400)
  return response.json()
}

/** Watches until so many tasks are on the page. */
export const listed = (page: Page, count: number): Promise<void> =>
  inTime(() => page.getByRole("article").count()).toBe(count)

/** A decision key is deaf for a moment after the list moved by itself: pressed until the page has heard it. */
export const heard = async (page: Page, key: string, wasHeard: () => Promise<boolean>): Promise<void> => {
  await inTime(async () => {
    if (!(await wasHeard())) await press(page, key)
    return wasHeard()
  }).toBe(true)
}
