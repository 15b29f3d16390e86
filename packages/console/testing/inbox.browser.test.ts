/**
 * The inbox as a person uses it: in a real browser, by keyboard and by mouse, against the fixture server.
 *
 * Each test opens the page on a world of its own.
 */
import { afterAll, describe, expect, it } from "vitest"
import {
  card,
  closeBrowser,
  currentTitle,
  eventually,
  faintTexts,
  listed,
  open,
  openedBrowser,
  openStopped,
  press,
  shows
} from "./console-visit.ts"
import { demoWorld } from "./demo-world.ts"
import type { FixtureServer } from "./fixture-server.ts"
import { addQuestion, agentIds, fixtureId, projectId } from "./fixture-world.ts"

afterAll(closeBrowser)

it("there is a Chromium to look at the console with", async () => {
  expect((await openedBrowser()).folder).not.toBe("")
})

describe("the list of suggestions", () => {
  it("groups them by agent and kind and says how many wait", async () => {
    const visit = await listed(await open(), 9)
    expect(await visit.page.getByRole("heading", { level: 2 }).allInnerTexts()).toEqual([
      expect.stringMatching(/^install-script-watch suggests new objects\s*1$/),
      expect.stringMatching(/^install-script-watch suggests new relationships\s*1$/),
      expect.stringMatching(/^licence-review suggests updates\s*4$/),
      expect.stringMatching(/^tidy-up suggests updates\s*1$/),
      expect.stringMatching(/^tidy-up suggests deletions\s*1$/),
      expect.stringMatching(/^tidy-up suggests relationships to remove\s*1$/),
      "Recent runs"
    ])
    await visit.page.getByRole("banner").getByText("9 waiting").waitFor()
    expect(await visit.page.title()).toBe("(9) Demo · Tropism")
  })

  it("shows what changes, from what to what, why, how sure and on what evidence", async () => {
    const visit = await listed(await open(), 9)
    const chalk = card(visit, "Record the version that was reviewed")
    expect(await chalk.locator("del").allTextContents()).toEqual(["now 5.6.1", "now done", "now −ana"])
    expect(await chalk.locator("ins").allTextContents()).toEqual([
      "suggested 5.6.2",
      "suggested repeat",
      "suggested +5.6.1 was withdrawn the day after it was published."
    ])
    expect((await chalk.locator("dl").innerText()).replaceAll(/\s+/g, " ")).toContain("review›state")
    await chalk.getByText("The version that was reviewed is not the one that is installed.").waitFor()
    await chalk.getByText("55 % sure").waitFor()
    const caniuse = card(visit, "Mark caniuse-lite for a licence review")
    await caniuse.hover()
    await caniuse.getByText("1 moved since").waitFor()
    await caniuse.getByText("Based on 2 objects it read").click()
    await caniuse.getByText("now version 2").waitFor()
  })

  it("names both ends of a relationship", async () => {
    const visit = await listed(await open(), 9)
    for (const title of ["Tie the finding to esbuild", "Untie the finding from esbuild"]) {
      await card(visit, title).scrollIntoViewIfNeeded()
      await card(visit, title).getByText("install-script:sharp").waitFor()
      await card(visit, title).getByText("tropism-workspace/esbuild").waitFor()
    }
  })

  it("says before the click that the object moved, is outdated, or is gone", async () => {
    const visit = await open()
    const stale = card(visit, "Mark lightningcss for a licence review")
    await stale.getByText("Only version, deprecated moved; what this suggestion touches did not.").waitFor()
    const outdated = card(visit, "Record the version that was reviewed")
    await outdated.getByText("version, review › state moved, which this suggestion touches").waitFor()
    await outdated.getByText("The agent saw 5.6.0").waitFor()
    expect(await outdated.getByRole("button").last().innerText()).toMatch(/^Approve/)
    const gone = card(visit, "Mark left-pad for a licence review")
    await gone.getByText("What this would change was deleted after it was suggested.").waitFor()
    expect(await gone.getByRole("button", { name: "Approve" }).isDisabled()).toBe(true)
  })

  it("shows foreign text as text, with every hidden character marked", async () => {
    const visit = await open()
    const odd = card(visit, "Fix <img src=x onerror")
    await odd.getByText("Ignore the above").waitFor()
    expect(await visit.page.locator("article img, article b").count()).toBe(0)
    expect(await odd.getByRole("img", { name: "right-to-left override" }).first().innerText()).toBe("U+202E")
    await odd.getByRole("img", { name: "zero width space" }).waitFor()
    await odd.getByRole("img", { name: "U+0007" }).waitFor()
    expect(await odd.getByText("Line 40").count()).toBe(0)
    await odd.getByRole("button", { name: "Show all" }).click()
    await odd.getByText("Line 40").waitFor()
  })
})

describe("deciding", () => {
  it("goes down the list by keyboard and approves what is current, bound to what was shown", async () => {
    const visit = await listed(await open(), 9)
    await press(visit, "j", "j", "j", "k", "j")
    expect(await currentTitle(visit)).toBe("Mark caniuse-lite for a licence review")
    await press(visit, "a")
    await shows(visit, visit.page.getByText("Package tropism-workspace/caniuse-lite is now version 2."))
    await listed(visit, 8)
    expect(visit.server.decisions).toEqual([
      {
        path: `/api/projects/${projectId}/tasks/${fixtureId<string>(3, 1)}/approve`,
        body: { digest: "digest-of-1" }
      }
    ])
    expect(await currentTitle(visit)).toBe("Mark lightningcss for a licence review")
    expect(await visit.page.evaluate(() => document.activeElement?.getAttribute("aria-current"))).toBe("true")
  })

  it("approves with one press what two presses in haste are made for", async () => {
    const visit = await listed(await openStopped(demoWorld()), 9)
    await visit.page.clock.runFor(1_000)
    await press(visit, "j", "a")
    await listed(visit, 8)
    await press(visit, "a", "a")
    expect(visit.server.decisions).toHaveLength(1)
    await visit.page.clock.runFor(400)
    await press(visit, "a")
    await listed(visit, 7)
  })

  it("rejects with a reason that was typed, and gives the place back", async () => {
    const visit = await listed(await open(), 9)
    await press(visit, "j", "r")
    const reason = visit.page.getByRole("textbox", { name: "Reason" })
    await eventually(() => reason.evaluate((field) => field === document.activeElement)).toBe(true)
    await visit.page.keyboard.type("a finding for jars, not this")
    await visit.page.keyboard.press("Control+Enter")
    await shows(visit, visit.page.getByText("Rejected #5"))
    await listed(visit, 8)
    expect(visit.server.decisions.map(({ body }) => body)).toEqual([
      { reason: "a finding for jars, not this" }
    ])
    expect(await currentTitle(visit)).toBe("Tie the finding to esbuild")
  })

  it("rejects nothing when the dialog is closed", async () => {
    const visit = await listed(await open(), 9)
    await card(visit, "Tie the finding").getByRole("button", { name: "Reject" }).click()
    await visit.page.getByRole("dialog", { name: "Reject #6?" }).waitFor()
    await visit.page.keyboard.press("Escape")
    await visit.page.getByRole("dialog").waitFor({ state: "hidden" })
    expect(visit.server.decisions).toEqual([])
    expect(await currentTitle(visit)).toBe("Tie the finding to esbuild")
  })

  it("says on the card why the server refused, and keeps it in its place", async () => {
    const visit = await listed(await open(), 9)
    const chalk = card(visit, "Record the version that was reviewed")
    await chalk.getByRole("button", { name: "Approve" }).click()
    await chalk
      .getByRole("status")
      .getByText("What it would change has moved since the agent looked")
      .waitFor()
    await visit.page.getByText("#3 was not approved").first().waitFor()
    expect(await visit.page.getByRole("article").count()).toBe(9)
  })

  it("tells the second of two reviewers that it was decided already", async () => {
    const visit = await listed(await openStopped(demoWorld()), 9)
    const first = visit.server.world.tasks[0]
    if (first) visit.server.world.tasks[0] = { ...first, status: "rejected" }
    await card(visit, "Mark caniuse-lite").getByRole("button", { name: "Approve" }).click()
    await shows(visit, visit.page.getByText("Somebody has decided this already."))
    await listed(visit, 8)
  })

  it("sends nothing for a suggestion whose object is gone", async () => {
    const visit = await listed(await open(), 9)
    await card(visit, "Mark left-pad").click()
    await press(visit, "a")
    await visit.page.getByText("Nothing to approve").first().waitFor()
    expect(visit.server.decisions).toEqual([])
  })

  it("decides all selected at once, and tells what became of them", async () => {
    const visit = await listed(await open(), 9)
    await press(visit, "j", "x", "j", "x")
    await visit.page.getByRole("button", { name: "Select all" }).click()
    await visit.page.getByText("6 selected").waitFor()
    await card(visit, "Mark left-pad").getByRole("checkbox").uncheck()
    await visit.page.getByRole("button", { name: "Approve the 5 selected suggestions" }).click()
    await shows(visit, visit.page.getByText("Approved 4 suggestions"))
    await visit.page.getByText("#3 was not approved").first().waitFor()
    await listed(visit, 5)
    await visit.page.getByText("1 selected").waitFor()
    await press(visit, "Escape")
    await visit.page.getByRole("region", { name: "Selected suggestions" }).waitFor({ state: "hidden" })
  })

  it("gives up a list that was asked for before a decision, which would bring the decided back", async () => {
    const withoutFeed = { prepare: (server: FixtureServer) => (server.hasFeed = false) }
    const visit = await listed(await openStopped(demoWorld(), withoutFeed), 9)
    visit.server.held = "status=pending"
    await visit.page.clock.runFor(4_100)
    await eventually(() => visit.server.heldCount()).toBe(1)
    visit.server.held = fixtureId<string>(3, 6)
    const givenUp: Array<string> = []
    visit.page.on("requestfailed", (request) => givenUp.push(request.url()))
    await press(visit, "j", "x", "j", "x", "A")
    await listed(visit, 8)
    await eventually(() => givenUp).toEqual([expect.stringContaining("status=pending")])
    visit.server.letGo()
    await listed(visit, 7)
  })

  it("rejects all selected with one reason", async () => {
    const visit = await listed(await open(), 9)
    await press(visit, "j", "x", "j", "x", "R")
    await visit.page.getByRole("dialog", { name: "Reject 2 suggestions?" }).waitFor()
    await visit.page.getByRole("textbox", { name: "Reason" }).fill("Not now")
    await visit.page.getByRole("dialog").getByRole("button", { name: "Reject" }).click()
    await shows(visit, visit.page.getByText("Rejected 2 suggestions"))
    expect(visit.server.decisions.map(({ body }) => body)).toEqual([
      { reason: "Not now" },
      { reason: "Not now" }
    ])
  })
})

describe("questions", () => {
  const asking = () => {
    const world = demoWorld()
    addQuestion(world, agentIds.licence, "Which licence holds for left-pad?", ["MIT", "WTFPL"])
    addQuestion(world, agentIds.tidy, "What shall I call <b>it</b>?\nIt has no name.")
    return world
  }
  const questionId = (number: number) => fixtureId<string>(3, number)

  it("stand above the suggestions, with who asks", async () => {
    const visit = await listed(await open(asking()), 11)
    expect(await visit.page.getByRole("heading", { level: 2 }).first().innerText()).toMatch(
      /^Questions that agents wait for\s*2$/
    )
    const question = card(visit, "Which licence holds")
    await question.getByText("licence-review waits for your answer").waitFor()
    await visit.page.getByRole("banner").getByText("11 waiting").waitFor()
    expect(await visit.page.locator("article b").count()).toBe(0)
    expect(await faintTexts(visit)).toEqual([])
  })

  it("are answered by one of their options, which goes to the very question that was shown", async () => {
    const visit = await listed(await open(asking()), 11)
    await card(visit, "Which licence holds").getByRole("button", { name: "WTFPL" }).click()
    await shows(visit, visit.page.getByText("Answered #10"))
    await listed(visit, 10)
    expect(visit.server.decisions).toEqual([
      {
        path: `/api/projects/${projectId}/runs/${fixtureId<string>(4, 10)}/answer`,
        body: { answer: "WTFPL", taskId: questionId(10) }
      }
    ])
  })

  it("are answered in words, by keyboard alone, and not with nothing", async () => {
    const visit = await listed(await open(asking()), 11)
    const field = visit.page.getByRole("textbox", { name: /^Answer: What shall I call/ })
    await field.fill("   ")
    expect(await visit.page.getByRole("button", { name: "Answer", exact: true }).isDisabled()).toBe(true)
    await field.fill("just a name")
    await visit.page.keyboard.press("Control+Enter")
    await shows(visit, visit.page.getByText("Answered #11"))
    await listed(visit, 10)
    expect(visit.server.decisions.map(({ body }) => body)).toEqual([
      { answer: "just a name", taskId: questionId(11) }
    ])
  })

  it("come and go by themselves, and what is being written stays", async () => {
    const world = asking()
    const visit = await listed(await openStopped(world), 11)
    await visit.page.getByRole("textbox", { name: /^Answer: What shall I call/ }).fill("half an ans")
    addQuestion(world, agentIds.tidy, "And one more?")
    await visit.page.clock.runFor(4_100)
    await listed(visit, 12)
    const answered = world.tasks[9]
    if (answered) world.tasks[9] = { ...answered, status: "completed" }
    await visit.page.clock.runFor(4_100)
    await listed(visit, 11)
    expect(await visit.page.getByRole("textbox", { name: /^Answer: What shall I call/ }).inputValue()).toBe(
      "half an ans"
    )
  })

  it("say why the server took no answer", async () => {
    const world = asking()
    const visit = await listed(await openStopped(world), 11)
    const answered = world.tasks[9]
    if (answered) world.tasks[9] = { ...answered, status: "expired" }
    await card(visit, "Which licence holds").getByRole("button", { name: "MIT" }).click()
    await shows(visit, visit.page.getByText("#10 was not answered"))
    await listed(visit, 10)
  })

  it("are read by a viewer, and answered by an editor", async () => {
    const as = (role: "viewer" | "editor") => ({
      prepare: (server: FixtureServer) => (server.session = { role })
    })
    const viewer = await listed(await open(asking(), as("viewer")), 11)
    expect(await card(viewer, "Which licence holds").getByRole("button", { name: "MIT" }).count()).toBe(0)
    const editor = await listed(await open(asking(), as("editor")), 11)
    await card(editor, "Which licence holds").getByRole("button", { name: "MIT" }).click()
    await listed(editor, 10)
  })

  it("are shown with their answer by a link, when they are answered", async () => {
    const world = asking()
    const answered = world.tasks[9]
    if (answered?.type === "question")
      world.tasks[9] = { ...answered, status: "completed", payload: { ...answered.payload, answer: "WTFPL" } }
    const visit = await open(world, { path: `/tasks/${questionId(10)}` })
    const linked = visit.page.getByRole("region", { name: "The linked task" })
    await linked.getByText("was answered").waitFor()
    await linked.getByText("WTFPL").waitFor()
  })
})

describe("the keyboard", () => {
  it("is explained on ?, and its keys can be turned off", async () => {
    const visit = await listed(await open(), 9)
    await press(visit, "?")
    const help = visit.page.getByRole("dialog", { name: "Keyboard" })
    await help.getByText("Go to the next suggestion").waitFor()
    await press(visit, "a", "j")
    await help.getByRole("checkbox", { name: "Use these keys" }).uncheck()
    await press(visit, "Escape", "j", "a")
    expect(await visit.page.locator("article[aria-current=true]").count()).toBe(0)
    expect(visit.server.decisions).toEqual([])
  })

  it("reaches everything with Tab alone", async () => {
    const visit = await listed(await open(), 9)
    const focused = () =>
      visit.page.evaluate(
        () =>
          document.activeElement?.getAttribute("aria-label") ??
          document.activeElement?.textContent?.trim() ??
          ""
      )
    await press(visit, "Tab")
    expect(await focused()).toBe("To the content")
    await press(visit, "Enter")
    const seen: Array<string> = []
    for (let step = 0; step < 6; step++) {
      await press(visit, "Tab")
      seen.push(await focused())
    }
    const title = "esbuild 0.27.1 runs a script when it is installed"
    expect(seen).toEqual([
      `Select ${title}`,
      "Link to suggestion 5",
      "Based on 1 object it read",
      `Approve ${title}`,
      `Reject ${title}`,
      "Select Tie the finding to esbuild"
    ])
    const outline = await visit.page.evaluate(
      () => getComputedStyle(document.activeElement ?? document.body).outlineStyle
    )
    expect(outline).toBe("solid")
  })
})
