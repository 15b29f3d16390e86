/**
 * Todos and other tasks that are told in a line, as a person settles them in a real browser.
 */
import type { TaskId } from "@tropism/domain/ids"
import type { PromotionTask } from "@tropism/domain/task"
import { afterAll, describe, expect, it } from "vitest"
import { card, closeBrowser, faintTexts, listed, open, shows } from "./console-visit.ts"
import { demoWorld } from "./demo-world.ts"
import { addTodo, agentIds, fixtureId } from "./fixture-world.ts"

afterAll(closeBrowser)

describe("todos and whatever else is told in a line", () => {
  const promoted = () => {
    const world = demoWorld()
    const promotion: PromotionTask = {
      id: fixtureId<TaskId>(3, 700),
      number: 10,
      type: "promotion",
      status: "pending",
      title: "licence-review may update Package without asking",
      description: null,
      digest: "digest-of-the-promotion",
      agentId: agentIds.licence,
      agentName: "licence-review",
      payload: {
        promotionId: fixtureId<PromotionTask["payload"]["promotionId"]>(9, 1),
        agentId: agentIds.licence,
        agentVersion: 1,
        operation: "update",
        objectType: "Package",
        reviews: 10,
        rate: 0.9
      },
      resolvedBy: null,
      resolutionNote: null,
      createdAt: new Date().toISOString(),
      resolvedAt: null
    }
    world.tasks.push(promotion)
    addTodo(world, "Call the <b>licensor</b>", "On Monday")
    addTodo(world, "Buy milk")
    return world
  }

  it("stand in sections of their own, and change nothing about the suggestions", async () => {
    const visit = await listed(await open(promoted()), 12)
    const headings = await visit.page.getByRole("heading", { level: 2 }).allInnerTexts()
    expect(headings[0]).toMatch(/^To decide as a whole\s*1$/)
    expect(headings.slice(-2)).toEqual([expect.stringMatching(/^Todos of your own\s*2$/), "Recent runs"])
    await card(visit, "Call the").getByText("On Monday").waitFor()
    expect(await visit.page.locator("article b").count()).toBe(0)
    expect(await faintTexts(visit)).toEqual([])
  })

  it("a todo is completed by a click, another kind of task approved as it was shown", async () => {
    const visit = await listed(await open(promoted()), 12)
    await card(visit, "Buy milk").getByRole("button", { name: "Complete" }).click()
    await shows(visit, visit.page.getByText("Done t2"))
    await card(visit, "licence-review may").getByRole("button", { name: "Approve" }).click()
    await shows(visit, visit.page.getByText("Approved #10"))
    await listed(visit, 10)
    expect(visit.server.decisions.map(({ body, path }) => [path.split("/").at(-1), body])).toEqual([
      ["complete", {}],
      ["approve", { digest: "digest-of-the-promotion" }]
    ])
  })

  it("a todo that was settled elsewhere meanwhile stays with the refusal", async () => {
    const world = promoted()
    const visit = await listed(await open(world), 12)
    const place = world.tasks.findIndex(({ title }) => title === "Buy milk")
    const todo = world.tasks[place]
    if (todo) world.tasks[place] = { ...todo, status: "completed" }
    await card(visit, "Buy milk").getByRole("button", { name: "Complete" }).click()
    await shows(visit, visit.page.getByText("t2 stays as it was"))
    await listed(visit, 11)
  })

  it("who may only look sees them, without a button", async () => {
    const visit = await listed(
      await open(promoted(), {
        prepare: (server) => {
          server.session = { role: "viewer" }
        }
      }),
      12
    )
    expect(await card(visit, "Buy milk").getByRole("button").count()).toBe(0)
    expect(await card(visit, "licence-review may").getByRole("button").count()).toBe(0)
  })
})
