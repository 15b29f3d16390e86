/**
 * The console in a real browser against the whole program: every stage, real PostgreSQL, real HTTP.
 *
 * `const real = realConsole()` at the top of a file starts a browser for it, on a server that the files of a worker
 * share; each test opens pages of a project of its own. Nothing is
 * faked but the language model, which is the scripted one and says so. A page
 * that logs a fault fails its test.
 */
import { Effect, Scope } from "effect"
import type { Browser, BrowserContext, BrowserContextOptions, Cookie, Page, Request } from "playwright-core"
import { afterAll, beforeAll, expect, onTestFinished } from "vitest"
import { newProject, type Story } from "../../server/testing/platform.ts"
import { type Running, startRunning, stopAgents } from "../../server/testing/shared-server.ts"
import { builtConsole } from "./built-console.ts"
import { launchChromium, plainContext, slowDown } from "./chromium.ts"

export interface RealVisit {
  readonly page: Page
  readonly story: Story
  /** What the page logged as an error, or threw; it must stay empty. */
  readonly faults: ReadonlyArray<string>
  /** Goes to another address of the same project. */
  readonly goTo: (path: string) => Promise<void>
}

export interface RealVisitOptions extends BrowserContextOptions {
  /**
   * Who looks: a member with this role, in a session of their own. Without it, the admin of the server in the session
   * that all files share: signing out would end it for the files after.
   */
  readonly role?: "viewer" | "editor" | "reviewer" | "admin"
}

export interface RealConsole {
  /** A project of its own, with what speaks to its API; `run` runs its effects. */
  readonly newStory: () => Promise<Story>
  /** Opens an address of the project in a signed-in browser. The page is closed after the test. */
  readonly visit: (story: Story, path?: string, options?: RealVisitOptions) => Promise<RealVisit>
}

interface Started {
  readonly browser: Browser
  readonly newStory: () => Promise<Story>
  readonly adminCookies: string
  readonly close: () => Promise<void>
}

type StorageState = Exclude<NonNullable<BrowserContextOptions["storageState"]>, string>

/** Runs what stories are made of: `await run(story.post("/objects", …))`. */
export const run = <A>(effect: Effect.Effect<A>): Promise<A> => Effect.runPromise(effect)

/** The worker's server with a console, and a browser for the tests of a file, from its first test to its last. */
export const realConsole = (): RealConsole => {
  let started: Started | undefined
  beforeAll(async () => {
    started = await start()
  })
  afterAll(() => started?.close())
  const running = (): Started => {
    if (started === undefined) throw new Error("The console is opened in a test, not beside it")
    return started
  }
  return {
    newStory: () => running().newStory(),
    visit: (story, path = "/", options = {}) => visit(running(), story, path, options)
  }
}

interface Served {
  readonly server: Running
  /** What a browser keeps of the one sign-in by the server's login link. */
  readonly adminCookies: string
}

/** The server of this worker: the browser files share it, each test in a project of its own. */
let served: Promise<Served> | undefined

const serve = async (browser: Browser): Promise<Served> => {
  const folder = await builtConsole()
  const server = await run(Effect.provideService(startRunning(folder), Scope.Scope, Scope.makeUnsafe()))
  return { server, adminCookies: JSON.stringify(await signIn(browser, server.doors.loginLink)) }
}

const start = async (): Promise<Started> => {
  const browser = await launchChromium()
  served ??= serve(browser)
  const { adminCookies, server } = await served
  return {
    browser,
    adminCookies,
    newStory: () => run(newProject(server.doors, server.access)),
    close: async () => {
      await browser.close()
      await run(stopAgents(server))
      const cookie = JSON.parse(adminCookies).cookies.map(({ name, value }: Cookie) => `${name}=${value}`)
      const { status } = await fetch(new URL("/api/me", server.doors.url), {
        headers: { cookie: cookie.join("; ") }
      })
      expect(status, "A test of this file ended the session that all files share").toBe(200)
    }
  }
}

/** Follows a login link as a person does, and answers what the browser then keeps. */
const signIn = async (browser: Browser, link: string): Promise<StorageState> => {
  const context = await browser.newContext(plainContext)
  const page = await context.newPage()
  await page.goto(link)
  await page.getByRole("banner").waitFor()
  const state = await context.storageState()
  await context.close()
  return state
}

const visit = async (
  started: Started,
  story: Story,
  path: string,
  { role, ...options }: RealVisitOptions
): Promise<RealVisit> => {
  const storageState: StorageState =
    role === undefined ? JSON.parse(started.adminCookies) : await memberState(started.browser, story, role)
  const context = await started.browser.newContext({ ...plainContext, ...options, storageState })
  const page = await context.newPage()
  await slowDown(page)
  page.setDefaultTimeout(30_000)
  const faults = faultsOf(page)
  onTestFinished(async () => {
    await close(context)
    expect(faults).toEqual([])
  })
  printWhenFailed(page)
  const goTo = async (path: string) => {
    const url = new URL(path, story.url)
    url.searchParams.set("project", story.projectId)
    await page.goto(url.href)
  }
  await goTo(path)
  return { page, story, faults, goTo }
}

const close = (context: BrowserContext): Promise<void> => context.close()

const memberState = async (browser: Browser, story: Story, role: string): Promise<StorageState> => {
  const userId = `a-${role}`
  await run(story.ask("POST", "/members", { userId, role }))
  const { url } = await run(story.post(`/members/${encodeURIComponent(userId)}/login-link`))
  return signIn(browser, url)
}

/** Prints what the page shows, and its requests without a good answer, when the test fails. */
export const printWhenFailed = (page: Page): void => {
  const unanswered = requestsOf(page)
  onTestFinished(async ({ task }) => {
    if (task.result?.state !== "fail") return
    const shown = await page.locator("body").innerText({ timeout: 1_000 }).catch(String)
    console.error(`${page.url()} shows: ${shown.slice(0, 1_000)}\n${unanswered().join("\n")}`)
  })
}

/** The requests of a page that have no answer, failed or were refused: what a failing test prints. */
const requestsOf = (page: Page): (() => ReadonlyArray<string>) => {
  const open = new Map<Request, string>()
  const entry = (request: Request) => `${request.method()} ${request.url()}`
  page.on("request", (request) => open.set(request, `no answer: ${entry(request)}`))
  page.on("requestfailed", (request) =>
    open.set(request, `${request.failure()?.errorText ?? "failed"}: ${entry(request)}`)
  )
  page.on("response", (response) => {
    if (response.status() < 400) open.delete(response.request())
    else open.set(response.request(), `${response.status()}: ${entry(response.request())}`)
  })
  return () => [...open.values()].slice(-20)
}

/** The browser logs each refused request by itself; the tests look at what the page makes of it. */
const faultsOf = (page: Page): Array<string> => {
  const faults: Array<string> = []
  page.on("pageerror", (error) => faults.push(error.message))
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
      faults.push(message.text())
  })
  return faults
}
