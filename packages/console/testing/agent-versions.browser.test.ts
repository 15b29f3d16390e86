/**
 * The versions of an agent against the whole program: which two are compared is typed, letter by letter.
 */
import { expect, it } from "vitest"
import { watcher } from "../../server/testing/story-words.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

it("the number of a version is typed whole, also while what its first digit names is compared", async () => {
  const story = await real.newStory()
  const agent = await run(story.post("/agents", watcher({ name: "clerk", role: "Role 1" })))
  for (let version = 2; version <= 12; version++)
    await run(story.patch(`/agents/${agent.id}`, { role: `Role ${version}` }))
  const { page } = await real.visit(story, `/agents/${agent.id}?tab=versions`)
  const compared = (from: number, to: number) => page.locator(`h2[data-from="${from}"][data-to="${to}"]`)
  await compared(11, 12).waitFor()
  // What the first digit names is not answered.
  await page.route(/\/diff\?(.*&)?from=1(&|$)/, () => {})
  const field = page.getByLabel("compared with")
  await field.focus()
  await page.keyboard.type("1")
  await page.getByTestId("reading").waitFor({ state: "attached" })
  await page.keyboard.type("0")
  expect(await field.inputValue()).toBe("10")
  await compared(10, 12).waitFor()
  expect(await field.evaluate((input) => input === document.activeElement)).toBe(true)
  await page.getByText("Role 10").waitFor()
})
