/**
 * The event that somebody adds to a context, made of what was sent.
 *
 * Flow: **http** → dispatch → run → tool → task
 *
 * What the server alone writes (turns, answers, tool calls) cannot be sent: the
 * contract has no such input. A file is kept before its event is.
 */
import type { ConfigInput, EventInput, FileInput, ToolResultInput } from "@tropism/api/contexts-api"
import { clientToolBounds, findRetryFault } from "@tropism/domain/config-event"
import type { Attachment, MimeType } from "@tropism/domain/attachment"
import type { FileAttachmentEvent, NewEvent } from "@tropism/domain/context-event"
import { defineFlowStep, flowBounds } from "@tropism/domain/flow"
import type { ProjectId } from "@tropism/domain/ids"
import { findReducerFault } from "@tropism/domain/prompt-window"
import { Effect } from "effect"
import { Attachments } from "../agent/attachments.ts"
import { fetchFile } from "../agent/remote-files.ts"
import { looking } from "./access.ts"
import { readableFile } from "./owned.ts"
import { judged, readDataUrl } from "./judged-file.ts"
import { invalid } from "./refusals.ts"

/** What is sent and kept as it is; a tool's result is kept as the outcome of its call. */
export type KeptInput = Exclude<EventInput, ToolResultInput>

export const addedEvent = Effect.fnUntraced(function* (projectId: ProjectId, input: KeptInput) {
  const event = yield* ownEvent(projectId, input)
  const { parentEventId } = input
  return parentEventId === undefined || parentEventId === null ? event : { ...event, parentEventId }
})

/** The event without its place in a chain of causes. */
const ownEvent = Effect.fnUntraced(function* (projectId: ProjectId, input: KeptInput) {
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
    case "DefineToolEvent": {
      const { inputSchema, timeoutMs, ...named } = input
      const isClients = inputSchema !== null && inputSchema !== undefined
      return configEvent({
        ...named,
        ...(isClients ? { inputSchema, timeoutMs: timeoutMs ?? clientToolBounds.defaultTimeoutMs } : {}),
        ...(!isClients && timeoutMs !== null && timeoutMs !== undefined ? { timeoutMs } : {})
      })
    }
    case "SetMemoryConfigEvent": {
      const { embeddingModel, ...memory } = input
      return embeddingModel === undefined || embeddingModel === null
        ? configEvent(memory)
        : yield* invalid("/embeddingModel", noEmbeddings, "embeddingUnavailable")
    }
    default:
      return configEvent(input)
  }
})

const noEmbeddings =
  "Search by meaning is not available yet. Leave embeddingModel out: passages are recalled by shared words"

/** The event that sets how the agent works in this context; what is left out has its default. */
const configEvent = ({ parentEventId: _parent, triggersAgentTurn, ...input }: ConfigInput): NewEvent => {
  const triggers = { triggersAgentTurn: triggersAgentTurn ?? false }
  if (input.type !== "DefineWorkflowEvent") return { ...input, ...triggers }
  const { flowType, steps, type } = input
  const maxIterations = input.maxIterations ?? (flowType === "loop" ? flowBounds.defaultIterations : null)
  return { type, flowType, maxIterations, steps: (steps ?? []).map(defineFlowStep), ...triggers }
}

/** The event of a file: one that is kept, or one that comes with the event or is fetched, and is kept before the event is (S004-R25). */
const fileEvent = Effect.fnUntraced(function* (projectId: ProjectId, input: FileInput) {
  const { attachment, fileName, mimeType, source, triggersAgentTurn, untrusted: isDoubted, url } = input
  const [place, ...others] = (["attachment", "source", "url"] as const).filter((name) => Boolean(input[name]))
  if (place === undefined)
    return yield* invalid("/attachment", "Name the attachment by its digest, the url of a file or its source")
  if (others.length > 0)
    return yield* invalid(`/${others[0]}`, "Name one of attachment, source and url, and not several")
  const shared = { fileName: fileName ?? null, triggersAgentTurn: triggersAgentTurn ?? false }
  const check = (found: MimeType) =>
    mimeType === undefined || mimeType === null || mimeType === found
      ? Effect.void
      : Effect.fail(invalid("/mimeType", `The file is ${found} and not ${mimeType}`))
  const attachments = yield* Attachments
  // Who may not speak here is refused before anything is fetched or looked up.
  if (attachment) {
    const file = yield* looking(projectId, "editor", () =>
      readableFile(attachment, attachments.find(attachment))
    )
    if (!file) return yield* invalid("/attachment", `There is no attachment ${attachment}: send it first`)
    yield* check(file.mimeType)
    return fileEventOf({ type: "upload" }, file, { ...shared, isDoubted: isDoubted === true })
  }
  yield* looking(projectId, "editor", Effect.succeed)
  const address = source ?? url ?? ""
  const isData = place === "source" && /^data:/i.test(address)
  const sent = yield* isData
    ? Effect.fromResult(readDataUrl(address)).pipe(Effect.mapError((fault) => invalid("/source", fault)))
    : Effect.mapError(fetchFile(address), ({ detail }) => invalid(`/${place}`, detail))
  yield* check(sent.mimeType)
  const file = yield* judged({ ...sent, untrusted: isDoubted === true }, `/${place}`)
  const kept = { ...file, bytes: sent.bytes }
  const untrusted = yield* looking(projectId, "editor", ({ userId }) =>
    typeof isDoubted === "boolean"
      ? Effect.as(attachments.keep(kept, userId), isDoubted)
      : attachments.keepAsKnown(kept, userId)
  )
  const from: FileAttachmentEvent["source"] = isData ? { type: "upload" } : { type: "url", url: address }
  return fileEventOf(from, { ...file, untrusted }, { ...shared, isDoubted: false })
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
