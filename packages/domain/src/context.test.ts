/**
 * The reducer as a whole: one state from one log, whatever the log says.
 *
 * The logs here are arbitrary; what each event means is told by example in
 * `context-state.test.ts`.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Option, Schema } from "effect"
import { anyLog, long } from "../testing/any-log.ts"
import {
  type ContextEventId,
  contextEventId,
  type LoggedEvent,
  type NewEvent,
  UnknownEvent
} from "./context-event.ts"
import { emptyContext, fold, reduce, type ReducedContext } from "./context.ts"
import {
  answers,
  append,
  contextName,
  findUnpaired,
  logOf,
  mentions,
  toolCompletes,
  toolStarts
} from "../testing/log.ts"

const deepFreeze = <A>(value: A): A => {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    Object.values(value).forEach(deepFreeze)
  }
  return value
}

const id = (number: number): ContextEventId => contextEventId(contextName, number)

describe("the reducer", () => {
  it.prop(
    "S004-R13 is pure: the same log gives the same state, and neither log nor state is touched",
    [anyLog],
    ([log]) => {
      deepFreeze(log)
      const once = deepFreeze(fold(log))
      expect(fold(log)).toStrictEqual(once)
    },
    { arbitrary: long }
  )

  it.prop(
    "S004-R06 folds a log in pieces to what it folds it to at once",
    [anyLog, Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 40 })))],
    ([log, cut]) => {
      const whole = fold(log)
      expect(fold(log.slice(cut), deepFreeze(fold(log.slice(0, cut))))).toStrictEqual(whole)
      expect(log.reduce((context, event) => deepFreeze(reduce(context, event)), emptyContext)).toStrictEqual(
        whole
      )
    },
    { arbitrary: long }
  )

  it.prop(
    "S004-R09 counts every event, whatever its type",
    [anyLog],
    ([log]) => {
      expect(fold(log).nextEventNumber).toBe(log.length + 1)
      expect(Option.getOrUndefined(fold(log).lastEventId)).toBe(log.at(-1)?.id)
    },
    { arbitrary: long }
  )

  it.prop(
    "S004-R07 whatever the log says, a prompt with no pending call has each tool call followed by its result",
    [anyLog],
    ([log]) => {
      for (let length = 0; length <= log.length; length++) {
        const context = fold(log.slice(0, length))
        if (context.pendingCalls.length === 0) expect(findUnpaired(context.messages)).toBeUndefined()
      }
    },
    { arbitrary: { ...long, runs: 300 } }
  )

  it.prop(
    "S004-R07 no message is ever lost, changed or taken back",
    [anyLog],
    ([log]) => {
      let before: ReducedContext = emptyContext
      for (const event of log) {
        const after = reduce(before, event)
        expect(after.messages.slice(0, before.messages.length)).toStrictEqual(before.messages)
        before = after
      }
      const spoken = log.filter(
        ({ type }) => type === "UserMessageEvent" || type === "HistoryGivenEvent"
      ).length
      expect(
        [...before.messages, ...before.heldMessages].filter((message) => message.role === "user")
      ).toHaveLength(spoken)
    },
    { arbitrary: long }
  )

  it.prop(
    "an event of an unknown type is skipped: it moves the counter, and its trigger counts",
    [anyLog],
    ([log]) => {
      const before = fold(log)
      const [unknown] = append(log, { type: "UnknownThingEvent" }).slice(-1)
      expect(unknown).toBeInstanceOf(UnknownEvent)
      const after = fold(unknown ? [unknown] : [], before)
      expect(after).toStrictEqual({
        ...before,
        nextEventNumber: log.length + 2,
        lastEventId: Option.some(id(log.length + 1))
      })
    },
    { arbitrary: long }
  )

  it("S004-R12 knows nothing that no event has said", () => {
    expect(fold([])).toStrictEqual(emptyContext)
    expect(emptyContext).toMatchObject({
      messages: [],
      nextEventNumber: 1,
      currentTurnNumber: 0,
      isTurnDue: false,
      pendingCalls: []
    })
    expect(emptyContext.agentTurnStartedAtEventId).toStrictEqual(Option.none())
  })
})

describe("the cost of a fold", () => {
  const exchange = (number: number): ReadonlyArray<NewEvent> => [
    mentions("Hi"),
    answers("", [`c${number}`]),
    toolStarts(`c${number}`),
    toolCompletes(`c${number}`)
  ]
  const logOfExchanges = (count: number) =>
    logOf(...Array.from({ length: count }, (_, number) => exchange(number)).flat())

  /** How often a fold reads a field of an event; `bench` measures what it costs in time. */
  const readsOf = (events: ReadonlyArray<LoggedEvent>): number => {
    let reads = 0
    const get = (event: LoggedEvent, field: string | symbol) => {
      reads++
      return Reflect.get(event, field)
    }
    fold(events.map((event) => new Proxy(event, { get })))
    return reads
  }

  it("grows with the log and not with its square", () => {
    const [short, long] = [readsOf(logOfExchanges(100)), readsOf(logOfExchanges(10_000))]
    expect(short).toBeGreaterThan(400)
    expect(long).toBeLessThanOrEqual(short * 100)
  })
})
