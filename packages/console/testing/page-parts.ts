/**
 * The parts of pages that browser tests find by what they are for, whatever is written on them.
 */
import type { Locator, Page } from "playwright-core"

/** The field whose value is sent at a place: `/name`. */
export const fieldAt = (within: Page | Locator, pointer: string): Locator =>
  within.locator(`[data-field="${pointer}"] :is(input, select, textarea)`)

/** What is wrong with a field, once its value was refused. */
export const faultAt = (within: Page | Locator, pointer: string): Locator =>
  within.locator(`[data-field="${pointer}"]:has([aria-invalid=true]) [role=status] > *`)

/** The button that sends a form, once it may be pressed. */
export const sending = (within: Page | Locator): Locator =>
  within.locator("[type=submit]:not([aria-disabled=true])")

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
