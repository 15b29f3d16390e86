/**
 * A context is judged by its log, page by page, and each event of it is looked at once.
 */
import { describe, expect, it } from "@effect/vitest"
import type { LoggedEvent } from "./context-event.ts"
import { encodeSnapshot } from "./context-snapshot.ts"
import { fold } from "./context.ts"
import { RunId } from "./ids.ts"
import {
  answers,
  append,
  asks,
  contextName,
  logOf,
  toolCompletes,
  toolStarts,
  turnCompletes,
  turnStarts
} from "../testing/log.ts"
import { type ContextRecords, judgeLog, type RunRecord } from "./log-judge.ts"

const idOf = (number: number) => RunId.make(`01990000-0000-7000-8000-${String(number).padStart(12, "0")}`)

/** A conversation in which each turn is a run of two steps with a call between them. */
const talk = (turns: number): ReadonlyArray<LoggedEvent> =>
  Array.from({ length: turns }, (_, index) => index + 1).reduce(
    (log, number) =>
      append(
        log,
        asks("Hello"),
        turnStarts(number),
        answers("", [`call-${number}`], idOf(number)),
        toolStarts(`call-${number}`),
        toolCompletes(`call-${number}`),
        answers("Done.", [], idOf(number)),
        turnCompletes(number)
      ),
    logOf()
  )

const runOf = (number: number): RunRecord => ({
  id: idOf(number),
  status: "completed",
  stepCount: 2,
  usage: { inputTokens: 6, outputTokens: 4 }
})

/** What stands beside such a log. */
const recordsOf = (log: ReadonlyArray<LoggedEvent>, turns: number): ContextRecords => ({
  name: contextName,
  lastEventNumber: log.length,
  openTurnNumber: null,
  runs: Array.from({ length: turns }, (_, index) => runOf(index + 1)),
  calls: Array.from({ length: turns }, (_, index) => ({
    runId: idOf(index + 1),
    callId: `call-${index + 1}`,
    status: "completed"
  })),
  snapshots: [10, 3].map((number) => ({ number, state: encodeSnapshot(fold(log.slice(0, number))) }))
})

const judged = (records: ContextRecords, log: ReadonlyArray<LoggedEvent>, pageEvents: number) => {
  const judge = judgeLog(records)
  const found = []
  for (let from = 0; from <= log.length; from += pageEvents)
    found.push(...judge.read(log.slice(from, from + pageEvents)))
  return [...found, ...judge.end()]
}

describe("A context", () => {
  const log = talk(4)
  const records = recordsOf(log, 4)

  it.each([1, 3, 7, 1_000])("that follows from its log is right, read by pages of %i", (pageEvents) => {
    expect(judged(records, log, pageEvents)).toEqual([])
  })

  it.each([1, 3, 7, 1_000])(
    "that does not is told with the same faults, read by pages of %i",
    (pageEvents) => {
      const wrong: ContextRecords = {
        ...records,
        lastEventNumber: log.length + 1,
        openTurnNumber: 2,
        runs: [
          { ...runOf(1), stepCount: 9 },
          { ...runOf(3), usage: { inputTokens: 1, outputTokens: 4 } },
          { ...runOf(4), stepCount: 3 }
        ],
        calls: [{ runId: idOf(1), callId: "call-1", status: "failed" }],
        snapshots: [
          { number: 3, state: encodeSnapshot(fold(log.slice(0, 4))) },
          { number: 999, state: null }
        ]
      }
      const turned = log.filter(
        (event) =>
          !("turnNumber" in event && event.type === "AgentTurnStartedEvent" && event.turnNumber === 2)
      )
      expect(
        judged(wrong, log, pageEvents)
          .map(({ rule }) => rule)
          .toSorted()
      ).toEqual(
        ["logNumbers", "openTurn", "run", "run", "run", "run", "snapshot", "snapshot", "toolCall"].toSorted()
      )
      expect(judged(records, turned, pageEvents).map(({ rule }) => rule)).toEqual(
        expect.arrayContaining(["logNumbers", "turns", "snapshot"])
      )
    }
  )

  it("has each of its events looked at as often, however many runs and calls there are", () => {
    const long = talk(40)
    const looksFor = (runs: number) => {
      let looks = 0
      const watched = long.map(
        (event) =>
          new Proxy(event, {
            get: (target, key, receiver) => {
              if (key === "type") looks += 1
              return Reflect.get(target, key, receiver)
            }
          })
      )
      judged(recordsOf(long, runs), watched, 50)
      return looks
    }
    expect(looksFor(40)).toBe(looksFor(1))
  })
})
