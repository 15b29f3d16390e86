/**
 * A "no" of the server as a sentence that tells a person what happened and what to do.
 *
 * The server answers RFC 9457 problem details; `reason` of a conflict is the
 * contract's. This file says, it does not decide what happens next.
 */
import type { Conflict } from "@tropism/api/problems"
import type { JsonFault } from "@tropism/domain/json"
import { Data } from "effect"
import { faultWithin, fieldName } from "../words/place-name.ts"
import { withStop } from "../words/full-stop.ts"
import { visibleText } from "../words/visible-text.ts"

export type ConflictReason = Conflict["reason"]

/** What the console reads of a problem document; a proxy in between may answer with none. */
export interface ProblemDocument {
  readonly type?: string
  readonly title?: string
  readonly detail?: string
  readonly reason?: ConflictReason
  readonly errors?: ReadonlyArray<JsonFault>
}

/** The server answered and said no. */
export class Problem extends Data.TaggedError("Problem")<{
  readonly status: number
  readonly document: ProblemDocument
}> {
  override get message(): string {
    return problemSentence(this)
  }
}

/** No answer came: the server is down, restarting, or out of reach. */
export class Unreachable extends Data.TaggedError("Unreachable")<{
  readonly cause: unknown
  /** Something was to be done, and may have been. */
  readonly isOpen?: boolean
}> {
  override get message(): string {
    return this.isOpen
      ? "No response from the server, so the outcome is unknown. Retrying is safe."
      : "The server does not respond."
  }
}

/** Whether something may have been done or not. */
export const isLeftOpen = (error: unknown): boolean => error instanceof Unreachable && error.isOpen === true

export const isUnauthorized = (error: unknown): boolean => error instanceof Problem && error.status === 401

/** Whether it was refused because of who asked: a session that ended, or a role that does not allow it by now. */
export const isOfWhoAsks = (error: unknown): boolean =>
  error instanceof Problem && (error.status === 401 || error.status === 403)

export const isMissing = (error: unknown): boolean => error instanceof Problem && error.status === 404

/** Whether somebody was quicker: it is at another version by now than the one that was to be changed. */
export const isOvertaken = (error: unknown): boolean => error instanceof Problem && error.status === 412

/** Whether what was asked is refused as it is, so that asking again brings the same. */
export const isRefused = (error: unknown): boolean =>
  error instanceof Problem && [400, 403, 404, 422].includes(error.status)

/** What was wrong with what was sent, each with its JSON pointer; a name that is taken is the fault of its field. */
const faultsOf = (error: unknown): ReadonlyArray<JsonFault> => {
  if (!(error instanceof Problem)) return []
  const { errors = [], reason } = error.document
  const field = reason && takenFields[reason]
  return field === undefined ? errors : [{ pointer: field, message: error.message }]
}

const takenFields: Partial<Record<ConflictReason, string>> = { keyTaken: "/key", nameTaken: "/name" }

const isWithin = ({ pointer }: JsonFault, field: string): boolean =>
  pointer === field || pointer.startsWith(`${field}/`)

/** The sentence of a problem about one field of what was sent, by its JSON pointer, e.g. `/name`, and about what is in it but for what stands `apart`; undefined when it has none. */
export const faultAt = (
  error: unknown,
  field: string,
  apart: ReadonlyArray<string> = []
): string | undefined => {
  const faults = faultsOf(error).filter(
    (fault) => isWithin(fault, field) && !apart.some((other) => isWithin(fault, other))
  )
  return faults.length === 0
    ? undefined
    : visibleText(faults.map((fault) => withStop(faultWithin(fault, field))).join(" "))
}

/** Whether a problem is all about these fields, so that each of its sentences stands at one of them. */
export const isBeside = (error: unknown, fields: ReadonlyArray<string>): boolean => {
  const faults = faultsOf(error)
  return faults.length > 0 && faults.every((fault) => fields.some((field) => isWithin(fault, field)))
}

/** A failure as a code for programs: the reason of a conflict, the last part of the problem's type, or why there is no answer. */
export const failureCode = (error: unknown): string => {
  if (error instanceof Unreachable) return error.isOpen === true ? "outcomeUnknown" : "unreachable"
  if (!(error instanceof Problem)) return "notUnderstood"
  const { reason, type } = error.document
  return reason ?? type?.split("/").at(-1) ?? String(error.status)
}

/** Any failure as a sentence; only the two kinds above are expected. `nameOf` says what a place in what was sent is called. */
export const failureSentence = (error: unknown, nameOf = fieldName): string =>
  error instanceof Problem
    ? problemSentence(error, nameOf)
    : error instanceof Unreachable
      ? error.message
      : "The console could not read the server's response. Reload the page to get the matching version."

const conflictSentences: Readonly<Record<ConflictReason, string>> = {
  keyBusy: "The same request is still in progress. Wait a moment.",
  keyUnreadable: "This was already done. Reload to see the current state.",
  version: "The object has changed in the meantime.",
  keyTaken: "An object of this type with this key already exists.",
  nameTaken: "This name is already in use.",
  relationshipExists: "This relationship already exists.",
  tooManySuggestions: "The agent has too many pending suggestions.",
  rejectedBefore: "A person has already rejected this exact change.",
  expired: "It has expired. Nothing was changed.",
  alreadyDecided: "Someone has already decided this.",
  digestMismatch: "The suggestion has changed since you saw it. Nothing was changed; review it again.",
  outdated: "The target has changed since this was suggested. Nothing was changed.",
  notPermitted: "The agent is no longer allowed to make this change.",
  untrusted: "The agent has read untrusted content and can only suggest.",
  stopped: "The agents are stopped by a kill switch.",
  agentDisabled: "The agent is disabled, so its suggestion cannot be applied.",
  lastAdmin: "The project must keep at least one admin.",
  state: "Not possible in the current state.",
  idTaken: "An import with this id already exists.",
  finished: "This import is already finished.",
  otherFile: "This is not the file that the import started with.",
  otherSettings: "The import started with different settings.",
  answered: "The tool call already has a result.",
  unknown: "This tool call does not exist in this context.",
  notWaiting: "The tool call no longer accepts a result."
}

const statusSentences: Readonly<Record<number, string>> = {
  401: "You are signed out.",
  403: "Your role does not allow this.",
  404: "It no longer exists.",
  413: "The request is too large.",
  429: "Too many requests. Wait a moment.",
  500: "Server error. See the server log.",
  503: "The server is unavailable. Try again shortly."
}

/** The server's own words know this very case, so they come before what can be said of its kind. */
const problemSentence = ({ status, document }: Problem, nameOf = fieldName): string => {
  const known =
    (document.reason && conflictSentences[document.reason]) ??
    statusSentences[status] ??
    document.title ??
    `The server responded with ${status}.`
  const { detail = "", errors = [] } = document
  const own = errors.some((fault) => detail === `${fault.pointer}: ${fault.message}`) ? "" : detail
  const told = status >= 500 || detail === "" ? [known, own] : [own]
  const faults = errors.filter(({ message }) => !own.includes(message)).map((fault) => inWords(fault, nameOf))
  return visibleText(
    [...told, ...faults]
      .filter((text) => text !== "")
      .map(withStop)
      .join(" ")
  )
}

const inWords = ({ message, pointer }: JsonFault, nameOf: (pointer: string) => string): string => {
  const place = nameOf(pointer)
  return place === "" ? message : `${place.charAt(0).toUpperCase()}${place.slice(1)}: ${message}`
}
