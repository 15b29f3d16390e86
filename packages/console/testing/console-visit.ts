/**
 * What the browser tests do with an open page: press, look, and watch for what they expect.
 *
 * Nothing here waits for time. A page is watched until it shows what is
 * expected, and the clock of a stopped page goes on only as it is looked at.
 */
import type { Locator } from "playwright-core"
import { expect, onTestFinished } from "vitest"
import { type ConsoleBrowser, openConsoleBrowser, type Visit, type VisitOptions } from "./console-browser.ts"
import { demoWorld } from "./demo-world.ts"
import type { World } from "./fixture-world.ts"

let opened: Promise<ConsoleBrowser> | undefined

/** Built and opened by the first test that asks; without a Chromium every test fails with the sentence that says so. */
export const openedBrowser = (): Promise<ConsoleBrowser> => (opened ??= openConsoleBrowser())

/** Closes it when the tests of a file are over; the next file opens its own. */
export const closeBrowser = async (): Promise<void> => {
  const closing = opened
  opened = undefined
  await closing?.then(
    (browser) => browser.close(),
    () => undefined
  )
}

/** Opens the page; it is closed after the test, which fails if the page logged a fault. */
export const open = async (world: World = demoWorld(), options: VisitOptions = {}): Promise<Visit> => {
  const browser = await openedBrowser()
  const visit = await browser.visit(world, options)
  onTestFinished(async () => {
    await visit.close()
    expect(visit.faults).toEqual([])
  })
  return visit
}

/** The card whose title begins so. */
export const card = ({ page }: Visit, title: string) =>
  page.getByRole("article", { name: new RegExp(`^${title.replaceAll(/[^\w ]/g, "\\$&")}`) })

/** The title of the suggestion that the keys act on. */
export const currentTitle = ({ page }: Visit) =>
  page.locator("article[aria-current=true]").getByRole("heading").first().innerText()

/** Presses keys one by one, each after the page has drawn what the one before did. */
export const press = async ({ page }: Visit, ...keys: ReadonlyArray<string>) => {
  for (const key of keys) {
    await page.keyboard.press(key)
    await page.evaluate(drawn)
  }
}

/** Resolves after the work that is queued in the page; its timers and frames may be stopped. */
const drawn = () =>
  new Promise<void>((resolve) => {
    const { port1, port2 } = new MessageChannel()
    port1.addEventListener("message", () => resolve(), { once: true })
    port1.start()
    port2.postMessage(null)
  })

/** Watches until what is read is as expected. */
export const eventually = <A>(read: () => Promise<A> | A) => expect.poll(read, { timeout: 30_000 })

/** The time of a stopped page goes on a little with every look, so that what is due at once happens. */
const stopped = new WeakSet<Visit>()
const tickMs = 5

/** Opens the page with its clock stopped. */
export const openStopped = async (world: World = demoWorld(), options: VisitOptions = {}): Promise<Visit> => {
  const visit = await open(world, { ...options, hasStoppedClock: true })
  stopped.add(visit)
  return visit
}

/** Watches until so many suggestions are on the page. */
export const listed = async (visit: Visit, count: number) => {
  await shows(visit, visit.page.getByRole("article"), count)
  return visit
}

/** Watches until the page follows the feed. */
export const feedOpens = (visit: Visit) =>
  eventually(async () => {
    await visit.page.clock.runFor(tickMs)
    return visit.server.openFeeds()
  }).toBe(1)

/** Watches until so many of what is looked for are on the page; any number but none, unless it is given. */
export const shows = async (visit: Visit, looked: Locator, count?: number) => {
  const seen = eventually(async () => {
    if (stopped.has(visit)) await visit.page.clock.runFor(tickMs)
    return looked.count()
  })
  await (count === undefined ? seen.toBeGreaterThan(0) : seen.toBe(count))
}

/** Every text on the page whose contrast with its ground is below 4.5 to 1, disabled controls left out. */
export const faintTexts = ({ page }: Visit) =>
  page.evaluate(() => {
    const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true })
    const paint = (layers: ReadonlyArray<string>): ReadonlyArray<number> => {
      if (!context) return [0, 0, 0]
      context.fillStyle = "white"
      context.fillRect(0, 0, 1, 1)
      for (const layer of layers) {
        context.fillStyle = layer
        context.fillRect(0, 0, 1, 1)
      }
      return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3)
    }
    const brightness = (rgb: ReadonlyArray<number>): number => {
      const [red = 0, green = 0, blue = 0] = rgb.map((part) => {
        const share = part / 255
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
      })
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
    const faint: Array<string> = []
    for (const element of document.querySelectorAll("body *")) {
      const own = [...element.childNodes].some(
        (node) => node.nodeType === 3 && node.textContent?.trim() !== ""
      )
      if (!own || element.closest(":disabled, [aria-hidden=true], option, .sr-only")) continue
      const grounds: Array<string> = []
      for (let at: Element | null = element; at; at = at.parentElement)
        grounds.unshift(getComputedStyle(at).backgroundColor)
      const ground = brightness(paint(grounds))
      const ink = brightness(paint([...grounds, getComputedStyle(element).color]))
      const contrast = (Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05)
      if (contrast < 4.5) faint.push(`${element.textContent?.trim().slice(0, 40)}: ${contrast.toFixed(2)}`)
    }
    return [...new Set(faint)]
  })
