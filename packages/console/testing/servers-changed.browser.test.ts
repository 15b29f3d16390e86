/**
 * Two admins who change one foreign server, against the whole program: neither undoes the other without being told.
 */
import { Effect, Exit, Scope } from "effect"
import type { Page } from "playwright-core"
import { expect, it, onTestFinished } from "vitest"
import { httpServer, newDiary } from "../../server/testing/mcp-words.ts"
import { inTime } from "./inbox-words.ts"
import { axeFaultsInBoth } from "./page-checks.ts"
import { failure, fieldAt } from "./page-parts.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const dialog = (page: Page) => page.getByRole("dialog")
/** What says that somebody else has changed what is being changed here. */
const moved = (page: Page) => dialog(page).getByTestId("moved-notice")
const rowOf = (page: Page, name: string) =>
  page.getByRole("main").getByRole("listitem").filter({ hasText: name }).first()

/** What the page knows of the servers stays as it is until it is let go: as between two looks at the list. Answered when the page waits for the next look. */
const holdList = async (page: Page): Promise<() => void> => {
  const asked = Promise.withResolvers<void>()
  const isAsked = Promise.withResolvers<void>()
  await page.route(
    (url) => url.pathname.endsWith("/mcp-servers"),
    async (route) => {
      if (route.request().method() === "GET") {
        isAsked.resolve()
        await asked.promise
      }
      await route.fallback()
    }
  )
  await isAsked.promise
  return asked.resolve
}

it("what another admin forbade and marked stays, and so does an argument that no line shows", async () => {
  const story = await real.newStory()
  const transport = {
    type: "stdio",
    command: "/nowhere/at-all",
    args: ["-c", "one\ntwo"],
    env: { PAD: " a ", PLAIN: "TROPISM_SECRET_A" }
  }
  const server = await run(
    story.post("/mcp-servers", { name: "shop", transport, allowedTools: ["get", "charge"] })
  )
  const { page } = await real.visit(story, "/settings?tab=servers")
  await rowOf(page, "shop").getByRole("button", { name: "Change", disabled: false }).press("Enter")
  await dialog(page).getByLabel("Name").fill("market")
  const letGo = await holdList(page)
  await run(story.patch(`/mcp-servers/${server.id}`, { allowedTools: ["get"], untrusted: true }))
  await dialog(page).getByRole("button", { name: "Save", disabled: false }).press("Enter")
  letGo()
  await dialog(page).waitFor({ state: "detached" })
  await rowOf(page, "market").waitFor()
  expect(await run(story.get(`/mcp-servers/${server.id}`))).toMatchObject({
    name: "market",
    transport,
    allowedTools: ["get"],
    untrusted: true
  })
})

it("what another admin made of the same field is told before it is saved over", async () => {
  const story = await real.newStory()
  const transport = { type: "stdio", command: "/nowhere/at-all" }
  const server = await run(story.post("/mcp-servers", { name: "shop", transport, allowedTools: ["get"] }))
  const { page } = await real.visit(story, "/settings?tab=servers")
  await rowOf(page, "shop").getByRole("button", { name: "Change", disabled: false }).press("Enter")
  await fieldAt(dialog(page), "/allowedTools").fill("get charge")
  const letGo = await holdList(page)
  await run(story.patch(`/mcp-servers/${server.id}`, { allowedTools: ["look"], allowedEvents: ["order.*"] }))
  // The page does not know yet, and the server answers how it is.
  await dialog(page).getByRole("button", { name: "Save", disabled: false }).press("Enter")
  await failure(dialog(page), "409").waitFor()
  letGo()
  await inTime(() => moved(page).getByRole("listitem").allInnerTexts()).toEqual([
    expect.stringMatching(/\blook$/)
  ])
  await dialog(page).getByRole("button", { name: "Save", disabled: true }).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  expect(await fieldAt(dialog(page), "/allowedTools").inputValue()).toBe("get charge")
  // What nobody touched here says what it is by now.
  expect(await fieldAt(dialog(page), "/allowedEvents").inputValue()).toBe("order.*")
  await moved(page).getByRole("button", { disabled: false }).press("Enter")
  await dialog(page).getByRole("button", { name: "Save", disabled: false }).press("Enter")
  await dialog(page).waitFor({ state: "detached" })
  expect(await run(story.get(`/mcp-servers/${server.id}`))).toMatchObject({
    allowedTools: ["get", "charge"],
    allowedEvents: ["order.*"]
  })
})

/** Does something just before the page's first change of a server is asked for, as who is quicker by a moment. */
const justBeforeItsChange = async (page: Page, act: () => Promise<unknown>): Promise<void> => {
  let isFirst = true
  await page.route(
    (url) => /\/mcp-servers\/[^/]+$/.test(url.pathname),
    async (route) => {
      if (route.request().method() === "PATCH" && isFirst) {
        isFirst = false
        await act()
      }
      await route.fallback()
    }
  )
}

it("what another admin saves in the same moment is told, too, where it is the same, and else stays beside it", async () => {
  const story = await real.newStory()
  const transport = { type: "stdio", command: "/nowhere/at-all" }
  const server = await run(
    story.post("/mcp-servers", { name: "shop", transport, allowedTools: ["get"], enabled: false })
  )
  const kept = () => run(story.get(`/mcp-servers/${server.id}`))
  const { page } = await real.visit(story, "/settings?tab=servers")
  await rowOf(page, "shop").getByRole("button", { name: "Change", disabled: false }).press("Enter")
  await fieldAt(dialog(page), "/allowedTools").fill("get charge")
  await justBeforeItsChange(page, () =>
    run(story.patch(`/mcp-servers/${server.id}`, { allowedTools: ["look"] }))
  )
  await dialog(page).getByRole("button", { name: "Save", disabled: false }).press("Enter")
  // The answer says so, or the list does, whichever the page has first.
  await failure(dialog(page), "409").or(moved(page)).first().waitFor()
  expect(await kept()).toMatchObject({ allowedTools: ["look"] })
  await moved(page).getByRole("button", { disabled: false }).press("Enter")
  await justBeforeItsChange(page, () => run(story.patch(`/mcp-servers/${server.id}`, { untrusted: true })))
  await dialog(page).getByRole("button", { name: "Save", disabled: false }).press("Enter")
  await dialog(page).waitFor({ state: "detached" })
  expect(await kept()).toMatchObject({ allowedTools: ["get", "charge"], untrusted: true })
})

it("a tool is allowed or forbidden in the list as it is by now, whatever the page shows of it", async () => {
  const scope = Effect.runSync(Scope.make())
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const scoped = <A>(effect: Effect.Effect<A, never, Scope.Scope>) => run(Scope.provide(effect, scope))
  const { url } = await scoped(httpServer(await scoped(newDiary)))
  const story = await real.newStory()
  const transport = { type: "http", url }
  const allowed = { allowedTools: ["lookup", "gone"] }
  const server = await run(story.post("/mcp-servers", { name: "shop", transport, ...allowed }))
  const { page } = await real.visit(story, `/settings?tab=servers&server=${server.id}`)
  const tools = page.getByRole("list", { name: "Tools of shop" })
  const kept = async () => (await run(story.get(`/mcp-servers/${server.id}`))).allowedTools
  await tools.getByRole("button", { name: "Forbid lookup", disabled: false }).waitFor()
  const letGo = await holdList(page)
  await run(story.patch(`/mcp-servers/${server.id}`, { allowedTools: ["lookup"] }))
  await tools.getByRole("button", { name: "Allow charge", disabled: false }).press("Enter")
  await inTime(kept).toEqual(["lookup", "charge"])
  letGo()
  await tools.getByRole("button", { name: "Forbid charge", disabled: false }).waitFor()
  const letGoAgain = await holdList(page)
  await run(story.patch(`/mcp-servers/${server.id}`, { allowedTools: ["charge", "lookup", "new"] }))
  await tools.getByRole("button", { name: "Forbid lookup", disabled: false }).press("Enter")
  await inTime(kept).toEqual(["charge", "new"])
  letGoAgain()
  await justBeforeItsChange(page, () =>
    run(story.patch(`/mcp-servers/${server.id}`, { allowedTools: ["charge", "newer"] }))
  )
  await tools.getByRole("button", { name: "Allow lookup", disabled: false }).press("Enter")
  await inTime(kept).toEqual(["charge", "newer", "lookup"])
})
