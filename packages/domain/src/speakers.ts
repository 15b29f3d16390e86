/**
 * Whose words a turn reads, and so for whom it works (S003-R44…R46).
 *
 * A turn that reads the words of one person works for that person, whoever began
 * the run; one that reads those of several works for nobody in particular. Words
 * that no person said, as a run's own prompt, are of whoever began the run.
 */
import { Option, Schema } from "effect"
import { UserId } from "./ids.ts"

/** Null stands for whoever began the run. */
const Speaker = Schema.NullOr(UserId)

/** Of each who spoke one entry: of the turn that is open, or begins next, and of the one behind an open one. */
export const Speakers = Schema.Struct({ now: Schema.Array(Speaker), next: Schema.Array(Speaker) })
export type Speakers = typeof Speakers.Type

/** A fork begins with it: what it shares was asked elsewhere, and is here of whoever has it answered. */
export const noSpeakers: Speakers = { now: [], next: [] }

/** Enough to know that there are several. */
const maxSpeakers = 8

const together = (one: Speakers["now"], other: Speakers["now"]): Speakers["now"] =>
  [...new Set([...one, ...other])].slice(-maxSpeakers)

/** What the state of a context says of when something is read. */
interface Hearing {
  readonly speakers: Speakers
  readonly isTriggered: boolean
  readonly isStepDue: boolean
  readonly agentTurnStartedAtEventId: Option.Option<unknown>
}

/** Somebody spoke: what asks for an answer while a turn is open is for the next one. */
export const withSpeaker = <S extends Hearing>(state: S, by: UserId | null): S => {
  const { now, next } = state.speakers
  const isForNext = isTurnBegun(state) && state.isTriggered
  if ((isForNext ? next : now).includes(by)) return state
  const speakers = isForNext ? { now, next: together(next, [by]) } : { now: together(now, [by]), next }
  return { ...state, speakers }
}

const isTurnBegun = ({ agentTurnStartedAtEventId, isStepDue }: Hearing): boolean =>
  isStepDue || Option.isSome(agentTurnStartedAtEventId)

/** An event by which somebody sets how a context is answered. */
interface Setting {
  readonly type: string
  readonly triggersAgentTurn: boolean
  readonly userId?: UserId
}

/** Settings whose words the model is shown. */
const settingsOfWords: ReadonlySet<string> = new Set(["SystemPromptEvent", "DefineToolEvent"])

/**
 * Somebody set how a context is answered: who asks for an answer by that speaks.
 *
 * **Details** Words of a setting are read at once, so they are of the answer that is being made, too, where there is
 * one; those that stand there before anybody asks are the context's, as the agent's own are.
 */
export const withSetting = <S extends Hearing>(state: S, { triggersAgentTurn, type, userId }: Setting): S => {
  const after = triggersAgentTurn ? withSpeaker(state, userId ?? null) : state
  return userId === undefined || !settingsOfWords.has(type) ? after : readAtOnce(after, userId)
}

/** Somebody answered what the agent had asked: the turn that asked reads that, whoever it has worked for so far. */
export const withAnswer = <S extends Hearing>(state: S, by: UserId | undefined): S =>
  by === undefined ? state : readAtOnce(state, by)

/** Somebody's words join those that are being answered, if any are. */
const readAtOnce = <S extends Hearing>(state: S, by: UserId): S => {
  const { next, now } = state.speakers
  if (now.length === 0 && !isTurnBegun(state)) return state
  // What is worked on and nobody said is of whoever began the run.
  return { ...state, speakers: { now: together(now.length === 0 ? [null] : now, [by]), next } }
}

/** A turn begins, and reads what is there. */
export const atTurnStart = ({ next, now }: Speakers): Speakers => ({ now: together(now, next), next: [] })

/** A step of a flow begins: in a conversation it works on what was asked there, else on what whoever began the run wants. */
export const atStepStart = (speakers: Speakers, isConversation: boolean): Speakers => {
  const { next, now } = atTurnStart(speakers)
  return { now: isConversation ? now : together(now, [null]), next }
}

/** What was asked is answered, or given up. */
export const atTurnEnd = ({ next }: Speakers): Speakers => ({ now: [], next })

/** The persons whose words the open turn reads; `beganBy` stands for words that no person said. */
export const askedBy = (
  { speakers: { now } }: Pick<Hearing, "speakers">,
  beganBy: UserId | null
): ReadonlyArray<UserId | null> => [...new Set(now.map((by) => by ?? beganBy))]

/** For whom a turn works that reads their words; with none, for whoever began the run. */
export const workedFor = (people: ReadonlyArray<UserId | null>, beganBy: UserId | null): UserId | null =>
  people.length === 0 ? beganBy : people.length === 1 ? (people[0] ?? null) : null
