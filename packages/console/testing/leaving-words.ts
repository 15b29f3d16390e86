/**
 * The words in which browser tests turn to go from what is not saved yet, and stay.
 */
import type { Page } from "playwright-core"

const question = (page: Page) => page.getByRole("dialog", { name: "Leave without saving?" })

/** Turns to go by a way, is asked, and stays. */
export const stayWhenAsked = async (page: Page, leave: () => Promise<unknown>): Promise<void> => {
  await leave()
  await question(page).getByRole("button", { name: "Stay", disabled: false }).press("Enter")
  await question(page).waitFor({ state: "detached" })
}

/** Turns to go by a way, is asked, and goes. */
export const goWhenAsked = async (page: Page, leave: () => Promise<unknown>): Promise<void> => {
  await leave()
  await question(page).getByRole("button", { name: "Leave", disabled: false }).press("Enter")
  await question(page).waitFor({ state: "detached" })
}

/** Whether the browser would ask before it reloads the page or closes it. */
export const asksBeforeReload = (page: Page): Promise<boolean> =>
  page.evaluate(() => !window.dispatchEvent(new Event("beforeunload", { cancelable: true })))
