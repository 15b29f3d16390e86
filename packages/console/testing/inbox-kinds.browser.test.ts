/**
 * What each kind of task looks like and what is done about it, against the whole program: agents suggested it in real runs.
 */
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import { eventually, type Json } from "../../server/testing/platform.ts"
import { calling, change, endedRuns, make, watcher } from "../../server/testing/story-words.ts"
import { promoted } from "../../server/testing/autonomy-words.ts"
import { asked } from "../../server/testing/question-words.ts"
import { pendingOf, suggesting, suggestingOnce, updating } from "../../server/testing/suggestion-words.ts"
import { acting, aLetter, getting } from "../../server/testing/taint-words.ts"
import {
  card,
  cardOf,
  heard,
  inTime,
  linkOf,
  listed,
  numbered,
  press,
  refusedAt,
  toasts,
  told
} from "./inbox-words.ts"
import { axeFaultsInBoth, screenshot } from "./page-checks.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

const dialog = "dialog"

/** The card of an undo that is planned. */
const planOf = (page: Page) => page.locator("article[data-kind=undo]")

/** The button of a plan that takes back as much of it as is chosen. */
const undoing = (taken: number, all: number) => new RegExp(`^Undo[^:\\d]+${taken}[^:\\d]+${all}\\b`)

it("a suggestion is edited property by property and approved, and taken back by a plan that is approved", async () => {
  const story = await real.newStory()
  const person = await run(make(story, "Person", { name: "Ada", age: 36, old: true }))
  const agent = await run(suggesting(story))
  const edited = { name: "Ada L.", age: 37, city: "London", old: null }
  await run(suggestingOnce(story, agent, { ...updating(person, edited), reasoning: "She said so." }))
  const [task] = await run(pendingOf(story))
  const { page } = await real.visit(story)
  await listed(page, 1)

  // e opens the fields; a text stays a text, JSON is checked before it is sent, what is left out is not written.
  await press(page, "j", "e")
  const fields = page.getByRole(dialog, { name: numbered(task) })
  await fields.getByLabel("age as JSON").fill("thirty-eight")
  await inTime(() => fields.getByLabel("age as JSON").getAttribute("aria-invalid")).toBe("true")
  expect(await fields.getByRole("button", { name: "Approve as edited" }).isDisabled()).toBe(true)
  await fields.getByLabel("age as JSON").fill("38")
  await fields.getByRole("checkbox", { name: "Leave out city" }).check()
  await fields.getByRole("checkbox", { name: "Leave out old" }).check()
  await screenshot(page, "inbox-edit")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await fields.getByLabel("name", { exact: true }).fill("007")
  await page.keyboard.press("Control+Enter")
  await told(page, "done", numbered(task))
  await listed(page, 0)
  const now = () => run(story.get(`/objects/${person.id}`))
  expect((await now()).properties).toEqual({ name: "007", age: 38, old: true })

  // The toast takes it back: by a plan, which shows what goes back before anything does.
  await page.getByRole("button", { name: "Undo" }).click()
  const plan = planOf(page)
  await inTime(() => plan.locator("del").allTextContents()).toEqual([
    expect.stringContaining("38"),
    expect.stringContaining("007")
  ])
  expect((await now()).properties).toEqual({ name: "007", age: 38, old: true })
  await screenshot(page, "inbox-undo")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await plan.getByRole("button", { name: undoing(1, 1), disabled: false }).press("Enter")
  await listed(page, 0)
  await inTime(now).toMatchObject({ properties: { name: "Ada", age: 36, old: true } })
})

it("what is edited while the object moves says how it is now, and is approved for that", async () => {
  const story = await real.newStory()
  const person = await run(make(story, "Person", { age: 36 }))
  const agent = await run(suggesting(story))
  await run(
    suggestingOnce(story, agent, { ...updating(person, { age: 37 }), reasoning: "A year has passed." })
  )
  const [task] = await run(pendingOf(story))
  const { page } = await real.visit(story)
  await listed(page, 1)
  await press(page, "j", "e")
  const fields = page.getByRole(dialog, { name: numbered(task) })
  await fields.getByLabel("age as JSON").fill("38")
  await run(story.patch(`/objects/${person.id}`, { properties: { age: 50 } }))
  const moved = fields.getByTestId("moved-notice")
  await moved
    .filter({ hasText: "age" })
    .filter({ hasText: /\b50\b/ })
    .waitFor()
  expect(await axeFaultsInBoth(page)).toEqual([])
  // Unread it is refused, and what was typed stays.
  const problem = await refusedAt(page, "**/approve", () =>
    fields.getByRole("button", { name: "Approve as edited", disabled: false }).press("Enter")
  )
  expect(problem).toMatchObject({ reason: "outdated" })
  await fields.getByRole("alert").waitFor()
  expect((await run(story.get(`/objects/${person.id}`))).properties).toEqual({ age: 50 })
  await moved.getByRole("button").click()
  await fields.getByRole("button", { name: "Approve as edited", disabled: false }).press("Enter")
  await fields.waitFor({ state: "detached" })
  await listed(page, 0)
  expect((await run(story.get(`/objects/${person.id}`))).properties).toEqual({ age: 38 })
})

/** One run has suggested two notes, and both are approved; the message of the second offers to take it back. */
const twoApproved = async () => {
  const story = await real.newStory()
  const agent = await run(
    story.post(
      "/agents",
      watcher({
        executionMode: "suggest",
        reactionConfig: { objectTypes: ["Start"], events: ["created"] },
        model: calling(
          ...["one", "two"].map((key) => ({
            tool: "create_object",
            arguments: { type: "Note", key, properties: { key } }
          }))
        )
      })
    )
  )
  await run(make(story, "Start"))
  await run(endedRuns(story, agent, 1))
  const [first, second] = await run(pendingOf(story))
  const { page } = await real.visit(story)
  await listed(page, 2)
  await page.getByRole("button", { name: /^Approve .*one/ }).click()
  await listed(page, 1)
  await page.getByRole("button", { name: /^Approve .*two/ }).click()
  expect(first.number).toBeLessThan(second.number)
  const undo = toasts(page, "done", numbered(second)).getByRole("button", { name: "Undo" })
  const notes = async () => (await run(story.get("/objects?type=Note"))).items.map(({ key }: Json) => key)
  return { page, undo, plan: planOf(page), notes }
}

it("the toast of one of two approvals of a run leaves the other as it is", async () => {
  const { page, undo, plan, notes } = await twoApproved()
  await undo.click()
  await plan.getByRole("button", { name: undoing(1, 2) }).click()
  await listed(page, 0)
  expect(await notes()).toEqual(["one"])
})

it("the toast of one approval leaves all others as they are also where the plan is longer than a page, once all of it is read", async () => {
  const { page, undo, plan, notes } = await twoApproved()
  // One thing is as much as a page holds, and the second page comes when it is let through.
  const further = Promise.withResolvers<void>()
  await page.route("**/items?*", async (route) => {
    const url = new URL(route.request().url())
    if (url.searchParams.has("cursor")) await further.promise
    url.searchParams.set("limit", "1")
    await route.continue({ url: url.href })
  })
  await undo.click()
  await plan.getByRole("checkbox").waitFor()
  await plan.getByRole("button", { name: /^Undo[^:\d]*:/, disabled: true }).waitFor()
  expect(await plan.getByRole("checkbox").count()).toBe(1)
  further.resolve()
  await plan.getByRole("button", { name: undoing(1, 2), disabled: false }).click()
  await listed(page, 0)
  expect(await notes()).toEqual(["one"])
})

it("a further page of a plan that cannot be read is asked for again by itself", async () => {
  const { page, undo, plan, notes } = await twoApproved()
  let isRefused = false
  await page.route("**/items?*", async (route) => {
    const url = new URL(route.request().url())
    url.searchParams.set("limit", "1")
    if (!url.searchParams.has("cursor") || isRefused) return route.continue({ url: url.href })
    isRefused = true
    await route.fulfill({ status: 503, json: {} })
  })
  await undo.click()
  await plan.locator("[role=alert][data-failure]").waitFor()
  await plan.getByRole("button", { name: /^Undo[^:\d]*:/, disabled: true }).waitFor()
  await plan.getByRole("button", { name: undoing(1, 2), disabled: false }).click()
  await listed(page, 0)
  expect(await notes()).toEqual(["one"])
})

it("marks stand before the click: what moved, whose evidence moved, what nobody vouches for, for whom and until when", async () => {
  const story = await real.newStory()
  const agent = await run(
    story.post(
      "/agents",
      watcher({
        name: "licences",
        executionMode: "suggest",
        reactionConfig: { objectTypes: ["Package"], events: ["created"] },
        model: calling({
          tool: "update_object",
          arguments: { objectId: "{{ input.object.id }}", properties: { licence: "MIT" } }
        })
      })
    )
  )
  const moved = await run(make(story, "Package", { licence: "?" }))
  await run(endedRuns(story, agent, 1))
  const [outdated] = await run(pendingOf(story))
  await run(change(story, moved, { licence: "ISC" }))
  const letter = await run(aLetter(story))
  const obedient = await run(
    acting(
      story,
      "reader",
      [
        [getting(letter)],
        [{ tool: "create_object", arguments: { type: "Note", key: "obeyed", properties: { text: "Obey" } } }]
      ],
      { executionMode: "suggest" }
    )
  )
  await run(story.post(`/agents/${obedient.id}/trigger`))
  const tainted = (await run(pendingOf(story))).find(({ id }) => id !== outdated.id)
  const expiresAt = new Date(Date.now() + 90 * 60_000).toISOString()
  await run(story.patch(`/tasks/${tainted.id}`, { assignee: "admin", expiresAt }))

  const { page } = await real.visit(story)
  await listed(page, 2)
  const stale = cardOf(page, outdated)
  await stale.locator("[data-staleness=outdated]").getByText("licence", { exact: true }).waitFor()
  await stale.getByTestId("seen-by-agent").getByText("?", { exact: true }).waitFor()
  // What is likely to be refused offers to reject first.
  const buttons = stale.getByRole("button", { name: /^(Approve|Edit|Reject)/ })
  await inTime(() => buttons.allTextContents()).toEqual([
    expect.stringMatching(/^Reject/),
    expect.stringMatching(/^Edit/),
    expect.stringMatching(/^Approve/)
  ])
  const foreign = cardOf(page, tainted)
  await foreign.getByTestId("untrusted-sources").getByText(letter.id).waitFor()
  await foreign.locator("[data-assignee=admin]").waitFor()
  await foreign.locator(`time[datetime="${expiresAt}"]`).waitFor()
  await screenshot(page, "inbox-marks")
  expect(await axeFaultsInBoth(page)).toEqual([])

  // The agent is let to look again, by its key; it then says what is to be said of the object as it is.
  await linkOf(page, outdated).click()
  await press(page, "l")
  await told(page, "done", numbered(outdated))
  await run(
    eventually(story.get(`/tasks/${outdated.id}`), ({ rerun }: Json) => rerun?.status === "completed")
  )
})

it("an agent's earned trust, its question, and one's own todo are told and settled", async () => {
  const story = await real.newStory()
  const note = { tool: "create_object", arguments: { type: "Note", properties: { kind: "made" } } }
  const { agent } = await run(promoted(story, { note }, "note"))
  const { question } = await run(
    asked(story, {
      tool: "ask_user",
      arguments: { question: "Which <b>one</b>?", options: ["This", "That"] }
    })
  )
  await run(Effect.forEach(["Buy milk", "Call the licensor"], (title) => story.post("/tasks", { title })))
  const { page } = await real.visit(story)
  await listed(page, 4)
  const trust = page.getByRole("article", { name: /earner/ })
  await trust
    .filter({ hasText: /\b2\b/ })
    .filter({ hasText: /\b100\b/ })
    .waitFor()
  await card(page, "Which <b>one</b>?").getByText("asker").waitFor()
  await screenshot(page, "inbox-kinds")
  expect(await axeFaultsInBoth(page)).toEqual([])
  await card(page, "Buy milk").getByRole("button", { name: "Complete", disabled: false }).press("Enter")
  await told(page, "done", /\bt1(?!\d)/)
  await page.getByRole("button", { name: "That", disabled: false }).press("Enter")
  await told(page, "done", numbered(question))
  await trust.locator("[data-decision=reject]").press("Enter")
  await listed(page, 1)
  expect((await run(story.get(`/tasks/${question.id}`))).payload.answer).toBe("That")
  const { promotions } = await run(story.get(`/agents/${agent.id}/autonomy`))
  expect(promotions[0].reversedAt ?? promotions[0].status).not.toBeNull()
})

it("two reviewers decide the same suggestion: the second is told who did what", async () => {
  const story = await real.newStory()
  const agent = await run(suggesting(story))
  for (const key of ["one", "two"])
    await run(
      suggestingOnce(story, agent, {
        tool: "create_object",
        arguments: { type: "Note", key, properties: {} }
      })
    )
  const [one, two] = await run(pendingOf(story))
  const { page: first } = await real.visit(story, "/", { role: "reviewer" })
  const { page: second } = await real.visit(story)
  for (const page of [first, second]) await listed(page, 2)

  // Both have it before their eyes; what the second's page reads is held back, so that it acts on what it saw.
  await second.route("**/tasks?*", (route) => route.abort())
  await linkOf(first, one).click()
  await press(first, "r")
  await first.getByRole("textbox", { name: "Reason" }).fill("there is one")
  await first.keyboard.press("Control+Enter")
  await listed(first, 1)
  await cardOf(second, one).getByRole("button", { name: "Approve" }).click()
  const refusal = toasts(second, "refused", numbered(one)).filter({ hasText: "a-reviewer" })
  await refusal.filter({ hasText: "there is one" }).first().waitFor()
  expect((await run(story.get("/objects?type=Note"))).items).toEqual([])

  // And what is before somebody's eyes does not just vanish.
  await second.unroute("**/tasks?*")
  await listed(second, 1)
  await cardOf(second, two).focus()
  await cardOf(first, two).focus()
  await heard(first, "a", async () => (await first.getByRole("article").count()) === 0)
  await toasts(second, "done", numbered(two)).filter({ hasText: "a-reviewer" }).first().waitFor()
})

it("an undo pressed twice in haste is one act, and what the plan's address chooses goes to no other page", async () => {
  const story = await real.newStory()
  const person = await run(make(story, "Person", { age: 36 }))
  const agent = await run(suggesting(story))
  await run(suggestingOnce(story, agent, updating(person, { age: 37 })))
  const [task] = await run(pendingOf(story))
  const { page } = await real.visit(story)
  await listed(page, 1)
  await press(page, "j", "a")
  await told(page, "done", numbered(task))
  await page.getByRole("button", { name: "Undo" }).click()
  const plan = planOf(page)
  await plan.waitFor()
  const [undo] = await run(pendingOf(story))
  await inTime(() => new URL(page.url()).searchParams.get("only")).toBe(person.id)
  await page.getByRole("banner").getByRole("link").first().click()
  await page.waitForURL((url) => url.pathname === "/")
  expect(new URL(page.url()).searchParams.has("only")).toBe(false)
  const button = plan.getByRole("button", { name: undoing(1, 1), disabled: false })
  await button.evaluate((element: HTMLElement) => {
    element.click()
    element.click()
  })
  await listed(page, 0)
  await toasts(page, "done", numbered(undo)).waitFor()
  const messages = page.locator("li[data-outcome]")
  expect(await messages.filter({ hasText: numbered(undo) }).count()).toBe(1)
})

it("the messages leave the bar of what is selected free", async () => {
  const story = await real.newStory()
  const agent = await run(suggesting(story))
  for (const age of [1, 2, 3]) {
    const person = await run(make(story, "Person", { age: 0 }))
    await run(suggestingOnce(story, agent, updating(person, { age })))
  }
  const { page } = await real.visit(story)
  await page.setViewportSize({ width: 1000, height: 800 })
  await listed(page, 3)
  await press(page, "j", "a")
  const toast = toasts(page, "done")
  await toast.first().waitFor()
  await page.getByRole("checkbox").last().check()
  const bar = page.getByRole("region", { name: "Selected suggestions" })
  await bar.waitFor()
  const [above, below] = [await toast.first().boundingBox(), await bar.boundingBox()]
  expect((above?.y ?? 0) + (above?.height ?? 0)).toBeLessThanOrEqual(below?.y ?? 0)
})
