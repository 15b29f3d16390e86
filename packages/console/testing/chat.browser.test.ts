/**
 * The chat against the whole program: tool calls are seen, words come as they are made, and a cut or a reload says nothing twice.
 */
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { newAssistant } from "../../server/testing/chat-words.ts"
import { scripted } from "../../server/testing/platform.ts"
import { axeFaultsInBoth, screenshot } from "./page-checks.ts"
import { buttonOf } from "./page-parts.ts"
import { inTime } from "./inbox-words.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** Longer than a busy machine takes to reload a page and to press a few keys. */
const silentMs = 15_000

/** Adds what it is told, then is silent for so long, and says it. */
const adding = (latencyMs: number) =>
  scripted([
    {
      when: "step == 0",
      say: "One moment.",
      calls: [{ tool: "add_task", arguments: { title: "{{ message }}" } }]
    },
    { say: "It is on <b>your</b> list.", latencyMs }
  ])

/** Stands on the page while an agent is at work on an answer. */
const atWork = (page: Page, agentName: string) =>
  page.locator("[data-connection=open]").filter({ hasText: agentName })

/** The lines of a conversation, and the tool calls in them that have worked. */
const transcript = (page: Page) => page.getByTestId("transcript")
const worked = (page: Page) => transcript(page).locator("[data-outcome=worked]")

/** What the page asks the server when something is said. */
const isSaying = (url: URL): boolean => url.pathname.startsWith("/api/") && url.pathname.endsWith("/chat")

it("speaks with TodoAssistant by itself, says that a script answers, and renames, exports and deletes", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/chat")
  await page.getByTestId("script-notice").filter({ hasText: "TodoAssistant" }).waitFor()
  await page.getByLabel("Message to TodoAssistant").fill("add water plants")
  await page.keyboard.press("Enter")
  await page.waitForURL("**/chat/*")
  const said = transcript(page)
  await worked(page).waitFor()
  await page.getByRole("button", { name: "Send" }).waitFor()
  await said.getByText("add_task").click()
  await said.getByText('"Water plants"').first().waitFor()
  await screenshot(page, "chat")
  expect(await axeFaultsInBoth(page)).toEqual([])
  const { items } = await run(story.get("/conversations"))
  expect(items.length).toBe(1)

  await page.getByRole("button", { name: "Rename" }).click()
  await page.getByRole("dialog").getByLabel("Title").fill("Groceries")
  await page.keyboard.press("Enter")
  await page.getByRole("heading", { name: "Groceries" }).waitFor()
  const download = page.waitForEvent("download")
  await page.getByRole("link", { name: "Export" }).click()
  expect((await download).suggestedFilename()).toBe(`conversation-${items[0].id}.json`)
  await page.getByRole("button", { name: "Delete" }).click()
  await buttonOf(page.getByRole("dialog"), "confirm").click()
  await page.getByTestId("new-conversation").waitFor()
  await page.getByTestId("empty").waitFor()
})

it("goes on over a cut and a reload without saying anything twice, and stops when it is told to", async () => {
  const story = await real.newStory()
  const agent = await run(newAssistant(story, adding(silentMs), { name: "slow" }))
  const { page } = await real.visit(story, `/chat?agentId=${agent.id}`)
  const field = page.getByLabel("Message to slow")
  // What is said first reaches the server, and the connection breaks before anything is answered.
  await page.route(
    isSaying,
    async (route) => {
      const headers = { ...route.request().headers(), accept: "application/json" }
      await route.fetch({ url: `${route.request().url()}?wait=false`, headers })
      await route.abort("connectionreset")
    },
    { times: 1 }
  )
  await field.fill("Buy bread")
  await page.keyboard.press("Enter")
  await page.locator("[data-connection=lost]").waitFor()
  const said = transcript(page)
  await worked(page).waitFor()
  await page.reload()
  await atWork(page, "slow").waitFor()
  // What somebody opened while it was being said stays open when it is kept.
  await said.getByText("add_task").click()
  await said.getByText('"Buy bread"').first().waitFor()
  await said.getByText("It is on <b>your</b> list.").waitFor()
  await page.getByRole("button", { name: "Send" }).waitFor()
  await inTime(() => said.locator("time").count()).toBe(3)
  expect(await said.getByText('"Buy bread"').first().isVisible()).toBe(true)
  await inTime(() => said.getByText("Buy bread", { exact: true }).count()).toBe(1)
  const [conversation] = (await run(story.get("/conversations"))).items
  const messages = async () => (await run(story.get(`/conversations/${conversation.id}/messages`))).items
  expect((await messages()).filter(({ role }: { readonly role: string }) => role === "user").length).toBe(1)

  await run(story.patch(`/agents/${agent.id}`, { model: adding(600_000) }))
  await page.getByRole("button", { name: "Send" }).waitFor()
  await field.fill("Buy eggs")
  await page.keyboard.press("Enter")
  await atWork(page, "slow").waitFor()
  await worked(page).nth(1).waitFor()
  await page.getByRole("button", { name: "Stop" }).click()
  const sayAgain = page.getByTestId("say-again").and(page.locator("[data-answer=interrupted]"))
  await run(story.patch(`/agents/${agent.id}`, { model: adding(0) }))
  await sayAgain.click()
  await inTime(() => said.getByText("Buy eggs", { exact: true }).count()).toBe(2)
  await atWork(page, "slow").waitFor({ state: "detached" })
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.setViewportSize({ width: 375, height: 700 })
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(375)
})

it("an answer that is told anew after a cut is told from its beginning, its calls as well", async () => {
  const story = await real.newStory()
  const agent = await run(newAssistant(story, adding(0), { name: "slow" }))
  const { page } = await real.visit(story, `/chat?agentId=${agent.id}`)
  const told = Promise.withResolvers<void>()
  const again = Promise.withResolvers<void>()
  let conversationId: string | undefined
  let tries = 0
  // Twice the connection breaks after the same words; the third waits.
  await page.route(isSaying, async (route) => {
    tries += 1
    if (tries > 2) {
      told.resolve()
      await again.promise
      return route.fallback()
    }
    if (conversationId === undefined) {
      const headers = { ...route.request().headers(), accept: "application/json" }
      const response = await route.fetch({ url: `${route.request().url()}?wait=false`, headers })
      conversationId = (await response.json()).conversationId
    }
    const call = { callId: "c1", status: "completed", tool: "add_task", arguments: {}, result: {} }
    const events: ReadonlyArray<readonly [string, unknown]> = [
      ["begun", { conversationId }],
      ["words", { text: "One moment." }],
      ["toolCall", call],
      ["words", { text: "It is noted." }]
    ]
    await route.fulfill({
      contentType: "text/event-stream",
      body: events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join("")
    })
  })
  await page.getByLabel("Message to slow").fill("Buy bread")
  await page.keyboard.press("Enter")
  await told.promise
  const answer = transcript(page).locator(":scope > li").last()
  await answer.locator("[data-outcome=worked]").waitFor()
  // What is said behind a call begins a paragraph.
  expect(await answer.innerText()).toMatch(/One moment\.\s+It is noted\.$/)
  again.resolve()
  await page.getByRole("button", { name: "Send" }).waitFor()
})

it("a call that somebody opened stays open, and it alone, when an answer of several parts is kept", async () => {
  const story = await real.newStory()
  const add = (title: string) => [{ tool: "add_task", arguments: { title } }]
  const model = scripted([
    { when: "step == 0", say: "First the milk.", calls: add("Milk") },
    { when: "step == 1", say: "Then the bread.", calls: add("Bread") },
    { say: "Both are on your list.", latencyMs: silentMs }
  ])
  const agent = await run(newAssistant(story, model, { name: "shopper" }))
  const { page } = await real.visit(story, `/chat?agentId=${agent.id}`)
  await page.getByLabel("Message to shopper").fill("Milk and bread")
  await page.keyboard.press("Enter")
  const said = transcript(page)
  const calls = said.locator("details")
  await inTime(() => worked(page).count()).toBe(2)
  await said.getByText("add_task").nth(1).click()
  await said.getByText('"Bread"').first().waitFor()
  expect(await said.getByText('"Milk"').first().isVisible()).toBe(false)
  // It is being said in one line, and is kept in three, of which two have a call each.
  await atWork(page, "shopper").waitFor()
  await inTime(() => said.locator("time").count()).toBe(4)
  const opened = () => calls.evaluateAll((all) => all.map((each) => each.hasAttribute("open")))
  await inTime(opened).toEqual([false, true])
  await said.getByText("add_task").first().click()
  expect(await opened()).toEqual([true, true])
  await said.getByText("add_task").nth(1).click()
  expect(await opened()).toEqual([true, false])
})

it("the call that the keyboard is on keeps it when the answer is kept", async () => {
  const story = await real.newStory()
  const agent = await run(newAssistant(story, adding(silentMs), { name: "slow" }))
  const { page } = await real.visit(story, `/chat?agentId=${agent.id}`)
  await page.getByLabel("Message to slow").fill("Buy tea")
  await page.keyboard.press("Enter")
  const said = transcript(page)
  await worked(page).waitFor()
  await said.locator("summary").focus()
  await page.keyboard.press("Enter")
  await said.getByText('"Buy tea"').first().waitFor()
  await atWork(page, "slow").waitFor()
  await inTime(() => said.locator("time").count()).toBe(3)
  expect(await said.locator("summary").evaluate((summary) => summary === document.activeElement)).toBe(true)
  await page.keyboard.press("Enter")
  await inTime(() => said.locator("details").evaluate((each) => each.hasAttribute("open"))).toBe(false)
})

it("keeps the field in view below a long conversation, with the newest words above it, also on a phone", async () => {
  const story = await real.newStory()
  const long = Array.from({ length: 5 }, (_, n) => `Line ${n} of it.`).join("\n")
  const agent = await run(
    newAssistant(story, scripted([{ say: `${long}\nThat was all of {{ message }}.` }]), { name: "talker" })
  )
  const { page } = await real.visit(story, `/chat?agentId=${agent.id}`)
  const field = page.getByLabel("Message to talker")
  for (const words of ["one", "two", "three", "four"]) {
    await field.fill(words)
    await page.keyboard.press("Enter")
    await page.getByText(`That was all of ${words}.`).waitFor()
    await atWork(page, "talker").waitFor({ state: "detached" })
  }
  const places = () =>
    page.evaluate(() => {
      const area = document.querySelector("main textarea")?.getBoundingClientRect()
      const said = document.querySelector("[data-testid=transcript] > li:last-child")
      const head = document.querySelector("main form")?.getBoundingClientRect()
      const words = said?.getBoundingClientRect()
      return area !== undefined && head !== undefined && words !== undefined
        ? { isInView: area.bottom <= innerHeight, isCovered: words.bottom > head.top }
        : undefined
    })
  await inTime(places).toEqual({ isInView: true, isCovered: false })
  expect(await axeFaultsInBoth(page)).toEqual([])
  await page.evaluate("scrollTo(0, 0)")
  await inTime(async () => (await places())?.isInView).toBe(true)
  await page.setViewportSize({ width: 390, height: 700 })
  await page.reload()
  await field.waitFor()
  await inTime(places).toEqual({ isInView: true, isCovered: false })
})

it("says to who may only read who may speak, and offers no field", async () => {
  const story = await real.newStory()
  const { page } = await real.visit(story, "/chat", { role: "viewer" })
  await page.getByTestId("may-not-speak").waitFor()
  expect(await page.getByRole("textbox").count()).toBe(0)
  expect(await page.getByRole("button", { name: "New conversation" }).count()).toBe(0)
  expect(await axeFaultsInBoth(page)).toEqual([])
})

it("what is written and not yet said stays: beside the first answer, on other pages, and where it was refused", async () => {
  const story = await real.newStory()
  const agent = await run(newAssistant(story, adding(1_500), { name: "slow" }))
  const { page, goTo } = await real.visit(story, `/chat?agentId=${agent.id}`)
  const field = page.getByLabel("Message to slow")
  await field.fill("Buy bread")
  await page.keyboard.press("Enter")
  await page.keyboard.type("and ")
  await page.waitForURL(/\/chat\/[0-9a-f-]+/)
  await inTime(() => page.evaluate(() => document.activeElement?.tagName)).toBe("TEXTAREA")
  await page.keyboard.type("next")
  await atWork(page, "slow").waitFor({ state: "detached" })
  expect(await field.inputValue()).toBe("and next")
  const here = new URL(page.url())
  const path = `/api/projects/${story.projectId}/kill-switch`
  await goTo("/health")
  await goTo(here.pathname)
  await inTime(() => field.inputValue()).toBe("and next")

  await run(story.send("PUT", path, { stopped: true, reason: "Too much" }))
  await field.press("Enter")
  // The frame says so too, sooner or later.
  await page
    .getByText(/Too much/)
    .first()
    .waitFor()
  await inTime(() => field.inputValue()).toBe("and next")
  await page.reload()
  await inTime(() => field.inputValue()).toBe("and next")
  await run(story.send("PUT", path, { stopped: false }))
  await field.press("Enter")
  const said = transcript(page)
  await said.getByText("and next", { exact: true }).waitFor()
  expect(await field.inputValue()).toBe("")
})

it("who has scrolled up to read stays there while the answer comes, until they speak again", async () => {
  const story = await real.newStory()
  const long = Array.from({ length: 5 }, (_, n) => `Line ${n} of it.`).join("\n")
  const model = scripted([{ say: `${long}\nThat was all of {{ message }}.` }])
  const agent = await run(newAssistant(story, model, { name: "talker" }))
  const viewport = { width: 800, height: 500 }
  const { page } = await real.visit(story, `/chat?agentId=${agent.id}`, { viewport })
  const field = page.getByLabel("Message to talker")
  const works = atWork(page, "talker")
  const place = () => page.evaluate(() => window.scrollY)
  const isEndInView = () =>
    page.evaluate(() => {
      const words = document.querySelector("[data-testid=transcript] > li:last-child")
      const form = document.querySelector("main form")
      if (words === null || form === null) return undefined
      return words.getBoundingClientRect().bottom <= form.getBoundingClientRect().top
    })
  const say = async (words: string) => {
    await field.fill(words)
    await page.keyboard.press("Enter")
    await works.waitFor()
  }
  const heard = async (words: string) => {
    await page.getByText(`That was all of ${words}.`).waitFor()
    await works.waitFor({ state: "detached" })
  }
  /** The answer waits until it is let through. */
  const hold = async () => {
    const held = Promise.withResolvers<void>()
    await page.route(
      isSaying,
      async (route) => {
        const response = await route.fetch()
        await held.promise
        await route.fulfill({ response })
      },
      { times: 1 }
    )
    return held.resolve
  }
  let answer = await hold()
  await say("one")
  answer()
  await heard("one")
  await inTime(isEndInView).toBe(true)

  answer = await hold()
  await say("two")
  await inTime(isEndInView).toBe(true)
  expect(await place()).toBeGreaterThan(0)
  await page.evaluate(scrolledToTop)
  answer()
  await heard("two")
  expect(await place()).toBe(0)

  // Whoever speaks looks at what is said, and whoever goes to the end by themselves too.
  answer = await hold()
  await say("three")
  await inTime(isEndInView).toBe(true)
  answer()
  await heard("three")
  await inTime(isEndInView).toBe(true)
})

/** Resolves when the page has heard that it was scrolled. */
const scrolledToTop = () =>
  new Promise<void>((resolve) => {
    window.addEventListener("scroll", () => resolve(), { once: true })
    window.scrollTo(0, 0)
  })

it("a conversation that begins is opened once, and not where somebody has gone elsewhere meanwhile", async () => {
  const story = await real.newStory()
  const agent = await run(newAssistant(story, adding(0), { name: "slow" }))
  const { page } = await real.visit(story, `/chat?agentId=${agent.id}`)
  const again = Promise.withResolvers<void>()
  let tries = 0
  // The connection breaks when the conversation has begun; the next one waits.
  await page.route(isSaying, async (route) => {
    tries += 1
    if (tries > 1) {
      await again.promise
      return route.fallback()
    }
    const headers = { ...route.request().headers(), accept: "application/json" }
    const response = await route.fetch({ url: `${route.request().url()}?wait=false`, headers })
    const { conversationId } = await response.json()
    await route.fulfill({
      contentType: "text/event-stream",
      body: `event: begun\ndata: ${JSON.stringify({ conversationId })}\n\n`
    })
  })
  const field = page.getByLabel(/^Message to/)
  await field.fill("Buy bread")
  await page.keyboard.press("Enter")
  await page.waitForURL("**/chat/*")
  await page.locator("[data-connection=lost]").waitFor()
  await page.getByRole("button", { name: "New conversation" }).click()
  await page.getByTestId("new-conversation").waitFor()
  await field.fill("Something else")
  again.resolve()
  // It has begun once more by then, and was answered.
  await page.getByRole("button", { name: "Send", disabled: false }).waitFor()
  expect(new URL(page.url()).pathname).toBe("/chat")
  expect(await field.inputValue()).toBe("Something else")
  expect(tries).toBe(2)
})
