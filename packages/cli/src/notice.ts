/**
 * What is said beside the result, and as a rule not with `--quiet`: a notice on standard error, a status that goes away.
 *
 * A notice is a sentence for a person, and a JSON object in a line for a program.
 */
import { Console, Effect } from "effect"
import { JsonFlag, QuietFlag } from "./settings.ts"
import { Screen } from "./terminal/screen.ts"
import { printable } from "./terminal/text.ts"

/** Makes what says notices, for those who say them later. */
export const makeNotice = Effect.gen(function* () {
  const isQuiet = yield* QuietFlag
  const say = yield* makeWord
  return (sentence: string): Effect.Effect<void> => (isQuiet ? Effect.void : say(sentence))
})

/** Makes what says a notice that nobody may miss, also with `--quiet`. */
export const makeWord = Effect.gen(function* () {
  const isJson = yield* JsonFlag
  return (sentence: string): Effect.Effect<void> =>
    Console.error(isJson ? JSON.stringify({ notice: sentence }) : printable(sentence))
})

export const notice = (sentence: string) => Effect.flatMap(makeNotice, (say) => say(sentence))

/** Says in the line that is redrawn what is being done; whoever says so takes it away again. */
export const showStatus = Effect.fnUntraced(function* (text: string) {
  const screen = yield* Screen
  if (!(yield* QuietFlag)) yield* screen.redraw(() => text)
})
