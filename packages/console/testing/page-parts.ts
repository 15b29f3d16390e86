/**
 * The parts of pages that browser tests find by what they are for, whatever is written on them.
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

/** The messages of what was done, or was not, in which a value stands: a number, a name. */
export const messages = (page: Page, outcome: "done" | "refused", value: string | RegExp = /\S/): Locator =>
  page.locator(`li[data-outcome=${outcome}]`).filter({ hasText: value })

/** The number of a task as people read it, and no longer number that begins with it. */
export const numbered = ({ number }: { readonly number: number }): RegExp => new RegExp(`#${number}(?!\\d)`)

/** What refused something, by its code: `lastAdmin`, `not-found`. */
export const failure = (within: Page | Locator, code: string): Locator =>
  within.locator(`[role=alert][data-failure="${code}"]`)

/** Of what was found that in which all these stand, in whatever order. */
export const withAll = (found: Locator, ...values: ReadonlyArray<string | number>): Locator =>
  values.reduce<Locator>(
    (rest, value) =>
      rest.filter({ hasText: typeof value === "number" ? new RegExp(`(?<!\\d)${value}(?!\\d)`) : value }),
    found
  )
