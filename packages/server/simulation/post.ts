/**
 * Carries wake-ups between the servers of a simulation, badly.
 *
 * It stands where the courier stands in production and keeps its promise, which is
 * none: letters are lost, come twice, come late and overtake each other.
 */
import { Effect, Queue, type Scope } from "effect"
import { outboxLimits } from "../src/limits.ts"
import { Notifier } from "../src/outbox/notifier.ts"
import type { Chance } from "./chance.ts"
import type { Program } from "./program.ts"

type Letter = ReadonlyArray<string>

export interface Post {
  /** Sends and receives for a server until the scope ends. */
  readonly serve: (program: Program) => Effect.Effect<void, never, Scope.Scope | Notifier>
}

export const makePost = (chance: Chance): Post => {
  const boxes = new Map<Program, Queue.Queue<Letter>>()
  const carry = (from: Program, letter: Letter): void => {
    for (const [program, box] of boxes) {
      if (program === from || chance.oneIn(5)) continue
      Queue.offerUnsafe(box, letter)
      if (chance.oneIn(6)) Queue.offerUnsafe(box, letter)
    }
  }
  return {
    serve: Effect.fnUntraced(function* (program) {
      const notifier = yield* Notifier
      const box = yield* Queue.unbounded<Letter>()
      boxes.set(program, box)
      program.mourners.add(() => boxes.delete(program))
      const late = (letter: Letter) =>
        Effect.andThen(Effect.sleep(chance.between(1, 400)), notifier.hear(letter))
      yield* notifier.hear(["*"])
      yield* Queue.take(box).pipe(
        Effect.flatMap((letter) =>
          chance.oneIn(3) ? Effect.forkScoped(late(letter)) : notifier.hear(letter)
        ),
        Effect.forever,
        Effect.forkScoped
      )
      yield* notifier.untold.pipe(
        Effect.map((topics) => carry(program, topics)),
        Effect.andThen(Effect.sleep(outboxLimits.tellIntervalMs)),
        Effect.forever,
        Effect.forkScoped
      )
    })
  }
}
