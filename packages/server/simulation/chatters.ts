/**
 * People who chat while servers come and go, and say again under its key whatever they were not answered.
 *
 * Two of them may be one person at two servers: then the same message comes twice at once.
 */
import type { Agent } from "@tropism/domain/agent"
import type { ConversationId, ProjectId, UserId } from "@tropism/domain/ids"
import { Effect, Redacted } from "effect"
import { Chatting, type Said } from "../src/chat/chat.ts"
import { CrashPoint } from "../src/crash-point.ts"
import { IdempotencyKeys } from "../src/tenancy/idempotency-keys.ts"
import type { Person } from "./people.ts"

const sam = { id: "sam", secret: Redacted.make("the token of sam"), isRenewed: false }

/** How often a message is said again that nobody has acknowledged. */
const tries = 3

/** Begins conversations and goes on with them. */
export const chatWith = Effect.fnUntraced(function* (
  agent: Agent,
  projectId: ProjectId,
  { acknowledged, ask, chance, request }: Person
) {
  const by = "sam" as UserId

  const say = Effect.fnUntraced(function* (key: string, message: string, conversationId?: ConversationId) {
    for (let n = tries; n > 0; n--) {
      const told = yield* ask(
        Effect.gen(function* () {
          const [chatting, keys] = [yield* Chatting, yield* IdempotencyKeys]
          const agentId = conversationId === undefined ? agent.id : undefined
          return yield* keys.once(
            { by, key, holder: sam, route: "POST /chat", asked: { message } },
            chatting.say({ by, message, conversationId, agentId })
          )
        }),
        CrashPoint.hit("chat.afterCommit")
      )
      if (told.type === "refused") return undefined
      if (told.type === "unknown") continue
      const { outcome } = told.value
      acknowledged.chatted.push({
        key,
        content: message,
        context: outcome.contextName,
        number: outcome.after
      })
      return outcome
    }
    return undefined
  })

  /** Waits for the answer for a while, and notes one that is whole. */
  const hear = Effect.fnUntraced(function* (said: Said) {
    const told = yield* request(
      Effect.flatMap(Chatting, (chatting) => chatting.answer(projectId, said, chance.between(1, 3_000)))
    )
    if (told.type === "done" && told.value.status === "completed")
      acknowledged.answered.push({
        context: said.contextName,
        number: said.after,
        response: told.value.response
      })
  })

  for (let n = chance.between(2, 4); n > 0; n--) {
    const subject = chance.below(3)
    const begun = yield* say(`begin ${subject}`, `hello ${subject}`)
    if (begun === undefined) continue
    if (chance.oneIn(2)) yield* hear(begun)
    const more = chance.below(2)
    const said = yield* say(`more ${subject} ${more}`, `look ${subject} and ${more}`, begun.conversationId)
    if (said !== undefined && chance.oneIn(2)) yield* hear(said)
    if (chance.oneIn(2)) yield* Effect.sleep(chance.between(1, 500))
  }
})
