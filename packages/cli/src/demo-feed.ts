/**
 * The demo as it is seen in the terminal: a line for each run that ends, and what waits for a person.
 *
 * It only looks. While runs are open, the last line of the terminal says how
 * many, how many tasks wait and where; when they are all over, that stays
 * as a line.
 */
import type { Run } from "@tropism/domain/run"
import { isTerminal } from "@tropism/domain/run"
import { Effect, Stream } from "effect"
import { type Access, readPages } from "./access.ts"
import { followRuns, type Look } from "./follow-runs.ts"
import { makeSubjects, renderRunLine } from "./run-line.ts"
import { Screen } from "./terminal/screen.ts"

export interface DemoFeedOptions {
  /** Where a person reviews what waits. */
  readonly url: string
  /** Signs a browser in, once. */
  readonly loginLink: string
  /** Says what a model's name means for the reader. */
  readonly modelSentence: (model: string) => string
}

/**
 * Makes the feed: `run` follows the runs for ever; after `showStatus` the last
 * line of the terminal is the feed's, which until then belongs to the import.
 */
export const makeDemoFeed = (access: Access, options: DemoFeedOptions) =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const subjectOf = makeSubjects(access)
    const toldModels = new Set<string>()
    let agentColumns = 20
    let isShowingStatus = false
    let hasNews = true
    let isLinkRepeated = false

    const tellModel = (run: Run) =>
      Effect.suspend(() => {
        const sentence = run.model === null ? undefined : options.modelSentence(run.model)
        if (sentence === undefined || toldModels.has(sentence)) return Effect.void
        toldModels.add(sentence)
        return screen.print(screen.paint.dim(sentence))
      })

    const tellRun = (run: Run) =>
      Effect.gen(function* () {
        yield* tellModel(run)
        agentColumns = Math.max(agentColumns, run.agentName.length)
        yield* screen.print(
          renderRunLine(
            { run, subject: yield* subjectOf(run) },
            agentColumns,
            screen.paint,
            yield* screen.width
          )
        )
      })

    const tellStatus = (openCount: number) =>
      Effect.gen(function* () {
        const waiting = yield* countWaiting(access)
        if (openCount > 0) {
          const line = `${openCount} ${openCount === 1 ? "run" : "runs"} open  ·  ${waitingText(waiting)}  ·  ${options.url}`
          return yield* screen.redraw(() => line)
        }
        hasNews = false
        yield* screen.redraw(undefined)
        yield* screen.print("", `No open runs. ${waitingSentence(waiting, options.url)}`, "")
        // The lines of the runs have carried away where it was said first.
        if (!isLinkRepeated) yield* screen.print(`One-time login link: ${options.loginLink}`, "")
        isLinkRepeated = true
      })

    const tell = (look: Look) =>
      Effect.gen(function* () {
        yield* Effect.forEach(
          look.changed.filter((run) => isTerminal(run.status) || run.status === "paused"),
          tellRun
        )
        hasNews = hasNews || look.changed.length > 0
        if (isShowingStatus && hasNews) yield* tellStatus(look.openCount)
      })

    return {
      run: followRuns(access).pipe(Stream.runForEach(tell)),
      showStatus: Effect.sync(() => void (isShowingStatus = true))
    }
  })

interface Waiting {
  readonly count: number
  readonly hasMore: boolean
}

const countWaiting = (access: Access) =>
  Effect.map(
    readPages(
      (query) => access.client.tasks.list({ params: access.params, query: { ...query, status: "pending" } }),
      mostCounted
    ),
    ({ hasMore, items }): Waiting => ({ count: items.length, hasMore })
  )

const mostCounted = 1_000

const waitingText = ({ count, hasMore }: Waiting): string =>
  `${hasMore ? `over ${count}` : count} ${count === 1 ? "pending task" : "pending tasks"}`

const waitingSentence = (waiting: Waiting, url: string): string =>
  waiting.count === 0 ? "No pending tasks." : `${waitingText(waiting)} for you: ${url}`

/** The providers whose keys the environment may hold, the variable first. */
export const keyVariables = [
  "OPENAI_API_KEY",
  "ANTHROPIC_API_KEY",
  "GOOGLE_GENERATIVE_AI_API_KEY",
  "OPENAI_COMPATIBLE_MODEL"
] as const

/** Says on which model the demo's agents run, and honestly so when it is none. */
export const modelSentence = (model: string, isConfigured: boolean): string => {
  if (!model.startsWith("scripted")) return `Model: ${model}.`
  return isConfigured
    ? `Model: ${model}, a script, not a language model, as set in the agent's definition.`
    : "Model: scripted, a script, not a language model (no API key found; set TROPISM_MODEL and a key such as OPENAI_API_KEY)."
}
