/**
 * The quick start in a browser: `npm start` in an empty data folder, and what a new user sees and decides.
 */
import { spawn } from "node:child_process"
import { join } from "node:path"
import { Effect, Result } from "effect"
import { it, onTestFinished } from "vitest"
import { until } from "../../cli/testing/invoke.ts"
import { quickDataFolder } from "../../server/testing/quick-folder.ts"
import { launchChromium, plainContext, slowDown } from "./chromium.ts"
import { currentNumber, heard, inTime, press, told } from "./inbox-words.ts"
import { printWhenFailed } from "./real-visit.ts"

const root = join(import.meta.dirname, "../../..")

/** `npm start` as docs/quickstart.md has it, until the scope ends; answers the link that it prints. */
const npmStart = (data: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const server = spawn("npm", ["start"], {
        cwd: root,
        env: { ...process.env, TROPISM_DATA: data, PORT: "0", NODE_ENV: "production" },
        detached: true
      })
      const said = { text: "" }
      for (const stream of [server.stdout, server.stderr])
        stream.on("data", (text) => (said.text += String(text)))
      return { group: -(server.pid ?? 0), said }
    }),
    // npm ends before what it started: the folder is the server's until the last of them has gone.
    ({ group }) =>
      Effect.sync(() => process.kill(group, "SIGTERM")).pipe(
        Effect.andThen(until(() => Result.isFailure(Result.try(() => process.kill(group, 0)))))
      )
  ).pipe(
    Effect.flatMap(({ said }) => {
      const link = () => /http:\/\/127\.0\.0\.1:\d+\/login\?code=\w+/.exec(said.text)?.[0]
      return Effect.map(
        until(() => link() !== undefined),
        () => link() ?? said.text
      )
    })
  )

it(
  "leads a new user from npm start to a decision, a run, a value's reason, the digest and a todo",
  { timeout: 240_000 },
  () =>
    quickDataFolder.pipe(
      Effect.flatMap((folder) => npmStart(join(folder, "data"))),
      Effect.flatMap((link) => Effect.promise(() => tour(link))),
      Effect.scoped,
      Effect.runPromise
    )
)

const tour = async (link: string) => {
  const browser = await launchChromium()
  onTestFinished(() => browser.close())
  const page = await (await browser.newContext(plainContext)).newPage()
  await slowDown(page)
  page.setDefaultTimeout(25_000)
  printWhenFailed(page)
  await page.goto(link)

  // 2. Decide: by the keys that the page names.
  await page.getByRole("article").first().waitFor()
  const waiting = async () => Number(await page.getByTestId("waiting-count").textContent())
  await inTime(waiting).toBeGreaterThan(1)
  await press(page, "j")
  await inTime(() => currentNumber(page)).toBeDefined()
  const first = await currentNumber(page)
  await press(page, "a")
  await told(page, "done", `#${first}`)
  await inTime(() => currentNumber(page)).not.toBe(first)
  await heard(page, "r", async () => (await page.getByRole("dialog").count()) === 1)
  const dialog = page.getByRole("dialog")
  await dialog.getByRole("textbox").fill("we have a commercial licence")
  await dialog.getByRole("button", { name: /^Reject/, disabled: false }).press("Enter")
  await dialog.waitFor({ state: "detached" })

  // 1. See what happened.
  const endedRun = (agent: string) =>
    page
      .getByRole("heading", { level: 1, name: agent })
      .filter({ has: page.locator("[data-status=completed]") })
  await press(page, "g", "r")
  await page.getByLabel("Status").selectOption("completed")
  await page.waitForURL(/status=completed/)
  await inTime(() =>
    page.getByRole("main").locator("li [data-status]:not([data-status=completed])").count()
  ).toBe(0)
  await page
    .getByRole("link", { name: /licence-review/ })
    .first()
    .press("Enter")
  await endedRun("licence-review").waitFor()
  await page.getByRole("list", { name: "Steps", exact: true }).getByRole("heading").first().waitFor()

  // Why a value is there.
  await press(page, "g", "g")
  await page.waitForURL(/\/graph/)
  await page.getByRole("searchbox", { name: "Search" }).fill("vitest")
  await page.waitForURL(/q=vitest/)
  await page.getByRole("link", { name: "tropism-workspace/vitest", exact: true }).press("Enter")
  await page.getByRole("heading", { level: 1, name: /tropism-workspace\/vitest/ }).waitFor()
  const version = page
    .getByRole("list", { name: "Properties" })
    .getByRole("listitem")
    .filter({ has: page.getByRole("heading", { name: "version", exact: true }) })
  await version.getByRole("button", { name: /^Why/, disabled: false }).press("Enter")
  await version.getByRole("listitem").first().waitFor()

  // The third agent is asked for its report now.
  await page.keyboard.press("Control+k")
  await page.getByRole("combobox").fill("daily-digest")
  await page
    .getByRole("option", { name: /daily-digest/ })
    .first()
    .waitFor()
  await page.keyboard.press("Enter")
  await page.getByRole("button", { name: "Run now", disabled: false }).press("Enter")
  await dialog.getByRole("button", { name: "Run", exact: true, disabled: false }).press("Enter")
  await endedRun("daily-digest").waitFor()

  // 3. What happened, as it happened, and who woke.
  await press(page, "g", "l")
  await page.getByRole("searchbox", { name: "Filter the feed" }).fill("type:Package op:updated")
  // The address changes before the list does: a key pressed between the two would go to a row that leaves.
  const rows = page.getByRole("list", { name: "Live feed" }).getByRole("listitem")
  await inTime(async () => {
    const texts = await rows.allInnerTexts()
    return texts.length > 0 && texts.every((text) => /^updated\s+Package /.test(text))
  }).toBe(true)
  await page.keyboard.press("Tab")
  await press(page, "j")
  await press(page, "Enter")
  await page.waitForURL("**/events/*")
  await page.getByRole("heading", { name: "Triggered agents" }).waitFor()

  // 6. Talk.
  await press(page, "g", "t")
  await page.getByLabel("Message to TodoAssistant").fill("add buy milk")
  await page.keyboard.press("Enter")
  const said = page.getByRole("list", { name: "Messages" })
  await page.getByRole("button", { name: "Send" }).waitFor()
  await said.getByText("add_task").click()
  await said.getByRole("figure").last().getByText('"Buy milk"').waitFor()
}
