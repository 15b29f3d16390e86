/**
 * Agents in the console against the whole program: how they fare, making and changing them, and trying them without effect.
 */
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { eventually } from "../../server/testing/platform.ts"
import { calling, endedRuns, make, saying, watcher } from "../../server/testing/story-words.ts"
import { buttonOf, faultAt, fieldAt, fieldNamed, sending } from "./page-parts.ts"
import { inTime } from "./inbox-words.ts"
import { axeFaultsInBoth, screenshot, submitTwice } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** Watches until the page shows this version of an agent. */
const atVersion = (page: Page, name: string, version: number): Promise<void> =>
  page
    .getByRole("heading", { level: 1 })
    .filter({ hasText: name })
    .filter({ has: page.locator(`[data-version="${version}"]`) })
    .waitFor()

it("S001-R56 a reaction agent is made in a form, wakes, is changed, and tells what each version changed", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/agents")
  await page.getByRole("link", { name: "New agent" }).press("Enter")
  const form = page.getByRole("form", { name: "Agent" })
  await form.getByLabel("Name").fill("not a name")
  await form.getByLabel("Prompt", { exact: true }).fill("Greet {{ object.key }}.")
  await fieldAt(form, "/reactionConfig/objectTypes").fill("Person")
  await form.getByLabel("Provider", { exact: true }).selectOption("scripted")
  await form.getByLabel("Model", { exact: true }).fill("story")
  const script = form.getByLabel("Script")
  await script.fill('{"rules": [')
  await sending(form).press("Enter")
  await form.getByRole("alert").filter({ hasText: "Script" }).waitFor()
  // What cannot be sent stands at its field as well.
  await faultAt(form, "/model/script").waitFor()
  expect(await script.getAttribute("aria-invalid")).toBe("true")
  await script.fill('{"rules": [{"say": "Hello."}]}')
  await sending(form).press("Enter")
  // What the server refuses stands at its field.
  await faultAt(form, "/name").waitFor()
  await form.getByLabel("Mode", { exact: true }).selectOption("hybrid")
  await fieldAt(form, "/capabilities/canDeleteObjects").press("Space")
  await form.locator("tr[data-change=delete] [data-outcome=refused]").waitFor()
  await form.locator("tr[data-change=create] [data-outcome=doneIfSure]").filter({ hasText: "80%" }).waitFor()
  await screenshot(page, "agent-form")
  expect(await axeFaultsInBoth(page)).toEqual([])
  // Who leaves is asked.
  await page.getByRole("link", { name: "Agents", exact: true }).first().press("Enter")
  await page.getByRole("dialog").getByRole("button", { name: "Stay", disabled: false }).press("Enter")
  await form.getByLabel("Name").fill("greeter")
  await sending(form).press("Enter")
  await atVersion(page, "greeter", 1)
  const [agent] = (await run(story.get("/agents"))).items
  expect(agent).toMatchObject({
    name: "greeter",
    reactionConfig: { objectTypes: ["Person"], events: ["created"] },
    executionMode: "hybrid",
    capabilities: { canDeleteObjects: false },
    tools: ["graph.*"]
  })
  await run(make(story, "Person"))
  await page.getByRole("region", { name: "Latest runs" }).getByRole("link", { name: "Hello." }).waitFor()
  await screenshot(page, "agent")
  expect(await axeFaultsInBoth(page)).toEqual([])

  await page.getByRole("tab", { name: "Definition" }).press("Enter")
  await form.getByLabel("Prompt", { exact: true }).fill("Greet {{ object.key }} twice.")
  await sending(form).press("Enter")
  await atVersion(page, "greeter", 2)
  await page.getByRole("tab", { name: "Versions" }).press("Enter")
  await page.locator("h2[data-from='1'][data-to='2']").waitFor()
  await page.getByRole("insertion").getByText("Greet {{ object.key }} twice.").waitFor()
  await inTime(() => page.getByRole("deletion").count()).toBe(1)
  expect(await axeFaultsInBoth(page)).toEqual([])
  await buttonOf(page.getByRole("list", { name: "Versions" }), "restore").press("Enter")
  await atVersion(page, "greeter", 3)
  expect((await run(story.get(`/agents/${agent.id}`))).prompt).toBe("Greet {{ object.key }}.")
  await page.getByRole("button", { name: "Disable", disabled: false }).press("Enter")
  await page.getByTestId("agent-disabled").waitFor()
})

it("S001-R56 shows how each fares, and the next five fires of a schedule as the API tells them", async () => {
  const story = await real.newStory()
  const manual = { triggerType: "manual", reactionConfig: null }
  const failing = await run(
    story.post(
      "/agents",
      watcher({ name: "failing", ...manual, model: { provider: "anthropic", name: "none" } })
    )
  )
  await run(story.post(`/agents/${failing.id}/trigger`))
  const asked = await run(
    story.post("/agents", watcher({ name: "asked", ...manual, model: saying("Here.") }))
  )
  const { page, goTo } = await real.visit(story, "/agents", { timezoneId: "Asia/Tokyo" })
  await page.locator("main [data-state=failed]").waitFor()
  await page.getByRole("img", { name: /\bfailed$/ }).waitFor()
  await screenshot(page, "agents")
  expect(await axeFaultsInBoth(page)).toEqual([])

  await page.getByRole("link", { name: "asked" }).press("Enter")
  await page.getByRole("button", { name: "Run now", disabled: false }).press("Enter")
  await page.getByRole("dialog").locator("form").evaluate(submitTwice)
  await page.waitForURL(/\/runs\//)
  expect((await run(story.get(`/runs?agentId=${asked.id}`))).items).toHaveLength(1)
  await run(endedRuns(story, asked, 1))

  await goTo("/agents/new")
  const form = page.getByRole("form", { name: "Agent" })
  await form.getByLabel("Trigger type").selectOption("schedule")
  await form.getByLabel("Schedule", { exact: true }).fill("30 9 * * 1-5")
  await form.getByLabel("Time zone").fill("Europe/Berlin")
  await form.getByText("At 09:30, Monday through Friday").waitFor()
  const { fires } = await run(story.get("/agents/fires?cronSchedule=30+9+*+*+1-5&timezone=Europe/Berlin"))
  const list = form.getByRole("list", { name: "Next scheduled runs" })
  const told = () =>
    list.getByRole("time").evaluateAll((times) => times.map((time) => time.getAttribute("datetime")))
  await inTime(told).toEqual(fires.map(({ at }: { readonly at: string }) => at))
  // By the clock of the schedule's zone, wherever the reader sits.
  for (const words of await list.getByRole("listitem").allInnerTexts())
    expect(words).toMatch(/^(Mon|Tue|Wed|Thu|Fri) \d+ [A-Z][a-z]{2}( \d{4})?, 09:30 \w+ Europe\/Berlin$/)
  await form.getByLabel("Time zone").fill("Mars")
  await form.locator("[data-failure]").filter({ hasText: "Mars" }).waitFor()
})

it("tries an agent over what happened, and touches nobody", async () => {
  const story = await real.newStory()
  await run(make(story, "Person"))
  await run(eventually(story.get("/events"), ({ items }) => items.length === 1))
  const agent = await run(
    story.post(
      "/agents",
      watcher({
        model: calling({
          tool: "create_object",
          arguments: { type: "Note", properties: { of: "<b>all</b>" }, reasoning: "Ada likes it" }
        })
      })
    )
  )
  const { page, goTo } = await real.visit(story, `/agents/${agent.id}?tab=backtests`)
  await sending(page.locator("main form")).press("Enter")
  const list = page.getByRole("list", { name: "Backtests" })
  const ended = list.locator("[data-status=completed]").filter({ hasText: /\b1\b.*\b1\b.*\b1\b/ })
  await ended.waitFor()
  const would = page.getByRole("list", { name: "Suggested changes" })
  await would.getByText(/^Create Note/).waitFor()
  await would.getByText("Ada likes it").waitFor()
  await would.getByText("<b>all</b>").waitFor()
  await page.getByText(/^1 completed, 0 failed, 0 paused$/).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])

  // Over an object that somebody chooses, whatever the reaction says; from the object's own page as well.
  const place = await run(make(story, "Place", { name: "Harbour" }))
  await fieldNamed(page, "over").selectOption("object")
  await fieldNamed(page, "objectWords").fill("harb")
  await fieldNamed(page, "objectId")
    .getByText(/Harbour.*Place/)
    .waitFor({ state: "attached" })
  await sending(page.locator("main form")).press("Enter")
  await inTime(() => ended.count()).toBe(2)
  await page.getByRole("link", { name: "Place created" }).waitFor()
  await screenshot(page, "dry-run")
  await goTo(`/objects/${place.id}`)
  await buttonOf(page, "try-agent").press("Enter")
  await page.getByRole("dialog").locator("form").evaluate(submitTwice)
  await page.waitForURL(/tab=backtests&backtest=/)
  await page.getByRole("link", { name: "Place created" }).waitFor()
  const { items: tests } = await run(story.get(`/agents/${agent.id}/backtests`))
  expect(tests.map(({ objectIds }: { readonly objectIds: unknown }) => objectIds)).toEqual([
    [place.id],
    [place.id],
    null
  ])
  const left = (await run(story.get("/objects"))).items
  expect(left.map(({ type }: { readonly type: string }) => type)).toEqual(["Place", "Person"])
  expect((await run(story.get("/tasks"))).items).toEqual([])
})

it("S001-R56 conditions, waits, rates, budgets and sub-agents are fields, and a change of one keeps the rest", async () => {
  const story = await real.newStory()
  await run(story.post("/agents", watcher({ name: "scribe", triggerType: "manual", reactionConfig: null })))
  const rich = {
    reactionConfig: {
      objectTypes: ["Order"],
      relationshipTypes: ["knows"],
      events: ["created", "updated"],
      where: {
        properties: [
          { property: "size", op: "gte", value: 3 },
          { property: "code", op: "eq", value: "3" },
          { property: "author", op: "exists", value: false }
        ],
        changedProperties: ["size"]
      },
      debounceMs: 500,
      maxWaitMs: 5000,
      batchSize: 10,
      rateLimit: { maxRuns: 10, perSeconds: 60 },
      maxConcurrency: 2
    },
    budget: { perRun: { maxTokens: 5000 }, perDay: { maxCostUsd: 0.5 } },
    subAgents: ["helper-*"],
    retryPolicy: { maxAttempts: 2, backoffMs: 10 }
  }
  const agent = await run(story.post("/agents", watcher({ name: "rich", ...rich })))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=definition`)
  const form = page.getByRole("form", { name: "Agent" })
  const third = form.getByRole("group", { name: "Condition 3" })
  await inTime(() => third.getByLabel("Value").inputValue()).toBe("false")
  await third.getByRole("button", { name: "Remove", disabled: false }).press("Enter")
  await buttonOf(form, "add-condition").press("Enter")
  await page.keyboard.type("state")
  await fieldAt(third, "/reactionConfig/where/properties/2/op").selectOption("in")
  await third.getByLabel("Value").fill("open, 7")
  const batch = fieldAt(form, "/reactionConfig/batchSize")
  await fieldAt(form, "/budget/perDay/maxCostUsd").fill("2")
  await fieldNamed(form, "addSubAgent").selectOption("scribe")
  await batch.fill("many")
  await screenshot(page, "agent-rule")
  await sending(form).press("Enter")
  // What the server refuses stands at its field.
  await inTime(() => batch.getAttribute("aria-invalid")).toBe("true")
  await batch.fill("20")
  await sending(form).press("Enter")
  await atVersion(page, "rich", 2)
  const { properties, changedProperties } = rich.reactionConfig.where
  expect(await run(story.get(`/agents/${agent.id}`))).toEqual({
    ...agent,
    version: 2,
    updatedAt: expect.any(String),
    reactionConfig: {
      ...agent.reactionConfig,
      batchSize: 20,
      where: {
        changedProperties,
        properties: [...properties.slice(0, 2), { property: "state", op: "in", value: ["open", 7] }]
      }
    },
    budget: { perRun: { maxTokens: 5000 }, perDay: { maxCostUsd: 2 } },
    subAgents: ["helper-*", "scribe"]
  })
  expect(await axeFaultsInBoth(page)).toEqual([])
})

it("an agent for which no model can be asked is told where it is seen, and is not enabled unasked", async () => {
  const story = await real.newStory()
  const model = { provider: "anthropic", name: "none" }
  const agent = await run(story.post("/agents", watcher({ name: "mute", enabled: false, model })))
  const { page } = await real.visit(story, "/agents")
  const missing = page.getByTestId("model-missing")
  await missing.filter({ hasText: "ANTHROPIC_API_KEY" }).waitFor()
  // Who has a script has somebody to ask, whatever keys there are.
  await page.getByText("TodoAssistant").waitFor()
  expect(await missing.count()).toBe(1)
  await page.getByRole("link", { name: "mute" }).press("Enter")
  await page.getByRole("button", { name: "Enable", exact: true, disabled: false }).waitFor()
  await missing.filter({ hasText: "ANTHROPIC_API_KEY" }).waitFor()
  await page.getByRole("button", { name: "Enable", exact: true, disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog").filter({ hasText: "ANTHROPIC_API_KEY" })
  await dialog.locator("[data-first-focus]").press("Enter")
  await dialog.waitFor({ state: "detached" })
  expect((await run(story.get(`/agents/${agent.id}`))).enabled).toBe(false)
  await page.getByRole("button", { name: "Enable", exact: true, disabled: false }).press("Enter")
  await buttonOf(dialog, "confirm").press("Enter")
  await page.getByRole("button", { name: "Disable", exact: true }).waitFor()
  expect((await run(story.get(`/agents/${agent.id}`))).enabled).toBe(true)
})

it("the form asks before it saves an agent enabled for which no model can be asked", async () => {
  const story = await real.newStory()
  const model = { provider: "anthropic", name: "none" }
  const agent = await run(story.post("/agents", watcher({ name: "mute", enabled: false, model })))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=definition`)
  const form = page.getByRole("form", { name: "Agent" })
  const read = () => run(story.get(`/agents/${agent.id}`))
  const missing = form.getByTestId("model-missing")
  await missing.filter({ hasText: "ANTHROPIC_API_KEY" }).waitFor()
  await fieldAt(form, "/enabled").press("Space")
  await sending(form).press("Enter")
  const dialog = page.getByRole("dialog").filter({ hasText: "ANTHROPIC_API_KEY" })
  await dialog.locator("[data-first-focus]").press("Enter")
  await dialog.waitFor({ state: "detached" })
  expect(await read()).toEqual(agent)
  // Of another provider only the provider is known, and one that needs nothing asks nothing.
  await form.getByLabel("Provider", { exact: true }).selectOption("openai")
  await missing.filter({ hasText: "OPENAI_API_KEY" }).waitFor()
  await form.getByLabel("Provider", { exact: true }).selectOption("anthropic")
  await sending(form).press("Enter")
  await buttonOf(dialog, "confirm").press("Enter")
  await atVersion(page, "mute", 2)
  expect((await read()).enabled).toBe(true)
  // What was so before is not asked of again.
  await form.getByLabel("Prompt", { exact: true }).fill("Look again.")
  await sending(form).press("Enter")
  await atVersion(page, "mute", 3)
})

it("S001-R56 an edit of one field leaves what the form hides, and what an agent may touch, as they were", async () => {
  const story = await real.newStory()
  const kept = {
    triggerType: "manual",
    reactionConfig: { objectTypes: ["Order"], events: ["deleted"], debounceMs: 700 },
    cronSchedule: "0 9 * * 1",
    timezone: "Europe/Berlin",
    executionMode: "suggest",
    hybridPolicy: { confidenceThreshold: 0.95, alwaysSuggest: ["delete"] },
    capabilities: { canCreateObjects: true, allowedObjectTypes: [] }
  }
  const agent = await run(story.post("/agents", watcher({ name: "quiet", ...kept })))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=definition`)
  const form = page.getByRole("form", { name: "Agent" })
  const read = () => run(story.get(`/agents/${agent.id}`))
  await form.getByLabel("Prompt", { exact: true }).fill("Look again.")
  await sending(form).press("Enter")
  await atVersion(page, "quiet", 2)
  const second = { ...agent, version: 2, updatedAt: expect.any(String), prompt: "Look again." }
  expect(await read()).toEqual(second)

  // What may touch no type at all still may not when another right is taken from it.
  await fieldAt(form, "/capabilities/canDeleteObjects").press("Space")
  await sending(form).press("Enter")
  await atVersion(page, "quiet", 3)
  const denied = { ...kept.capabilities, canDeleteObjects: false }
  expect(await read()).toEqual({ ...second, version: 3, capabilities: denied })

  // All types are allowed only where a person says so.
  await fieldNamed(form, "touches").selectOption("all")
  await sending(form).press("Enter")
  await atVersion(page, "quiet", 4)
  const all = { canCreateObjects: true, canDeleteObjects: false }
  expect(await read()).toEqual({ ...second, version: 4, capabilities: all })
})

it("what was written stays when somebody saves another version, and when one decides to stay", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", watcher({ name: "shared", prompt: "At first." })))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=definition`)
  const form = page.getByRole("form", { name: "Agent" })
  const prompt = form.getByLabel("Prompt", { exact: true })
  await prompt.fill("Mine.")
  await page.getByRole("tab", { name: "Versions" }).press("Enter")
  const leaving = page.getByRole("dialog", { name: "Leave without saving?" })
  await leaving.getByRole("button", { name: "Stay", disabled: false }).press("Enter")
  await leaving.waitFor({ state: "detached" })
  await page.getByRole("tab", { name: "Definition", selected: true }).waitFor()
  expect(await prompt.inputValue()).toBe("Mine.")

  await run(story.patch(`/agents/${agent.id}`, { prompt: "Theirs.", role: "Theirs too" }))
  const moved = page.getByTestId("moved-notice")
  await moved.filter({ hasText: /\b2\b/ }).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await sending(form).press("Enter")
  await page.locator("[data-failure=precondition-failed]").waitFor()
  expect(await prompt.inputValue()).toBe("Mine.")
  expect((await run(story.get(`/agents/${agent.id}`))).prompt).toBe("Theirs.")
  await buttonOf(moved, "keep-mine").click()
  await sending(form).press("Enter")
  await atVersion(page, "shared", 3)
  expect(await run(story.get(`/agents/${agent.id}`))).toMatchObject({ prompt: "Mine.", role: "Theirs too" })

  await prompt.fill("Mine again.")
  await run(story.patch(`/agents/${agent.id}`, { prompt: "Theirs again." }))
  await buttonOf(moved.filter({ hasText: /\b4\b/ }), "drop-mine").click()
  await inTime(() => prompt.inputValue()).toBe("Theirs again.")
  // Where nothing was written it follows by itself.
  await run(story.patch(`/agents/${agent.id}`, { prompt: "Theirs at last." }))
  await inTime(() => prompt.inputValue()).toBe("Theirs at last.")
  expect(await moved.count()).toBe(0)
})

it("an agent that somebody deletes under its open form says so, and what is written becomes a new one", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", watcher({ name: "doomed", enabled: false })))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=definition`)
  const form = page.getByRole("form", { name: "Agent" })
  await form.getByLabel("Prompt", { exact: true }).fill("What took an hour to write.")
  await run(story.ask("DELETE", `/agents/${agent.id}`))
  const moved = page.getByTestId("moved-notice")
  await moved.waitFor()
  expect(await page.getByRole("button", { name: /^(Run now|Enable|Delete)/ }).count()).toBe(0)
  await sending(form).press("Enter")
  await atVersion(page, "doomed", 1)
  await moved.waitFor({ state: "detached" })
  const [made] = (await run(story.get("/agents"))).items
  expect(made.id).not.toBe(agent.id)
  expect(made).toMatchObject({ name: "doomed", prompt: "What took an hour to write.", enabled: false })
})
