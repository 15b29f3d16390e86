/**
 * What stands around the inbox: addresses, sessions, empty pages, small screens and what is loaded, against the whole program.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { describe, expect, it } from "vitest"
import {
  creating,
  pendingOf,
  reject,
  suggesting,
  suggestingOnce
} from "../../server/testing/suggestion-words.ts"
import { builtConsole } from "./built-console.ts"
import { mixed, suggestedAll } from "./inbox-plants.ts"
import { sending } from "./page-parts.ts"
import { cardOf, currentNumber, inTime, heard, listed, press } from "./inbox-words.ts"
import { axeFaultsInBoth, screenshot } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** No id of anything. */
const nowhere = "0190a000-0000-7000-8000-000000000099"

describe("addresses", () => {
  it("of a suggestion open it focused, until it is decided; then they say what was decided, and of what is not there that it is not", async () => {
    const story = await real.newStory()
    const agent = await run(suggesting(story))
    for (const key of ["one", "two", "three"]) await run(suggestingOnce(story, agent, creating(key)))
    const [, two, three] = await run(pendingOf(story))
    const { page, goTo } = await real.visit(story, `/tasks/${two.id}`)
    await inTime(() => currentNumber(page)).toBe(two.number)
    await heard(page, "a", async () => (await page.getByRole("article").count()) === 2)
    await inTime(() => new URL(page.url()).pathname).toBe("/")

    await run(reject(story, three, { reason: "The licence is fine." }))
    await goTo(`/tasks/${three.id}`)
    const linked = page.locator("section[data-state=rejected]").filter({ hasText: `#${three.number}` })
    await linked.getByText(/\badmin\b/).waitFor()
    await linked.getByText("The licence is fine.").waitFor()
    await goTo(`/tasks/${nowhere}`)
    await page.locator("section[data-state=not-found]").waitFor()
    await goTo("/nowhere")
    await page.locator("[data-fault=noSuchPage]").waitFor()
    // Where no project is chosen among several, too: it says so, and leads on.
    await real.newStory()
    await page.goto(new URL("/nowhere/at-all", page.url()).href)
    await page.locator("[data-fault=noSuchPage]").getByRole("link").click()
    await inTime(() => new URL(page.url()).pathname).toBe("/")
    await page.getByRole("heading", { level: 1 }).waitFor()
    expect(await page.locator("[data-fault]").count()).toBe(0)
  })

  it("carry the project when there are several", async () => {
    const story = await real.newStory()
    const other = await real.newStory()
    const { page } = await real.visit(story)
    await page.getByRole("combobox", { name: "Project" }).selectOption(other.projectId)
    await inTime(() => new URL(page.url()).searchParams.get("project")).toBe(other.projectId)
  })
})

describe("who may see what", () => {
  it("asks who is signed out for a token, goes on where they were, and asks again when the session ends", async () => {
    const story = await real.newStory()
    const agent = await run(suggesting(story))
    await run(suggestingOnce(story, agent, creating("one")))
    const [task] = await run(pendingOf(story))
    const { page } = await real.visit(story, `/tasks/${task.id}`, { role: "reviewer" })
    await listed(page, 1)
    const signIn = page.getByTestId("sign-in")
    await page.context().clearCookies()
    await cardOf(page, task)
      .getByRole("button", { name: /^Approve/ })
      .click()
    await signIn.waitFor()
    const field = signIn.locator("input[type=password]")
    await field.fill("wrong")
    await field.press("Enter")
    await signIn.locator("[data-failure='401']").waitFor()
    await field.fill(story.token)
    await field.press("Enter")
    await listed(page, 1)
    expect(page.url()).not.toContain(story.token)
    await page.getByRole("button", { name: "Sign out" }).click()
    await signIn.waitFor()
  })
})

describe("with nothing to show", () => {
  it("says what to try when nothing has happened yet, and rests when everything is decided", async () => {
    const story = await real.newStory()
    const { page } = await real.visit(story)
    const empty = page.getByTestId("empty-inbox")
    await empty.getByText("npx tropism import package-lock.json").waitFor()
    await page.getByText(/npx tropism run\b/).waitFor()
    const agent = await run(suggesting(story))
    await run(suggestingOnce(story, agent, creating("one")))
    await listed(page, 1)
    await press(page, "j")
    await heard(page, "a", async () => (await empty.count()) > 0)
    await empty.getByText("npx tropism tail").waitFor()
    await screenshot(page, "inbox-rests")
    expect(await axeFaultsInBoth(page)).toEqual([])
  })
})

describe("for every screen", () => {
  it("fits a small phone without scrolling sideways", async () => {
    const story = await real.newStory()
    const { tasks } = await run(mixed(story))
    const { page } = await real.visit(story, "/", {
      viewport: { width: 340, height: 700 },
      hasTouch: true,
      isMobile: true
    })
    await listed(page, 9)
    await cardOf(page, tasks.outdated).scrollIntoViewIfNeeded()
    await cardOf(page, tasks.outdated).getByTestId("seen-by-agent").getByText("5.6.0").waitFor()
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(340)
    await cardOf(page, tasks.plain).getByRole("button", { name: /^Edit/ }).click()
    await sending(page.getByRole("dialog", { name: new RegExp(`#${tasks.plain.number}\\b`) })).waitFor()
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(340)
    await screenshot(page, "inbox-phone")
    expect(await axeFaultsInBoth(page)).toEqual([])
  })

  it("draws more suggestions than a page of the API has, and stays quick to move through", async () => {
    const story = await real.newStory()
    const calls = Array.from({ length: 210 }, (_, n) => creating(`n${n}`, { n }))
    await run(suggestedAll(story, "many", calls))
    const { page } = await real.visit(story)
    await listed(page, 210)
    await press(page, "j", "j", "j")
    const third = await currentNumber(page)
    await heard(page, "a", async () => (await page.getByRole("article").count()) === 209)
    expect(await currentNumber(page)).toBe((third ?? 0) + 1)
  })

  it("loads at most 300 kB at first, compressed", async () => {
    const folder = await builtConsole()
    const index = readFileSync(join(folder, "index.html"), "utf8")
    const files = [...index.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].flatMap(([, file]) => file ?? [])
    const bytes = files.map((file) => gzipSync(readFileSync(join(folder, file))).length)
    // The script and the styles; every page but the inbox is a file of its own.
    expect(bytes.length).toBeGreaterThan(1)
    expect(readdirSync(join(folder, "assets")).length).toBeGreaterThan(files.length + 10)
    expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(300 * 1024)
  })
})
