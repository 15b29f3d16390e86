/**
 * The fields and buttons of a form as browser tests find them, whatever they are called on the page.
 */
import type { Locator, Page } from "playwright-core"

const controls = ":is(input, select, textarea)"

/** The field whose value is sent at a place: `/name`. */
export const fieldAt = (within: Page | Locator, pointer: string): Locator =>
  within.locator(`[data-field="${pointer}"] ${controls}`)

/** A field that is not sent as it stands, by its name in the form. */
export const fieldNamed = (within: Page | Locator, name: string): Locator =>
  within.locator(`${controls}[name="${name}"]`)

/** What is wrong at a place, said at its field or at the group of fields there; nothing while it is right. */
export const faultAt = (within: Page | Locator, pointer: string): Locator =>
  within
    .locator(`p[role=status][data-field="${pointer}"], [data-field="${pointer}"] p[role=status]`)
    .filter({ hasText: /\S/ })

/** What a field is called, as somebody reads it. */
export const labelAt = (within: Page | Locator, pointer: string): Promise<string> =>
  within.locator(`[data-field="${pointer}"] label`).innerText()

/** The button that sends a form, once it may be pressed. */
export const sending = (within: Page | Locator): Locator =>
  within.locator("[type=submit]:not([aria-disabled=true])")

/** A button by its test id, once it may be pressed. */
export const buttonOf = (within: Page | Locator, id: string): Locator =>
  within.locator(`[data-testid="${id}"]:not([aria-disabled=true])`)
