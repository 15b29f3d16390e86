/**
 * What stands around the inbox: freshness, addresses, sessions, empty pages, and every kind of screen.
 *
 * In a real browser against the fixture server; where time matters it is moved.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { afterAll, describe, expect, it } from "vitest"
import {
  card,
  closeBrowser,
  currentTitle,
  eventually,
  faintTexts,
  feedOpens,
  listed,
  open,
  openedBrowser,
  openStopped,
  press,
  shows
} from "./console-visit.ts"
import { demoWorld } from "./demo-world.ts"
import { fixtureToken } from "./fixture-server.ts"
import { addObject, addSuggestion, agentIds, emptyWorld, fixtureId, projectId } from "./fixture-world.ts"

afterAll(closeBrowser)

describe("staying fresh", () => {
  it("reads again as soon as the feed rings, without waiting for the next refresh", async () => {
    const world = demoWorld()
    const visit = await listed(await openStopped(world), 9)
    await feedOpens(visit)
    addSuggestion(world, {
      agentId: agentIds.tidy,
      title: "One more",
      change: { type: "create", objectType: "Finding", key: null, data: {} }
    })
    visit.server.ring()
    await shows(visit, card(visit, "One more"), 1)
  })

  it("reads again every few seconds without a feed", async () => {
    const world = demoWorld()
    const visit = await openStopped(world, { prepare: (server) => (server.hasFeed = false) })
    await listed(visit, 9)
    world.tasks.pop()
    await visit.page.clock.runFor(4_100)
    await listed(visit, 8)
    await shows(visit, visit.page.getByRole("img", { name: "The live feed is interrupted" }))
  })

  it("opens a feed that was cut off again, and rings for what it missed", async () => {
    const world = demoWorld()
    const visit = await listed(await openStopped(world), 9)
    await feedOpens(visit)
    visit.server.ring()
    visit.server.hangUp()
    await shows(visit, visit.page.getByRole("img", { name: "The live feed is interrupted" }))
    world.tasks.pop()
    await visit.page.clock.runFor(1_100)
    await feedOpens(visit)
    await listed(visit, 8)
  })

  it("keeps the list while the server is down, says so, and goes on when it is back", async () => {
    const visit = await listed(await openStopped(demoWorld()), 9)
    visit.server.isDown = true
    visit.server.hangUp()
    await visit.page.clock.runFor(4_100)
    await shows(visit, visit.page.getByRole("alert").getByText("The server does not answer."))
    expect(await visit.page.getByRole("article").count()).toBe(9)
    visit.server.isDown = false
    await visit.page.clock.runFor(4_100)
    await shows(visit, visit.page.getByRole("alert"), 0)
  })
})

describe("addresses", () => {
  it("of a suggestion open it focused, until it is decided", async () => {
    const visit = await open(demoWorld(), { path: `/tasks/${fixtureId<string>(3, 7)}` })
    await eventually(() => currentTitle(visit)).toBe("Delete a finding that nothing points to")
    await press(visit, "a")
    await shows(visit, visit.page.getByText("Finding install-script:sharp is deleted; its history stays."))
    expect(new URL(visit.page.url()).pathname).toBe("/")
  })

  it("of a decided suggestion say what was decided", async () => {
    const world = demoWorld()
    const [first] = world.tasks
    if (first) {
      const resolvedBy = "ana" as typeof first.resolvedBy
      world.tasks[0] = { ...first, status: "rejected", resolvedBy, resolutionNote: "The licence is fine." }
    }
    const visit = await open(world, { path: `/tasks/${fixtureId<string>(3, 1)}` })
    const linked = visit.page.getByRole("region", { name: "The linked task" })
    await linked.getByText("was rejected by ana").waitFor()
    await linked.getByText("The licence is fine.").waitFor()
  })

  it("of what is not there say so", async () => {
    const visit = await open(demoWorld(), { path: `/tasks/${fixtureId<string>(3, 99)}` })
    await visit.page.getByText("There is no such task in this project.").waitFor()
    await visit.page.goto(`${visit.server.url}/nowhere`)
    await visit.page.getByText("There is no such page").waitFor()
  })

  it("carry the project when there are several", async () => {
    const world = demoWorld()
    world.projects.push({ id: fixtureId<string>(0, 2), name: "Second", createdAt: new Date().toISOString() })
    const visit = await open(world)
    await visit.page.getByRole("link", { name: "Demo" }).click()
    await listed(visit, 9)
    expect(new URL(visit.page.url()).searchParams.get("project")).toBe(projectId)
    await visit.page.getByRole("combobox", { name: "Project" }).selectOption("Second")
    await expect
      .poll(() => new URL(visit.page.url()).searchParams.get("project"))
      .toBe(fixtureId<string>(0, 2))
  })
})

describe("who may see what", () => {
  it("asks who is signed out for a token, and goes on where they were", async () => {
    const visit = await open(demoWorld(), {
      path: `/tasks/${fixtureId<string>(3, 7)}`,
      prepare: (server) => (server.session = null)
    })
    await visit.page.getByRole("heading", { name: "Sign in to Tropism" }).waitFor()
    const field = visit.page.getByLabel("Or paste a token")
    await field.fill("wrong")
    await field.press("Enter")
    await visit.page.getByText("The server does not know this token, or it has expired.").waitFor()
    await field.fill(fixtureToken)
    await field.press("Enter")
    await eventually(() => currentTitle(visit)).toBe("Delete a finding that nothing points to")
    expect(visit.page.url()).not.toContain(fixtureToken)
  })

  it("signs out", async () => {
    const visit = await listed(await open(), 9)
    await visit.page.getByRole("button", { name: "Sign out" }).click()
    await visit.page.getByRole("heading", { name: "Sign in to Tropism" }).waitFor()
    expect(visit.server.session).toBeNull()
  })

  it("shows the sign-in when a session ends", async () => {
    const visit = await listed(await open(), 9)
    visit.server.session = null
    await card(visit, "Tie the finding").getByRole("button", { name: "Approve" }).click()
    await visit.page.getByRole("heading", { name: "Sign in to Tropism" }).waitFor()
  })

  it("lets those who may not decide read and nothing more", async () => {
    const visit = await open(demoWorld(), { prepare: (server) => (server.session = { role: "editor" }) })
    await listed(visit, 9)
    await visit.page.getByText("Your role is editor").waitFor()
    expect(await visit.page.getByRole("button", { name: /Approve|Reject/ }).count()).toBe(0)
    await press(visit, "j", "a", "x")
    expect(visit.server.decisions).toEqual([])
  })
})

describe("with nothing to show", () => {
  it("says what to try when nothing has happened yet", async () => {
    const visit = await open(emptyWorld())
    await visit.page.getByText("Nothing has happened yet").waitFor()
    await visit.page.getByText("npx tropism import package-lock.json").waitFor()
    await visit.page.getByText("No agent has run yet.").waitFor()
  })

  it("says what to try without a project", async () => {
    const world = emptyWorld()
    world.projects.pop()
    const visit = await open(world)
    await visit.page.getByRole("heading", { name: "No project yet" }).waitFor()
  })

  it("rests when everything is decided", async () => {
    const world = demoWorld()
    world.tasks.splice(1)
    const visit = await listed(await open(world), 1)
    await press(visit, "j", "a")
    await visit.page.getByText("Nothing waits for you").waitFor()
  })
})

describe("for every eye and screen", () => {
  it.each(["light", "dark"] as const)("has enough contrast in %s", async (colorScheme) => {
    const visit = await listed(await open(demoWorld(), { colorScheme }), 9)
    await press(visit, "j", "x")
    await visit.page.getByText("1 selected").waitFor()
    const ground = await visit.page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    expect(ground).toBe(colorScheme === "light" ? "rgb(250, 249, 246)" : "rgb(19, 21, 18)")
    expect(await faintTexts(visit)).toEqual([])
  })

  it("fits a small phone without scrolling sideways", async () => {
    const visit = await open(demoWorld(), {
      viewport: { width: 340, height: 700 },
      hasTouch: true,
      isMobile: true
    })
    await listed(visit, 9)
    await card(visit, "Record the version").getByText("The agent saw 5.6.0").waitFor()
    const width = await visit.page.evaluate(() => document.documentElement.scrollWidth)
    expect(width).toBeLessThanOrEqual(340)
  })

  it("draws a thousand suggestions and stays quick to move through", async () => {
    const world = emptyWorld()
    for (let number = 1; number <= 1_000; number++) {
      const target = addObject(world, number, "Package", `many/package-${number}`, [
        { name: `package-${number}` }
      ])
      addSuggestion(world, {
        agentId: agentIds.licence,
        title: `Mark package-${number}`,
        change: { type: "update", objectId: target.id, data: { licenceReview: "review" } },
        target
      })
    }
    const visit = await listed(await open(world), 1_000)
    await press(visit, "j", "j", "j")
    await eventually(() => currentTitle(visit)).toBe("Mark package-3")
    await press(visit, "a")
    await eventually(() => currentTitle(visit)).toBe("Mark package-4")
  })

  it("loads at most 300 kB at first, compressed", async () => {
    const { folder } = await openedBrowser()
    const index = readFileSync(join(folder, "index.html"), "utf8")
    const files = [...index.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].flatMap(([, file]) => file ?? [])
    const bytes = files.map((file) => gzipSync(readFileSync(join(folder, file))).length)
    // The script and the styles; every page but the inbox is a file of its own.
    expect(bytes.length).toBeGreaterThan(1)
    expect(readdirSync(join(folder, "assets")).length).toBeGreaterThan(files.length + 10)
    expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(300 * 1024)
  })
})
