/**
 * What somebody aims at in the inbox, and what they typed: neither is lost to what others do, or to one key.
 */
import { Effect } from "effect"
import { expect, it } from "vitest"
import type { Locator, Page } from "playwright-core"
import { answer, asked, asking } from "../../server/testing/question-words.ts"
import { pendingOf, suggesting, suggestingOnce, updating } from "../../server/testing/suggestion-words.ts"
import { card, cardOf, heard, inTime, listed, press } from "./inbox-words.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

/** Two suggestions of one agent, in the order in which they are listed. */
const two = async () => {
  const story = await real.newStory()
  const agent = await run(suggesting(story))
  for (const key of ["ada", "grace"]) {
    const person = await run(story.post("/objects", { type: "Person", key, properties: { age: 1 } }))
    await run(suggestingOnce(story, agent, updating(person, { age: 2 })))
  }
  const { page, goTo } = await real.visit(story)
  await listed(page, 2)
  const shown = await page.locator("main article").evaluateAll((cards) => cards.map(({ id }) => id))
  const tasks = (await run(pendingOf(story))).toSorted(
    (one, other) => shown.indexOf(`task-${one.id}`) - shown.indexOf(`task-${other.id}`)
  )
  return { story, page, goTo, tasks }
}

/** Watches from now on; says by which button somebody's pointer would be met at a place, at the moment in which a card has left. */
const metWhenGone = async (page: Page, gone: string, place: { readonly x: number; readonly y: number }) => {
  const met = await page.evaluateHandle(
    ({ gone, place }) => {
      const button = new Promise<string | null>((resolve) => {
        const seen = new MutationObserver(() => {
          if (document.getElementById(gone) !== null) return
          seen.disconnect()
          const under = document.elementFromPoint(place.x, place.y)?.closest("button")
          resolve(under?.textContent ?? null)
        })
        seen.observe(document.body, { childList: true, subtree: true })
      })
      // In an object: a promise by itself would be waited for here.
      return { button }
    },
    { gone, place }
  )
  return () => met.evaluate(({ button }) => button)
}

it("a pointer that rests on a card approves nothing else when somebody decides that card first", async () => {
  const { story, page, tasks } = await two()
  const [first, second] = tasks
  const approve = cardOf(page, first).getByRole("button", { name: /^Approve/ })
  const box = await approve.boundingBox()
  const place = { x: (box?.x ?? 0) + (box?.width ?? 0) / 2, y: (box?.y ?? 0) + (box?.height ?? 0) / 2 }
  await page.mouse.move(place.x, place.y)
  const met = await metWhenGone(page, `task-${first.id}`, place)
  await run(story.post(`/tasks/${first.id}/approve`))
  expect(await met()).toBeNull()
  expect((await run(pendingOf(story))).map(({ id }) => id)).toEqual([second.id])
  // A moment later the list is there for the pointer again.
  await cardOf(page, second)
    .getByRole("button", { name: /^Approve/ })
    .click()
  await listed(page, 0)
  await inTime(async () => (await run(pendingOf(story))).length).toBe(0)
})

it("what was typed into a dialog goes by a second Escape only, and what was not goes by the first", async () => {
  const { page, tasks } = await two()
  const [task] = tasks
  const dialog = page.getByRole("dialog")
  await cardOf(page, task).focus()
  await heard(page, "r", async () => (await dialog.count()) === 1)
  await page.keyboard.press("Escape")
  await dialog.waitFor({ state: "hidden" })
  await cardOf(page, task).focus()
  await heard(page, "r", async () => (await dialog.count()) === 1)
  const reason = page.getByRole("textbox", { name: "Reason" })
  await reason.fill("Not of this project")
  await page.keyboard.press("Escape")
  await dialog.locator("[data-kept-open=typed]").waitFor()
  expect(await reason.inputValue()).toBe("Not of this project")
  await page.mouse.click(2, 2)
  expect(await reason.inputValue()).toBe("Not of this project")
  await page.keyboard.press("Escape")
  await dialog.waitFor({ state: "hidden" })
})

it("what was typed into a dialog goes by a second Back only, and what was not goes by the first", async () => {
  const { page, goTo, tasks } = await two()
  const [task] = tasks
  await goTo("/runs")
  await page.getByRole("link", { name: /^Inbox/ }).click()
  const dialog = page.getByRole("dialog")
  await cardOf(page, task).focus()
  await heard(page, "r", async () => (await dialog.count()) === 1)
  const reason = page.getByRole("textbox", { name: "Reason" })
  await reason.fill("Not of this project")
  await page.evaluate("history.back()")
  await dialog.locator("[data-kept-open=typed]").waitFor()
  expect(await reason.inputValue()).toBe("Not of this project")
  expect(new URL(page.url()).pathname).toBe("/")
  await page.evaluate("history.back()")
  await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor()
  expect(await dialog.count()).toBe(0)
  await page.getByRole("link", { name: /^Inbox/ }).click()
  await cardOf(page, task).focus()
  await heard(page, "r", async () => (await dialog.count()) === 1)
  await page.evaluate("history.back()")
  await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor()
})

it("a task and an event are found by the numbers by which they are called everywhere", async () => {
  const { page, goTo, tasks } = await two()
  const [, second] = tasks
  await goTo(`/tasks/${second.number}`)
  await inTime(() => cardOf(page, second).getAttribute("aria-current")).toBe("true")
  await goTo("/tasks/4711")
  await page.locator("section[data-state=not-found]").waitFor()
  await goTo("/events/1")
  await page.getByRole("heading", { level: 1, name: /\bada\b/ }).waitFor()
})

/** A question above two suggestions, each of which a key would decide. */
const questionAboveTwo = async () => {
  const { story, page } = await two()
  await run(Effect.asVoid(asked(story, asking("Which of them?"))))
  await listed(page, 3)
  const question = (await run(pendingOf(story))).find(({ type }) => type === "question")
  const answerIt = () => run(answer(story, { id: question?.runId }, "The other"))
  const field = card(page, "Which of them?").getByRole("textbox")
  return { story, page, field, answerIt }
}

const hasFocus = (field: Locator): Promise<boolean> =>
  field.evaluate((element) => element === document.activeElement)

/** Letters of which some decide where they are keys. */
const words = "a banana and a pear, rare"

it("what is being written as an answer stays when somebody else answers first, and decides nothing", async () => {
  const { story, page, field, answerIt } = await questionAboveTwo()
  await field.focus()
  await page.keyboard.type(words.slice(0, 10))
  await answerIt()
  await page.keyboard.type(words.slice(10))
  await card(page, "Which of them?").getByTestId("moved-notice").getByText("admin").waitFor()
  await inTime(() => field.inputValue()).toBe(words)
  expect(await card(page, "Which of them?").getByRole("button", { name: "Answer" }).count()).toBe(0)
  // The next card is the current one by now, and the keyboard is still where it was.
  expect(await hasFocus(field)).toBe(true)
  await press(page, "a", "!")
  expect(await field.inputValue()).toBe(`${words}a!`)
  expect(await run(pendingOf(story))).toHaveLength(2)
  await card(page, "Which of them?").getByRole("button", { name: "Close" }).click()
  await listed(page, 2)
})

it("what is being written as an answer keeps the keyboard where nothing else is left in the inbox", async () => {
  const story = await real.newStory()
  const { question } = await run(asked(story, asking("Which of them?")))
  const { page } = await real.visit(story)
  await listed(page, 1)
  const field = card(page, "Which of them?").getByRole("textbox")
  await field.focus()
  await page.keyboard.type("This")
  await run(answer(story, { id: question.runId }, "The other"))
  await card(page, "Which of them?").getByTestId("moved-notice").getByText("admin").waitFor()
  expect(await hasFocus(field)).toBe(true)
  await page.keyboard.type(" one")
  expect(await field.inputValue()).toBe("This one")
})

it("letters mean nothing for a while when the field for them is taken away, and then they do", async () => {
  const { story, page, field, answerIt } = await questionAboveTwo()
  await field.focus()
  // From here the page's time stands still, and goes on only as it is looked at.
  await page.clock.install()
  await page.clock.pauseAt(new Date(Date.now() + 60_000))
  await answerIt()
  await inTime(async () => {
    await page.clock.runFor(50)
    return page.getByRole("article").count()
  }).toBe(2)
  // The list has come to rest, and whoever types has not.
  await page.clock.runFor(500)
  for (const letter of words.replaceAll(" ", "")) await press(page, letter)
  expect(await page.getByRole("dialog").count()).toBe(0)
  expect(await run(pendingOf(story))).toHaveLength(2)
  await page.clock.runFor(5_000)
  await press(page, "a")
  await listed(page, 1)
})
