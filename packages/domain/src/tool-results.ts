/**
 * Results of tool calls as a model reads them: each after its call, in the order in which it made the calls.
 */
import type { Schema } from "effect"
import { filePartOf, type Picture } from "./attachment.ts"
import type { Message, ToolCall } from "./message.ts"

/** What has come of the results of one answer's calls. */
interface Results {
  /** Outcomes of calls that come before one which is pending, by their ids. */
  readonly heldResults: Readonly<Record<string, Message>>
  /** The calls whose results were not said yet, in the order in which the model made them. */
  readonly unsaidCalls: ReadonlyArray<string>
}

/** One more outcome, and what can be said with it. */
export const withResult = ({ heldResults, unsaidCalls }: Results, message: Message, callId: string) => {
  const held = { ...heldResults, [callId]: message }
  const said = saidInOrder(unsaidCalls, held)
  const rest: Results = {
    heldResults: unsaidCalls.slice(0, said.length).reduce((left, id) => without(left, id), held),
    unsaidCalls: unsaidCalls.slice(said.length)
  }
  return { ...rest, said }
}

/** What is said of calls that get no outcome any more, with those that have one. */
export const withoutOutcome = ({
  heldResults,
  pendingCalls,
  unsaidCalls
}: Results & { readonly pendingCalls: ReadonlyArray<ToolCall> }): ReadonlyArray<Message> =>
  saidInOrder(unsaidCalls, {
    ...heldResults,
    ...Object.fromEntries(pendingCalls.map((call) => [call.id, toolMessage(call, true, unknownOutcome)]))
  })

const unknownOutcome = "The outcome of this call is unknown."

/** The results up to the first call that has none. */
const saidInOrder = (
  calls: ReadonlyArray<string>,
  held: Readonly<Record<string, Message>>
): ReadonlyArray<Message> => {
  const said: Array<Message> = []
  for (const id of calls) {
    // A model may call a call as every object calls one of its methods.
    const message = Object.hasOwn(held, id) ? held[id] : undefined
    if (message === undefined) break
    said.push(message)
  }
  return said
}

/** The outcome of one call. */
export const toolMessage = (
  call: ToolCall,
  isFailure: boolean,
  result: Schema.Json,
  pictures: ReadonlyArray<Picture> = []
): Message => ({
  role: "tool",
  content: [
    {
      type: "tool-result",
      id: call.id,
      name: call.name,
      isFailure,
      result,
      ...(pictures.length === 0
        ? {}
        : {
            options: {
              tropism: { pictures: pictures.map((each) => filePartOf({ ...each, fileName: null })) }
            }
          })
    }
  ]
})

/** The same without what belongs to one call. */
export const without = <A>(
  calls: Readonly<Record<string, A>>,
  callId: string
): Readonly<Record<string, A>> => {
  if (!Object.hasOwn(calls, callId)) return calls
  const { [callId]: _outcome, ...rest } = calls
  return rest
}
