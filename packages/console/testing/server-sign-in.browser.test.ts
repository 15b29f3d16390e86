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

it("is told how it is signed in to, and only that is sent", async () => {
  const story = await real.newStory()
  const shop = await run(
    story.post("/mcp-servers", {
      name: "shop",
      transport: { type: "http", url: "https://shop.example/mcp" },
      enabled: false
    })
  )
  const { page } = await real.visit(story, "/settings?tab=servers")
  await rowOf(page, "shop").getByRole("button", { name: "Change" }).press("Enter")
  const form = page.getByRole("dialog")
  expect(await form.getByLabel("Client id").count()).toBe(0)
  await form.getByLabel("Signing in").selectOption("member")
  await form.getByLabel("Client id").fill("crm")
  await form.getByLabel("Scopes").fill("a\nb")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await form.getByRole("button", { name: "Save" }).press("Enter")
  await form.waitFor({ state: "detached" })
  const changed = await run(story.get(`/mcp-servers/${shop.id}`))
  expect(changed.authorization).toEqual({ type: "oauth", per: "member", clientId: "crm", scopes: ["a", "b"] })
})
