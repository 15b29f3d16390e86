/**
 * Builds the console and opens it in a real browser against the fixture server.
 *
 * The build goes to a temporary folder, so that a server which serves `dist`
 * is not disturbed.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core"
import { build } from "vite"
import { launchChromium, plainContext } from "./chromium.ts"
import { type FixtureServer, startFixtureServer } from "./fixture-server.ts"
import { emptyWorld, type World } from "./fixture-world.ts"

export interface Visit {
  readonly page: Page
  readonly server: FixtureServer
  /** What the page logged as an error, or threw. */
  readonly faults: Array<string>
  readonly close: () => Promise<void>
}

export interface VisitOptions extends BrowserContextOptions {
  readonly path?: string
  /** Changes the server before the page is opened. */
  readonly prepare?: (server: FixtureServer) => void
  /** Stops the page's timers, so that only what the server sends can change it. */
  readonly hasStoppedClock?: boolean
}

export interface ConsoleBrowser {
  /** Where the built console lies. */
  readonly folder: string
  readonly visit: (world: World, options?: VisitOptions) => Promise<Visit>
  readonly close: () => Promise<void>
}

export const openConsoleBrowser = async (): Promise<ConsoleBrowser> => {
  const browser = await launchChromium()
  const folder = mkdtempSync(join(tmpdir(), "tropism-console-"))
  const root = join(import.meta.dirname, "..")
  await build({ configFile: join(root, "vite.config.ts"), logLevel: "error", build: { outDir: folder } })
  const server = await startFixtureServer(emptyWorld(), folder)
  const plain = await browser.newContext(plainContext)
  return {
    folder,
    visit: (world, options = {}) => visit(browser, plain, server, world, options),
    close: async () => {
      await browser.close()
      await server.close()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

/** Visits that ask for nothing of their own share a context, and with it what the browser keeps of the console. */
const visit = async (
  browser: Browser,
  plain: BrowserContext,
  server: FixtureServer,
  world: World,
  options: VisitOptions
): Promise<Visit> => {
  const { path = "/", prepare, hasStoppedClock = false, ...contextOptions } = options
  server.reset(world)
  prepare?.(server)
  const isPlain = !hasStoppedClock && Object.keys(contextOptions).length === 0
  const context = isPlain ? plain : await browser.newContext({ ...plainContext, ...contextOptions })
  const page = await context.newPage()
  page.setDefaultTimeout(30_000)
  const faults: Array<string> = []
  page.on("pageerror", (error) => faults.push(error.message))
  page.on("console", (message) => {
    // The browser logs each refused request; the tests look at what the page makes of it.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
      faults.push(message.text())
  })
  if (hasStoppedClock) {
    await page.clock.install()
    await page.clock.pauseAt(new Date(Date.now() + 60_000))
  }
  await page.goto(`${server.url}${path}`)
  return { page, server, faults, close: () => (isPlain ? page.close() : context.close()) }
}
