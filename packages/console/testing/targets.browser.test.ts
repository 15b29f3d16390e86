/**
 * On a phone nothing that can be pressed is smaller than a finger needs: every page, with all that may be on it.
 */
import { Effect } from "effect"
import { expect, it } from "vitest"
import type { Page } from "playwright-core"
import { pages } from "../src/frame/pages.ts"
import { asked, asking } from "../../server/testing/question-words.ts"
import { watcher } from "../../server/testing/story-words.ts"
import { mixed } from "./inbox-plants.ts"
import { inTime, listed } from "./inbox-words.ts"
import { realConsole, run } from "./real-visit.ts"
import { smallTargets } from "./target-sizes.ts"

const real = realConsole()

const onPhone = { viewport: { width: 375, height: 700 }, hasTouch: true, isMobile: true }

/** A project in which everything has happened once, and the addresses of its screens. */
const fullProject = async () => {
  const story = await real.newStory()
  const { objects, tasks } = await run(mixed(story))
  await run(Effect.asVoid(asked(story, asking("Which of them?", ["One", "Two"]), asking("And why?"))))
  await run(story.post("/tasks", { title: "Look at all of this" }))
  // What was approved can be taken back: a plan, thing by thing.
  await run(story.post(`/tasks/${tasks.tied.id}/approve`))
  await run(story.post(`/runs/${tasks.tied.runId}/undo`))
  await run(
    story.post("/mcp-servers", {
      name: "orders",
      transport: { type: "http", url: "http://127.0.0.1:1/mcp" },
      allowedEvents: ["*"]
    })
  )
  const ruled = await run(
    story.post(
      "/agents",
      watcher({
        name: "ruled",
        executionMode: "hybrid",
        hybridPolicy: { promotion: { minReviews: 20, minRate: 1 } },
        flowType: "sequential",
        steps: [{ name: "look", prompt: "Look.", tools: [], model: { provider: "openai", name: "s" } }],
        retryPolicy: { maxAttempts: 2, backoffMs: 0 },
        reactionConfig: {
          objectTypes: [],
          relationshipTypes: ["KNOWS"],
          mcpEvents: [{ server: "orders", name: "order.placed" }],
          events: ["created"],
          where: { properties: [{ property: "a", op: "exists", value: true }] }
        }
      })
    )
  )
  const [{ id: runId, agentId }] = (await run(story.get("/runs?status=completed"))).items
  const [event] = (await run(story.get("/events?limit=200"))).items
  const { rootEventId } = await run(story.get(`/runs/${runId}`))
  const details = [
    ...["", "history", "relations"].map((tab) => `/objects/${objects.lightning.id}?tab=${tab}`),
    `/tasks/${tasks.plain.id}`,
    ...["", "timeline", "objects", "calls", "log"].map((tab) => `/runs/${runId}?tab=${tab}`),
    ...["", "definition", "versions", "backtests"].map((tab) => `/agents/${agentId}?tab=${tab}`),
    `/agents/${ruled.id}?tab=definition`,
    "/agents/new",
    ...["log", "pending", "dead", "why"].map((tab) => `/reactions/${agentId}?tab=${tab}`),
    ...(rootEventId === undefined ? [] : [`/chains/${rootEventId}`]),
    `/events/${event.id}`,
    "/graph?tab=picture",
    ...settingsTabs.map((tab) => `/settings?tab=${tab}`)
  ]
  return { story, addresses: [...pages.map(({ to }) => to as string), ...details] }
}

const settingsTabs = ["members", "tokens", "sessions", "servers", "models", "project"]

/** Watches until the page has drawn what it reads: nothing is read and nothing says that it reads. */
const isDrawn = async (page: Page) => {
  await page.getByRole("heading", { level: 1 }).first().waitFor({ state: "attached" })
  await inTime(() => page.getByTestId("reading").count()).toBe(0)
}

it("nothing that can be pressed is smaller than 24 by 24 pixels on a phone, on any page", async () => {
  const { story, addresses } = await fullProject()
  const { page, goTo } = await real.visit(story, "/", onPhone)
  await listed(page, 12)
  const small: Record<string, ReadonlyArray<string>> = {}
  for (const address of addresses) {
    await goTo(address)
    await isDrawn(page)
    const found = await smallTargets(page)
    if (found.length > 0) small[address] = [...new Set(found)]
  }
  expect(small).toEqual({})
}, 300_000)

const byName = (page: Page, name: RegExp) => page.getByRole("button", { name })

/** What opens above a page, by its way there; what has a long name by its mark. */
const opened: ReadonlyArray<readonly [address: string, button: RegExp | string, title: RegExp]> = [
  ["/", /^All pages$/, /^Pages$/],
  ["/", /^Go to anything$/, /^Go to anything$/],
  ["/", /^Edit /, /^Edit #/],
  ["/", /^Reject /, /^Reject #?/],
  ["/graph", /^New object$/, /^New object$/],
  ["/settings?tab=members", /^Add member$/, /member/i],
  ["/settings?tab=tokens", /^Create token$/, /token/i],
  ["/settings?tab=servers", "add-server", /server/i]
]

it("neither is anything in a dialog, the palette or a conversation", async () => {
  const { story } = await fullProject()
  const { page, goTo } = await real.visit(story, "/", onPhone)
  const dialog = page.getByRole("dialog")
  for (const [address, button, title] of opened) {
    await goTo(address)
    const opener = typeof button === "string" ? page.getByTestId(button) : byName(page, button)
    await opener.first().tap()
    await page.getByRole("dialog", { name: title }).waitFor()
    expect({ title, small: await smallTargets(page) }).toEqual({ title, small: [] })
    await page.keyboard.press("Escape")
    await dialog.waitFor({ state: "detached" })
  }
  await goTo("/chat")
  await page.getByRole("main").locator("textarea").fill("add buy milk")
  await page.keyboard.press("Enter")
  await page.waitForURL("**/chat/*")
  await page.getByRole("list", { name: "Messages" }).getByText("add_task").waitFor()
  await page.getByRole("button", { name: "Send" }).waitFor()
  expect(await smallTargets(page)).toEqual([])
}, 300_000)

it("what is measured is what a finger meets", async () => {
  const { page } = await real.visit(await real.newStory())
  await page.goto("about:blank")
  const line = (place: number) =>
    `<a href="#" aria-label="line ${place}" style="position: absolute; top: ${place * 20}px; width: 60px; height: 30px">A line</a>`
  await page.setContent(`
    <div style="position: relative; height: 90px">${[0, 1, 2].map(line).join("")}</div>
    <p>In a sentence <a href="#">so small</a>.</p>
    <label style="display: inline-block; padding: 10px"><input type="checkbox" aria-label="labelled"></label>
    <div><input type="checkbox" aria-label="bare" style="width: 16px; height: 16px; margin: 8px"></div>
    <button aria-label="narrow" style="width: 20px; height: 40px; padding: 0"></button>
    <button disabled style="width: 5px; height: 5px; padding: 0"></button>`)
  // Of three lines that lie over one another the one in the middle has what the others leave.
  expect(await smallTargets(page)).toEqual([
    'a "line 1" is 60.0 × 20.0',
    'input "bare" is 16.0 × 16.0',
    'button "narrow" is 20.0 × 40.0'
  ])
})
