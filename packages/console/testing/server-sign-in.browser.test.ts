/**
 * An MCP server that wants OAuth, signed in to and out of in a real browser, with a real authorization server.
 */
import { Effect, Exit, Scope } from "effect"
import type { Page } from "playwright-core"
import { expect, it, onTestFinished } from "vitest"
import { newGuardedShop } from "../../server/testing/oauth-words.ts"
import { axeFaultsInBoth } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const rowOf = (page: Page, name: string) =>
  page.getByRole("main").getByRole("listitem").filter({ hasText: name }).first()

it("leads to the authorization server and back, shows who is signed in, and signs out", async () => {
  const scope = Effect.runSync(Scope.make())
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const story = await real.newStory()
  const shop = newGuardedShop(story, { isSignedIn: false })
  const { guarded } = await run(Scope.provide(shop, scope))
  const { page, goTo } = await real.visit(story, "/settings?tab=servers")
  await rowOf(page, "shop").locator("[data-sign-in=signedOut]").waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await rowOf(page, "shop").getByRole("button", { name: "Sign in", disabled: false }).press("Enter")
  const done = page.getByRole("heading", { name: "Signed in to shop" })
  const asks = page.getByRole("button", { name: "Sign in to shop" })
  await done.or(asks).first().waitFor()
  if (await asks.isVisible()) await asks.press("Enter")
  await done.waitFor()
  await goTo("/settings?tab=servers")
  await rowOf(page, "shop").locator("[data-sign-in=signedIn]").waitFor()
  expect(guarded.heard.some(({ account, method }) => account === "ada@idp" && method === "tools/list")).toBe(
    true
  )
  expect(await axeFaultsInBoth(page)).toEqual([])
  await rowOf(page, "shop").getByRole("button", { name: "Sign out", disabled: false }).press("Enter")
  await rowOf(page, "shop").locator("[data-sign-in=signedOut]").waitFor()
})
