/**
 * TodoAssistant without a language model: a command parser for the five todo tools.
 *
 * It keeps no state between requests. The unanswered messages and the tool results so far come from the prompt, and the same prompt always
 * gives the same next call or reply.
 */
import { foldGrown } from "@tropism/domain/grown"
import { shortened } from "@tropism/domain/text-beginning"
import { Result, Schema } from "effect"
import type { Prompt } from "effect/ai"
import {
  callId,
  type CompiledScript,
  type ScriptAnswer,
  textAnswer,
  isQuoted,
  type ScriptScope,
  toResult
} from "./script.ts"

/** The script that replaces TodoAssistant's model on a server without a key. */
export const todoCommands: CompiledScript = {
  values: {},
  answer: (scope, prompt) => Result.succeed(answerTo(scope, pendingIn(prompt.content)))
}

/** A todo identified by its number or by words of its title. */
type Target = { readonly id: number } | { readonly words: string }

type Status = "all" | "pending" | "completed"
type Change = "complete" | "delete" | "update"

type Fields = Readonly<Record<string, string>>

type Command =
  | { readonly type: "add"; readonly fields: Fields }
  | { readonly type: "list"; readonly status: Status; readonly about: string }
  | { readonly type: Change; readonly target: Target; readonly fields: Fields }
  | { readonly type: "help"; readonly isAsked: boolean }

type Groups = Readonly<Record<string, string | undefined>>

const fieldsOf = ({ description, title }: Groups): Fields => ({
  ...(title === undefined ? {} : { title: titleOf(title) }),
  ...(description === undefined ? {} : { description: unquoted(description) })
})

const change =
  (type: Change) =>
  (groups: Groups): Command => ({ type, target: targetOf(groups["target"] ?? ""), fields: fieldsOf(groups) })

const add = (groups: Groups): Command => ({ type: "add", fields: fieldsOf(groups) })

const list = ({ about = "", status }: Groups): Command => ({
  type: "list",
  status: status === undefined ? "all" : /^(?:completed|done)$/i.test(status) ? "completed" : "pending",
  about: unquoted(about)
})

const statusGroup = "(?<status>pending|open|left|completed|done)"
const noun = "(?:tasks?|to-?dos?)"

const rules: ReadonlyArray<readonly [pattern: string, commandOf: (groups: Groups) => Command]> = [
  [
    `add(?: (?:an? )?(?:new )?${noun}(?: to|:)?)? (?<title>.+?)(?: with description (?<description>.+))?`,
    add
  ],
  ["(?:i need to remember|remember|remind me) to (?<title>.+)", add],
  [
    `(?:list|show)(?: me)?(?: all)?(?: my| the)?(?: ${statusGroup})?(?: ${noun}| list)?(?: about (?<about>.+))?`,
    list
  ],
  [`what(?:['’]?s| is| are| have i) ${statusGroup}(?: ${noun})?`, list],
  ["mark (?<target>.+?) (?:as )?(?:done|completed?)", change("complete")],
  ["(?:complete|finish) (?<target>.+)", change("complete")],
  ["(?:delete|remove) (?<target>.+)", change("delete")],
  ["(?:change|update|set) (?:the )?description of (?<target>.+?) to (?<description>.+)", change("update")],
  ["(?:change|update|rename) (?<target>.+?) to (?<title>.+)", change("update")],
  ["help", () => ({ type: "help", isAsked: true })]
]
const compiled = rules.map(([pattern, commandOf]) => [new RegExp(`^${pattern}$`, "i"), commandOf] as const)

/** Reads a message by the first rule that matches all of it; without one the reply is the help text. */
const parse = (message: string): Command => {
  const text = message
    .replace(/\s+/g, " ")
    .trim()
    .replace(/^please,? /i, "")
    // The look-behind keeps a long run of marks inside the text from taking quadratic time.
    .replace(/(?<![.!?])[.!?]+$/, "")
  for (const [pattern, commandOf] of compiled) {
    const match = pattern.exec(text)
    if (match) return commandOf(match.groups ?? {})
  }
  return { type: "help", isAsked: false }
}

const unquoted = (text: string): string =>
  /^["'“‘](?<inside>[^"“”]+)["'”’]$/.exec(text)?.groups?.["inside"] ?? text

const titleOf = (text: string): string => {
  const title = unquoted(text)
  return title.charAt(0).toUpperCase() + title.slice(1)
}

const targetOf = (text: string): Target => {
  const id = /^(?:the )?(?:task |to-?do )?#?(?<id>\d{1,9})$/i.exec(text)?.groups?.["id"]
  return id === undefined
    ? { words: unquoted(text.replace(/^(?:the|my) /i, "").replace(/ (?:task|to-?do)$/i, "")) }
    : { id: Number(id) }
}

interface Call {
  readonly tool: string
  readonly arguments: Readonly<Record<string, string | number>>
}

/** What the tools answer (P3-MCP-01…05). */
const Changed = Schema.Struct({ task_id: Schema.Number, title: Schema.String })
const Listed = Schema.Array(
  Schema.Struct({
    id: Schema.Number,
    title: Schema.String,
    description: Schema.NullOr(Schema.String),
    completed: Schema.Boolean
  })
)
/** A list beyond the tool's bound, cut to its newest todos. */
const CutList = Schema.Struct({ result: Listed })
type Tasks = typeof Listed.Type

type Outcome = { readonly result: unknown; readonly isError: boolean }

/** Yields a command's tool calls, one at a time, and returns its reply. */
type Steps<A> = Generator<Call, A, Outcome>

function* run(command: Command): Steps<string> {
  switch (command.type) {
    case "help":
      return command.isAsked ? help : `I did not understand that. ${help}`
    case "add": {
      const added = readChanged(yield { tool: "add_task", arguments: command.fields })
      return Result.isFailure(added)
        ? failure("add that task", added.failure)
        : `Done: I added ${nameOf(added.success)}.`
    }
    case "list":
      return yield* runList(command)
    default:
      return yield* runChange(command)
  }
}

function* runList({ about, status }: Extract<Command, { type: "list" }>): Steps<string> {
  const all = readListed(yield { tool: "list_tasks", arguments: { status } })
  if (Result.isFailure(all)) return failure("read your list", all.failure)
  const tasks = about === "" ? all.success : matching(all.success, about)
  const kind = `${status === "all" ? "" : `${status} `}tasks${about === "" ? "" : ` about “${short(about)}”`}`
  if (tasks.length === 0) return `You have no ${kind}.`
  const left = tasks.length > listedMax ? `, the newest ${listedMax} of them` : ""
  return `Your ${kind} (${tasks.length}${left}):\n${tasks
    .slice(-listedMax)
    .map(
      ({ completed, description, id, title }) =>
        `- [${completed ? "x" : " "}] #${id} ${short(title)}${description ? ` (${short(description)})` : ""}`
    )
    .join("\n")}`
}

function* runChange({ fields, target, type }: Extract<Command, { type: Change }>): Steps<string> {
  const id = "id" in target ? target.id : yield* findId(target.words, type)
  if (typeof id === "string") return id
  const done = readChanged(yield { tool: `${type}_task`, arguments: { task_id: id, ...fields } })
  if (Result.isFailure(done)) return failure(`${type} that task`, done.failure, id)
  if (type === "complete") return `Well done! I marked ${nameOf(done.success)} as done.`
  if (type === "delete") return `I deleted ${nameOf(done.success)}.`
  return `Done: I changed the ${Object.keys(fields).join()} of ${nameOf(done.success)}.`
}

/** The number of the only todo with these words, or a reply that asks for it (S003-R16). */
function* findId(words: string, type: Change): Steps<number | string> {
  const all = readListed(yield { tool: "list_tasks", arguments: { status: "all" } })
  if (Result.isFailure(all)) return failure("read your list", all.failure)
  const found = matching(all.success, words).slice(-listedMax)
  const [task] = found
  if (task === undefined)
    return `I couldn't find that task: no title has “${short(words)}”. Say “list” to see your tasks.`
  if (found.length === 1) return task.id
  const lines = found.map(({ id, title }) => `- #${id} ${short(title)}`)
  return `Which one do you mean? Say it with the number, for example “${type} ${task.id}”:\n${lines.join("\n")}`
}

/** Todos whose title has all these words; an exact match wins. */
const matching = (tasks: Tasks, text: string): Tasks => {
  const same = tasks.filter(({ title }) => title.toLowerCase() === text.toLowerCase())
  if (same.length === 1) return same
  const wanted = wordsOf(text)
  return tasks.filter(({ title }) => {
    const words = wordsOf(title)
    return wanted.length > 0 && wanted.every((word) => words.includes(word))
  })
}

const wordsOf = (text: string): ReadonlyArray<string> => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []

const listedMax = 100
const short = (text: string): string => shortened(text, 80)
const nameOf = ({ task_id: id, title }: typeof Changed.Type): string => `#${id} “${short(title)}”`

/** Decodes a tool's result, or its error. */
const read =
  <A>(isExpected: (result: unknown) => result is A) =>
  ({ isError, result }: Outcome): Result.Result<A, string> =>
    !isError && isExpected(result)
      ? Result.succeed(result)
      : Result.fail(isRefusal(result) ? result.error : typeof result === "string" ? result : "no answer")

const isRefusal = Schema.is(Schema.Struct({ error: Schema.String }))
const readChanged = read(Schema.is(Changed))
const readListed = (outcome: Outcome): Result.Result<Tasks, string> =>
  Result.map(read(Schema.is(Schema.Union([Listed, CutList])))(outcome), (list) =>
    "result" in list ? list.result : list
  )

/** Explains a tool's error and what to do instead; the parser never repeats a call (S003-R50…R52, R57…R59). */
const failure = (action: string, error: string, id?: number): string => {
  if (id !== undefined && /^task not found|\/task_id\b/i.test(error))
    return `I couldn't find task #${id}. Say “list” to see your current tasks.`
  const tooLong = /^(title|description) must be ([\d,]+) characters or less/i.exec(error)
  if (tooLong)
    return `That ${tooLong[1]?.toLowerCase()} is too long: it may have at most ${tooLong[2]} characters. Give me a shorter one.`
  return `I'm sorry, I couldn't ${action}: ${short(error).replace(/[.!]+$/, "")}. I do not try again by myself: repeat the command later, or say “list” to see your tasks.`
}

const introduction =
  "I am a simple command parser, not a language model. For plain language, set OPENAI_API_KEY or another provider's key on the server and start it again."

const help = `${introduction} I understand these commands:
- add buy milk (with description 2 litres)
- list, list pending, list completed, list tasks about milk
- complete 2, or complete milk
- delete 2, or delete the milk task
- rename 2 to Call mom
- change the description of 2 to 2 litres
- help`

/** The unanswered messages, and the results of their calls. */
interface Pending {
  messages: Array<string>
  readonly outcomes: Array<Outcome>
  isStarted: boolean
}

const empty = (): Pending => ({ messages: [], outcomes: [], isStarted: false })

/** Consecutive unanswered messages that one turn answers. */
const unansweredMax = 5

const pendingIn = foldGrown<Prompt.Message, Pending>(empty, (pending, message) => {
  switch (message.role) {
    case "user": {
      if (isQuoted(message)) return pending
      const text = message.content.map((part) => (part.type === "text" ? part.text : "")).join("")
      const open = pending.isStarted ? empty() : pending
      open.messages = [...open.messages.slice(1 - unansweredMax), text]
      return open
    }
    case "assistant":
      pending.isStarted = true
      return pending
    case "tool":
      for (const part of message.content)
        if (part.type === "tool-result") pending.outcomes.push(toResult(part))
      return pending
    case "system":
      return pending
  }
})

/** Replays the commands over the results so far; returns the next call or the reply. */
const nextOf = ({ messages, outcomes }: Pending): Call | string => {
  const replies: Array<string> = []
  let used = 0
  for (const message of messages) {
    const steps = run(parse(message))
    let step = steps.next()
    while (step.done !== true) {
      const outcome = outcomes[used]
      if (outcome === undefined) return step.value
      used += 1
      step = steps.next(outcome)
    }
    replies.push(step.value)
  }
  return replies.join("\n\n")
}

const answerTo = (scope: ScriptScope, pending: Pending): ScriptAnswer => {
  const next = nextOf(pending)
  if (typeof next === "string") {
    const isFirst = scope.turn <= pending.messages.length
    return textAnswer(
      isFirst && !next.includes(introduction)
        ? `${next}\n\n${introduction} Say “help” for the commands.`
        : next
    )
  }
  if (scope.tools.includes(next.tool))
    return {
      ...textAnswer(""),
      calls: [{ id: callId(scope, 0), tool: next.tool, arguments: { ...next.arguments } }]
    }
  return textAnswer(
    scope.tools.length === 0
      ? "I had to stop: I may not use any more tools for this message. Repeat the command to go on."
      : `I can't do that: I am not allowed to use ${next.tool} here. I may use ${scope.tools.join(", ")}.`
  )
}
