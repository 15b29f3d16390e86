/**
 * Programs that send under an Idempotency-Key, and send again, at whichever server, whatever they were not answered.
 *
 * Two of them are one program at two servers: then the same request comes twice at
 * once. Each object says under which key it was made.
 */
import { direct } from "@tropism/domain/actor"
import type { UserId } from "@tropism/domain/ids"
import { Effect, Redacted } from "effect"
import { CrashPoint } from "../src/crash-point.ts"
import { IdempotencyKeys } from "../src/tenancy/idempotency-keys.ts"
import { Gateway } from "../src/graph/gateway.ts"
import type { Person } from "./people.ts"

const by = "ida" as UserId
const holder = { id: "ida", secret: Redacted.make("the token of ida"), isRenewed: false }

/** How often a request is sent that nobody has answered. */
const tries = 3

/** Makes an object for each of a few keys, and sends some again that were answered. */
export const sendAgain = Effect.fnUntraced(function* ({ acknowledged, ask, chance }: Person) {
  const send = (key: string) =>
    ask(
      Effect.gen(function* () {
        const [keys, gateway] = [yield* IdempotencyKeys, yield* Gateway]
        return yield* keys.once(
          { by, key, holder, route: "POST /objects", asked: { key } },
          gateway.apply(
            { type: "create", objectType: "Receipt", key: null, data: { key } },
            { actor: { actorType: "user", actorId: by }, cause: direct }
          )
        )
      }),
      CrashPoint.hit("graph.afterCommit")
    )
  for (let n = chance.between(3, 6); n > 0; n--) {
    const key = `receipt-${chance.below(3)}`
    for (let left = tries; left > 0; left--) {
      const told = yield* send(key)
      if (told.type === "done") acknowledged.keyed.push({ key, answer: JSON.stringify(told.value.outcome) })
      if (told.type !== "unknown") break
    }
    if (chance.oneIn(2)) yield* Effect.sleep(chance.between(1, 500))
  }
})
