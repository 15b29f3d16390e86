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
import { failure, messages, numbered } from "./page-parts.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** A project in which an editor speaks with an agent, and another member with a token. */
const spoken = async (latencyMs = 0) => {
  const story = await real.newStory()
  const model = scripted([{ say: "That stays between us.", latencyMs }])
  const agent = await run(newAssistant(story, model, { name: "keeper" }))
  const { token } = await run(addGrace(story))
  const { page, goTo } = await real.visit(story, `/chat?agentId=${agent.id}`, { role: "editor" })
  await signedIn(page, "a-editor").waitFor()
  const field = page.getByRole("main").locator("textarea")
  return { story, page, goTo, field, signInGrace: () => signInGrace(page, token) }
}

/** What shows who is signed in. */
const signedIn = (page: Page, userId: string) => page.locator(`[data-user="${userId}"]`)

/** Where a token is pasted to sign in. */
const tokenField = (page: Page) => page.locator("input[type=password]")

/** What shows that the agent works on an answer. */
const atWork = (page: Page) => page.locator("[data-connection=open]")

/** Where a conversation begins that has no message yet. */
const beginning = (page: Page) => page.getByTestId("new-conversation")

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
  await tokenField(page).fill(token)
  await page.keyboard.press("Enter")
  await signedIn(page, "grace").waitFor()
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
  await page.getByTestId("empty").waitFor()
  await failure(page, "not-found").waitFor()
  expect(await page.getByText("I earn too little").count()).toBe(0)
  expect(await page.getByText("That stays between us.").count()).toBe(0)
}

it("whoever signs in after somebody has signed out finds neither their conversation nor what they had begun to write", async () => {
  const { page, field, signInGrace } = await spoken()
  await field.fill("I earn too little")
  await page.keyboard.press("Enter")
  await page.getByText("That stays between us.").waitFor()
  await atWork(page).waitFor({ state: "detached" })
  await field.fill("I will leave")
  const conversation = page.url()
  await page.getByRole("button", { name: "New conversation" }).click()
  await beginning(page).waitFor()
  await field.fill("Who else will")
  await page.evaluate("history.back()")
  await page.waitForURL(conversation)
  await inTime(() => field.inputValue()).toBe("I will leave")
  await signInGrace()
  await showsNothing(page)
  expect(await kept(page)).toBe("")
  await page.getByRole("button", { name: "New conversation" }).click()
  await beginning(page).waitFor()
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
  const message = messages(page, "done", numbered(task))
  // A message on which the pointer rests stays.
  await message.hover()
  await page.getByRole("button", { name: "Sign out" }).dispatchEvent("click")
  await tokenField(page).waitFor()
  expect(await message.count()).toBe(0)
  await signIn(page, token)
  expect(await message.count()).toBe(0)
})

it("what somebody was saying when they signed out is not said by the next", async () => {
  const { story, page, field, goTo, signInGrace } = await spoken(600_000)
  await field.fill("I earn too little")
  await page.keyboard.press("Enter")
  await page.waitForURL("**/chat/*")
  await atWork(page).waitFor()
  const said: Array<string> = []
  page.on("request", (request) => {
    if (request.method() === "POST" && request.url().endsWith("/chat")) said.push(request.postData() ?? "")
  })
  await signInGrace()
  // Also where the page is opened anew.
  await showsNothing(page)
  await goTo("/chat")
  await page.getByTestId("empty").waitFor()
  expect(said).toEqual([])
  expect(await atWork(page).count()).toBe(0)
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
  await atWork(page).waitFor({ state: "detached" })
  await field.fill("I will leave")
  const { url } = await run(story.post("/members/grace/login-link"))
  const other = await page.context().newPage()
  await other.goto(url)
  await other.getByRole("button", { name: /grace/ }).click()
  await signedIn(other, "grace").waitFor()
  await signedIn(page, "grace").waitFor()
  await showsNothing(page)
  expect(await kept(page)).toBe("")
})
