/**
 * The machine's Chromium; without one every browser test fails and says so.
 *
 * A browser test that quietly does not run proves nothing.
 */
import { existsSync } from "node:fs"
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core"

/** The one without windows first, which is the same engine and takes half the time. */
const places = [
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome"
]

const flags = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync"
]

/** Without motion: a browser without a graphics processor spends most of its time on it. */
export const plainContext: BrowserContextOptions = {
  viewport: { width: 1280, height: 900 },
  reducedMotion: "reduce"
}

export const launchChromium = (): Promise<Browser> => {
  const given = process.env["CHROMIUM"]
  const executablePath = given ?? places.find((place) => existsSync(place))
  if (executablePath === undefined || !existsSync(executablePath)) {
    throw new Error(
      `The console's browser tests need Chromium, and there is none at ${given ?? places.join(", ")}. ` +
        "Install it (Debian: apt-get install chromium-headless-shell), or name it in CHROMIUM."
    )
  }
  return chromium.launch({ executablePath, args: flags })
}

/** Makes the page's processor slower by the factor in CHROMIUM_SLOWDOWN: tests that race the page fail then. */
export const slowDown = async (page: Page): Promise<void> => {
  const rate = Number(process.env["CHROMIUM_SLOWDOWN"] ?? 1)
  if (rate === 1) return
  const session = await page.context().newCDPSession(page)
  await session.send("Emulation.setCPUThrottlingRate", { rate })
}
