/**
 * The console's main path in a real browser: sign in, see a suggestion, approve it, see what the graph has and which run did it.
 */
import { expect, it } from "vitest"
import { calling, feedOf, make, suggestionsOf, watcher } from "../../server/testing/story-words.ts"
import { cardOf, inTime, listed, press } from "./inbox-words.ts"
import { realConsole, run } from "./real-visit.ts"

const real = realConsole()

it("shows a suggestion, approves it by keyboard, and leads to the object and to the run", async () => {
  const story = await real.newStory()
  const company = await run(make(story, "Company", { name: "Acme" }))
  await run(
    story.post(
      "/agents",
      watcher({
        name: "namer",
        executionMode: "suggest",
        model: calling({
          tool: "update_object",
          arguments: {
            objectId: company.id,
            properties: { name: "Acme Ltd" },
            reasoning: "The register has it."
          }
        })
      })
    )
  )
  await run(make(story, "Person", { name: "Ada" }))
  await run(feedOf(story, 2))
  const [task] = await run(suggestionsOf(story, 1))

  const { goTo, page } = await real.visit(story)
  await listed(page, 1)
  await cardOf(page, task).getByText("Acme Ltd").waitFor()
  await press(page, "j", "a")
  await inTime(async () => (await run(story.get(`/tasks/${task.id}`))).status).toBe("completed")
  expect(await run(story.get(`/objects/${company.id}`))).toMatchObject({
    version: 2,
    properties: { name: "Acme Ltd" }
  })

  await goTo(`/objects/${company.id}`)
  await page.getByText("Acme Ltd").first().waitFor()
  await goTo("/runs")
  await page.locator(`a[href*="/runs/"]`).first().waitFor()
}, 120_000)
