/**
 * Delivers events to the addresses of subscribers: in order, at least once, by one program at a time.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * A delivery is posted outside of any transaction and recorded when it was taken.
 * Dying in between posts it again, under the same id, so a receiver knows it.
 * What an address does not take waits and holds back what comes behind it; the
 * place up to which all was taken is the cursor that goes with each delivery. An
 * address that is slow holds up nobody else: a turn is bounded, and others have
 * places of their own.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { CrashPoint } from "../crash-point.ts"
import { Database } from "../database/database.ts"
import { sees } from "../http/access.ts"
import { Tokens } from "../http/tokens.ts"
import { throughOutages } from "../outbox/outages.ts"
import { makePlaces } from "../outbox/places.ts"
import { drive, share, untilWoken, WakeUps } from "../outbox/wake-ups.ts"
import { KillSwitches } from "../run/kill-switches.ts"
import { type CallbackFailed, Callbacks } from "./callbacks.ts"
import { cursorAt } from "./event-cursors.ts"
import { eventLimits } from "./event-limits.ts"
import { EventReading, type Listening, type Seen } from "./event-reading.ts"
import { type ClaimedSubscription, EventSubscriptions, type Progress } from "./event-subscriptions.ts"
import { eventTypes } from "./event-types.ts"

export class EventDeliverer extends Context.Service<
  EventDeliverer,
  {
    /** Delivers for ever. */
    readonly run: Effect.Effect<never>
  }
>()("@tropism/server/mcp/EventDeliverer") {
  static readonly layer = Layer.effect(
    EventDeliverer,
    Effect.gen(function* () {
      const database = yield* Database
      const subscriptions = yield* EventSubscriptions
      const reading = yield* EventReading
      const callbacks = yield* Callbacks
      const tokens = yield* Tokens
      const wakeUps = yield* WakeUps
      const switches = yield* KillSwitches

      /** Posts what a look found, one after the other, until the turn is over; answers whether to go on. */
      const deliver = Effect.fnUntraced(function* (
        projectId: ProjectId,
        claimed: ClaimedSubscription,
        { occurrences, position }: Seen,
        endMs: number
      ) {
        const note = (progress: Progress) =>
          throughOutages(database.inProject(projectId, subscriptions.note(claimed, progress)))
        for (const { position: place, ...occurrence } of occurrences) {
          const message = { ...occurrence, cursor: cursorAt(projectId, place) }
          const failure = yield* callbacks
            .post(claimed, occurrence.eventId, message)
            .pipe(Effect.match({ onSuccess: () => undefined, onFailure: (failed) => failed }))
          if (failure && !isTooLarge(failure)) {
            yield* note({ fault: failure.fault })
            return false
          }
          yield* CrashPoint.hit("delivery.beforeRecord")
          if (!(yield* note({ position: place, told: true }))) return false
          if ((yield* Clock.currentTimeMillis) >= endMs) return false
        }
        return yield* note({ position, told: false })
      })

      /** Tells a subscriber that his access has ended, once, and forgets him. */
      const terminate = Effect.fnUntraced(function* (projectId: ProjectId, claimed: ClaimedSubscription) {
        const message = { type: "terminated", error: revoked }
        yield* Effect.ignore(callbacks.post(claimed, `msg_terminated_${claimed.claimToken}`, message))
        // Whoever asked for it anew meanwhile is told at once what comes.
        const ended = Effect.andThen(subscriptions.removeEnded(claimed), subscriptions.release(claimed))
        yield* throughOutages(database.inProject(projectId, ended))
      })

      /** One turn of a subscription: a bounded part of what it has to be told. Whoever leaves in the middle lets others go on at once. */
      const turn = Effect.fnUntraced(
        function* (projectId: ProjectId, claimed: ClaimedSubscription) {
          const principal = yield* tokens.findByHash(claimed.tokenHash)
          const listening = listeningOf(claimed)
          if (!principal || !sees(principal, projectId) || listening === undefined) {
            yield* terminate(projectId, claimed)
            return
          }
          if (claimed.secrets.length === 0) {
            yield* Effect.logError(
              `The secret of ${claimed.handle} does not open: nothing is delivered to it`
            )
            yield* database.inProject(projectId, subscriptions.note(claimed, unsigned))
          }
          const endMs = (yield* Clock.currentTimeMillis) + eventLimits.turnMs
          let [position, told] = [claimed.position, claimed.secrets.length === 0 ? eventLimits.turnEvents : 0]
          while (told < eventLimits.turnEvents) {
            const looked = Effect.all([
              reading.look(listening, position, eventLimits.pollEvents),
              // Asked last: whoever turned it on since the claim was answered that nothing begins any more.
              switches.find
            ])
            const [seen, stop] = yield* database.inProject(projectId, looked)
            if (stop !== undefined || !(yield* deliver(projectId, claimed, seen, endMs))) break
            position = seen.position
            told += seen.occurrences.length
            if (!seen.hasMore || (yield* Clock.currentTimeMillis) >= endMs) break
          }
          yield* throughOutages(database.inProject(projectId, subscriptions.release(claimed)))
        },
        (work, projectId, claimed) =>
          Effect.onInterrupt(work, () => database.inProject(projectId, subscriptions.release(claimed)))
      )

      const run = Effect.gen(function* () {
        const { occupy, round } = yield* makePlaces({
          places: eventLimits.deliverers,
          sparePlaces: eventLimits.spareDeliverers,
          placesPerProject: eventLimits.deliverersPerProject
        })
        // Whatever is taken is under way behind it, so that whoever leaves lets it go.
        const begin = Effect.fnUntraced(function* (projectId: ProjectId, atMost: number) {
          yield* database.inProject(projectId, subscriptions.expire)
          const claimed = yield* database.inProject(projectId, subscriptions.claim(atMost))
          for (const one of claimed)
            yield* occupy(
              projectId,
              Effect.andThen(
                share("Deliveries", projectId, Effect.as(turn(projectId, one), 1)),
                // Its place is free, and there may be more to be told.
                wakeUps.signal("deliveries")
              )
            )
          return claimed.length
        }, Effect.uninterruptible)
        return yield* drive(
          "Deliveries",
          "deliveries",
          untilWoken,
          Effect.flatMap(subscriptions.due, (due) =>
            round(due, (projectId, atMost) => share("Deliveries", projectId, begin(projectId, atMost)))
          )
        )
      }).pipe(Effect.scoped, Effect.provideService(WakeUps, wakeUps))

      return EventDeliverer.of({ run })
    })
  )
}

const revoked = { code: -32_012, message: "The access of the subscription's token has ended" } as const

/** Somebody else wrote the row: until its subscriber says his secret again, nothing can be signed for him. */
const unsigned: Progress = { fault: "challenge_failed" }

/** An address that finds an event too large will find it so every time: it is passed over. */
const isTooLarge = ({ status }: CallbackFailed): boolean => status === 413

/** What a subscription listens for; undefined where this program knows no such event any more. */
const listeningOf = ({ arguments: args, name }: ClaimedSubscription): Listening | undefined => {
  const type = eventTypes.get(name)
  const filter = type && Option.getOrUndefined(Schema.decodeUnknownOption(type.filter)(args))
  return type && filter && { type, filter }
}
