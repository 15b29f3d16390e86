/**
 * Checks what agents remember: notes and summaries of a context when they are due and then once, and the index of what was said.
 */
import { fold } from "@tropism/domain/context"
import { countShown } from "@tropism/domain/guard"
import { areNotesDue, notesBounds } from "@tropism/domain/notes-due"
import { wholeLogs } from "./check-forks.ts"
import { type Checker, unless } from "./remains.ts"
import type { ContextEventRow } from "./rows.ts"

const foldRows = (rows: ReadonlyArray<ContextEventRow>) => fold(rows.map(({ event }) => event))

/** Notes are taken behind enough that is new, tried or not, and no run completes while they are due. */
const notesTaken: Checker = (remains) => {
  const completed = remains.runs.filter(({ status }) => status === "completed")
  return [...wholeLogs(remains)].flatMap(([name, log]) => [
    ...notesApart(name, log),
    ...completed.flatMap(({ contextName, id }) => {
      if (contextName !== name) return []
      const last = log.findLastIndex(({ event }) => "runId" in event && event.runId === id)
      const ended = log.findIndex(({ event }, index) => index > last && !event.type.startsWith("AgentTurn"))
      const isLeft = last !== -1 && areNotesDue(foldRows(log.slice(0, ended === -1 ? log.length : ended)))
      return unless(!isLeft, `run ${id} completed without the notes of ${name} that were due`)
    })
  ])
}

const notesApart = (name: string, log: ReadonlyArray<ContextEventRow>): ReadonlyArray<string> => {
  let tried = 0
  return log.flatMap(({ event }, index) => {
    if (event.type !== "ContextNotedEvent" || !("messages" in event)) return []
    const [before, there] = [tried, countShown(foldRows(log.slice(0, index)))]
    tried = event.messages
    return [
      ...unless(
        event.messages - before >= notesBounds.everyMessages,
        `${name} was noted behind ${before} messages and again behind ${event.messages}`
      ),
      ...unless(
        event.messages <= there,
        `${name} has ${there} messages, and its notes tell ${event.messages}`
      )
    ]
  })
}

/** A summary stands for more messages than the one before it. */
const summariesAdvance: Checker = (remains) =>
  [...wholeLogs(remains)].flatMap(([name, log]) => {
    let told = 0
    return log.flatMap(({ event }) => {
      if (event.type !== "ContextSummarizedEvent" || !("messages" in event) || event.content === null)
        return []
      const before = told
      told = event.messages
      return unless(
        event.messages > before,
        `${name} was summed up behind ${before} messages and again behind ${event.messages}`
      )
    })
  })

/** Of these the newest of a context stands for those before it. */
const replacing: ReadonlySet<string> = new Set(["ContextNotedEvent", "ContextSummarizedEvent"])

/** Each message of a context that is remembered has its words in the index, the newest notes and summary have theirs, and nothing else has. */
const passagesMirrorLogs: Checker = ({ contextEvents, contexts, passages }) => {
  const remembered = new Set(contexts.flatMap(({ isRemembered, name }) => (isRemembered ? [name] : [])))
  const wanted = new Map<string, string>()
  for (const { contextName, event, number } of contextEvents) {
    const isSaid = event.type === "UserMessageEvent" || event.type === "AssistantMessageEvent"
    if (!remembered.has(contextName) || !(isSaid || replacing.has(event.type))) continue
    if (!("content" in event) || !event.content) continue
    wanted.set(
      isSaid ? `${contextName}:${number}` : `${contextName} ${event.type}`,
      `${contextName}:${number}`
    )
  }
  const wantedPlaces = new Set(wanted.values())
  const places = new Set(passages.map(({ contextName, number }) => `${contextName}:${number}`))
  return [
    ...[...wantedPlaces].flatMap((place) => unless(places.has(place), `the words of ${place} are not found`)),
    ...[...places].flatMap((place) =>
      unless(wantedPlaces.has(place), `${place} is found and was not said, or is replaced`)
    )
  ]
}

export const checkMemory = { notesTaken, summariesAdvance, passagesMirrorLogs }
