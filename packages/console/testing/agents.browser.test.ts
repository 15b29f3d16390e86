/**
 * Agents in the console against the whole program: how they fare, making and changing them, and trying them without effect.
 */
import { expect, it } from "vitest"
import { eventually } from "../../server/testing/platform.ts"
import { calling, endedRuns, make, saying, watcher } from "../../server/testing/story-words.ts"
import { inTime } from "./inbox-words.ts"
import { axeFaultsInBoth, screenshot, submitTwice } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

it("S001-R56 a reaction agent is made in a form, wakes, is changed, and tells what each version changed", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/agents")
  await page.getByRole("link", { name: "New agent" }).press("Enter")
  const form = page.getByRole("form", { name: "Agent" })
  await form.getByLabel("Name").fill("not a name")
  await form.getByLabel("Prompt", { exact: true }).fill("Greet {{ object.key }}.")
  await form.getByLabel("Types of objects", { exact: true }).fill("Person")
  await form.getByLabel("Provider").selectOption("scripted")
  await form.getByLabel("Model", { exact: true }).fill("story")
  const script = form.getByLabel("Script")
  await script.fill('{"rules": [')
  await page.getByRole("button", { name: "Make the agent", disabled: false }).press("Enter")
  await form.getByText(/Script: This is no JSON object/).waitFor()
  // What cannot be sent stands at its field as well.
  expect(await script.getAttribute("aria-invalid")).toBe("true")
  await script.fill('{"rules": [{"say": "Hello."}]}')
  await page.getByRole("button", { name: "Make the agent", disabled: false }).press("Enter")
  // What the server refuses stands at its field.
  await form
    .getByText(/A name has 1 to 100 letters/)
    .first()
    .waitFor()
  await form.getByLabel("Mode", { exact: true }).selectOption("hybrid")
  await form.getByLabel("Deletes an object: allowed").press("Space")
  await form
    .getByRole("row", { name: /Deletes an object/ })
    .getByText("is refused")
    .waitFor()
  await form
    .getByRole("row", { name: /Creates an object/ })
    .getByText("is done when it is 80 % sure")
    .waitFor()
  await screenshot(page, "agent-form")
  expect(await axeFaultsInBoth(page)).toEqual([])
  // Who leaves is asked.
  await page.getByRole("link", { name: "Agents", exact: true }).first().press("Enter")
  await page.getByRole("dialog").getByRole("button", { name: "Stay here", disabled: false }).press("Enter")
  await form.getByLabel("Name").fill("greeter")
  await page.getByRole("button", { name: "Make the agent", disabled: false }).press("Enter")
  await page.getByRole("heading", { level: 1, name: /greeter\s*version 1/ }).waitFor()
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
  await page.getByRole("button", { name: "Save as a new version", disabled: false }).press("Enter")
  await page.getByRole("heading", { level: 1, name: /greeter\s*version 2/ }).waitFor()
  await page.getByRole("tab", { name: "Versions" }).press("Enter")
  await page.getByText("From version 1 to 2").waitFor()
  await page.getByRole("insertion").getByText("Greet {{ object.key }} twice.").waitFor()
  await inTime(() => page.getByRole("deletion").count()).toBe(1)
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.getByRole("button", { name: "Go back to version 1", disabled: false }).press("Enter")
  await page.getByRole("heading", { level: 1, name: /greeter\s*version 3/ }).waitFor()
  expect((await run(story.get(`/agents/${agent.id}`))).prompt).toBe("Greet {{ object.key }}.")
  await page.getByRole("button", { name: "Disable", disabled: false }).press("Enter")
  await page.getByText("It is disabled and wakes for nothing.").waitFor()
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
  await page.getByText("Its latest run failed.").waitFor()
  await page.getByRole("img", { name: "newest first: failed" }).waitFor()
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
  await form.getByLabel("Woken by").selectOption("schedule")
  await form.getByLabel("Schedule", { exact: true }).fill("30 9 * * 1-5")
  await form.getByLabel("Time zone").fill("Europe/Berlin")
  await form.getByText("At 09:30, Monday through Friday").waitFor()
  const { fires } = await run(story.get("/agents/fires?cronSchedule=30+9+*+*+1-5&timezone=Europe/Berlin"))
  const list = form.getByRole("list", { name: "Next fires" })
  const told = () =>
    list.getByRole("time").evaluateAll((times) => times.map((time) => time.getAttribute("datetime")))
  await inTime(told).toEqual(fires.map(({ at }: { readonly at: string }) => at))
  // By the clock of the schedule's zone, wherever the reader sits.
  for (const words of await list.getByRole("listitem").allInnerTexts())
    expect(words).toMatch(/^(Mon|Tue|Wed|Thu|Fri) \d+ [A-Z][a-z]{2}( \d{4})?, 09:30 in Europe\/Berlin$/)
  await form.getByLabel("Time zone").fill("Mars")
  await form.getByText(/no IANA time zone/).waitFor()
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
          arguments: { type: "Note", properties: { of: "<b>all</b>" }, reasoning: "So it is" }
        })
      })
    )
  )
  const { page, goTo } = await real.visit(story, `/agents/${agent.id}?tab=backtests`)
  await page.getByRole("button", { name: "Begin a dry run", disabled: false }).press("Enter")
  await page.getByRole("button", { name: "Version 1: completed, 1 of 1 event" }).waitFor()
  const would = page.getByRole("list", { name: "It would" })
  await would.getByText(/^Create Note/).waitFor()
  await would.getByText("So it is").waitFor()
  await would.getByText("<b>all</b>").waitFor()
  await page.getByText("1 completed, 0 failed, 0 paused").waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])

  // Over an object that somebody chooses, whatever the reaction says; from the object's own page as well.
  const place = await run(make(story, "Place", { name: "Harbour" }))
  await page.getByLabel("Over", { exact: true }).selectOption("object")
  await page.getByLabel("Find the object by words").fill("harb")
  await page
    .getByLabel("The object", { exact: true })
    .getByText("Harbour (Place)")
    .waitFor({ state: "attached" })
  await page.getByRole("button", { name: "Begin a dry run", disabled: false }).press("Enter")
  const list = page.getByRole("list", { name: "Dry runs" })
  await inTime(() => list.getByRole("button", { name: "Version 1: completed, 1 of 1 event" }).count()).toBe(2)
  await page.getByRole("link", { name: "Place created" }).waitFor()
  await screenshot(page, "dry-run")
  await goTo(`/objects/${place.id}`)
  await page.getByRole("button", { name: "Try an agent on it", disabled: false }).press("Enter")
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
  const save = page.getByRole("button", { name: "Save as a new version", disabled: false })
  const third = form.getByRole("group", { name: "Condition 3" })
  await inTime(() => third.getByLabel("Value").inputValue()).toBe("false")
  await third.getByRole("button", { name: "Remove", disabled: false }).press("Enter")
  await form.getByRole("button", { name: "Add another condition", disabled: false }).press("Enter")
  await page.keyboard.type("state")
  await third.getByLabel("Must be so").selectOption({ label: "is one of" })
  await third.getByLabel("Value").fill("open, 7")
  await form.getByLabel("Dollars of one day, at most").fill("2")
  await form.getByLabel("Add an agent").selectOption("scribe")
  await form.getByLabel("Events for one run, at most").fill("many")
  await screenshot(page, "agent-rule")
  await save.press("Enter")
  // What the server refuses stands at its field.
  const batch = form.getByLabel("Events for one run, at most")
  await inTime(() => batch.getAttribute("aria-invalid")).toBe("true")
  await batch.fill("20")
  await save.press("Enter")
  await page.getByRole("heading", { level: 1, name: /rich\s*version 2/ }).waitFor()
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
  await page.getByText(/cannot be used here: .*ANTHROPIC_API_KEY/).waitFor()
  // Who has a script has somebody to ask, whatever keys there are.
  await page.getByText("TodoAssistant").waitFor()
  expect(await page.getByText(/cannot be used here|No model is configured/).count()).toBe(1)
  await page.getByRole("link", { name: "mute" }).press("Enter")
  await page.getByText(/Nobody can think for it\. .*ANTHROPIC_API_KEY/).waitFor()
  await page.getByRole("button", { name: "Enable", exact: true, disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog", { name: "Enable it although no model can be asked?" })
  await dialog.getByRole("button", { name: "Leave it disabled" }).press("Enter")
  await dialog.waitFor({ state: "detached" })
  expect((await run(story.get(`/agents/${agent.id}`))).enabled).toBe(false)
  await page.getByRole("button", { name: "Enable", exact: true, disabled: false }).press("Enter")
  await dialog.getByRole("button", { name: "Enable it", disabled: false }).press("Enter")
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
  await form.getByText(/cannot be used here: .*ANTHROPIC_API_KEY\./).waitFor()
  await form.getByLabel("Enabled").press("Space")
  await page.getByRole("button", { name: "Save as a new version", disabled: false }).press("Enter")
  const dialog = page.getByRole("dialog", { name: "Save it enabled although no model can be asked?" })
  await dialog.getByRole("button", { name: "Go on editing", disabled: false }).press("Enter")
  await dialog.waitFor({ state: "detached" })
  expect(await read()).toEqual(agent)
  // Of another provider only the provider is known, and one that needs nothing asks nothing.
  await form.getByLabel("Provider").selectOption("openai")
  await form.getByText("Set OPENAI_API_KEY.").waitFor()
  await form.getByLabel("Provider").selectOption("anthropic")
  await page.getByRole("button", { name: "Save as a new version", disabled: false }).press("Enter")
  await dialog.getByRole("button", { name: "Save it enabled", disabled: false }).press("Enter")
  await page.getByRole("heading", { level: 1, name: /mute\s*version 2/ }).waitFor()
  expect((await read()).enabled).toBe(true)
  // What was so before is not asked of again.
  await form.getByLabel("Prompt", { exact: true }).fill("Look again.")
  await page.getByRole("button", { name: "Save as a new version", disabled: false }).press("Enter")
  await page.getByRole("heading", { level: 1, name: /mute\s*version 3/ }).waitFor()
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
  const save = page.getByRole("button", { name: "Save as a new version", disabled: false })
  const read = () => run(story.get(`/agents/${agent.id}`))
  await form.getByLabel("Prompt", { exact: true }).fill("Look again.")
  await save.press("Enter")
  await page.getByRole("heading", { level: 1, name: /quiet\s*version 2/ }).waitFor()
  const second = { ...agent, version: 2, updatedAt: expect.any(String), prompt: "Look again." }
  expect(await read()).toEqual(second)

  // What may touch no type at all still may not when another right is taken from it.
  await form.getByLabel("Deletes an object: allowed").press("Space")
  await save.press("Enter")
  await page.getByRole("heading", { level: 1, name: /quiet\s*version 3/ }).waitFor()
  const denied = { ...kept.capabilities, canDeleteObjects: false }
  expect(await read()).toEqual({ ...second, version: 3, capabilities: denied })

  // All types are allowed only where a person says so.
  await form.getByLabel("Types that it may touch").selectOption({ label: "All types" })
  await save.press("Enter")
  await page.getByRole("heading", { level: 1, name: /quiet\s*version 4/ }).waitFor()
  const all = { canCreateObjects: true, canDeleteObjects: false }
  expect(await read()).toEqual({ ...second, version: 4, capabilities: all })
})

it("what was written stays when somebody saves another version, and when one decides to stay", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", watcher({ name: "shared", prompt: "At first." })))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=definition`)
  const prompt = page.getByLabel("Prompt", { exact: true })
  await prompt.fill("Mine.")
  await page.getByRole("tab", { name: "Versions" }).press("Enter")
  const leaving = page.getByRole("dialog", { name: "Leave without saving?" })
  await leaving.getByRole("button", { name: "Stay here", disabled: false }).press("Enter")
  await leaving.waitFor({ state: "detached" })
  await page.getByRole("tab", { name: "Definition", selected: true }).waitFor()
  expect(await prompt.inputValue()).toBe("Mine.")

  await run(story.patch(`/agents/${agent.id}`, { prompt: "Theirs.", role: "Theirs too" }))
  await page.getByText("Somebody has made version 2 meanwhile").waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  const save = page.getByRole("button", { name: "Save as a new version", disabled: false })
  await save.press("Enter")
  await page
    .getByRole("alert")
    .filter({ hasText: /version/ })
    .waitFor()
  expect(await prompt.inputValue()).toBe("Mine.")
  expect((await run(story.get(`/agents/${agent.id}`))).prompt).toBe("Theirs.")
  await page.getByRole("button", { name: "Keep mine, to be saved on top of it" }).click()
  await save.press("Enter")
  await page.getByText("The agent is at version 3.").first().waitFor()
  expect(await run(story.get(`/agents/${agent.id}`))).toMatchObject({ prompt: "Mine.", role: "Theirs too" })

  await prompt.fill("Mine again.")
  await run(story.patch(`/agents/${agent.id}`, { prompt: "Theirs again." }))
  await page.getByRole("button", { name: "Drop mine and begin with version 4" }).click()
  await inTime(() => prompt.inputValue()).toBe("Theirs again.")
  // Where nothing was written it follows by itself.
  await run(story.patch(`/agents/${agent.id}`, { prompt: "Theirs at last." }))
  await inTime(() => prompt.inputValue()).toBe("Theirs at last.")
  expect(await page.getByText(/Somebody has made version/).count()).toBe(0)
})

it("an agent that somebody deletes under its open form says so, and what is written becomes a new one", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", watcher({ name: "doomed", enabled: false })))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=definition`)
  const form = page.getByRole("form", { name: "Agent" })
  await form.getByLabel("Prompt", { exact: true }).fill("What took an hour to write.")
  await run(story.ask("DELETE", `/agents/${agent.id}`))
  await page.getByText("It was deleted meanwhile.").waitFor()
  expect(await page.getByRole("button", { name: /^(Run now|Enable|Delete)/ }).count()).toBe(0)
  await form.getByRole("button", { name: "Make a new agent of it", disabled: false }).press("Enter")
  await page.getByRole("heading", { level: 1, name: /doomed\s*version 1/ }).waitFor()
  await page.getByText("It was deleted meanwhile.").waitFor({ state: "detached" })
  const [made] = (await run(story.get("/agents"))).items
  expect(made.id).not.toBe(agent.id)
  expect(made).toMatchObject({ name: "doomed", prompt: "What took an hour to write.", enabled: false })
})
