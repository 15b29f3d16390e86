/**
 * A run as it goes on and along its time, against the whole program: words as they come, the timeline, questions, forks, undo.
 */
import type { Route } from "playwright-core"
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
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()
const manual = { triggerType: "manual", reactionConfig: null }

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
            say: "One two three four five six seven eight nine ten. ".repeat(24),
            tokensPerSecond: 15
          }
        ])
      })
    )
  )
  const { page } = await real.visit(story, "/runs")
  await page.getByText("No agent has run yet").waitFor()
  await run(story.post(`/agents/${agent.id}/trigger?wait=false`))
  await page.getByRole("link", { name: /talker/ }).press("Enter")
  const says = page.getByRole("region", { name: "What it says now" })
  await says.getByText(/eight nine ten/).waitFor()
  expect(await says.innerText()).not.toMatch(/(One two three four five six seven eight nine ten\. ){24}/)
  // What it has used is a guess while it speaks, and says so.
  const used = page.getByRole("region", { name: "About this run" }).getByText(/tokens/)
  await inTime(() => used.innerText()).toMatch(/^0 steps, ~[\d,]+ tokens, ~\$0 while it speaks$/)
  await page.getByRole("tab", { name: "Model calls" }).press("Enter")
  await page.getByRole("button", { name: "Inspect the open model call", disabled: false }).press("Enter")
  await page.getByRole("list", { name: "What the model reads" }).waitFor()
  await screenshot(page, "run-live")
  await run(endedRuns(story, agent, 1))
  await says.waitFor({ state: "detached" })
  await page.getByRole("heading", { level: 1, name: /completed/ }).waitFor()
  await inTime(() => used.innerText()).toMatch(/^1 step, [\d,]+ tokens, \$0$/)
  await page.getByText("Call 1", { exact: true }).waitFor()
  expect(await page.getByRole("button", { name: /the open model call/ }).count()).toBe(0)
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
  await inTime(async () =>
    (await timeline.getByRole("listitem").allInnerTexts()).map((text) => text.split(" after ")[0])
  ).toEqual(["Waits for a worker", "Step 1", "create_object", "Step 2"])
  await screenshot(page, "run-timeline")
  expect(await axeFaultsInBoth(page)).toEqual([])

  await page.getByRole("tab", { name: "Log" }).press("Enter")
  await page.getByRole("button", { name: /UserMessageEvent/, disabled: false }).press("Enter")
  await page.getByRole("button", { name: "Fork after this", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  await dialog.getByLabel("Name of the new context").fill("other-way")
  await dialog.getByLabel("Say in it").fill("Do something else.")
  await dialog.getByRole("button", { name: "Fork", exact: true, disabled: false }).press("Enter")
  await dialog.getByText("The fork is there.").waitFor()
  expect(await run(story.get("/contexts/other-way"))).toMatchObject({
    forkedFrom: { name: done.contextName }
  })
  await dialog.getByRole("button", { name: "Done", disabled: false }).press("Enter")

  await page.getByRole("button", { name: "Undo this run", disabled: false }).press("Enter")
  await dialog.getByRole("button", { name: "Make the plan", disabled: false }).press("Enter")
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
  await page
    .getByRole("region", { name: "Runs that it spawned" })
    .getByRole("link", { name: "helper" })
    .waitFor()
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
    .getByRole("region", { name: "About this run" })
    .getByText(`with the runs below it ${all.toLocaleString("en")} tokens`)
    .waitFor()
  await run(story.post(`/runs/${going.id}/answer`, { answer: "Yes" }))
  await page.getByRole("region", { name: "Waiting for people" }).waitFor({ state: "detached" })
  await page.getByRole("heading", { level: 1, name: /completed/ }).waitFor()
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
  await waiting.getByText("asker, which works for it, asks a person").waitFor()
  await waiting.getByRole("link", { name: /Is it enough/ }).waitFor()
  expect(await page.getByText(/by itself/).count()).toBe(0)
  expect(await axeFaultsInBoth(page)).toEqual([])
})

it("a fork in which nothing can be said is not made, and is made under that name when it can", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", watcher({ name: "off", ...manual, model: saying("Hello.") })))
  const done = await run(story.post(`/agents/${agent.id}/trigger`))
  await run(story.patch(`/agents/${agent.id}`, { enabled: false }))
  const { page } = await real.visit(story, `/runs/${done.id}?tab=log`)
  await page.getByRole("button", { name: /UserMessageEvent/, disabled: false }).press("Enter")
  await page.getByRole("button", { name: "Fork after this", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog")
  await dialog.getByLabel("Name of the new context").fill("other-way")
  await dialog.getByLabel("Say in it").fill("Do something else.")
  await dialog.getByRole("button", { name: "Fork", exact: true, disabled: false }).press("Enter")
  await dialog
    .getByText(/disabled/)
    .first()
    .waitFor()
  expect((await run(story.ask("GET", "/contexts/other-way"))).status).toBe(404)
  await run(story.patch(`/agents/${agent.id}`, { enabled: true }))
  await dialog.getByRole("button", { name: "Fork", exact: true, disabled: false }).press("Enter")
  await dialog.getByText("The fork is there.").waitFor()
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
  const alert = page.getByRole("alert").getByText(/What you see is from before\. Trying again\./)
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
  const rows = page.getByRole("list", { name: "Events of the log" }).getByRole("listitem")
  await inTime(() => rows.count()).toBe(items.length)
  expect(await alert.count()).toBe(0)
})

it("a tool call that was made is never said not to be made, where the records of the calls are not read", async () => {
  const story = await real.newStory()
  const { run: done } = await run(acted(story, [creating("one"), creating("two")]))
  const { page, goTo } = await real.visit(story)
  const calls = page.getByRole("list", { name: /^Tool calls of step/ }).getByRole("listitem")
  const openAll = async () => {
    await inTime(() => calls.count()).toBe(2)
    for (const place of [0, 1]) await calls.nth(place).locator("summary").click()
  }
  const failing = (route: Route) => route.abort()
  await page.route("**/tool-calls?*", failing)
  await goTo(`/runs/${done.id}`)
  await openAll()
  await inTime(() => calls.getByRole("alert").count()).toBe(2)
  expect(await page.getByText("It was not made yet.").count()).toBe(0)
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
  await page.getByText("is not read here; the log has it.").waitFor()
  await page.getByText("Arguments of create_object", { exact: true }).waitFor()
  expect(await page.getByText("It was not made yet.").count()).toBe(0)
})
