/**
 * Prompts as Liquid templates over what woke the agent.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * An unknown variable renders empty at run time; an unknown root name is
 * refused at save, with the place, because it is a misspelling. Templates read
 * no file, run no code and are bounded in time and size.
 */
import { type AgentDefinition, type DefinitionFault, isNew } from "@tropism/domain/agent"
import { Effect, Schema } from "effect"
import { Liquid } from "liquidjs"
import { runLimits } from "../limits.ts"
import { standingAlone } from "../model/lone-templates.ts"

/** What a prompt may speak of. */
export const rootNames = [
  "event",
  "events",
  "object",
  "relationship",
  "input",
  "steps",
  "iteration",
  "agent",
  "project"
] as const
export type PromptScope = Readonly<Record<(typeof rootNames)[number], unknown>>

export class PromptFailed extends Schema.TaggedError<PromptFailed>()("PromptFailed", {
  detail: Schema.String
}) {}

const noFiles = {
  exists: () => Promise.resolve(false),
  existsSync: () => false,
  readFile: () => Promise.reject(new Error("templates read no files")),
  readFileSync: () => {
    throw new Error("templates read no files")
  },
  resolve: (_root: string, file: string) => file,
  contains: () => Promise.resolve(false),
  containsSync: () => false
}

const engine = standingAlone(
  new Liquid({
    fs: noFiles,
    relativeReference: false,
    ownPropertyOnly: true,
    strictFilters: true,
    renderLimit: 1_000,
    memoryLimit: 20_000_000,
    parseLimit: 400_000
  })
)

/** Renders a template; fails when it is no template or grows beyond its bounds. */
export const renderPrompt = (template: string, scope: PromptScope): Effect.Effect<string, PromptFailed> =>
  Effect.try({
    try: () => engine.parseAndRenderSync(template, scope) as string,
    catch: (error) => new PromptFailed({ detail: `The prompt cannot be rendered: ${messageOf(error)}` })
  }).pipe(
    Effect.filterOrFail(
      (text) => text.length <= runLimits.promptMaxChars,
      (text) =>
        new PromptFailed({
          detail: `The rendered prompt has ${text.length} characters, more than ${runLimits.promptMaxChars}`
        })
    )
  )

/** Finds the place of a prompt that is no template or names something that no prompt can know. */
export const findPromptFault = (
  definition: AgentDefinition,
  before?: AgentDefinition
): DefinitionFault | undefined => {
  const findIn = (field: "prompt" | "systemPrompt") => {
    const template = definition[field]
    return template !== null && isNew(field, definition, before)
      ? findTemplateFault(`/${field}`, template)
      : undefined
  }
  return findIn("prompt") ?? findIn("systemPrompt")
}

const findTemplateFault = (pointer: string, template: string): DefinitionFault | undefined => {
  const found = Effect.runSyncExit(
    Effect.try({ try: () => engine.globalVariablesSync(template), catch: messageOf })
  )
  if (found._tag === "Failure") {
    const fault = found.cause.reasons[0]
    return {
      pointer,
      message: `The template cannot be read: ${fault?._tag === "Fail" ? fault.error : "it cannot be read"}`
    }
  }
  const unknown = found.value.find((name) => !rootNames.some((known) => known === name))
  return unknown === undefined
    ? undefined
    : { pointer, message: `The template speaks of "${unknown}"; it may speak of ${rootNames.join(", ")}` }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
