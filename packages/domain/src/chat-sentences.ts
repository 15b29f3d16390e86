/**
 * What a person in a chat is told where an agent's own words are missing (S003-R50…R54, R57, R58).
 *
 * These sentences are renderings: the log holds what happened, and no model is
 * ever shown one of them. Each acknowledges what went wrong and says what to do
 * instead; none promises that anything is tried again (S003-R59).
 */
import { type CarriedCall, lastFault } from "./chat-calls.ts"
import type { ChatEnding } from "./chat-ending.ts"
import type { CutReason } from "./conversation.ts"
import type { TurnFailure } from "./context-event.ts"
import { todoSentences } from "./todo.ts"

/** What is known of an answer when it is told. */
export interface ToldAnswer {
  readonly ending: ChatEnding
  /** What brought the turn down, where it failed and the log says so. */
  readonly failure: TurnFailure | null
  /** What the agent said last. */
  readonly said: string
  /** Why that is not whole; absent where it is. */
  readonly finishReason?: CutReason | undefined
  /** The calls of which the agent has said nothing: those since its last words. */
  readonly unspoken: ReadonlyArray<CarriedCall>
  /** What it asked and nobody has answered. */
  readonly question: { readonly question: string; readonly options?: ReadonlyArray<string> } | undefined
}

/** The answer as a person reads it. */
export const chatResponse = (answer: ToldAnswer): string => {
  const { ending, failure, question, said, unspoken } = answer
  switch (ending) {
    case "answered":
      return joined(said, silentResponse(unspoken))
    case "question":
      return joined(said, question === undefined ? sentences.question : asked(question))
    case "bound":
      return said
    case "failed":
      return joined(
        answer.finishReason === undefined ? "" : said,
        failedResponse(lastFault(unspoken), failure)
      )
    case "user":
    case "forked":
      return joined(said, sentences.user)
    default:
      return joined(said, sentences[ending])
  }
}

/** The answer of a turn that failed; `fault` is what its last tool call answered, where that was an error. */
export const failedResponse = (fault: unknown, failure: TurnFailure | null): string =>
  joined(toolSentence(fault), (failure && failures[failure]) ?? trouble)

/** What a person is told of calls of which the agent says nothing, at the end of a turn. */
export const silentResponse = (calls: ReadonlyArray<CarriedCall>): string => {
  const fault = lastFault(calls)
  if (fault !== undefined) return toolSentence(fault)
  return calls.some(({ status }) => status === "completed") ? "Done." : ""
}

/** What a failed tool call means to the person who asked for it; empty where none failed. */
export const toolSentence = (fault: unknown): string => {
  if (fault === undefined) return ""
  const error = textOf(fault)
  const known = toolSentences.find(([beginning]) => error.startsWith(beginning))
  return known
    ? known[1](numberOf(fault))
    : "I couldn't do that. Try it another way, or ask me for something else."
}

const trouble = "I'm having trouble. Try again."

const sentences = {
  question: "I have asked a question and wait for its answer.",
  stopped: "I was stopped and wait until agents may work again. Then I go on with this.",
  message: "You said something more before I was done: my next answer takes in both.",
  user: "I stopped here, as I was told to.",
  cancelled: "I was stopped before I was done. Ask me again if you still want this.",
  stepLimit: "I have used all the steps that I may take for one answer. Tell me to go on, or ask for less.",
  timeout: "I have used all the time that I may take for one answer. Tell me to go on, or ask for less.",
  budget:
    "I have used all that I may spend. Somebody who looks after this project can raise my budget; then tell me to go on."
} as const

/** Failures that have a sentence of their own. */
const failures: Partial<Readonly<Record<TurnFailure, string>>> = {
  contentFilter: "The content filter of my model's provider stopped my answer. Ask me in another way.",
  emptyAnswer: "My model gave no answer. Ask me again, or in another way.",
  doomLoop: "I kept trying the same thing without getting anywhere, so I stopped. Ask me in another way.",
  guard: "I may not go on with this. Ask me for something else."
}

type SentenceOf = (taskId: number | undefined) => string

const toolSentences: ReadonlyArray<readonly [beginning: string, sentence: SentenceOf]> = [
  [
    todoSentences.notFound,
    (id) =>
      id === undefined
        ? "I couldn't find that task. Would you like to see your current tasks?"
        : `I couldn't find that task: there is no #${id}. Would you like to see your current tasks?`
  ],
  [todoSentences.longTitle, () => "That title is too long. Can you say it in 200 characters or less?"],
  [todoSentences.noTitle, () => "A task needs a title. What shall I call it?"],
  [
    todoSentences.longDescription,
    () => "That description is too long. Can you say it in 1000 characters or less?"
  ],
  [todoSentences.nothingToChange, () => "Tell me what to change: the title or the description."]
]

/** The words of an error, as a tool answered it: `{error, …}` or text. */
const textOf = (fault: unknown): string => {
  const error = typeof fault === "object" && fault !== null && "error" in fault ? fault.error : fault
  return typeof error === "string" ? error : ""
}

const numberOf = (fault: unknown): number | undefined =>
  typeof fault === "object" && fault !== null && "task_id" in fault && typeof fault.task_id === "number"
    ? fault.task_id
    : undefined

/** The questions that an answer ends with for a client of the OpenAI API. */
export const questionsText = (
  questions: ReadonlyArray<{ readonly question: string; readonly options?: ReadonlyArray<string> }>
): string =>
  questions
    .map(({ options = [], question }) => [question, ...options.map((option) => `- ${option}`)].join("\n"))
    .join("\n\n")

const asked = ({ options = [], question }: NonNullable<ToldAnswer["question"]>): string =>
  options.length === 0 ? question : `${question} (${options.join(", ")})`

const joined = (...texts: ReadonlyArray<string>): string => texts.filter((text) => text !== "").join("\n\n")
