/**
 * Checks chats: what was acknowledged is in the log once, and was answered once or the log or its run tells why not.
 */
import { type Checker, keyOf, type Remains, unless } from "./remains.ts"
import type { ContextEventRow } from "./rows.ts"

const isChat = (name: string): boolean => name.startsWith("chat-")

const logOf = ({ contextEvents }: Remains, name: string): ReadonlyArray<ContextEventRow> =>
  contextEvents.filter(({ contextName }) => contextName === name)

/** Under one key one message was kept, at the place that everybody was told, however often it came. */
const chatsSaidOnce: Checker = (remains) =>
  [...Map.groupBy(remains.acknowledged.chatted, ({ key }) => key)].flatMap(([key, told]) => {
    const places = new Set(told.map(({ context, number }) => keyOf(context, number)))
    return [
      ...unless(
        places.size === 1,
        `what was said under ${key} was told to stand at ${[...places].join(", ")}`
      ),
      ...told.flatMap(({ content, context, number }) => {
        const kept = logOf(remains, context).filter(
          ({ event }) => event.type === "UserMessageEvent" && "content" in event && event.content === content
        )
        return unless(
          kept.length === 1 && kept[0]?.number === number,
          `"${content}" under ${key} stands ${kept.length} times in ${context}, and was told to be event ${number}`
        )
      })
    ]
  })

/** How a turn ends that is not begun anew by itself. */
const isEnd = ({ event }: ContextEventRow): boolean =>
  event.type === "AgentTurnCompletedEvent" ||
  event.type === "AgentTurnFailedEvent" ||
  (event.type === "AgentTurnInterruptedEvent" && "reason" in event && event.reason !== "crash")

/** Behind each message a turn began and ended, unless its run says why none did; and no message was answered twice. */
const chatsAnsweredOnce: Checker = (remains) => {
  const unfinished = new Set(
    remains.runs.flatMap(({ contextName, status }) => (status === "completed" ? [] : [contextName]))
  )
  return remains.contexts
    .filter(({ name }) => isChat(name))
    .flatMap(({ name }) => {
      const log = logOf(remains, name)
      const messages = log.filter(({ event }) => event.type === "UserMessageEvent")
      const completed = log.filter(({ event }) => event.type === "AgentTurnCompletedEvent")
      return [
        ...messages.flatMap(({ number }) => {
          const begun = log.find((row) => row.number > number && row.event.type === "AgentTurnStartedEvent")
          const isAnswered = begun !== undefined && log.some((row) => row.number > begun.number && isEnd(row))
          return unless(
            isAnswered || unfinished.has(name),
            `message ${number} of ${name} has no answer and no reason`
          )
        }),
        ...unless(
          completed.length <= messages.length,
          `${name} has ${messages.length} messages and ${completed.length} answers`
        )
      ]
    })
}

/** An answer that somebody was told is in the log, behind the message. */
const chatsToldTrue: Checker = (remains) =>
  remains.acknowledged.answered.flatMap(({ context, number, response }) =>
    unless(
      logOf(remains, context).some(
        (row) =>
          row.number > number &&
          row.event.type === "AssistantMessageEvent" &&
          "content" in row.event &&
          row.event.content === response
      ),
      `"${response}" was told as the answer to message ${number} of ${context} and is not in the log`
    )
  )

export const checkChats = { chatsSaidOnce, chatsAnsweredOnce, chatsToldTrue }
