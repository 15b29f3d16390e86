/**
 * People who keep todos while servers come and go: they add, change, do and delete what is their own.
 *
 * Two of them may be one person at two servers, so a number may be wanted twice at once.
 */
import type { UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { Todos } from "../src/review/todos.ts"
import type { Person } from "./people.ts"

/** Does a few things to the todos of an owner. */
export const keepTodos = Effect.fnUntraced(function* (owner: string, { chance, ask, acknowledged }: Person) {
  const by = owner as UserId
  for (let n = chance.between(3, 8); n > 0; n--) {
    const number = chance.between(1, 6)
    const told = yield* ask(
      Effect.gen(function* () {
        const todos = yield* Todos
        switch (chance.below(6)) {
          case 0:
            return yield* todos.complete(by, { number })
          case 1:
            return yield* todos.remove(by, { number })
          case 2:
            return yield* todos.edit(by, { number }, { title: `Changed ${n}` })
          default:
            return { ...(yield* todos.add(by, { title: `Todo ${n}` })), isAdded: true }
        }
      })
    )
    if (told.type === "done" && told.value !== undefined && "isAdded" in told.value)
      acknowledged.todos.push({ owner, number: told.value.number })
    if (chance.oneIn(2)) yield* Effect.sleep(chance.between(1, 400))
  }
})
