/**
 * The event that somebody adds to a context, made of what was sent.
 *
 * Flow: **http** → dispatch → run → tool → task
 *
 * What the server alone writes (turns, answers, tool calls) cannot be sent: the
 * contract has no such input. A file is kept before its event is.
 */
import type { ConfigInput, EventInput, FileInput } from "@tropism/api/contexts-api"
import { findRetryFault } from "@tropism/domain/config-event"
import type { Attachment } from "@tropism/domain/attachment"
import type { FileAttachmentEvent, NewEvent } from "@tropism/domain/context-event"
import { defineFlowStep, flowBounds } from "@tropism/domain/flow"
import type { ProjectId } from "@tropism/domain/ids"
import { findReducerFault } from "@tropism/domain/prompt-window"
import { Effect } from "effect"
import { Attachments } from "../agent/attachments.ts"
import { fetchFile } from "../agent/remote-files.ts"
import { looking } from "./access.ts"
import { readableFile } from "./owned.ts"
import { judged } from "./judged-file.ts"
import { invalid } from "./refusals.ts"

export const addedEvent = Effect.fnUntraced(function* (projectId: ProjectId, input: EventInput) {
  switch (input.type) {
    case "UserMessageEvent":
    case "SystemPromptEvent": {
      const triggersAgentTurn = input.triggersAgentTurn ?? input.type === "UserMessageEvent"
      const event: NewEvent = { type: input.type, content: input.content, triggersAgentTurn }
      return event
    }
    case "FileAttachmentEvent":
      return yield* fileEvent(projectId, input)
    case "SetReducerEvent": {
      const fault = findReducerFault(input.reducer)
      return fault ? yield* invalid(`/reducer/${fault.field}`, fault.message) : configEvent(input)
    }
    case "SetRetryConfigEvent": {
      const fault = findRetryFault(input)
      return fault ? yield* invalid("/maxMs", fault) : configEvent(input)
    }
    default:
      return configEvent(input)
  }
})

/** The event that sets how the agent works in this context; what is left out has its default. */
const configEvent = ({ triggersAgentTurn, ...input }: ConfigInput): NewEvent => {
  const triggers = { triggersAgentTurn: triggersAgentTurn ?? false }
  if (input.type !== "DefineWorkflowEvent") return { ...input, ...triggers }
  const { flowType, steps, type } = input
  const maxIterations = input.maxIterations ?? (flowType === "loop" ? flowBounds.defaultIterations : null)
  return { type, flowType, maxIterations, steps: (steps ?? []).map(defineFlowStep), ...triggers }
}

/** The event of a file: one that is kept, or one that is fetched now and kept before the event is (S004-R25). */
const fileEvent = Effect.fnUntraced(function* (projectId: ProjectId, input: FileInput) {
  const { attachment, fileName, triggersAgentTurn, untrusted: isDoubted, url } = input
  if (attachment && url) return yield* invalid("/url", "Name either an attachment or a url, and not both")
  const shared = { fileName: fileName ?? null, triggersAgentTurn: triggersAgentTurn ?? false }
  if (attachment) {
    const attachments = yield* Attachments
    // Who may not speak here is refused before anything is fetched or looked up.
    const file = yield* looking(projectId, "editor", () =>
      readableFile(attachment, attachments.find(attachment))
    )
    if (!file) return yield* invalid("/attachment", `There is no attachment ${attachment}: send it first`)
    return fileEventOf({ type: "upload" }, file, { ...shared, isDoubted: isDoubted === true })
  }
  if (!url) return yield* invalid("/attachment", "Name the attachment by its digest, or the url of a file")
  yield* looking(projectId, "editor", Effect.succeed)
  const fetched = yield* Effect.mapError(fetchFile(url), ({ detail }) => invalid("/url", detail))
  const file = yield* judged({ ...fetched, untrusted: isDoubted === true }, "/url")
  const attachments = yield* Attachments
  const kept = { ...file, bytes: fetched.bytes }
  const untrusted = yield* looking(projectId, "editor", ({ userId }) =>
    typeof isDoubted === "boolean"
      ? Effect.as(attachments.keep(kept, userId), isDoubted)
      : attachments.keepAsKnown(kept, userId)
  )
  return fileEventOf({ type: "url", url }, { ...file, untrusted }, { ...shared, isDoubted: false })
})

/** Untrusted is what was sent as such, and what whoever adds it says to be. */
const fileEventOf = (
  source: FileAttachmentEvent["source"],
  { untrusted, ...file }: Attachment,
  { isDoubted, ...shared }: FileWords
): NewEvent => ({
  type: "FileAttachmentEvent",
  source,
  ...file,
  ...shared,
  ...(untrusted || isDoubted ? { untrusted: true } : {})
})

/** What is said of a file beside what it is. */
interface FileWords {
  readonly fileName: string | null
  readonly triggersAgentTurn: boolean
  readonly isDoubted: boolean
}
