/**
 * Stores the questions that runs ask people and delivers the answers.
 *
 * Asking is the effect of a tool: the question becomes a task in the transaction that records the call. Answering is one transaction as
 * well: the task, the call's outcome, the log, and the run that resumes. Locks are taken in the order run, log, task, so an answer, a
 * cancellation and the running attempt are serialized.
 */
import type { ContextName } from "@tropism/domain/context-event"
import type { TaskId, UserId } from "@tropism/domain/ids"
import type { Run } from "@tropism/domain/run"
import { chosenOption } from "@tropism/domain/chosen-option"
import { questionBounds } from "@tropism/domain/task"
import { Context, Effect, Layer, Schema } from "effect"
import { Contexts } from "../contexts/contexts.ts"
import { CrashPoint } from "../crash-point.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { refused } from "../graph/change-refused.ts"
import { taskLimits } from "../review/limits.ts"
import { type AskedQuestion, QuestionTasks } from "../review/questions.ts"
import { Questions } from "../tools/run-tools.ts"
import { ToolCalls } from "../tools/tool-calls.ts"
import { Runs } from "./run-store.ts"

/** Implements the questions port of the tools. */
export const questions = Layer.effect(
  Questions,
  Effect.gen(function* () {
    const tasks = yield* QuestionTasks
    return Questions.of({
      ask: Effect.fn("Questions.ask")(function* ({ options = null, question }, principal, toolCallId) {
        const isBlank = (text: string) => text.trim() === ""
        if (isBlank(question))
          return yield* refused("invalid", "/question: There are only blanks in it", "/question")
        if (options !== null && (options.some(isBlank) || new Set(options).size < options.length))
          return yield* refused("invalid", "/options: Each must be another text, and not blank", "/options")
        const open = yield* tasks.pending(principal.runId)
        if (open.length >= taskLimits.openQuestionsPerRun) {
          const detail = `${open.length} of your questions wait for an answer already: wait for those`
          return yield* refused("state", detail)
        }
        const { agentId, depth, rootEventId, runId } = principal
        const asked = { question, options, agentId, runId, toolCallId, rootEventId, depth: depth + 1 }
        const { id, number } = yield* tasks.ask(asked)
        const result = { status: "asked", taskId: id, taskNumber: number }
        return { result, decision: null, reads: [], waitsFor: "person" as const }
      })
    })
  })
)

/** Why an answer was refused. */
export class AnswerRefused extends Schema.TaggedError<AnswerRefused>()("AnswerRefused", {
  /** `noneOpen`: no question is open; the others describe what is wrong with the answer. */
  reason: Schema.Literals(["noneOpen", "answered", "which", "unknown", "noOption", "tooLong"]),
  detail: Schema.String
}) {}

export class Answers extends Context.Service<
  Answers,
  {
    /**
     * Gives a run the answer that it waits for; `taskId` selects one of several questions.
     *
     * **Details** The run resumes when none of its questions is open any more.
     */
    readonly give: (
      run: Pick<Run, "id" | "contextName">,
      answer: string,
      taskId: TaskId | null,
      by: UserId
    ) => Effect.Effect<void, AnswerRefused, ProjectTransaction>
  }
>()("@tropism/server/run/Answers") {
  static readonly layer = Layer.effect(
    Answers,
    Effect.gen(function* () {
      const runs = yield* Runs
      const contexts = yield* Contexts
      const tasks = yield* QuestionTasks
      const toolCalls = yield* ToolCalls

      const give = Effect.fn("Answers.give")(function* (
        run: Pick<Run, "id" | "contextName">,
        answer: string,
        taskId: TaskId | null,
        by: UserId
      ) {
        const name = run.contextName as ContextName
        yield* Effect.mapError(runs.holdOpen(run.id), () => refuse("noneOpen", "The run has ended"))
        yield* contexts.lock(name)
        const open = yield* tasks.pending(run.id)
        const { callId, id, tool } = yield* taskId === null
          ? only(open)
          : Effect.flatMap(tasks.find(run.id, taskId), (found) => waiting(found, taskId))
        const question = open.find((each) => each.id === id)
        const options = question?.payload.options
        const chosen = options ? chosenOption(options, answer) : answer
        if (options && chosen === undefined) {
          const choices = listed(options.map((option) => JSON.stringify(option)))
          return yield* refuse("noOption", `This must be one of the answers to choose from: ${choices}`)
        }
        const given = chosen ?? answer
        if (given.length > questionBounds.answerMaxChars) return yield* refuse("tooLong", tooLong)
        // The run's lock excludes other answers; the task's state is compared all the same.
        if (!(yield* tasks.answer(id, by, given)))
          return yield* refuse("answered", "Somebody has answered already")
        const result = { answer: given }
        yield* toolCalls.end(run.id, callId, "completed", result)
        yield* contexts.append(name, [{ type: "ToolCallCompletedEvent", callId, tool, result, userId: by }])
        if (open.length === 1) yield* runs.wake(run.id, "question")
        yield* CrashPoint.hit("task.beforeCommit")
      })

      return Answers.of({ give })
    })
  )
}

const tooLong = `An answer has at most ${questionBounds.answerMaxChars.toLocaleString("en")} characters`

const refuse = (reason: AnswerRefused["reason"], detail: string) => new AnswerRefused({ reason, detail })

const only = (open: ReadonlyArray<AskedQuestion>): Effect.Effect<AskedQuestion, AnswerRefused> => {
  const [first, ...more] = open
  if (first === undefined)
    return Effect.fail(refuse("noneOpen", "No question of this run waits for an answer"))
  if (more.length === 0) return Effect.succeed(first)
  const which = listed(open.map(({ id, number }) => `${id} (task ${number})`))
  return Effect.fail(
    refuse("which", `${open.length} questions of this run wait: say which by its id: ${which}`)
  )
}

/** Lists the first texts, as many as fit in a sentence. */
const listed = (texts: ReadonlyArray<string>): string => {
  const shown = texts.filter(
    (_, index) => texts.slice(0, index + 1).join(", ").length <= taskLimits.listedMaxChars
  )
  const rest = texts.length - shown.length
  return rest === 0 ? shown.join(", ") : `${[...shown, `and ${rest} more`].join(", ")}`
}

const waiting = (
  question: AskedQuestion | undefined,
  id: TaskId
): Effect.Effect<AskedQuestion, AnswerRefused> => {
  if (question === undefined) return Effect.fail(refuse("unknown", `The run has asked no question ${id}`))
  if (question.status === "pending") return Effect.succeed(question)
  const { number, resolvedBy, status } = question
  const detail =
    status === "completed"
      ? `Question ${number} is answered already${resolvedBy === null ? "" : `: ${resolvedBy} did`}`
      : `Question ${number} is ${status}: the run does not wait for it any more`
  return Effect.fail(refuse("answered", detail))
}
