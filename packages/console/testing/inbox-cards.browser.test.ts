/**
 * A card of the inbox: how long it says that a decision was refused, and that a link to it leads there.
 */
import { Effect } from "effect"
import { expect, it } from "vitest"
import type { Page } from "playwright-core"
import type { Json, Story } from "../../server/testing/platform.ts"
import { asked, asking } from "../../server/testing/question-words.ts"
import { change, make } from "../../server/testing/story-words.ts"
import {
  creating,
  pendingOf,
  suggesting,
  suggestingOnce,
  updating
} from "../../server/testing/suggestion-words.ts"
import { suggestedAll } from "./inbox-plants.ts"
import { card, cardOf, heard, inTime, listed, refusedAt } from "./inbox-words.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const onPhone = { viewport: { width: 375, height: 700 }, hasTouch: true, isMobile: true }

it("why an approval was refused stands on its card until the card changes, and no longer", async () => {
  const story = await real.newStory()
  const agent = await run(suggesting(story))
  const person = await run(make(story, "Person", { name: "Ada", age: 36 }))
  await run(suggestingOnce(story, agent, updating(person, { age: 37 })))
  const [task] = await run(pendingOf(story))
  const { page } = await real.visit(story)
  await listed(page, 1)
  const shown = cardOf(page, task)
  const approve = shown.getByRole("button", { name: /^Approve/ })
  const refusal = shown.getByRole("status")
  const stale = (state: string) => shown.locator(`[data-staleness=${state}]`)

  // What moves while it is sent is on the card with the refusal, which stays to be read.
  await page.route("**/approve", async (route) => {
    await run(change(story, person, { age: 38 }))
    await route.continue()
  })
  const problem = await refusedAt(page, "**/approve", () => approve.press("Enter"))
  expect(problem).toMatchObject({ reason: "outdated" })
  await stale("outdated").getByText("age", { exact: true }).waitFor()
  await refusal.getByText(problem.detail).waitFor()
  // Other cards come, and this one has not changed: what it says still holds.
  for (const title of ["One more", "And one more"]) {
    await run(story.post("/tasks", { title }))
    await card(page, title).waitFor()
  }
  expect(await refusal.count()).toBe(1)
  await run(change(story, person, { name: "Countess" }))
  await stale("outdated")
    .filter({ hasText: /(?=.*\b1\b)(?=.*\b3\b)/ })
    .waitFor()
  await inTime(() => refusal.count()).toBe(0)
})

it("S000-R29 a card says before the click that its agent may not do this any more, and offers no approval", async () => {
  const story = await real.newStory()
  const agent = await run(suggesting(story))
  const person = await run(make(story, "Person", { name: "Ada", age: 36 }))
  await run(suggestingOnce(story, agent, updating(person, { age: 37 })))
  const [task] = await run(pendingOf(story))
  const { page } = await real.visit(story)
  await listed(page, 1)
  const shown = cardOf(page, task)
  const button = (name: RegExp) => shown.getByRole("button", { name })
  const notice = shown.locator("[data-denied=true]")
  expect(await notice.count()).toBe(0)
  const sent: Array<string> = []
  page.on("request", (request) => {
    if (request.method() === "POST" && /approve|decisions/.test(request.url()))
      sent.push(`${request.url()} ${request.postData() ?? ""}`)
  })

  // It is taken away while the approval is sent: the sentence stands on the card once.
  await page.route("**/approve", async (route) => {
    await run(story.patch(`/agents/${agent.id}`, { capabilities: { canUpdateObjects: false } }))
    await route.continue()
  })
  const problem = await refusedAt(page, "**/approve", () => button(/^Approve/).press("Enter"))
  expect(problem).toMatchObject({ reason: "notPermitted" })
  await notice.getByText(problem.detail).waitFor()
  await inTime(() => shown.getByText(problem.detail).count()).toBe(1)
  expect(await notice.getByRole("link").getAttribute("href")).toContain(`/agents/${agent.id}`)
  for (const name of [/^Approve/, /^Edit/])
    expect(await button(name).getAttribute("aria-disabled")).toBe("true")
  expect(await button(/^Reject/).getAttribute("aria-disabled")).toBeNull()

  // The keys send nothing and say why.
  for (const key of ["a", "e"])
    await heard(page, key, async () => (await page.locator("li[data-reason=denied]").count()) > 0)
  expect(sent).toHaveLength(1)
  await page.unroute("**/approve")

  // Of several that are selected, it stays.
  const other = await run(suggesting(story, { name: "other" }))
  await run(suggestingOnce(story, other, updating(person, { name: "Ada L." })))
  await listed(page, 2)
  for (const each of await page.getByRole("article").getByRole("checkbox").all()) await each.press(" ")
  const bar = page.getByRole("region", { name: "Selected suggestions" })
  await bar.getByRole("button", { name: /^Approve 1 of/ }).press("Enter")
  await listed(page, 1)
  await notice.waitFor()
  expect(sent.filter((request) => request.includes(task.id))).toHaveLength(1)
  expect(await run(story.get(`/tasks/${task.id}`))).toMatchObject({ status: "pending" })
  await run(story.patch(`/agents/${agent.id}`, { capabilities: null }))
  await inTime(() => notice.count()).toBe(0)
  await button(/^Approve/).press("Enter")
  await listed(page, 0)
})

/** Where the top of a card lies in the window, and what is left of the window for it. */
const placeOf = (page: Page, title: string) =>
  card(page, title).evaluate((element) => {
    const bar = document.querySelector("header")?.getBoundingClientRect().bottom ?? 0
    const { top, bottom } = element.getBoundingClientRect()
    return { isBelowBar: top >= bar, isSeen: Math.min(bottom, top + 120) <= window.innerHeight }
  })

/** Thirty suggestions, two questions and three todos: the list is many windows long. */
const manyTasks = async (story: Story): Promise<ReadonlyArray<Json>> => {
  const people = []
  for (let place = 0; place < 30; place++)
    people.push(await run(make(story, "Person", { place, note: "A long note.\n".repeat(8) })))
  const calls = people.map((person) => updating(person, { note: `Another note of ${person.id}` }))
  await run(suggestedAll(story, "noter", calls))
  await run(Effect.asVoid(asked(story, asking("Which of them?"), asking("And why?"))))
  for (const title of ["First todo", "Second todo", "Last todo"]) await run(story.post("/tasks", { title }))
  return run(pendingOf(story))
}

it("a link to a task brings its card into view, on a phone as well", async () => {
  const story = await real.newStory()
  const tasks = await manyTasks(story)
  const suggestions = tasks.filter(({ type }) => type !== "todo" && type !== "question")
  const linked = [
    suggestions.at(-1),
    suggestions.at(15),
    tasks.find(({ title }) => title === "Last todo"),
    tasks.findLast(({ type }) => type === "question")
  ]
  for (const options of [onPhone, {}]) {
    for (const task of linked) {
      const { page } = await real.visit(story, `/tasks/${task.id}`, options)
      await listed(page, tasks.length)
      const title = task.payload?.question ?? task.title
      await inTime(() => placeOf(page, title)).toEqual({ isBelowBar: true, isSeen: true })
      await inTime(() => card(page, title).getAttribute("aria-current")).toBe("true")
      // What is drawn later, above it, does not push it away.
      await page.getByRole("complementary", { name: "Recent runs" }).getByRole("link").first().waitFor()
      expect(await placeOf(page, title)).toEqual({ isBelowBar: true, isSeen: true })
      await page.close()
    }
  }
}, 300_000)

it("whoever decides far down what a link led to stays there", async () => {
  const story = await real.newStory()
  const tasks = await manyTasks(story)
  const task = tasks.filter(({ type }) => type !== "todo" && type !== "question").at(15)
  const { page } = await real.visit(story, `/tasks/${task?.id}`)
  await listed(page, tasks.length)
  await inTime(() => placeOf(page, task?.title)).toEqual({ isBelowBar: true, isSeen: true })
  const approve = cardOf(page, task).getByRole("button", { name: /^Approve/ })
  await approve.scrollIntoViewIfNeeded()
  const from = await page.evaluate(() => {
    const places: Array<number> = []
    Object.assign(window, { places })
    window.addEventListener("scroll", () => places.push(window.scrollY))
    return window.scrollY
  })
  await approve.click()
  await listed(page, tasks.length - 1)
  expect(new URL(page.url()).pathname).toBe("/")
  expect(from).toBeGreaterThan(1_000)
  const places = await page.evaluate<Array<number>>("window.places")
  expect(Math.min(from, ...places)).toBeGreaterThan(from - 700)
})

it("answers to choose from stand whole on a phone, however long, and the run says that it asks", async () => {
  const story = await real.newStory()
  const answers = ["Merge both customers into the older one and keep all of their orders", "word".repeat(40)]
  await run(Effect.asVoid(asked(story, asking("Which of them?", answers))))
  const { page } = await real.visit(story, "/", onPhone)
  await listed(page, 1)
  for (const name of answers) {
    const box = await page.getByRole("button", { name }).boundingBox()
    expect(box).not.toBeNull()
    expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(375)
  }
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(375)
  await page.locator("[data-status=paused][data-pause-reason=question]").waitFor()
})

it("on a phone no long word makes the page wider, also of cards that are far from view", async () => {
  const story = await real.newStory()
  const agent = await run(suggesting(story))
  const keys = Array.from({ length: 12 }, (_, index) => `${index}${"x".repeat(80)}`)
  for (const key of keys) await run(suggestingOnce(story, agent, creating(key)))
  const { page } = await real.visit(story, "/", { viewport: { width: 375, height: 700 } })
  await listed(page, keys.length)
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(375)
})
