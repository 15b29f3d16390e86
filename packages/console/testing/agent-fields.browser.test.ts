/**
 * Each part of an agent's definition has a field in its form, against the whole program: relationships, foreign events, flows, policies, models.
 */
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { make, watcher } from "../../server/testing/story-words.ts"
import type { Story } from "../../server/testing/platform.ts"
import { buttonOf, faultAt, fieldAt, fieldNamed, sending } from "./page-parts.ts"
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
const saveOf = (page: Page) => sending(formOf(page))
const atVersion = (page: Page, version: number) => page.locator(`h1 [data-version="${version}"]`).waitFor()

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
  await fieldNamed(form, "relationships").selectOption("these")
  await saveOf(page).press("Enter")
  // None that are named would be all of them, so that is not sent.
  const types = fieldAt(form, "/reactionConfig/relationshipTypes")
  await inTime(() => types.getAttribute("aria-invalid")).toBe("true")
  await faultAt(form, "/reactionConfig/relationshipTypes").waitFor()
  await fieldNamed(form, "addRelationshipType").selectOption("LIKES")
  await inTime(() => types.inputValue()).toBe("LIKES")

  const addEvent = buttonOf(form, "add-listener")
  await addEvent.press("Enter")
  const row = form.getByRole("group", { name: "Event 1", exact: true })
  // The keyboard goes into the new row, in which the one server that may be heard is chosen.
  await inTime(() => page.evaluate(() => document.activeElement?.tagName)).toBe("SELECT")
  await page.keyboard.press("Tab")
  await page.keyboard.type("bag.packed")
  await page.keyboard.press("Tab")
  await page.keyboard.press("Tab")
  await page.keyboard.type('{"big": tru')
  await row.getByText(/order\.\*, stock\.low/).waitFor()
  await screenshot(page, "agent-events")
  await saveOf(page).press("Enter")
  const narrowed = fieldAt(row, "/reactionConfig/mcpEvents/0/arguments")
  await inTime(() => narrowed.getAttribute("aria-invalid")).toBe("true")
  await narrowed.fill('{"big": true}')
  await saveOf(page).press("Enter")
  const name = row.getByLabel("Event", { exact: true })
  await inTime(() => name.getAttribute("aria-invalid")).toBe("true")
  await faultAt(row, "/reactionConfig/mcpEvents/0/name")
    .filter({ hasText: /bag\.packed.*orders/ })
    .waitFor()
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
  await addEvent.press("Enter")
  await form
    .getByRole("group", { name: "Event 2" })
    .getByRole("button", { name: "Remove", disabled: false })
    .press("Enter")
  await inTime(() => addEvent.evaluate((button) => button === document.activeElement)).toBe(true)
  await row.getByRole("button", { name: "Remove", disabled: false }).press("Enter")
  await saveOf(page).press("Enter")
  await faultAt(form, "/reactionConfig/events").waitFor()
  await addEvent.press("Enter")
  await row.getByLabel("Event", { exact: true }).fill("stock.low")
  await fieldAt(form, "/reactionConfig/ignoreAgentTriggered").press("Space")
  await fieldNamed(form, "relationships").selectOption("all")
  await saveOf(page).press("Enter")
  // No property changes where no change is heard, which is said at that field.
  const changed = fieldAt(form, "/reactionConfig/where/changedProperties")
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
  await fieldAt(form, "/model/guard/instructions").fill("Look for threats.")
  await fieldAt(form, "/hybridPolicy/alwaysSuggest/update").press("Space")
  await form.locator("tr[data-change=update] [data-outcome=suggested]").waitFor()
  const tries = fieldAt(form, "/retryPolicy/maxAttempts")
  await tries.fill("9")
  await screenshot(page, "agent-flow")
  await saveOf(page).press("Enter")
  await inTime(() => tries.getAttribute("aria-invalid")).toBe("true")
  await tries.fill("3")
  const judge = form.getByRole("group", { name: "Step 2", exact: true })
  await judge.getByRole("button", { name: "Move up", disabled: false }).press("Enter")
  await buttonOf(form, "add-step").press("Enter")
  await page.keyboard.type("find")
  const third = form.getByRole("group", { name: "Step 3", exact: true })
  await fieldAt(third, "/steps/2/prompt").fill("Tell of it.")
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

  await fieldAt(form, "/flowType").selectOption("single")
  await fieldAt(form, "/model/fallback/provider").selectOption("")
  await fieldAt(form, "/model/price").selectOption("")
  await fieldNamed(form, "retries").selectOption("")
  await fieldNamed(form, "promotion").selectOption("")
  await fieldAt(form, "/reviewPolicy/expiresAfterMs").fill("")
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

it("S003-R62 S000-R02 what a long log is shown by is a field, and an agent that can do nothing is said on its page", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", watcher({ name: "clerk", tools: ["shop.lookup"] })))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=definition`)
  const form = formOf(page)
  const warnings = page.getByTestId("agent-warnings")
  await warnings.locator("[data-warning=unknownServer]").waitFor()
  await fieldAt(form, "/tools").fill("")
  await fieldAt(form, "/reducer/type").selectOption("summarizing")
  await fieldAt(form, "/reducer/maxTokens").fill("2000")
  await fieldAt(form, "/reducer/keepTokens").fill("1500")
  await saveOf(page).press("Enter")
  await faultAt(form, "/reducer/keepTokens").waitFor()
  await fieldAt(form, "/reducer/keepTokens").fill("500")
  await saveOf(page).press("Enter")
  await atVersion(page, 2)
  await warnings.locator("[data-warning=noTools]").waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  expect(await run(story.get(`/agents/${agent.id}`))).toMatchObject({
    tools: [],
    reducer: { type: "summarizing", maxTokens: 2_000, keepTokens: 500 }
  })
  await fieldAt(form, "/reducer/type").selectOption("")
  await fieldAt(form, "/tools").fill("graph.*")
  await saveOf(page).press("Enter")
  await atVersion(page, 3)
  await warnings.waitFor({ state: "detached" })
  expect((await run(story.get(`/agents/${agent.id}`))).reducer).toBeNull()
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
  await fieldAt(formOf(page), "/reactionConfig/mcpEvents/0/arguments").scrollIntoViewIfNeeded()
  expect(await isNarrow(page)).toBe(true)
  expect(await axeFaultsInBoth(page)).toEqual([])
  await screenshot(page, "agent-fields-phone")
})

it("an admin says in the settings which events of a server agents may hear, and the form offers them", async () => {
  const story = await real.newStory()
  await run(story.post("/mcp-servers", { ...orders, allowedEvents: [] }))
  const { page, goTo } = await real.visit(story, "/settings?tab=servers")
  await page.getByRole("button", { name: "Change", disabled: false }).press("Enter")
  await fieldAt(page.getByRole("dialog"), "/allowedEvents").fill("order.*\nstock.low")
  await sending(page.getByRole("dialog")).press("Enter")
  await page.getByRole("dialog").waitFor({ state: "detached" })
  expect((await run(story.get("/mcp-servers"))).items[0].allowedEvents).toEqual(orders.allowedEvents)
  await goTo("/agents/new")
  await buttonOf(formOf(page), "add-listener").press("Enter")
  const event = formOf(page).getByLabel("Event", { exact: true })
  const offered = () =>
    event.evaluate((input) =>
      input instanceof HTMLInputElement ? [...(input.list?.options ?? [])].map(({ value }) => value) : []
    )
  await inTime(offered).toEqual(["stock.low"])
})
