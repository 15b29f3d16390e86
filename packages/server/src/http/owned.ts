/**
 * Whose a context is, asked in one place for every door that tells of one or writes into one.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 *
 * What stands in somebody's own context is read by them and by admins; to
 * everybody else it is not there, in the words in which a missing one is told.
 * Only they speak in it, so its runs work for them. Of its runs others see that
 * they are there, and no word.
 */
import { CurrentPrincipal, type Principal } from "@tropism/api/authorization"
import { Forbidden, NotFound } from "@tropism/api/problems"
import type { Digest } from "@tropism/domain/attachment"
import type { ContextName } from "@tropism/domain/context-event"
import type { RunId, UserId } from "@tropism/domain/ids"
import type { Run } from "@tropism/domain/run"
import { Effect } from "effect"
import { Attachments } from "../agent/attachments.ts"
import { Contexts } from "../agent/contexts.ts"
import { BroughtContexts } from "../chat/brought-contexts.ts"
import { Conversations } from "../chat/conversations.ts"
import { Runs } from "../run/runs.ts"
import { orNotFound } from "./refusals.ts"

/** Whether a principal may read what stands in a context of this owner. */
export const mayRead = ({ role, userId }: Principal, owner: UserId | null): boolean =>
  owner === null || owner === userId || role === "admin"

/** What is there for the principal, where it has an owner. */
const readable = <A extends { readonly owner: UserId | null }, E, R>(
  found: Effect.Effect<A | undefined, E, R>
) =>
  Effect.flatMap(CurrentPrincipal, (principal) =>
    Effect.map(found, (it) => (it !== undefined && mayRead(principal, it.owner) ? it : undefined))
  )

/** A context that the principal may read. */
export const readableContext = (name: ContextName) =>
  Effect.flatMap(Contexts, (contexts) => readable(contexts.get(name))).pipe(orNotFound("context"))

/** A run of whose context the principal may read. */
export const readableRun = (id: RunId) =>
  Effect.flatMap(Runs, (runs) => readable(runs.get(id))).pipe(orNotFound("run"))

/** A context in which the principal may speak, held: nobody deletes or forgets it meanwhile. */
export const spokenContext = Effect.fnUntraced(function* (name: ContextName, isSpokenIn = false) {
  const context = yield* readableContext(name)
  yield* speaking(context.name, context.owner, isSpokenIn)
  return context
})

/** A run of a context in which the principal may speak. */
export const spokenRun = Effect.fnUntraced(function* (id: RunId) {
  const run = yield* readableRun(id)
  yield* speaking(run.contextName as ContextName, run.owner, true)
  return run
})

const speaking = Effect.fnUntraced(function* (name: ContextName, owner: UserId | null, isSpokenIn: boolean) {
  if (owner === null) return
  const { userId } = yield* CurrentPrincipal
  if (owner !== userId)
    return yield* new Forbidden({ detail: `This is a conversation of ${owner}: only they speak in it` })
  const conversations = yield* Conversations
  const held = yield* conversations.hold(name, isSpokenIn)
  if (held?.isDeleted) return yield* new NotFound({ detail: "This conversation is deleted: begin another" })
  const brought = yield* BroughtContexts
  if (held === undefined && !(yield* brought.hold(name, isSpokenIn)))
    return yield* new NotFound({ detail: "What was said here is forgotten: begin another conversation" })
})

/** A run as the principal sees it: of somebody else's own it says no word. */
export const shownRun = (principal: Principal, run: Run): Run => {
  if (mayRead(principal, run.owner)) return run
  const { input: _input, ...trigger } = run.trigger
  return { ...run, trigger, summary: null, isSummaryTruncated: false, errorMessage: null }
}

/** A file that the principal sent, or that is in a context which it may read. */
export const readableFile = Effect.fnUntraced(function* <A, R>(
  digest: Digest,
  file: Effect.Effect<A | undefined, never, R>
) {
  const attachments = yield* Attachments
  const { role, userId } = yield* CurrentPrincipal
  const isReadable = role === "admin" || (yield* attachments.isReadable(digest, userId))
  return isReadable ? yield* file : undefined
})
