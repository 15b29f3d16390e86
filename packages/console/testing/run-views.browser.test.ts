/**
 * A run as it goes on and along its time, against the whole program: words as they come, the timeline, questions, forks, undo.
 */
import type { Page, Route } from "playwright-core"
import { expect, it } from "vitest"
import { eventually, scripted } from "../../server/testing/platform.ts"
import { calling, endedRuns, saying, watcher } from "../../server/testing/story-words.ts"
import {
  begin,
  handingOver,
  isWaiting,
  runWhen,
  spawning,
  worker
} from "../../server/testing/sub-agent-words.ts"
import { creating } from "../../server/testing/suggestion-words.ts"
import { acted } from "../../server/testing/undo-words.ts"
import { limits } from "../src/limits.ts"
import { inTime } from "./inbox-words.ts"
import { axeFaultsInBoth, screenshot } from "./page-checks.ts"
import { failure, fieldAt, sending } from "./page-parts.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()
const manual = { triggerType: "manual", reactionConfig: null }

/** A run that has come to its end. */
const completed = (page: Page) => page.locator("h1 [data-status=completed]").waitFor()
/** The request to the model that has no answer yet. */
const openCall = (page: Page) => page.getByTestId("call-open")

it("shows what the model says as it says it, and then what became of it", async () => {
  const story = await real.newStory()
  const agent = await run(
    story.post(
      "/agents",
      watcher({
        name: "talker",
        ...manual,
        model: scripted([
          {
            // It speaks for longer than a busy machine takes to look.
            say: "Alpha beta gamma delta epsilon zeta eta theta iota kappa. ".repeat(24),
            tokensPerSecond: 15
          }
        ])
      })
    )
  )
  const { page } = await real.visit(story, "/runs")
  await page.getByTestId("empty").waitFor()
  await run(story.post(`/agents/${agent.id}/trigger?wait=false`))
  await page.getByRole("link", { name: /talker/ }).press("Enter")
  const says = page.getByTestId("live-answer")
  await says.getByText(/theta iota kappa/).waitFor()
  expect(await says.innerText()).not.toMatch(
    /(Alpha beta gamma delta epsilon zeta eta theta iota kappa\. ){24}/
  )
  // What it has used is a guess while it speaks, and says so.
  const used = page.getByTestId("used")
  await inTime(() => used.innerText()).toMatch(/^0\b[^~]*~[\d,]+\b[^~]*~\$0\b/)
  await page.getByRole("tab", { name: "Model calls" }).press("Enter")
  await openCall(page).getByRole("button", { expanded: false }).press("Enter")
  await openCall(page).locator("[data-part=read]").getByRole("list").waitFor()
  await screenshot(page, "run-live")
  await run(endedRuns(story, agent, 1))
  await says.waitFor({ state: "detached" })
  await completed(page)
  await inTime(() => used.innerText()).toMatch(/^1\b[^~]*\$0$/)
  await page.getByTestId("call-1").waitFor()
  expect(await openCall(page).count()).toBe(0)
})

it("tells a run along its time, forks it after an event, and plans to take it back", async () => {
  const story = await real.newStory()
  const agent = await run(
    story.post(
      "/agents",
      watcher({
        name: "maker",
        ...manual,
        model: calling({ tool: "create_object", arguments: { type: "Note", properties: {} } })
      })
    )
  )
  const done = await run(story.post(`/agents/${agent.id}/trigger`))
  const { page } = await real.visit(story, `/runs/${done.id}?tab=timeline`)
  const timeline = page.getByRole("list", { name: "Timeline" })
  await timeline.getByText("create_object").waitFor()
  const kinds = () =>
    timeline
      .locator("[data-bar]")
      .evaluateAll((bars) => bars.map((bar) => (bar instanceof HTMLElement ? bar.dataset["bar"] : "")))
  await inTime(kinds).toEqual(["wait", "model", "tool", "model"])
  await screenshot(page, "run-timeline")
  expect(await axeFaultsInBoth(page)).toEqual([])

  await page.getByRole("tab", { name: "Log" }).press("Enter")
  await page.getByRole("button", { name: /UserMessageEvent/, disabled: false }).press("Enter")
  await page.getByRole("button", { name: "Fork from here", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  await fieldAt(dialog, "/name").fill("other-way")
  await fieldAt(dialog, "/message").fill("Do something else.")
  await sending(dialog).press("Enter")
  await dialog.getByText(/tropism contexts .*other-way/).waitFor()
  expect(await run(story.get("/contexts/other-way"))).toMatchObject({
    forkedFrom: { name: done.contextName }
  })
  await dialog.getByRole("button", { name: "Done", disabled: false }).press("Enter")

  await page.getByRole("button", { name: "Undo this run", disabled: false }).press("Enter")
  await dialog.getByRole("button", { name: "Plan undo", disabled: false }).press("Enter")
  await page.waitForURL(/\/tasks\//)
  expect((await run(story.get("/tasks?type=undo"))).items).toHaveLength(1)
})

it("leads from a run to its question and to the runs that it spawned", async () => {
  const story = await real.newStory()
  await run(story.post("/agents", watcher({ name: "helper", ...manual, model: saying("Helped.") })))
  const boss = await run(
    story.post(
      "/agents",
      watcher({
        name: "boss",
        ...manual,
        tools: ["run.*"],
        subAgents: ["helper"],
        model: scripted([
          {
            when: "step == 0",
            calls: [{ tool: "spawn_agent", arguments: { agent: "helper", task: "Help." } }]
          },
          { when: "step == 1", calls: [{ tool: "ask_user", arguments: { question: "Is it enough?" } }] },
          { say: "Good." }
        ])
      })
    )
  )
  const going = await run(story.post(`/agents/${boss.id}/trigger?wait=false`))
  const { page } = await real.visit(story, `/runs/${going.id}`)
  await page.getByTestId("spawned-runs").getByRole("link", { name: "helper" }).waitFor()
  await page
    .getByRole("region", { name: "Waiting for people" })
    .getByRole("link", { name: /Is it enough/ })
    .waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  // What it used itself, and what all used that it is answerable for.
  const { total, usage } = await run(story.get(`/runs/${going.id}`))
  const all = total.usage.inputTokens + total.usage.outputTokens
  expect(all).toBeGreaterThan(usage.inputTokens + usage.outputTokens)
  await page
    .getByTestId("used")
    .filter({ hasText: all.toLocaleString("en") })
    .waitFor()
  await run(story.post(`/runs/${going.id}/answer`, { answer: "Yes" }))
  await page.getByRole("region", { name: "Waiting for people" }).waitFor({ state: "detached" })
  await completed(page)
})

it("a run says that it waits for a person where one below those that it spawned asks, and leads there", async () => {
  const story = await real.newStory()
  const asks = { tool: "ask_user", arguments: { question: "Is it enough?" } }
  await run(story.post("/agents", worker("asker", handingOver(asks))))
  await run(story.post("/agents", worker("middle", handingOver(spawning("asker")), { subAgents: ["asker"] })))
  const top = await run(
    story.post("/agents", worker("top", handingOver(spawning("middle")), { subAgents: ["middle"] }))
  )
  const going = await run(begin(story, top))
  await run(runWhen(story, going, isWaiting))
  const { page } = await real.visit(story, `/runs/${going.id}`)
  const waiting = page.getByRole("region", { name: "Waiting for people" })
  await waiting.getByRole("heading", { name: /asker/ }).waitFor()
  await waiting.getByRole("link", { name: /Is it enough/ }).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
})

it("a fork in which nothing can be said is not made, and is made under that name when it can", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", watcher({ name: "off", ...manual, model: saying("Hello.") })))
  const done = await run(story.post(`/agents/${agent.id}/trigger`))
  await run(story.patch(`/agents/${agent.id}`, { enabled: false }))
  const { page } = await real.visit(story, `/runs/${done.id}?tab=log`)
  await page.getByRole("button", { name: /UserMessageEvent/, disabled: false }).press("Enter")
  await page.getByRole("button", { name: "Fork from here", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  await fieldAt(dialog, "/name").fill("other-way")
  await fieldAt(dialog, "/message").fill("Do something else.")
  await sending(dialog).press("Enter")
  await failure(dialog, "agentDisabled").waitFor()
  expect((await run(story.ask("GET", "/contexts/other-way"))).status).toBe(404)
  await run(story.patch(`/agents/${agent.id}`, { enabled: true }))
  await sending(dialog).press("Enter")
  await dialog.getByText(/tropism contexts .*other-way/).waitFor()
  await run(
    eventually(story.get("/contexts/other-way/events?limit=200"), ({ items }) =>
      items.some(({ content }: { readonly content?: string }) => content === "Do something else.")
    )
  )
})

it("a page of the log that cannot be read is said, and asked for again after a while", async () => {
  const story = await real.newStory()
  const { run: done } = await run(acted(story, [creating("one")]))
  const { page, goTo } = await real.visit(story)
  // Nothing but the log itself has it read again.
  await page.route(`**/projects/${story.projectId}/events*`, (route) => route.abort())
  let tries = 0
  let isCut = true
  await page.route(`**/runs/${done.id}/events?*`, (route) => {
    const url = new URL(route.request().url())
    if (isCut && url.searchParams.has("cursor")) {
      tries += 1
      return route.abort()
    }
    url.searchParams.set("limit", "2")
    return route.continue({ url: url.href })
  })
  await page.clock.install()
  await goTo(`/runs/${done.id}?tab=log`)
  const alert = page.locator("[data-failure=unreachable][data-has-older]")
  await alert.waitFor()
  // While time stands still nothing is asked again, and once it has gone on it is.
  await page.clock.pauseAt((await page.evaluate<number>("Date.now()")) + 1_000)
  await alert.waitFor()
  const before = tries
  const { items } = await run(story.get(`/runs/${done.id}/events?limit=200`))
  expect(tries).toBe(before)
  await page.clock.runFor(limits.refreshIntervalMs)
  await inTime(() => tries).toBe(before + 1)
  await page.clock.resume()
  await alert.waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  isCut = false
  const rows = page.getByRole("tabpanel").getByRole("listitem")
  await inTime(() => rows.count()).toBe(items.length)
  expect(await alert.count()).toBe(0)
})

it("a tool call that was made is never said not to be made, where the records of the calls are not read", async () => {
  const story = await real.newStory()
  const { run: done } = await run(acted(story, [creating("one"), creating("two")]))
  const { page, goTo } = await real.visit(story)
  const calls = page.getByRole("list", { name: "Steps", exact: true }).getByRole("list").getByRole("listitem")
  const openAll = async () => {
    await inTime(() => calls.count()).toBe(2)
    for (const place of [0, 1]) await calls.nth(place).locator("summary").click()
  }
  /** What is said of the calls of which no record is shown. */
  const withoutRecord = () =>
    calls
      .locator("[data-record]")
      .evaluateAll((all) => all.map((each) => (each instanceof HTMLElement ? each.dataset["record"] : "")))
  const failing = (route: Route) => route.abort()
  await page.route("**/tool-calls?*", failing)
  await goTo(`/runs/${done.id}`)
  await openAll()
  await inTime(() => calls.getByRole("alert").count()).toBe(2)
  expect(await withoutRecord()).toEqual([])
  expect(await axeFaultsInBoth(page)).toEqual([])

  // One record is as much as a page holds: the run made more calls than are read.
  await page.unroute("**/tool-calls?*", failing)
  await page.route("**/tool-calls?*", (route) => {
    const url = new URL(route.request().url())
    url.searchParams.set("limit", "1")
    return route.continue({ url: url.href })
  })
  await goTo(`/runs/${done.id}`)
  await openAll()
  await inTime(withoutRecord).toEqual(["notRead"])
  // Its arguments and its result.
  await inTime(() => calls.getByRole("figure").count()).toBe(2)
})
