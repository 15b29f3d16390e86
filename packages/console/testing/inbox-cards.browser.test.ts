/**
 * A card of the inbox: how long it says that a decision was refused.
 */
import { expect, it } from "vitest"
import { change, make } from "../../server/testing/story-words.ts"
import { pendingOf, suggesting, suggestingOnce, updating } from "../../server/testing/suggestion-words.ts"
import { card, cardOf, inTime, listed } from "./inbox-words.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

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

  await run(story.patch(`/agents/${agent.id}`, { enabled: false }))
  await approve.press("Enter")
  await refusal.getByText("The agent is disabled").waitFor()
  // Another card comes, and this one has not changed: what it says still holds.
  await run(story.post("/tasks", { title: "Look at Ada" }))
  await card(page, "Look at Ada").waitFor()
  expect(await refusal.count()).toBe(1)
  // The object moves elsewhere, and the card with it.
  await run(change(story, person, { name: "Ada L." }))
  await shown.getByText("Only name moved").waitFor()
  await inTime(() => refusal.count()).toBe(0)

  // What moves while it is sent is on the card with the refusal, which stays to be read.
  await run(story.patch(`/agents/${agent.id}`, { enabled: true }))
  await page.route("**/approve", async (route) => {
    await run(change(story, person, { age: 38 }))
    await route.continue()
  })
  await approve.press("Enter")
  await shown.getByText(/^Outdated/).waitFor()
  await refusal.getByText(/moved|changed/).waitFor()
  // Twice the list is read again, and nothing is new in it.
  for (const title of ["One more", "And one more"]) {
    await run(story.post("/tasks", { title }))
    await card(page, title).waitFor()
  }
  expect(await refusal.count()).toBe(1)
  await run(change(story, person, { name: "Countess" }))
  await shown.getByText(/version 1 to 4/).waitFor()
  await inTime(() => refusal.count()).toBe(0)
})
