/**
 * Brings words into a context: to a question that waits for them they are the answer, else an agent's turn answers them.
 *
 * Flow: http → **chat** → dispatch → run → tool → task
 *
 * One way for every door through which a person speaks in a context of their own.
 * The run is held before the log, as whoever else answers holds them. It knows
 * neither conversations nor keys.
 */
import type { NewEvent } from "@tropism/domain/context-event"
import type { UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { type ContextHead, Contexts } from "../agent/contexts.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { Triggers } from "../dispatch/triggers.ts"
import type { TriggerRefused } from "../run/admission.ts"
import { type AnswerRefused, Answers } from "../run/questions.ts"
import { Runs } from "../run/runs.ts"
import { QuestionTasks } from "../task/question-tasks.ts"

/** What somebody says. */
export interface Words {
  readonly content: string
  /** The event that begins a turn, where no question waits. */
  readonly event: NewEvent
  /** What is kept right before it. */
  readonly before?: Effect.Effect<ReadonlyArray<NewEvent>, never, ProjectTransaction>
}

/** Where words stand in a log. */
export interface Spoken {
  /** The number of the event that has them; the answer comes behind. */
  readonly number: number
  /** They answer a question of a turn that was open. */
  readonly isAnswer: boolean
}

export class Speaking extends Context.Service<
  Speaking,
  {
    /** Keeps a person's words, with the run that answers them or goes on with them. */
    readonly say: (
      context: ContextHead,
      words: Words,
      by: UserId
    ) => Effect.Effect<Spoken, TriggerRefused | AnswerRefused, ProjectTransaction>
  }
>()("@tropism/server/chat/Speaking") {
  static readonly layer = Layer.effect(
    Speaking,
    Effect.gen(function* () {
      const contexts = yield* Contexts
      const triggers = yield* Triggers
      const runs = yield* Runs
      const questions = yield* QuestionTasks
      const answers = yield* Answers

      /** Brings words to the question that waits for them; false where none does. */
      const answer = Effect.fnUntraced(function* ({ name }: ContextHead, { content }: Words, by: UserId) {
        const resting = yield* runs.holdResting(name)
        const [question] = resting?.reason === "question" ? yield* questions.pending(resting.id) : []
        if (!resting || !question) return false
        yield* answers.give({ id: resting.id, contextName: name }, content, question.id, by)
        return true
      })

      const begin = (context: ContextHead, { before = nothing, event }: Words, by: UserId) =>
        // Behind the run and right before the event: whoever works there takes the run's lock first, too.
        triggers.byEvent(
          context,
          { ...event, triggersAgentTurn: true },
          by,
          Effect.flatMap(before, (events) => Effect.asVoid(contexts.append(context.name, events)))
        )

      const say = Effect.fn("Speaking.say")(function* (context: ContextHead, words: Words, by: UserId) {
        const isAnswer = yield* answer(context, words, by)
        if (!isAnswer) yield* begin(context, words, by)
        // The log is held since it was written, so its end is what was said.
        const { lastNumber } = yield* contexts.lock(context.name)
        const spoken: Spoken = { number: lastNumber, isAnswer }
        return spoken
      })

      return Speaking.of({ say })
    })
  )
}

const nothing = Effect.succeed<ReadonlyArray<NewEvent>>([])
