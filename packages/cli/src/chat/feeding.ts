/**
 * A conversation that nobody types: one message, lines, or events of a script, answered in order.
 *
 * Each that wants an answer is waited for before the next is said. A message
 * answers the question that waits, as a line at a terminal does; an event is
 * added as it stands. Ctrl-C ends the turn that is open and then the command; at
 * rest, and pressed again, it ends the command at once.
 */
import { EventInput } from "@tropism/api/contexts-api"
import { Deferred, Effect, Option, Queue, Schema, Stream } from "effect"
import { exitCodes } from "../exit-codes.ts"
import { type Failure, failure } from "../failure.ts"
import type { Listening } from "../terminal/keyboard.ts"
import { printable } from "../terminal/text.ts"
import { typed } from "../typed-input.ts"
import { cancelledSentence, type Conversation, type Rest } from "./conversation.ts"

/** Says all there is to say, messages and events; fails where the agent could not answer. */
export const feed = Effect.fnUntraced(function* <E, R>(
  conversation: Conversation,
  { typed: interrupts }: Listening,
  inputs: Stream.Stream<string | EventInput, E, R>
) {
  let isSaying = false
  let isLeaving = false
  const ended = yield* Deferred.make<void>()
  const saying = Stream.runForEach(inputs, (input) =>
    Effect.gen(function* () {
      const known = yield* conversation.knownRuns
      isSaying = true
      const wants = yield* typeof input === "string"
        ? conversation.speak(input, conversation.question())
        : conversation.say(input)
      const rest = wants ? yield* conversation.rest(known) : undefined
      isSaying = false
      if (isLeaving) {
        yield* Deferred.succeed(ended, undefined)
        return yield* Effect.never
      }
      if (rest) yield* judged(rest, conversation.name)
    })
  )
  const leaving = Effect.gen(function* () {
    yield* Queue.take(interrupts)
    if (!isSaying) return
    isLeaving = true
    // The second time, nothing is waited for.
    yield* Effect.raceFirst(
      Effect.andThen(Effect.ignore(conversation.interrupt), Deferred.await(ended)),
      Queue.take(interrupts)
    )
  })
  const isLeft = yield* Effect.raceFirst(Effect.as(saying, false), Effect.as(leaving, true))
  if (isLeft) return yield* Effect.interrupt
})

const judged = (rest: Rest, context: string): Effect.Effect<void, Failure> => {
  switch (rest.type) {
    case "completed":
      return Effect.void
    case "cancelled":
      return Effect.fail(failure(cancelledSentence(rest.runId)))
    case "failed":
      return Effect.fail(
        failure(`${printable(rest.told)} "tropism contexts log ${context}" shows the error.`)
      )
    case "interrupted":
      return Effect.fail(failure("The turn was interrupted."))
    case "paused":
      return Effect.fail(
        failure(`The agent is paused (${rest.reason}); your next message resumes it.`, exitCodes.waits)
      )
    case "question": {
      const { options, text } = rest.question
      const choices = options.length === 0 ? "" : ` (${options.map(printable).join(", ")})`
      return Effect.fail(
        failure(`The agent asks: ${printable(text)}${choices} The next message answers.`, exitCodes.waits)
      )
    }
  }
}

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

/** The events of a script, one JSON object in each line; a line that is none is told with its number. */
export const scriptEvents = <E, R>(lines: Stream.Stream<string, E, R>) =>
  lines.pipe(
    Stream.zipWithIndex,
    Stream.filter(([line]) => line.trim() !== ""),
    Stream.mapEffect(([line, index]) =>
      Effect.mapError(
        Option.match(decodeJson(line), {
          onNone: () => Effect.fail(failure("Not a JSON object.")),
          onSome: (json) => typed(EventInput, json)
        }),
        ({ message }) => failure(`Line ${index + 1} of the script: ${message}`)
      )
    )
  )
