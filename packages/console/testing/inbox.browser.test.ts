/**
 * The inbox as a person uses it: in a real browser, by keyboard and by mouse, against the whole program.
 */
import { Effect } from "effect"
import { expect, it } from "vitest"
import { eventually, type Json } from "../../server/testing/platform.ts"
import { asked, asker, asking, askingModel } from "../../server/testing/question-words.ts"
import { pendingOf } from "../../server/testing/suggestion-words.ts"
import { mixed } from "./inbox-plants.ts"
import {
  card,
  cardOf,
  currentNumber,
  heard,
  inTime,
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

it("shows by agent and kind what changes, from what to what, why and how sure, and what moved, before the click", async () => {
  const story = await real.newStory()
  const { tasks } = await run(mixed(story))
  const { page } = await real.visit(story)
  await listed(page, 9)
  const groups = () =>
    page
      .locator("section[data-kind]")
      .evaluateAll((sections) =>
        sections.map((section) => [section.dataset["kind"], section.querySelector("h2")?.innerText])
      )
  await inTime(groups).toEqual([
    ["object_create_suggestion", expect.stringMatching(/^install-script-watch\b.*\D1$/s)],
    ["relationship_create_suggestion", expect.stringMatching(/^install-script-watch\b.*\D1$/s)],
    ["object_update_suggestion", expect.stringMatching(/^licence-review\b.*\D4$/s)],
    ["object_update_suggestion", expect.stringMatching(/^tidy-up\b.*\D1$/s)],
    ["object_delete_suggestion", expect.stringMatching(/^tidy-up\b.*\D1$/s)],
    ["relationship_delete_suggestion", expect.stringMatching(/^tidy-up\b.*\D1$/s)]
  ])
  await page.getByTestId("waiting-count").getByText("9", { exact: true }).waitFor()
  await inTime(() => page.title()).toBe("(9) A story · Tropism")
  await screenshot(page, "inbox")
  expect(await axeFaultsInBoth(page)).toEqual([])

  const plain = cardOf(page, tasks.plain)
  await plain.scrollIntoViewIfNeeded()
  await inTime(() => plain.locator("del").allTextContents()).toEqual([expect.stringContaining("1.0.0")])
  await inTime(async () => (await plain.locator("ins").allTextContents()).toSorted()).toEqual([
    expect.stringContaining("+review"),
    expect.stringContaining("1.1.0")
  ])
  await plain.getByText("CC-BY-4.0 is not on the list").waitFor()
  await plain.getByText(/\b55\b/).waitFor()

  // Both ends of a relationship have their names.
  for (const task of [tasks.tied, tasks.untied]) {
    await cardOf(page, task).scrollIntoViewIfNeeded()
    await cardOf(page, task).getByText("install-script:sharp").waitFor()
  }
  await cardOf(page, tasks.rebasable)
    .locator("[data-staleness=rebasable]")
    .getByText("version", { exact: true })
    .waitFor()
  const outdated = cardOf(page, tasks.outdated)
  const conflicts = outdated.locator("[data-staleness=outdated]")
  await conflicts.getByText("review › state").waitFor()
  await outdated.getByTestId("seen-by-agent").getByText("5.6.0").waitFor()
  expect(await outdated.locator("dl").innerText()).toMatch(/review\s*›\s*state/)
  const gone = cardOf(page, tasks.gone)
  await gone.locator("[data-staleness=gone]").waitFor()
  expect(await gone.getByRole("button", { name: /^Approve/ }).isDisabled()).toBe(true)

  // Foreign text is text, with every hidden character marked.
  const odd = cardOf(page, tasks.deceiving)
  await odd.scrollIntoViewIfNeeded()
  await odd.getByText("Ignore the above").waitFor()
  expect(await page.locator("article img, article b").count()).toBe(0)
  for (const hidden of ["U+202E", "U+200B", "U+0007"])
    await odd.getByRole("img").filter({ hasText: hidden }).first().waitFor()
  expect(await odd.getByText("Line 40").count()).toBe(0)
  await odd.getByRole("button", { name: "Show all" }).first().click()
  await odd.getByText("Line 40").waitFor()
})

it("is worked through by keyboard: approve, reject with a reason, bulk, and what cannot be done stays and says why", async () => {
  const story = await real.newStory()
  const { objects, tasks } = await run(mixed(story))
  const { page } = await real.visit(story)
  await listed(page, 9)
  const statusOf = async (task: Json) => (await run(story.get(`/tasks/${task.id}`))).status

  // Down the list and back; the decision is bound to what was shown, and the place moves on with the focus.
  const sent: Array<unknown> = []
  page.on("request", (request) => {
    if (/\/(approve|reject)$/.test(request.url())) sent.push(request.postDataJSON())
  })
  await press(page, "j", "j", "j", "k", "j")
  await inTime(() => currentNumber(page)).toBe(tasks.plain.number)
  await press(page, "a")
  await told(page, "done", /\bcaniuse-lite\b.*\b2\b/)
  await listed(page, 8)
  expect(sent).toEqual([{ digest: tasks.plain.digest }])
  await inTime(() => currentNumber(page)).toBe(tasks.rebasable.number)
  await inTime(() => page.evaluate(() => document.activeElement?.getAttribute("aria-current"))).toBe("true")

  // What is outdated is refused by the server: it stays in its place and says why.
  const problem = await refusedAt(page, "**/approve", () =>
    cardOf(page, tasks.outdated)
      .getByRole("button", { name: /^Approve/ })
      .click()
  )
  expect(problem).toMatchObject({ reason: "outdated" })
  await cardOf(page, tasks.outdated).getByRole("status").getByText(problem.detail).waitFor()
  await told(page, "refused", numbered(tasks.outdated))
  expect(await statusOf(tasks.outdated)).toBe("pending")
  // Of what is gone nothing is sent.
  await cardOf(page, tasks.gone).focus()
  await heard(page, "a", async () => (await toasts(page, "refused", /^[^#]*$/).count()) > 0)
  expect(sent).toHaveLength(2)

  // A reason is asked for; Escape rejects nothing and gives the place back.
  await cardOf(page, tasks.created).focus()
  await heard(page, "r", async () => (await page.getByRole("dialog").count()) === 1)
  await page.keyboard.press("Escape")
  await page.getByRole("dialog").waitFor({ state: "hidden" })
  await inTime(() => currentNumber(page)).toBe(tasks.created.number)
  expect(await statusOf(tasks.created)).toBe("pending")
  await press(page, "r")
  const reason = page.getByRole("textbox", { name: "Reason" })
  await inTime(() => reason.evaluate((field) => field === document.activeElement)).toBe(true)
  await page.keyboard.type("a finding for jars, not this")
  await page.keyboard.press("Control+Enter")
  await listed(page, 7)
  expect(await run(story.get(`/tasks/${tasks.created.id}`))).toMatchObject({
    status: "rejected",
    resolutionNote: "a finding for jars, not this"
  })
  await inTime(() => currentNumber(page)).toBe(tasks.tied.number)

  // One by one and by the group; what of many is refused stays selected.
  await press(page, "x", "j", "X")
  const selected = (count: number) =>
    page.getByRole("region", { name: "Selected suggestions" }).getByRole("button", {
      name: new RegExp(`^Approve\\D+${count}\\b`),
      disabled: false
    })
  await selected(4).waitFor()
  await heard(page, "A", async () => (await toasts(page, "done", /^[^#\d]*2\b/).count()) > 0)
  await toasts(page, "refused", numbered(tasks.outdated))
    .filter({ hasText: numbered(tasks.gone) })
    .first()
    .waitFor()
  await listed(page, 5)
  await selected(2).waitFor()
  expect((await run(story.get(`/objects/${objects.lightning.id}`))).properties).toMatchObject({
    version: "1.32.0",
    licenceReview: "review"
  })
  await heard(page, "R", async () => (await page.getByRole("dialog").count()) === 1)
  await page.getByRole("dialog", { name: /\b2\b/ }).waitFor()
  await page.getByRole("textbox", { name: "Reason" }).fill("Not now")
  await page.keyboard.press("Control+Enter")
  await listed(page, 3)
  for (const { id } of [tasks.outdated, tasks.gone])
    expect(await run(story.get(`/tasks/${id}`))).toMatchObject({
      status: "rejected",
      resolutionNote: "Not now"
    })
  expect((await run(pendingOf(story))).map(({ number }) => number)).toEqual(
    [tasks.deleted, tasks.untied, tasks.deceiving].map(({ number }) => number)
  )

  // The keys are explained, and can be turned off.
  await press(page, "?")
  const help = page.getByRole("dialog", { name: "Keyboard" })
  await help.waitFor()
  expect(await help.locator("kbd").allInnerTexts()).toEqual(expect.arrayContaining(["A", "E", "R", "X"]))
  await help.getByRole("checkbox", { name: "Enable keyboard shortcuts" }).uncheck()
  await press(page, "Escape", "j", "a")
  expect(await run(pendingOf(story))).toHaveLength(3)
})

it("decides once what two presses in haste are made for, and reaches everything with Tab alone", async () => {
  const story = await real.newStory()
  const { tasks } = await run(mixed(story))
  const { page } = await real.visit(story)
  await listed(page, 9)
  /** What has the focus: where a link leads, the name of a field, the words of a button. */
  const focused = () =>
    page.evaluate(() => {
      const active = document.activeElement
      if (active instanceof HTMLAnchorElement) return active.hash || active.pathname
      return active?.getAttribute("aria-label") ?? active?.textContent?.trim() ?? ""
    })
  await press(page, "Tab")
  expect(await focused()).toBe("#content")
  await press(page, "Enter")
  const seen: Array<string> = []
  for (let step = 0; step < 8; step++) {
    await press(page, "Tab")
    seen.push(await focused())
  }
  const { id, runId, title } = tasks.created
  expect(seen).toEqual([
    `Select ${title}`,
    `/tasks/${id}`,
    expect.stringMatching(/^Assign/),
    `/runs/${runId}`,
    expect.stringMatching(/^Approve/),
    expect.stringMatching(/^Edit/),
    expect.stringMatching(/^Reject/),
    `Select ${tasks.tied.title}`
  ])
  expect(
    await page.evaluate(() => getComputedStyle(document.activeElement ?? document.body).outlineStyle)
  ).toBe("solid")

  // From here the page's time stands still, and goes on only as it is looked at.
  await page.clock.install()
  await page.clock.pauseAt(new Date(Date.now() + 60_000))
  await cardOf(page, tasks.created).focus()
  await page.clock.runFor(1_000)
  await press(page, "a")
  await inTime(async () => {
    await page.clock.runFor(5)
    return page.getByRole("article").count()
  }).toBe(8)
  await press(page, "a", "a")
  expect(await run(pendingOf(story))).toHaveLength(8)
})

it("questions are answered in words by keyboard alone, come and go by themselves, and what is being written stays", async () => {
  const story = await real.newStory()
  const ask = (name: string, question: string, options?: ReadonlyArray<string>) =>
    run(
      Effect.flatMap(asker(story, askingModel(asking(question, options)), { name }), (agent) =>
        story.post(`/agents/${agent.id}/trigger?wait=false`)
      )
    )
  await ask("first", "How does <b>this</b> look?\nIt is new.")
  const { page } = await real.visit(story)
  await listed(page, 1)
  expect(await page.locator("article b").count()).toBe(0)
  const field = card(page, "How does").getByRole("textbox")
  await field.fill("   ")
  expect(await page.getByRole("button", { name: "Answer", exact: true }).isDisabled()).toBe(true)
  await field.fill("half an ans")
  await ask("second", "Which licence?", ["MIT", "WTFPL"])
  await listed(page, 2)
  const [, other] = (await run(story.get("/tasks?type=question&status=pending"))).items.toReversed()
  await run(story.post(`/runs/${other.runId}/answer`, { answer: "MIT" }))
  await listed(page, 1)
  expect(await field.inputValue()).toBe("half an ans")
  await field.fill("just a name")
  await page.keyboard.press("Control+Enter")
  await listed(page, 0)
  const { items } = await run(story.get("/tasks?type=question&status=completed"))
  expect(items.map(({ payload }: Json) => payload.answer).toSorted()).toEqual(["MIT", "just a name"])
  await run(
    eventually(story.get("/runs"), (runs) =>
      runs.items.every(({ completedAt }: Json) => completedAt !== null)
    )
  )

  // A link to it says what was answered.
  const { page: later } = await real.visit(story, `/tasks/${other.id}`, { role: "viewer" })
  await later.getByRole("region", { name: "Linked task" }).getByText("MIT").waitFor()
})

it("S000-R29 keys act at once on the card that shows them, which is the first, and on none that is not in view", async () => {
  const story = await real.newStory()
  const { tasks } = await run(mixed(story))
  const { page } = await real.visit(story, "/", { role: "editor" })
  await listed(page, 9)
  const first = (await currentNumber(page)) ?? 0
  const shown = page.locator("article[data-number]").first()
  expect(await shown.getAttribute("data-number")).toBe(String(first))
  const keys = () =>
    page
      .locator("article kbd")
      .evaluateAll((all) =>
        all.flatMap((key) =>
          key.checkVisibility({ visibilityProperty: true })
            ? [key.closest<HTMLElement>("article")?.dataset["number"]]
            : []
        )
      )
  expect(new Set(await keys())).toEqual(new Set([String(first)]))
  await press(page, "r")
  await page.getByRole("dialog").getByRole("textbox").waitFor()
  await page.keyboard.press("Escape")
  await press(page, "a")
  await listed(page, 8)
  const wanted = Object.values(tasks).find(({ number }) => number === first)
  expect(await run(story.get(`/tasks/${wanted?.id}`))).toMatchObject({
    status: "completed",
    resolvedBy: "a-editor"
  })

  // Whoever looks further down is led to the card first.
  const { page: below } = await real.visit(story, "/", { viewport: { width: 900, height: 300 } })
  await listed(below, 8)
  await below.evaluate(() => window.scrollTo(0, document.body.scrollHeight))
  const marked = await currentNumber(below)
  await press(below, "a")
  await inTime(() => below.evaluate(() => document.activeElement?.getAttribute("data-number"))).toBe(
    String(marked)
  )
  expect(await run(pendingOf(story))).toHaveLength(8)
})

it("S000-R29, R32 says before the click that the agent is gone, and rejects all of it in one go", async () => {
  const story = await real.newStory()
  const { tasks } = await run(mixed(story))
  const { agentId, agentName } = tasks.plain
  const { page } = await real.visit(story)
  await listed(page, 9)
  expect(await page.locator("[data-agent-state]").count()).toBe(0)
  await run(story.patch(`/agents/${agentId}`, { enabled: false }))
  const plain = cardOf(page, tasks.plain)
  await plain.locator("[data-agent-state=disabled]").waitFor()
  await run(Effect.asVoid(story.delete(`/agents/${agentId}`)))
  await plain.locator("[data-agent-state=deleted]").waitFor()
  await screenshot(page, "inbox-deleted-agent")
  await plain.getByRole("button", { name: /^Approve/ }).click()
  await inTime(async () => (await run(story.get(`/tasks/${tasks.plain.id}`))).status).toBe("completed")
  await listed(page, 8)
  await page.getByTestId("reject-all").filter({ hasText: agentName }).click()
  const dialog = page.getByRole("dialog")
  await dialog.getByRole("textbox").fill("It is gone")
  await dialog.getByRole("button", { name: /^Reject/ }).click()
  await inTime(async () =>
    (await run(pendingOf(story))).filter((task: Json) => task.agentId === agentId)
  ).toEqual([])
  const decided = (await run(story.get("/tasks?status=rejected"))).items
  expect(new Set(decided.map((task: Json) => [task.agentId, task.resolutionNote].join()))).toEqual(
    new Set([[agentId, "It is gone"].join()])
  )
  await listed(page, (await run(pendingOf(story))).length)
})

it("who may only look reads all, and nothing more", async () => {
  const story = await real.newStory()
  await run(mixed(story))
  await run(
    Effect.asVoid(asked(story, { tool: "ask_user", arguments: { question: "Which?", options: ["One"] } }))
  )
  const { page: viewer } = await real.visit(story, "/", { role: "viewer" })
  await listed(viewer, 10)
  await viewer.locator("[data-role=viewer]").waitFor()
  await press(viewer, "j", "a", "e", "x")
  expect(await viewer.getByRole("button", { name: /^(Approve|Edit|Reject|One)/ }).count()).toBe(0)
  expect(await run(pendingOf(story))).toHaveLength(10)
  const { page: editor } = await real.visit(story, "/", { role: "editor" })
  await listed(editor, 10)
  // An editor may decide what may be changed by hand, and what is taken back needs a reviewer.
  expect(await editor.getByRole("button", { name: /^Approve/ }).count()).toBeGreaterThan(0)
  await card(editor, "Which").getByRole("button", { name: "One", disabled: false }).press("Enter")
  await listed(editor, 9)
})

it("a reason that was not taken need not be written again", async () => {
  const story = await real.newStory()
  const { tasks } = await run(mixed(story))
  const { page } = await real.visit(story)
  await listed(page, 9)
  const reason = page.getByRole("textbox", { name: "Reason" })
  await cardOf(page, tasks.created).focus()
  await heard(page, "r", async () => (await reason.count()) === 1)
  await reason.fill("a finding for jars, not this")
  await page.context().setOffline(true)
  await page.keyboard.press("Control+Enter")
  await told(page, "unknown", numbered(tasks.created))
  await page.context().setOffline(false)
  await cardOf(page, tasks.plain).focus()
  await heard(page, "r", async () => (await reason.count()) === 1)
  expect(await reason.inputValue()).toBe("")
  await page.keyboard.press("Escape")
  // Else its empty field would be taken for that of the next dialog.
  await reason.waitFor({ state: "detached" })
  await cardOf(page, tasks.created).focus()
  await heard(page, "r", async () => (await reason.count()) === 1)
  expect(await reason.inputValue()).toBe("a finding for jars, not this")
  await page.keyboard.press("Control+Enter")
  await listed(page, 8)
  expect((await run(story.get(`/tasks/${tasks.created.id}`))).resolutionNote).toBe(
    "a finding for jars, not this"
  )
})
