/**
 * Every page of the console, by keyboard alone and in both colour schemes, against the whole program.
 */
import type { Page } from "playwright-core"
import { describe, expect, it } from "vitest"
import { pages } from "../src/frame/pages.ts"
import { axeFaultsInBoth } from "./page-checks.ts"
import { realConsole } from "./real-visit.ts"

const real = realConsole()

const isOpen = (page: Page, title: string) =>
  page.getByRole("heading", { level: 1, name: title }).waitFor({ state: "attached" })

describe("the console", () => {
  it("leads to every page by g and a letter, and none has a serious fault for those who do not see or use a mouse", async () => {
    const { page } = await real.visit(await real.newStory())
    await isOpen(page, "Inbox")
    for (const { title, letter, to } of [...pages.slice(1), ...pages.slice(0, 1)]) {
      await page.keyboard.press("g")
      await page.keyboard.press(letter)
      await isOpen(page, title)
      expect(new URL(page.url()).pathname).toBe(to)
      const current = page.getByRole("navigation", { name: "Pages" }).locator("[aria-current=page]")
      expect(await current.innerText()).toBe(title)
      expect({ to, faults: await axeFaultsInBoth(page) }).toEqual({ to, faults: [] })
    }
  }, 300_000)

  it("serves the page for every address of a screen, and says where there is none", async () => {
    const { page, goTo } = await real.visit(await real.newStory())
    for (const { to, title } of pages) {
      await goTo(to)
      await isOpen(page, title)
    }
    await goTo("/health-of-something")
    await page.locator("[data-fault=noSuchPage] h1").waitFor()
  }, 300_000)

  it("puts its pages behind a button on a phone, and fits there", async () => {
    const { page } = await real.visit(await real.newStory(), "/", {
      viewport: { width: 375, height: 700 },
      hasTouch: true,
      isMobile: true
    })
    for (const { title } of pages.toReversed()) {
      await page.getByRole("button", { name: "All pages" }).click()
      const sheet = page.getByRole("dialog", { name: "Pages" })
      await sheet.getByRole("link", { name: title }).click()
      await sheet.waitFor({ state: "detached" })
      await isOpen(page, title)
      const width = await page.evaluate(() => document.documentElement.scrollWidth)
      expect({ title, width }).toEqual({ title, width: 375 })
    }
    expect(await axeFaultsInBoth(page)).toEqual([])
  }, 300_000)
})
