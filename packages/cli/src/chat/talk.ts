/**
 * A person at a terminal who speaks with an agent: lines in, words out, until the person leaves.
 *
 * Ctrl-C interrupts the turn that is open; a second one, or one while the agent
 * is at rest, leaves; an agent that has asked is at rest, and its question waits
 * on. A line that is typed while the agent speaks breaks in, as any message does.
 */
import { ContextName } from "@tropism/domain/context-event"
import { Effect, Option, Schema } from "effect"
import { failure, type Failure } from "../failure.ts"
import { type Keyboard, takingTyped, type Typed } from "../terminal/keyboard.ts"
import type { Screen } from "../terminal/screen.ts"
import { printable } from "../terminal/text.ts"
import { SetLlmConfigInput } from "@tropism/api/contexts-api"
import { typed } from "../typed-input.ts"
import { cancelledSentence, type Conversation, type Rest } from "./conversation.ts"
import type { Question } from "./progress.ts"
import type { KnownRuns } from "./runs-here.ts"

export const helpLines = [
  "/state              show the context: messages, turns and tokens",
  "/model NAME         switch the model, as provider:name",
  "/system TEXT        replace the system prompt",
  "/fork NAME          fork the context at this point",
  "/interrupt          interrupt the current turn, as Ctrl-C does",
  "/exit               exit, as Ctrl-D does"
]

/** Talks until the person leaves; interrupted where Ctrl-C was how. */
export const talk = Effect.fnUntraced(function* (
  conversation: Conversation,
  screen: Screen["Service"],
  keyboard: Keyboard["Service"]
) {
  const listening = yield* keyboard.listen("lines")
  const inputs = takingTyped(listening)
  /** The runs before what was said last. */
  let known: KnownRuns | undefined
  /** The question that stands on the screen: what is typed answers no other. */
  let shown: Question | undefined
  let isInterrupting = false
  /** Whether Ctrl-C broke off what was done last. */
  let isPressed = false
  while (true) {
    const question = conversation.question()
    if (question && question !== shown) yield* screen.print(...questionLines(screen, question))
    shown = question
    const isAtWork = conversation.isAtWork()
    if (!isAtWork) yield* listening.prompt
    const next: Typed | Rest = isPressed
      ? { type: "interrupt" }
      : yield* isAtWork ? Effect.raceFirst(conversation.rest(known), inputs.next) : inputs.next
    isPressed = false
    if (next.type === "end") return
    if (next.type === "interrupt") {
      if (isInterrupting || !conversation.isAtWork()) return yield* Effect.interrupt
      isInterrupting = true
      // It may have ended by itself a moment ago.
      isPressed = Option.isNone(yield* inputs.untilPressed(Effect.ignore(stopTurn(conversation, screen))))
      continue
    }
    isInterrupting = false
    if (next.type !== "line") {
      yield* told(screen, next)
      continue
    }
    const text = next.text.trim()
    if (text === "/exit") return
    const done = yield* inputs.untilPressed(
      Effect.gen(function* () {
        if (text.startsWith("/")) yield* tolerant(screen, obey(conversation, screen, text))
        else if (text !== "") {
          if (!isAtWork) known = yield* Effect.orElseSucceed(conversation.knownRuns, () => known)
          const said = yield* tolerant(screen, conversation.speak(text, shown))
          // What was refused is asked again.
          if (Option.isNone(said)) shown = undefined
        }
      })
    )
    isPressed = Option.isNone(done)
  }
})

/** Ends the turn, and says why it goes on for now where it does. */
const stopTurn = (conversation: Conversation, screen: Screen["Service"]) =>
  Effect.flatMap(conversation.interrupt, (later) =>
    later === undefined ? Effect.void : screen.print(printable(later))
  )

/** Says what is left to say of a rest: the log has told how a turn ended. */
const told = (screen: Screen["Service"], rest: Rest): Effect.Effect<void> => {
  switch (rest.type) {
    case "paused":
      return screen.print(`The agent is paused (${rest.reason}). Your next message resumes it.`)
    case "cancelled":
      return screen.print(screen.paint.bad(cancelledSentence(rest.runId)))
    default:
      return Effect.void
  }
}

const questionLines = ({ paint }: Screen["Service"], { options, text }: Question): ReadonlyArray<string> => [
  paint.bold(`? ${printable(text)}`),
  ...options.map((option) => `  - ${printable(option)}`)
]

/** A failure is told in its sentence, and the conversation goes on. */
const tolerant = <A>(screen: Screen["Service"], effect: Effect.Effect<A, Failure>) =>
  effect.pipe(
    Effect.map(Option.some),
    Effect.catch(({ message }) => Effect.as(screen.print(screen.paint.bad(message)), Option.none<A>()))
  )

const obey = Effect.fnUntraced(function* (
  conversation: Conversation,
  screen: Screen["Service"],
  text: string
) {
  const [command = "", ...words] = text.split(/\s+/)
  const said = text.slice(command.length).trim()
  switch (command) {
    case "/help":
      return yield* screen.print(...helpLines)
    case "/interrupt":
      return yield* stopTurn(conversation, screen)
    case "/state": {
      const state = yield* conversation.state
      return yield* screen.print(
        `${conversation.name}: ${state.nextEventNumber - 1} events, ${state.currentTurnNumber} turns; ${state.messages.length} messages are shown, about ${state.promptTokens} tokens`
      )
    }
    case "/fork": {
      const name = Schema.decodeUnknownOption(ContextName)(said)
      if (Option.isNone(name)) return yield* failure("Name the fork: /fork NAME")
      yield* conversation.fork(name.value)
      return yield* screen.print(`${name.value} is forked at this point: tropism chat ${name.value}`)
    }
    case "/model": {
      const colon = said.indexOf(":")
      if (words.length !== 1 || colon < 1) return yield* failure("Name a model: /model provider:name")
      const payload = yield* typed(SetLlmConfigInput, {
        type: "SetLlmConfigEvent",
        role: "primary",
        provider: said.slice(0, colon),
        name: said.slice(colon + 1)
      })
      yield* conversation.say(payload)
      return yield* screen.print(`${said} is used from now on.`)
    }
    case "/system": {
      if (said === "") return yield* failure("Give a system prompt: /system TEXT")
      yield* conversation.say({ type: "SystemPromptEvent", content: said })
      return yield* screen.print("System prompt replaced.")
    }
    default:
      return yield* failure(`Unknown command: ${printable(command)}. /help lists the commands.`)
  }
})
