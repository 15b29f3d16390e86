/**
 * Each part of an agent's definition has a field in its form, against the whole program: relationships, foreign events, flows, policies, models.
 */
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { make, watcher } from "../../server/testing/story-words.ts"
import type { Story } from "../../server/testing/platform.ts"
import { inTime } from "./inbox-words.ts"
import { axeFaultsInBoth, screenshot } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** Nobody answers there: what agents may hear is the project's own word, and is judged without asking. */
const orders = {
  name: "orders",
  transport: { type: "http", url: "http://127.0.0.1:1/mcp" },
  allowedEvents: ["order.*", "stock.low"]
}

const relate = (story: Story, type: string) =>
  Effect.gen(function* () {
    const [from, to] = yield* Effect.all([make(story, "Person"), make(story, "Person")])
    yield* story.post("/relationships", { type, fromId: from.id, toId: to.id })
  })

const formOf = (page: Page) => page.getByRole("form", { name: "Agent" })
const saveOf = (page: Page) => page.getByRole("button", { name: "Save as a new version", disabled: false })
const atVersion = (page: Page, version: number) =>
  page.getByRole("heading", { level: 1, name: new RegExp(`version ${version}`) }).waitFor()

/** Whether all of a page is as wide as the phone. */
const isNarrow = (page: Page) =>
  page.evaluate(() => document.documentElement.scrollWidth === document.documentElement.clientWidth)

it("S001-R47 types of relationships and events of foreign servers are fields, by keyboard, with their faults", async () => {
  const story = await real.newStory()
  await run(relate(story, "LIKES"))
  await run(story.post("/mcp-servers", orders))
  const rule = {
    objectTypes: ["Order"],
    events: ["created", "updated"],
    where: { changedProperties: ["a\nb"] },
    ignoreAgentTriggered: true,
    debounceMs: 500
  }
  const agent = await run(story.post("/agents", watcher({ name: "clerk", reactionConfig: rule })))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=definition`)
  const form = formOf(page)
  const read = () => run(story.get(`/agents/${agent.id}`))
  await form.getByLabel("Relationships", { exact: true }).selectOption({ label: "Only types that are named" })
  await saveOf(page).press("Enter")
  // None that are named would be all of them, so that is not sent.
  const types = form.getByLabel("Only these types of relationships")
  await inTime(() => types.getAttribute("aria-invalid")).toBe("true")
  await form.getByText("Name at least one, or choose all types.", { exact: true }).waitFor()
  await form.getByLabel("Add a type of relationships").selectOption("LIKES")
  await inTime(() => types.inputValue()).toBe("LIKES")

  await form.getByRole("button", { name: "Add an event", disabled: false }).press("Enter")
  const row = form.getByRole("group", { name: "Event 1", exact: true })
  // The keyboard goes into the new row, in which the one server that may be heard is chosen.
  await inTime(() => page.evaluate(() => document.activeElement?.tagName)).toBe("SELECT")
  await page.keyboard.press("Tab")
  await page.keyboard.type("bag.packed")
  await page.keyboard.press("Tab")
  await page.keyboard.press("Tab")
  await page.keyboard.type('{"big": tru')
  await row.getByText("Agents may hear order.*, stock.low").waitFor()
  await screenshot(page, "agent-events")
  await page.getByRole("button", { name: "Save as a new version", disabled: false }).press("Enter")
  const narrowed = row.getByLabel("Narrowed by")
  await inTime(() => narrowed.getAttribute("aria-invalid")).toBe("true")
  await narrowed.fill('{"big": true}')
  await saveOf(page).press("Enter")
  const name = row.getByLabel("Event", { exact: true })
  await inTime(() => name.getAttribute("aria-invalid")).toBe("true")
  await row.getByText(/Agents may not listen to bag\.packed of orders/).waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  await name.fill("order.placed")
  await saveOf(page).press("Enter")
  await atVersion(page, 2)
  const second = {
    ...agent,
    version: 2,
    updatedAt: expect.any(String),
    reactionConfig: {
      ...agent.reactionConfig,
      relationshipTypes: ["LIKES"],
      mcpEvents: [{ server: "orders", name: "order.placed", arguments: { big: true } }]
    }
  }
  expect(await read()).toEqual(second)

  // It may hear foreign servers alone; what it hears then is not nothing.
  for (const change of ["created", "updated"])
    await form.getByRole("group", { name: "Changes" }).getByLabel(change).press("Space")
  await form.getByRole("button", { name: "Add another event", disabled: false }).press("Enter")
  await form
    .getByRole("group", { name: "Event 2" })
    .getByRole("button", { name: "Remove", disabled: false })
    .press("Enter")
  await inTime(() => page.evaluate(() => document.activeElement?.textContent)).toBe("Add another event")
  await row.getByRole("button", { name: "Remove", disabled: false }).press("Enter")
  await saveOf(page).press("Enter")
  await form
    .getByRole("group", { name: "Changes" })
    .getByText(/at least one of created/)
    .waitFor()
  await form.getByRole("button", { name: "Add an event", disabled: false }).press("Enter")
  await row.getByLabel("Event", { exact: true }).fill("stock.low")
  await form.getByLabel("It ignores the changes of all agents").press("Space")
  await form.getByLabel("Relationships", { exact: true }).selectOption({ label: "All types" })
  await saveOf(page).press("Enter")
  // No property changes where no change is heard, which is said at that field.
  const changed = form.getByLabel("Only if one of these properties changed")
  await inTime(() => changed.getAttribute("aria-invalid")).toBe("true")
  await changed.fill("")
  await saveOf(page).press("Enter")
  await atVersion(page, 3)
  expect(await read()).toEqual({
    ...second,
    version: 3,
    reactionConfig: {
      ...second.reactionConfig,
      relationshipTypes: [],
      events: [],
      where: null,
      ignoreAgentTriggered: false,
      mcpEvents: [{ server: "orders", name: "stock.low" }]
    }
  })
})

it("flows, policies, limits and all of a model are fields, and a change of one keeps the rest", async () => {
  const story = await real.newStory()
  const rich = {
    reactionConfig: { objectTypes: ["Order"], events: ["created"], relationshipTypes: ["knows"] },
    executionMode: "hybrid",
    hybridPolicy: { alwaysSuggest: ["create"], promotion: { minReviews: 20, minRate: 0.95 } },
    retryPolicy: { maxAttempts: 2, backoffMs: 10 },
    reviewPolicy: { maxPending: 5, expiresAfterMs: 60_000 },
    defaultTimeoutMs: 90_000,
    disableAfterFailures: 3,
    maxPendingRuns: 40,
    repeatableTools: ["mail.poll"],
    flowType: "loop",
    maxIterations: 4,
    steps: [
      { name: "find", prompt: "Find one.", tools: [] },
      { name: "judge", prompt: "Judge it.", model: { provider: "openai", name: "s", temperature: 0.5 } }
    ],
    model: {
      provider: "scripted",
      name: "story",
      script: { rules: [{ say: "Hello." }] },
      price: {
        inputPerMillion: 1,
        outputPerMillion: 2,
        longPrompts: { overTokens: 10, inputPerMillion: 2, outputPerMillion: 4 }
      },
      fallback: { provider: "openai", name: "other", price: { inputPerMillion: 3, outputPerMillion: 6 } },
      race: true,
      guard: { provider: "openai", name: "guard", instructions: "Look for spam." }
    }
  }
  const agent = await run(story.post("/agents", watcher({ name: "rich", ...rich })))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=definition`)
  const form = formOf(page)
  const read = () => run(story.get(`/agents/${agent.id}`))
  await form.getByLabel("What the guard looks for besides").fill("Look for threats.")
  await form.getByLabel("Updates an object: always asks").press("Space")
  await form
    .getByRole("row", { name: /Updates an object/ })
    .getByText("waits for a person")
    .waitFor()
  await form.getByLabel("Tries in all").fill("9")
  await screenshot(page, "agent-flow")
  await saveOf(page).press("Enter")
  await inTime(() => form.getByLabel("Tries in all").getAttribute("aria-invalid")).toBe("true")
  await form.getByLabel("Tries in all").fill("3")
  const judge = form.getByRole("group", { name: "Step 2", exact: true })
  await judge.getByRole("button", { name: "Earlier", disabled: false }).press("Enter")
  await form.getByRole("button", { name: "Add another step", disabled: false }).press("Enter")
  await page.keyboard.type("find")
  const third = form.getByRole("group", { name: "Step 3", exact: true })
  await third.getByLabel("Prompt of the step").fill("Tell of it.")
  await saveOf(page).press("Enter")
  await inTime(() => third.getByLabel("Name").getAttribute("aria-invalid")).toBe("true")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await third.getByLabel("Name").fill("tell")
  await saveOf(page).press("Enter")
  await atVersion(page, 2)
  const [find, last] = agent.steps
  const second = {
    ...agent,
    version: 2,
    updatedAt: expect.any(String),
    hybridPolicy: { ...rich.hybridPolicy, alwaysSuggest: ["create", "update"] },
    retryPolicy: { maxAttempts: 3, backoffMs: 10 },
    steps: [last, find, { name: "tell", prompt: "Tell of it.", tools: null, model: null }],
    model: { ...rich.model, guard: { ...rich.model.guard, instructions: "Look for threats." } }
  }
  expect(await read()).toEqual(second)

  await form.getByLabel("Flow", { exact: true }).selectOption({ label: "Single: its prompt, once" })
  await form.getByLabel("Asked where it cannot answer").selectOption({ label: "Nobody" })
  await form
    .getByRole("combobox", { name: "Price of the model" })
    .selectOption({ label: "As the server knows it" })
  await form.getByLabel("When a run fails").selectOption({ label: "A person looks at it" })
  await form.getByLabel("Trust").selectOption({ label: "It always asks" })
  await form.getByLabel("They expire after, in ms").fill("")
  await saveOf(page).press("Enter")
  await atVersion(page, 3)
  const { provider, name, script } = rich.model
  expect(await read()).toEqual({
    ...second,
    version: 3,
    flowType: "single",
    steps: [],
    maxIterations: null,
    hybridPolicy: { alwaysSuggest: ["create", "update"] },
    retryPolicy: null,
    reviewPolicy: { maxPending: 5 },
    model: { provider, name, script, guard: second.model.guard }
  })
})

it("on a phone all fields stand under one another, and nothing is cut", async () => {
  const story = await real.newStory()
  await run(story.post("/mcp-servers", orders))
  const ruled = {
    executionMode: "hybrid",
    flowType: "sequential",
    steps: [{ name: "look", prompt: "Look.", model: { provider: "openai", name: "s" } }],
    reactionConfig: {
      objectTypes: [],
      events: ["created"],
      relationshipTypes: ["knows"],
      mcpEvents: [{ server: "orders", name: "order.placed", arguments: { big: true } }]
    },
    model: {
      provider: "scripted",
      name: "story",
      script: { rules: [{ say: "Hello." }] },
      price: {
        inputPerMillion: 1,
        outputPerMillion: 2,
        longPrompts: { overTokens: 10, inputPerMillion: 2, outputPerMillion: 4 }
      },
      fallback: { provider: "openai", name: "other" },
      guard: { provider: "openai", name: "guard" }
    }
  }
  const agent = await run(story.post("/agents", watcher({ name: "ruled", ...ruled })))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=definition`, {
    viewport: { width: 390, height: 844 },
    hasTouch: true,
    isMobile: true
  })
  await formOf(page).getByLabel("Narrowed by").scrollIntoViewIfNeeded()
  expect(await isNarrow(page)).toBe(true)
  expect(await axeFaultsInBoth(page)).toEqual([])
  await screenshot(page, "agent-fields-phone")
})

it("an admin says in the settings which events of a server agents may hear, and the form offers them", async () => {
  const story = await real.newStory()
  await run(story.post("/mcp-servers", { ...orders, allowedEvents: [] }))
  const { page, goTo } = await real.visit(story, "/settings?tab=servers")
  await page.getByRole("button", { name: "Change", disabled: false }).press("Enter")
  await page.getByRole("dialog").getByLabel("Events that agents may hear").fill("order.*\nstock.low")
  await page.getByRole("dialog").getByRole("button", { name: "Save", disabled: false }).press("Enter")
  await page.getByRole("dialog").waitFor({ state: "detached" })
  expect((await run(story.get("/mcp-servers"))).items[0].allowedEvents).toEqual(orders.allowedEvents)
  await goTo("/agents/new")
  await formOf(page).getByRole("button", { name: "Add an event", disabled: false }).press("Enter")
  const event = formOf(page).getByLabel("Event", { exact: true })
  const offered = () =>
    event.evaluate((input) =>
      input instanceof HTMLInputElement ? [...(input.list?.options ?? [])].map(({ value }) => value) : []
    )
  await inTime(offered).toEqual(["stock.low"])
})
