/**
 * What follows answers that are not whole, for every order of them and wherever a worker dies.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Option, Schema } from "effect"
import { fold, type ReducedContext } from "./context.ts"
import type { NewEvent } from "./context-event.ts"
import { decodeSnapshot, encodeSnapshot } from "./context-snapshot.ts"
import { decide, type Decision } from "./decide.ts"
import { answers, append, asks, logOf, runA, turnBreaks, turnStarts } from "../testing/log.ts"
import { isContinued, keptFinishReason, unfinishedBounds } from "./unfinished.ts"

const Kind = Schema.Literals(["stop", "length", "pause", "empty", "content-filter"])
type Kind = typeof Kind.Type

const most = 1 + unfinishedBounds.continuations + unfinishedBounds.pauses + unfinishedBounds.retries + 1

/** The event of an answer, as the engine writes it. */
const answerOf = (kind: Kind, request: number, { run }: ReducedContext): NewEvent => {
  const content = kind === "empty" ? "" : `${request};`
  const continues = isContinued(run.unfinished)
  const finishReason = keptFinishReason(kind === "empty" ? "stop" : kind, {
    content,
    toolCalls: [],
    continues,
    isScripted: false
  })
  return {
    ...answers(content),
    ...(finishReason === undefined ? {} : { finishReason }),
    ...(continues ? { continues } : {})
  } as NewEvent
}

/** Lets a model answer like this, the last again and again; a worker dies before the decisions with these numbers. */
const endOf = (kinds: ReadonlyArray<Kind>, deaths: ReadonlySet<number>) => {
  let log = logOf(asks("Go"), turnStarts(1))
  let context = fold(log)
  let requests = 0
  const add = (event: NewEvent) => {
    log = append(log, event)
    context = fold(log.slice(-1), context)
    const kept = Option.getOrThrow(decodeSnapshot(JSON.parse(JSON.stringify(encodeSnapshot(context)))))
    expect(kept).toEqual(context)
    context = kept
  }
  for (let round = 0; round < 60; round++) {
    if (deaths.has(round)) {
      add(turnBreaks(context.currentTurnNumber, "crash"))
      add(turnStarts(context.currentTurnNumber + 1))
    }
    const decision: Decision = decide({
      context,
      runId: requests === 0 ? "" : runA,
      ownTurnNumber: context.currentTurnNumber,
      maxSteps: null
    })
    if (decision.type === "requestModel") {
      add(answerOf(kinds[requests] ?? kinds.at(-1) ?? "stop", requests + 1, context))
      requests += 1
    } else if (decision.type === "goOn") add({ type: "ContinuationRequestedEvent", content: "Go on." })
    else {
      const reason = decision.type === "fail" ? decision.reason : "whole"
      return { ending: decision.type, reason, requests, text: context.lastText, context }
    }
  }
  return expect.unreachable("It goes on for ever")
}

const anyKinds = Arbitrary.array(Arbitrary.schema(Kind), { minLength: 1, maxLength: 12 })
const anyDeaths = Arbitrary.array(
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 30 }))),
  { maxLength: 4 }
)

describe("Answers that are not whole", () => {
  it.each([
    [["stop"], "completeTurn", "whole", 1, "1;"],
    [["length", "length", "stop"], "completeTurn", "whole", 3, "1;2;3;"],
    [["length"], "completeTurn", "whole", 4, "1;2;3;4;"],
    [["pause"], "completeTurn", "whole", 6, "1;2;3;4;5;6;"],
    [["empty", "stop"], "completeTurn", "whole", 2, "2;"],
    [["empty"], "fail", "emptyAnswer", 2, ""],
    [["length", "empty"], "completeTurn", "whole", 2, "1;"],
    [["empty", "length", "stop"], "completeTurn", "whole", 3, "2;3;"],
    [["length", "content-filter"], "fail", "contentFilter", 2, "1;2;"]
  ] as const)("%j ends with %s, %s, after %i requests", (kinds, ending, reason, requests, text) => {
    expect(endOf(kinds, new Set())).toMatchObject({ ending, reason, requests, text })
  })

  it.prop(
    "come to the same end wherever a worker dies, after a bounded number of requests",
    [anyKinds, anyDeaths],
    ([kinds, deaths]) => {
      const { context: _context, ...undisturbed } = endOf(kinds, new Set())
      expect(undisturbed.requests).toBeLessThanOrEqual(most)
      const { context, ...disturbed } = endOf(kinds, new Set(deaths))
      expect(disturbed).toEqual(undisturbed)
      // A model is shown no answer that says nothing.
      for (const message of context.messages)
        expect(message.role === "assistant" ? message.content.length : 1).toBeGreaterThan(0)
    },
    { arbitrary: { runs: 500 } }
  )
})
