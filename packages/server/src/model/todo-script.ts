/**
 * TodoAssistant without a language model: a script that understands plain requests for the five todo tools.
 *
 * It holds nothing between requests. What was asked, shown and spoken of is
 * folded from the prompt: each earlier message is understood again with the
 * outcomes that the log has, and counts only where the answer in the log is the
 * script's own. It says what it is at the beginning of a conversation.
 */
import { foldGrown } from "@tropism/domain/grown"
import { Result } from "effect"
import type { Prompt } from "effect/ai"
import { callId, type CompiledScript, type ScriptAnswer } from "./script.ts"
import { isQuoted, type ScriptScope, toResult } from "./script-scope.ts"
import { converse } from "./todo-dialogue.ts"
import type { Call, Outcome, Reply } from "./todo-steps.ts"
import { type Dialogue, newDialogue } from "./todo-intents.ts"
import { honestly, sentences } from "./todo-replies.ts"

/** The script that stands in for TodoAssistant's model. */
export const todoScript: CompiledScript = {
  values: {},
  answer: (scope, prompt) => Result.succeed(answerOf(scope, heardIn(prompt.content)))
}

/** What of a conversation a prompt holds. */
interface Heard {
  /** As it was before the messages that are not answered yet. */
  dialogue: Dialogue
  messages: Array<string>
  results: Array<Outcome>
  /** Requests that were answered since. */
  steps: number
  said: string
}

const heardIn = foldGrown<Prompt.Message, Heard>(
  () => ({ dialogue: newDialogue, messages: [], results: [], steps: 0, said: "" }),
  (heard, message) => {
    switch (message.role) {
      case "user": {
        if (isQuoted(message)) return heard
        const text = message.content.map((part) => (part.type === "text" ? part.text : "")).join("")
        if (heard.steps === 0) heard.messages = [...heard.messages.slice(1 - unansweredMax), text]
        else return { dialogue: settled(heard), messages: [text], results: [], steps: 0, said: "" }
        return heard
      }
      case "assistant":
        heard.steps += 1
        for (const part of message.content) if (part.type === "text") heard.said += part.text
        return heard
      case "tool":
        for (const part of message.content)
          if (part.type === "tool-result") {
            const { isError, result } = toResult(part)
            heard.results.push({ isError, result })
          }
        return heard
      case "system":
        return heard
    }
  }
)

/** Messages in a row that one answer is for. */
const unansweredMax = 5

/** How far words and outcomes go: what to call next, or what to say. */
const playOf = ({ dialogue, messages, results }: Heard): ReadonlyArray<Call> | Reply => {
  const talk = converse(messages, dialogue)
  let used = 0
  let next = talk.next([])
  while (next.done !== true) {
    const calls = next.value
    if (results.length < used + calls.length) return calls
    next = talk.next(results.slice(used, used + calls.length))
    used += calls.length
  }
  return next.value
}

const isReply = (play: ReadonlyArray<Call> | Reply): play is Reply => "text" in play

/** What stands after an answer; another's answer, or a broken one, has asked nothing of ours. */
const settled = (heard: Heard): Dialogue => {
  const play = playOf(heard)
  return isReply(play) && heard.said.startsWith(play.text)
    ? play.dialogue
    : { ...heard.dialogue, question: null }
}

const answerOf = (scope: ScriptScope, heard: Heard): ScriptAnswer => {
  const play = playOf(heard)
  if (isReply(play)) return spoken(scope.turn > heard.messages.length ? play.text : introduced(play.text))
  const missing = play.find(({ tool }) => !scope.tools.includes(tool))
  if (missing === undefined)
    return {
      ...spoken(""),
      calls: play.map((call, index) => ({
        id: callId(scope, index),
        tool: call.tool,
        arguments: { ...call.arguments }
      }))
    }
  if (scope.tools.length === 0) return spoken(sentences.stopped)
  return spoken(
    `I can't do that: I am not allowed to use ${missing.tool} here. I may use ${scope.tools.join(", ")}.`
  )
}

const introduced = (text: string): string =>
  text.includes(honestly) ? text : `${text}\n\n${honestly} Say “help” and I tell you what I understand.`

const spoken = (text: string): ScriptAnswer => ({
  text,
  calls: [],
  latencyMs: 0,
  tokensPerSecond: null,
  fault: null
})
