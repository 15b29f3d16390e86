/**
 * What every screen is held to, and its pictures for the documents.
 */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import type { Page } from "playwright-core"

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

const screenshotFolder = join(import.meta.dirname, "../../../docs/screenshots")

interface AxeResults {
  readonly violations: ReadonlyArray<{
    readonly id: string
    readonly impact?: string | null
    readonly help: string
    readonly nodes: ReadonlyArray<{ readonly html: string; readonly failureSummary?: string }>
  }>
}

/** The serious and critical faults that axe finds on a page as it is now, each with where it is; where a rule is named, all faults of that one alone. */
export const axeFaults = async (page: Page, rule?: string): Promise<ReadonlyArray<string>> => {
  await page.evaluate(axeSource)
  const options = { resultTypes: ["violations"], ...(rule !== undefined && { runOnly: [rule] }) }
  const results: AxeResults = await page.evaluate(
    // The page has it by now; no type of ours knows.
    `axe.run(document, ${JSON.stringify(options)})`
  )
  return results.violations
    .filter(({ impact }) => rule !== undefined || impact === "serious" || impact === "critical")
    .flatMap(({ id, help, nodes }) =>
      nodes.map(({ html, failureSummary = "" }) => `${id}: ${help}: ${html.slice(0, 200)} ${failureSummary}`)
    )
}

/** The same in both colour schemes, in which nothing but contrast differs; the page is left in the light one. */
export const axeFaultsInBoth = async (page: Page): Promise<ReadonlyArray<string>> => {
  await page.emulateMedia({ colorScheme: "dark" })
  const dark = await axeFaults(page, "color-contrast")
  await page.emulateMedia({ colorScheme: "light" })
  const light = await axeFaults(page)
  return [...dark.map((fault) => `dark: ${fault}`), ...light.map((fault) => `light: ${fault}`)]
}

/** Writes `docs/screenshots/NAME-light.png` and `NAME-dark.png` when TROPISM_SCREENSHOTS is set; else nothing. */
export const screenshot = async (page: Page, name: string): Promise<void> => {
  if (process.env["TROPISM_SCREENSHOTS"] === undefined) return
  for (const colorScheme of ["dark", "light"] as const) {
    await page.emulateMedia({ colorScheme })
    await page.screenshot({ path: join(screenshotFolder, `${name}-${colorScheme}.png`) })
  }
}

/** Sends a form twice before the page has drawn anything, as a double press does; for `evaluate`. */
export const submitTwice = (form: HTMLElement | SVGElement): void => {
  if (!(form instanceof HTMLFormElement)) throw new Error("Only a form is sent")
  form.requestSubmit()
  form.requestSubmit()
}

/** Watches for what keeps the page from answering, from now on; answers the longest such time so far, in milliseconds. */
export const watchLongTasks = async (page: Page): Promise<() => Promise<number>> => {
  await page.evaluate(`(() => {
    window.longest = 0
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration)
    }).observe({ type: "longtask" })
  })()`)
  return async () => Math.round(Number(await page.evaluate("window.longest")))
}
