/**
 * Says whose turn it is: one statement or one alarm at a time, drawn by chance.
 *
 * A program of the simulation runs until everything in it waits, either for an
 * answer of the database or for its clock. Then the conductor draws what goes
 * on. So every interleaving of statements may come up, and a seed always brings
 * the same one. PostgreSQL is real: a statement that has to wait for a lock is
 * set aside until the one before it has let go. The conductor knows nothing of
 * what the programs do.
 */
import { Exit } from "effect"
import { isRefusal, type Refusal } from "./refusals.ts"
import { brokenLine, errorText } from "./statement.ts"
import type { Chance } from "./chance.ts"
import { type Alarm, makeWorldClock, type WorldClock } from "./world-clock.ts"
import type { Program } from "./program.ts"
import type { Line } from "./line.ts"
import type { Attempt, Statement } from "./statement.ts"

/** What the faults of a run do to a statement that has its turn; a refusal is PostgreSQL's own. */
export type Fate = "go" | "dieBefore" | "dieAfter" | "breakBefore" | "breakAfter" | Refusal

export interface ConductorOptions {
  readonly chance: Chance
  /** Asked before each statement of a program. */
  readonly fateOf: (statement: Statement) => Fate
  /** Whether the database answers at once: then time passes only when nobody has anything to do. */
  readonly isPrompt: () => boolean
  /** The backends that a backend waits for; none when it does not wait for a lock. */
  readonly blockersOf: (processId: number) => Promise<ReadonlyArray<number>>
  /** Told of each turn, for whoever wants to follow. */
  readonly trace?: ((line: string) => void) | undefined
  /** Tells it to play no turn more. */
  readonly signal?: AbortSignal | undefined
}

export interface Conductor {
  /** The clock of all programs; it moves when nobody has anything else to do. */
  readonly clock: WorldClock
  /** Runs a task of a program's fibers soon, unless the program dies first. */
  readonly enqueue: (program: Program, task: () => void) => void
  /** A statement waits for its turn. */
  readonly submit: (statement: Statement) => void
  /** Takes a statement back; `done` is called once it can no longer do anything. */
  readonly withdraw: (statement: Statement, done: () => void) => void
  /** A connection is no longer used. */
  readonly release: (line: Line) => void
  /** Ends a program at the next moment at which everything waits; nothing of it runs after that. */
  readonly doom: (program: Program) => void
  /** Plays turns until it is over; fails when nothing moves any more, it takes too many turns or is told to stop. */
  readonly play: (isOver: () => boolean, maxTurns: number) => Promise<void>
  readonly turns: () => number
  /** Whether several statements waited when a lock was released: PostgreSQL chose which of them got it. */
  readonly hasRaced: () => boolean
  /** Ends every program that is left. */
  readonly endAll: () => Promise<void>
}

/** How long a statement may be silent before PostgreSQL is asked whether it waits for a lock; twice as long before each other time. */
const patienceMs = 4

export const makeConductor = ({
  chance,
  fateOf,
  isPrompt,
  blockersOf,
  trace,
  signal
}: ConductorOptions): Conductor => {
  const waiting: Array<Statement> = []
  const blocked: Array<Attempt> = []
  const doomed: Array<Program> = []
  const programs = new Set<Program>()
  let tasks = 0
  let stirrings = 0
  let turns = 0
  let hasRaced = false
  /** The backends that let go of locks since those that wait were last asked about. */
  const releasers = new Set<number>()
  /** Whether any of those that wait may have its lock, since lines ended in the middle of a transaction. */
  let mayAnyBeFree = false
  const stir = (): void => void (stirrings += 1)
  const clock = makeWorldClock(stir)

  const isToStop = (): boolean => signal?.aborted === true

  /** Waits until no fiber has anything to do without an answer or an alarm, or it is told to stop. */
  const settle = async (): Promise<void> => {
    for (let quiet = 0; quiet < 2 && !isToStop();) {
      const before = stirrings
      await nextTurnOfEventLoop()
      quiet = stirrings === before && tasks === 0 ? quiet + 1 : 0
    }
  }

  const answer = ({ statement }: Attempt, exit: Attempt["exit"]): void => {
    if (exit === undefined || !statement.program.isAlive) return
    stir()
    statement.answer(exit)
  }

  /** True when the statement waits for a lock; false when it has its answer. */
  const waitsForLock = async (attempt: Attempt): Promise<boolean> => {
    for (let patience = patienceMs; ; patience *= 2) {
      if (await settlesWithin(attempt.settled, patience)) return false
      if (await isBlocked(attempt)) return true
    }
  }

  const isBlocked = async (attempt: Attempt): Promise<boolean> => {
    attempt.blockers = await blockersOf(attempt.processId)
    return attempt.blockers.length > 0
  }

  /** Whether it waits as before, after some backends may have let go of locks, or any of them. */
  const stillWaits = async (
    attempt: Attempt,
    released: ReadonlySet<number> | undefined
  ): Promise<boolean> => {
    if (attempt.exit !== undefined) return false
    if (released !== undefined && !attempt.blockers.some((blocker) => released.has(blocker))) return true
    return (await isBlocked(attempt)) || waitsForLock(attempt)
  }

  /**
   * Answers statements that no longer wait for a lock, in the order in which they began to.
   *
   * PostgreSQL hands locks on before it answers the statement that let go of
   * them, so only those are asked about that waited for its backend.
   */
  const answerUnblocked = async (): Promise<void> => {
    while (mayAnyBeFree || releasers.size > 0) {
      const released = mayAnyBeFree ? undefined : new Set(releasers)
      mayAnyBeFree = false
      releasers.clear()
      const before = [...blocked]
      for (const attempt of before) {
        if (await stillWaits(attempt, released)) continue
        hasRaced ||= before.length > 1
        blocked.splice(blocked.indexOf(attempt), 1)
        trace?.(`${attempt.statement.program.name} has its lock`)
        if (attempt.statement.mayRelease) releasers.add(attempt.processId)
        await conclude(attempt)
        await settle()
      }
    }
  }

  const conclude = async (attempt: Attempt): Promise<void> => {
    const { statement } = attempt
    if (attempt.exit !== undefined && Exit.isFailure(attempt.exit))
      trace?.(`${statement.program.name} is refused: ${errorText(attempt.exit)}`)
    if (!statement.program.isAlive || statement.line.isBroken) await drop(statement.line)
    statement.whenOver?.()
    answer(attempt, attempt.exit)
  }

  const perform = async (statement: Statement, fate: Fate): Promise<void> => {
    if (fate === "dieBefore") return kill(statement.program)
    if (fate === "breakBefore") return breakLine(statement)
    const attempt = await statement.begin(isRefusal(fate) ? fate : undefined)
    if (await waitsForLock(attempt)) {
      trace?.(`${statement.program.name} waits for a lock`)
      blocked.push(attempt)
      return
    }
    if (fate === "dieAfter") return kill(statement.program)
    if (fate === "breakAfter") return breakLine(statement)
    await conclude(attempt)
    if (blocked.length > 0 && statement.mayRelease) {
      releasers.add(attempt.processId)
      await settle()
      await answerUnblocked()
    }
  }

  const drop = (line: Line): Promise<void> => {
    mayAnyBeFree ||= line.inTransaction()
    return line.drop()
  }

  /** The connection is gone under a statement: whoever asked learns only that. */
  const breakLine = async (statement: Statement): Promise<void> => {
    await drop(statement.line)
    statement.whenOver?.()
    stir()
    statement.answer(brokenLine())
  }

  const kill = async (program: Program): Promise<void> => {
    if (!program.isAlive) return
    trace?.(`${program.name} dies`)
    program.isAlive = false
    await bury(program)
    stir()
    program.tellEnd()
    mayAnyBeFree = true
    await answerUnblocked()
  }

  /** Takes away what a program that is dead would have done next, and breaks its lines. */
  const bury = async (program: Program): Promise<void> => {
    for (let at = waiting.length - 1; at >= 0; at--) {
      if (waiting[at]?.program === program) waiting.splice(at, 1)
    }
    clock.forget(program)
    const busy = new Set(blocked.map((attempt) => attempt.statement.line))
    for (const line of [...program.lines]) if (!busy.has(line)) await drop(line)
  }

  /** All die at once, and nobody hears of it: who keeps servers would start the next. */
  const endAll = async (): Promise<void> => {
    for (const program of programs) {
      program.isAlive = false
      program.mourners.clear()
    }
    for (const program of programs) await bury(program)
    // One may wait for the lock of another: each lets go of its own as soon as it has it.
    await Promise.all(
      blocked.splice(0).map((attempt) => attempt.settled.then(() => attempt.statement.line.drop()))
    )
  }

  /** What may go on now: statements of programs that are awake, and alarms that ring. */
  const choose = (): Statement | Alarm | undefined => {
    const isAwake = ({ program }: { readonly program: Program }): boolean => program.sleepsUntilTurn <= turns
    const ready = waiting.filter(isAwake)
    if (ready.length === 0 || (!isPrompt() && chance.oneIn(40))) clock.advance(isAwake)
    const choices = [...ready, ...clock.ringing().filter(isAwake)]
    return choices[chance.below(choices.length)]
  }

  const take = async (choice: Statement | Alarm): Promise<void> => {
    if (choice.kind === "alarm") {
      trace?.(`${choice.program.name} wakes at ${clock.nowMs()}`)
      return clock.ring(choice)
    }
    waiting.splice(waiting.indexOf(choice), 1)
    const fate = fateOf(choice)
    trace?.(
      `${choice.program.name} ${fate === "go" ? "" : `(${fate}) `}${choice.text.trim().split("\n", 1)[0]}`
    )
    return perform(choice, fate)
  }

  const play = async (isOver: () => boolean, maxTurns: number): Promise<void> => {
    for (;;) {
      await settle()
      if (isOver()) return
      if (isToStop()) throw new Error("It was told to stop")
      const next = doomed.shift()
      if (next !== undefined) {
        await kill(next)
        continue
      }
      turns += 1
      if (turns > maxTurns) throw new Error(`It is not over after ${maxTurns} turns`)
      const choice = choose()
      if (choice !== undefined) await take(choice)
      else if (!wakeSleepers(waiting, clock, turns)) {
        if (blocked.length === 0) throw new Error("Everything waits and nothing can go on")
        // Only PostgreSQL can go on: it ends a deadlock by refusing one of the statements.
        trace?.("deadlock")
        await waitForAny(blocked)
        mayAnyBeFree = true
        await answerUnblocked()
      }
    }
  }

  return {
    clock,
    enqueue: (program, task) => {
      programs.add(program)
      tasks += 1
      stir()
      setImmediate(() => {
        tasks -= 1
        if (program.isAlive) task()
      })
    },
    submit: (statement) => {
      programs.add(statement.program)
      if (!statement.program.isAlive) return
      stir()
      waiting.push(statement)
    },
    withdraw: (statement, done) => {
      const at = waiting.indexOf(statement)
      if (at === -1) {
        statement.whenOver = done
        return
      }
      waiting.splice(at, 1)
      stir()
      done()
    },
    release: (line) => {
      mayAnyBeFree ||= line.inTransaction()
      void line.giveBack()
    },
    doom: (program) => {
      stir()
      doomed.push(program)
    },
    play,
    turns: () => turns,
    hasRaced: () => hasRaced,
    endAll
  }
}

const nextTurnOfEventLoop = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** Whether a promise settles within a time. */
const settlesWithin = (settled: Promise<void>, ms: number): Promise<boolean> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms)
    void settled.then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })

const waitForAny = (attempts: ReadonlyArray<Attempt>): Promise<void> =>
  Promise.race(attempts.map((attempt) => attempt.settled))

/** When only sleepers could go on, they wake early. */
const wakeSleepers = (waiting: ReadonlyArray<Statement>, clock: WorldClock, turns: number): boolean => {
  const sleepers = [...waiting, ...clock.alarms()].filter(({ program }) => program.sleepsUntilTurn > turns)
  for (const { program } of sleepers) program.sleepsUntilTurn = 0
  return sleepers.length > 0
}
