/**
 * The decider, step by step: what comes next after a given log.
 *
 * Whole runs, and crashes anywhere in them, are in `decide-run.test.ts`.
 */
import { describe, expect, it } from "@effect/vitest"
import type { LoggedEvent, NewEvent } from "./context-event.ts"
import { fold } from "./context.ts"
import { decide, type Decision } from "./decide.ts"
import { type RunId, UserId } from "./ids.ts"
import {
  answers,
  append,
  asks,
  logOf,
  mentions,
  runA,
  runB,
  softStops,
  toolCompletes,
  toolFails,
  toolStarts,
  turnBreaks,
  turnCompletes,
  turnFails,
  turnStarts
} from "../testing/log.ts"

/** Of an attempt that has opened no turn. */
const noTurn = 0

/** What `decide` says of a log to an attempt that opened the turn given: the last one, unless another is named. */
const next = (
  log: ReadonlyArray<LoggedEvent>,
  opened = fold(log).currentTurnNumber,
  maxSteps = 3,
  runId: RunId = runA
): Decision =>
  decide({ context: fold(log), runId, ownTurnNumber: opened === noTurn ? undefined : opened, maxSteps })

describe("decide", () => {
  const open = logOf(asks("Look"), turnStarts(1))
  const called = append(open, answers("", ["c1", "c2"]))
  const twice = append(
    open,
    answers("", ["c1"]),
    toolCompletes("c1"),
    answers("", ["c2"]),
    toolCompletes("c2")
  )

  it("S004-R31 starts turn 1 when the first trigger has come, and the next number after it", () => {
    expect(next(logOf(asks("Hi")))).toEqual({ type: "startTurn", turnNumber: 1 })
    expect(next(append(open, answers("Hello"), turnCompletes(1), asks("More")))).toEqual({
      type: "startTurn",
      turnNumber: 2
    })
  })

  it("does nothing for an event that triggers nothing", () => {
    expect(next(logOf(mentions("Hi")))).toEqual({ type: "finish", text: "" })
  })

  it("asks the model first, with tools", () => {
    expect(next(open)).toEqual({ type: "requestModel", withTools: true })
  })

  it("makes the calls in the model's order, one by one, and asks again when all have an outcome", () => {
    expect(next(called)).toMatchObject({
      type: "callTool",
      call: { id: "c1", name: "get_object", arguments: { id: "c1" } }
    })
    expect(next(append(called, toolStarts("c1")))).toMatchObject({ type: "callTool", call: { id: "c1" } })
    expect(next(append(called, toolCompletes("c1")))).toMatchObject({ type: "callTool", call: { id: "c2" } })
    expect(next(append(called, toolCompletes("c1"), toolFails("c2")))).toEqual({
      type: "requestModel",
      withTools: true
    })
  })

  it("completes the turn with the last answer's text, and then is finished", () => {
    const answered = append(open, answers("Hello"))
    expect(next(answered)).toEqual({ type: "completeTurn", text: "Hello" })
    expect(next(append(answered, turnCompletes(1)))).toEqual({ type: "finish", text: "Hello" })
  })

  it("an empty last answer leaves the text before it", () => {
    expect(next(append(open, answers("Let me look", ["c1"]), toolCompletes("c1"), answers("")))).toEqual({
      type: "completeTurn",
      text: "Let me look"
    })
  })

  it("a run that said nothing does not end with another run's words", () => {
    const log = append(open, answers("Hello"), turnCompletes(1))
    expect(next(log, 1, 3, runB)).toEqual({ type: "finish", text: "" })
    expect(next(append(log, asks("More"), turnStarts(2), answers("", [], runB)), 2, 3, runB)).toEqual({
      type: "completeTurn",
      text: ""
    })
  })

  it("interrupts a turn that this attempt did not open, and goes on with a new one", () => {
    expect(next(called, noTurn)).toEqual({ type: "interruptTurn", turnNumber: 1, reason: "crash" })
    const broken = append(called, turnBreaks(1, "crash"))
    expect(next(broken, noTurn)).toEqual({ type: "startTurn", turnNumber: 2 })
    expect(next(append(broken, turnStarts(2)), 1)).toEqual({
      type: "interruptTurn",
      turnNumber: 2,
      reason: "crash"
    })
    expect(next(append(broken, turnStarts(2)), 2)).toMatchObject({ type: "callTool", call: { id: "c1" } })
  })

  it("S004-R38 a person's interrupt ends what waits first, then the turn, also when its worker has died", () => {
    const interrupted: NewEvent = { type: "InterruptRequestedEvent", by: UserId.make("ann") }
    const waits = (callId: string): NewEvent => ({ ...toolStarts(callId), waitsFor: "person" }) as NewEvent
    const waiting = append(called, waits("c1"), waits("c2"))
    expect(next(waiting)).toEqual({ type: "wait", for: "person" })
    const asked = append(waiting, interrupted)
    for (const opened of [1, noTurn]) {
      expect(next(asked, opened)).toMatchObject({
        type: "refuseTool",
        call: { id: "c1" },
        reason: "abandoned"
      })
      expect(next(append(asked, toolFails("c1"), toolFails("c2")), opened)).toEqual({
        type: "interruptTurn",
        turnNumber: 1,
        reason: "user"
      })
    }
  })

  it("S004-R35 a message ends what waits first, then the turn", () => {
    const waiting = append(called, { ...toolStarts("c1"), waitsFor: "client" } as NewEvent, asks("Stop"))
    expect(next(waiting)).toMatchObject({ type: "refuseTool", call: { id: "c1" }, reason: "abandoned" })
    expect(next(append(waiting, toolFails("c1")))).toEqual({
      type: "interruptTurn",
      turnNumber: 1,
      reason: "message"
    })
  })

  it("S004-F02 a run whose calls wait for several waits for runs first, then for people, then for clients", () => {
    const waits = (callId: string, waitsFor: string): NewEvent =>
      ({ ...toolStarts(callId), waitsFor }) as NewEvent
    const waitsWith = (first: string, second: string) =>
      next(append(called, waits("c1", first), waits("c2", second)))
    expect(waitsWith("client", "client")).toEqual({ type: "wait", for: "client" })
    expect(waitsWith("client", "person")).toEqual({ type: "wait", for: "person" })
    expect(waitsWith("person", "run")).toEqual({ type: "wait", for: "run" })
    // One result is not enough: the other call waits on.
    const both = append(called, waits("c1", "client"), waits("c2", "client"))
    expect(next(append(both, toolFails("c2")))).toEqual({ type: "wait", for: "client" })
    expect(next(append(both, toolFails("c2"), toolFails("c1")))).toMatchObject({ type: "requestModel" })
  })

  it("an answer that was written before a crash is not asked for again", () => {
    expect(next(append(open, answers("Hello"), turnBreaks(1, "crash"), turnStarts(2)))).toEqual({
      type: "completeTurn",
      text: "Hello"
    })
  })

  it("S004-R37 an answer that did not see the newest message completes its turn, and the message gets one of its own", () => {
    const raced = append(open, asks("And this?"), answers("To the first"))
    expect(next(raced)).toEqual({ type: "completeTurn", text: "To the first" })
    const completed = append(raced, turnCompletes(1))
    expect(next(completed)).toEqual({ type: "startTurn", turnNumber: 2 })
    expect(next(append(completed, turnStarts(2)))).toEqual({ type: "requestModel", withTools: true })
  })

  it("after an interruption by a message, refuses what the model had asked for before it", () => {
    const log = append(
      called,
      toolCompletes("c1"),
      asks("Stop, not that one"),
      turnBreaks(1, "message"),
      turnStarts(2)
    )
    expect(next(log)).toMatchObject({ type: "refuseTool", call: { id: "c2" }, reason: "abandoned" })
    expect(next(append(log, toolFails("c2")))).toEqual({ type: "requestModel", withTools: true })
  })

  it.each([
    ["failed", turnFails(1)],
    ["was cancelled", turnBreaks(1, "cancelled")]
  ])("a call of a run that %s is never made by the next run", (_, end) => {
    const log = append(called, end, asks("Again"), turnStarts(2))
    expect(next(log, 2, 3, runB)).toMatchObject({
      type: "refuseTool",
      call: { id: "c1" },
      reason: "abandoned"
    })
  })

  it("a call of another run is never made, even when that run died of a crash", () => {
    expect(next(append(called, turnBreaks(1, "crash"), turnStarts(2)), 2, 3, runB)).toMatchObject({
      type: "refuseTool",
      reason: "abandoned"
    })
  })

  it("S002-R20 stops softly when the steps are used and the model still wants tools", () => {
    expect(next(twice, 1, 3)).toEqual({ type: "requestModel", withTools: true })
    expect(next(twice, 1, 2)).toEqual({ type: "softStop", reason: "stepLimit" })
  })

  it("the calls of the last step are still made before the soft stop", () => {
    expect(next(append(open, answers("", ["c1"])), 1, 1)).toMatchObject({ type: "callTool" })
  })

  it("an answer in the last step needs no soft stop", () => {
    expect(next(append(open, answers("Done")), 1, 1)).toEqual({ type: "completeTurn", text: "Done" })
  })

  it("S002-R21 S002-R22 after the soft stop asks once more, without tools, and then pauses", () => {
    const stopped = append(twice, softStops)
    expect(next(stopped, 1, 2)).toEqual({ type: "requestModel", withTools: false })
    expect(next(append(stopped, answers("So far: …")), 1, 2)).toEqual({ type: "pause", reason: "stepLimit" })
  })

  it("S002-R23 S002-R24 refuses a tool after the soft stop and pauses", () => {
    const log = append(twice, softStops, answers("", ["c3", "c4"]))
    expect(next(log, 1, 2)).toMatchObject({ type: "refuseTool", call: { id: "c3" }, reason: "softStop" })
    expect(next(append(log, toolFails("c3")), 1, 2)).toMatchObject({ type: "refuseTool", call: { id: "c4" } })
    expect(next(append(log, toolFails("c3"), toolFails("c4")), 1, 2)).toEqual({
      type: "pause",
      reason: "stepLimit"
    })
  })

  it("a crash after the soft stop does not give the run new steps", () => {
    const log = append(twice, softStops, turnBreaks(1, "crash"), turnStarts(2))
    expect(next(log, 2, 2)).toEqual({ type: "requestModel", withTools: false })
  })

  it("a crash between the turn's end and the run's pause leads to the pause and not to completion", () => {
    const paused = append(twice, softStops, answers("So far"), turnBreaks(1, "stepLimit"))
    expect(next(paused, noTurn, 2)).toEqual({ type: "pause", reason: "stepLimit" })
  })

  it("S002-R45 a run that is resumed has all its steps again", () => {
    const resumed = append(twice, softStops, answers("So far"), turnBreaks(1, "stepLimit"), asks("Go on"))
    expect(next(resumed, noTurn, 2)).toEqual({ type: "startTurn", turnNumber: 2 })
    const turn = append(resumed, turnStarts(2))
    expect(next(turn, 2, 2)).toEqual({ type: "requestModel", withTools: true })
    expect(next(append(turn, answers("", ["c5"]), toolCompletes("c5")), 2, 2)).toEqual({
      type: "requestModel",
      withTools: true
    })
    expect(
      next(
        append(turn, answers("", ["c5"]), toolCompletes("c5"), answers("", ["c6"]), toolCompletes("c6")),
        2,
        2
      )
    ).toEqual({ type: "softStop", reason: "stepLimit" })
  })

  it("another run in the same context has steps of its own", () => {
    const log = append(twice, answers("Done"), turnCompletes(1), asks("More"), turnStarts(2))
    expect(next(log, 2, 1, runB)).toEqual({ type: "requestModel", withTools: true })
  })
})
