/**
 * Another person in the same tab: of what one read, wrote and was saying the next sees nothing and says nothing.
 */
import { Effect } from "effect"
import { expect, it } from "vitest"
import type { Page } from "playwright-core"
import { newAssistant } from "../../server/testing/chat-words.ts"
import { scripted, type Story } from "../../server/testing/platform.ts"
import { creating, pendingOf, suggesting, suggestingOnce } from "../../server/testing/suggestion-words.ts"
import { inTime } from "./inbox-words.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** A project in which an editor speaks with an agent, and another member with a token. */
const spoken = async (latencyMs = 0) => {
  const story = await real.newStory()
  const model = scripted([{ say: "That stays between us.", latencyMs }])
  const agent = await run(newAssistant(story, model, { name: "keeper" }))
  const { token } = await run(addGrace(story))
  const { page, goTo } = await real.visit(story, `/chat?agentId=${agent.id}`, { role: "editor" })
  await page.getByText("Signed in as a-editor").waitFor()
  const field = page.getByLabel(/^Message to/)
  return { story, page, goTo, field, signInGrace: () => signInGrace(page, token) }
}

/** Another member, with a token. */
const addGrace = (story: Story) =>
  Effect.andThen(
    story.post("/members", { userId: "grace", role: "editor" }),
    story.post("/tokens", { name: "of grace", userId: "grace" })
  )

/** The one signs out, and the other signs in where the page is. */
const signInGrace = async (page: Page, token: string) => {
  await page.getByRole("button", { name: "Sign out" }).click()
  await signIn(page, token)
}

const signIn = async (page: Page, token: string) => {
  await page.getByLabel("Or paste a token").fill(token)
  await page.keyboard.press("Enter")
  await page.getByText("Signed in as grace").waitFor()
}

/** All that the tab keeps. */
const kept = (page: Page): Promise<string> =>
  page.evaluate(() =>
    Object.entries(sessionStorage)
      .filter(([name]) => name.startsWith("tropism"))
      .join()
  )

/** What a page shows of the conversation of somebody else. */
const showsNothing = async (page: Page) => {
  await page.getByText("None yet").waitFor()
  await page.getByRole("alert").getByText("There is no such conversation").waitFor()
  expect(await page.getByText("I earn too little").count()).toBe(0)
  expect(await page.getByText("That stays between us.").count()).toBe(0)
}

it("whoever signs in after somebody has signed out finds neither their conversation nor what they had begun to write", async () => {
  const { page, field, signInGrace } = await spoken()
  await field.fill("I earn too little")
  await page.keyboard.press("Enter")
  await page.getByText("That stays between us.").waitFor()
  await page.getByText("keeper works …").waitFor({ state: "detached" })
  await field.fill("I will leave")
  const conversation = page.url()
  await page.getByRole("button", { name: "New conversation" }).click()
  await page.getByRole("heading", { name: "A new conversation" }).waitFor()
  await field.fill("Who else will")
  await page.evaluate("history.back()")
  await page.waitForURL(conversation)
  await inTime(() => field.inputValue()).toBe("I will leave")
  await signInGrace()
  await showsNothing(page)
  expect(await kept(page)).toBe("")
  await page.getByRole("button", { name: "New conversation" }).click()
  await page.getByRole("heading", { name: "A new conversation" }).waitFor()
  expect(await field.inputValue()).toBe("")
})

it("what somebody was told goes with them, also where it offers to take something back", async () => {
  const story = await real.newStory()
  const agent = await run(suggesting(story))
  await run(suggestingOnce(story, agent, creating("secret", {})))
  const [task] = await run(pendingOf(story))
  const { token } = await run(addGrace(story))
  const { page } = await real.visit(story, "/", { role: "reviewer" })
  await page.getByRole("button", { name: /^Approve/ }).press("Enter")
  const told = page.getByText(`Approved #${task.number}`)
  // A message on which the pointer rests stays.
  await page
    .getByRole("listitem")
    .filter({ hasText: `Approved #${task.number}` })
    .hover()
  await page.getByRole("button", { name: "Sign out" }).dispatchEvent("click")
  await page.getByLabel("Or paste a token").waitFor()
  expect(await told.count()).toBe(0)
  await signIn(page, token)
  expect(await told.count()).toBe(0)
})

it("what somebody was saying when they signed out is not said by the next", async () => {
  const { story, page, field, goTo, signInGrace } = await spoken(600_000)
  await field.fill("I earn too little")
  await page.keyboard.press("Enter")
  await page.waitForURL("**/chat/*")
  await page.getByText("keeper works …").waitFor()
  const said: Array<string> = []
  page.on("request", (request) => {
    if (request.method() === "POST" && request.url().endsWith("/chat")) said.push(request.postData() ?? "")
  })
  await signInGrace()
  // Also where the page is opened anew.
  await showsNothing(page)
  await goTo("/chat")
  await page.getByText("None yet").waitFor()
  expect(said).toEqual([])
  expect(await page.getByText("keeper works …").count()).toBe(0)
  await cancelAll(story)
})

/** Nothing is at work once the test is over. */
const cancelAll = async (story: Story) => {
  const { items } = await run(story.get("/runs?status=running"))
  for (const { id } of items) await run(story.post(`/runs/${id}/cancel`))
}

it("a page turns to the one who has signed in in another tab, and shows nothing of the one before", async () => {
  const { story, page, field } = await spoken()
  await field.fill("I earn too little")
  await page.keyboard.press("Enter")
  await page.getByText("That stays between us.").waitFor()
  await page.getByText("keeper works …").waitFor({ state: "detached" })
  await field.fill("I will leave")
  const { url } = await run(story.post("/members/grace/login-link"))
  const other = await page.context().newPage()
  await other.goto(url)
  await other.getByRole("button", { name: "Sign in as grace" }).click()
  await other.getByText("Signed in as grace").waitFor()
  await page.getByText("Signed in as grace").waitFor()
  await showsNothing(page)
  expect(await kept(page)).toBe("")
})
