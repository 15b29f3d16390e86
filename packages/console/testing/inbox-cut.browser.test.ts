/**
 * An inbox that was cut off from its server, against the whole program.
 *
 * Nothing in it waits for time.
 */
import { Effect } from "effect"
import { expect, it } from "vitest"
import { asked, asking } from "../../server/testing/question-words.ts"
import {
  creating,
  pendingOf,
  suggesting,
  suggestingOnce,
  updating
} from "../../server/testing/suggestion-words.ts"
import { cutLine } from "./cut-line.ts"
import { card, cardOf, inTime, heard, listed, numbered, toasts, told } from "./inbox-words.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

it("offline it keeps what it has and what is being written and says so; back again it has lost no event", async () => {
  const story = await real.newStory()
  const agent = await run(suggesting(story))
  const person = await run(story.post("/objects", { type: "Person", key: "ada", properties: { age: 1 } }))
  await run(suggestingOnce(story, agent, updating(person, { age: 2 })))
  const [task] = await run(pendingOf(story))
  const line = await cutLine(story.url)
  const { page } = await real.visit({ ...story, url: line.url })
  const asked: Array<string | undefined> = []
  page.on("request", (request) => {
    if (new URL(request.url()).pathname.endsWith("/events")) asked.push(request.headers()["last-event-id"])
  })
  await listed(page, 1)
  const live = page.locator("[data-testid=feed][data-state=live]")
  await live.waitFor({ state: "attached" })
  await run(story.patch(`/objects/${person.id}`, { properties: { seen: true } }))
  const moved = (state: string, name: string) =>
    cardOf(page, task).locator(`[data-staleness=${state}]`).getByText(name, { exact: true })
  await moved("rebasable", "seen").waitFor()
  const { items } = await run(story.get("/events?limit=200"))
  await cardOf(page, task).focus()
  await heard(page, "r", async () => (await page.getByRole("dialog").count()) === 1)
  await page.getByRole("textbox", { name: "Reason" }).fill("half a rea")

  line.cut()
  await page
    .locator("[role=alert][data-failure=unreachable][data-has-older]")
    .first()
    .waitFor({ state: "attached" })
  await inTime(() => page.locator("article").count()).toBe(1)
  await run(story.patch(`/objects/${person.id}`, { properties: { age: 3 } }))
  await run(suggestingOnce(story, agent, creating("while-away")))
  // What is decided meanwhile is taken neither for done nor for not done: it stays, and says why.
  await page.keyboard.press("Control+Enter")
  await told(page, "unknown", numbered(task))
  expect((await run(story.get(`/tasks/${task.id}`))).status).toBe("pending")

  line.mend()
  await listed(page, 2)
  await moved("outdated", "age").waitFor()
  await live.waitFor({ state: "attached" })
  // The feed goes on behind the last event that was heard, so that none in between is lost.
  await inTime(() => asked.at(-1)).toBe(String(items.length))
})

it("a decision whose answer was lost is told as what became of it, with its way back", async () => {
  const story = await real.newStory()
  const agent = await run(suggesting(story))
  for (const key of ["one", "two", "three"]) await run(suggestingOnce(story, agent, creating(key)))
  const { page } = await real.visit(story)
  await listed(page, 3)
  const [first, ...others] = await run(pendingOf(story))
  await page.route(/\/(approve|decisions)$/, async (route) => {
    await route.fetch()
    await route.abort("connectionreset")
  })
  await cardOf(page, first)
    .getByRole("button", { name: /^Approve/, disabled: false })
    .press("Enter")
  await told(page, "done", numbered(first))
  await page.getByRole("button", { name: /Undo/ }).first().waitFor()
  for (const task of others) await cardOf(page, task).getByRole("checkbox").check()
  await heard(page, "A", async () => (await toasts(page, "done", /^[^#\d]*2\b/).count()) > 0)
  for (const outcome of ["refused", "unknown"] as const) expect(await toasts(page, outcome).count()).toBe(0)
  for (const { id } of [first, ...others])
    expect((await run(story.get(`/tasks/${id}`))).status).toBe("completed")
})

it("an answer and a todo that are lost on their way back are told as what became of them", async () => {
  const story = await real.newStory()
  await run(Effect.asVoid(asked(story, asking("Which of them?"))))
  const todo = await run(story.post("/tasks", { title: "Call Ada" }))
  const { page } = await real.visit(story)
  await listed(page, 2)
  const question = card(page, "Which of them?")
  const field = question.getByRole("textbox")
  // While an answer is under way nothing is heard: a refusal is told before the list has come anew.
  const send = question.getByRole("button", { name: "Answer", exact: true, disabled: false })
  const isLost = /\/(answer|complete)$/
  // The server is not asked at all, and says so when it is asked what became of it.
  await page.route(isLost, (route) => route.abort("connectionreset"))
  await field.fill("The first")
  await send.press("Enter")
  await told(page, "refused", /#\d/)
  expect(await field.inputValue()).toBe("The first")
  // Nor can it be asked.
  await page.route(/\/tasks\/[^/?]+$/, (route) => route.abort("connectionreset"))
  await send.press("Enter")
  await told(page, "unknown", /#\d/)
  await question.getByRole("status").waitFor()
  await page.unrouteAll()
  // It does what it is asked, and only its answer is lost.
  await page.route(isLost, async (route) => {
    await route.fetch()
    await route.abort("connectionreset")
  })
  await send.press("Enter")
  await told(page, "done", /#\d/)
  await card(page, "Call Ada").getByRole("button", { name: "Complete" }).press("Enter")
  await told(page, "done", new RegExp(`t${todo.number}(?!\\d)`))
  await listed(page, 0)
})
