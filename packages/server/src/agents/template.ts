/**
 * Renders prompts: Liquid templates over what triggered the agent.
 *
 * An unknown variable renders empty at run time. An unknown root name is refused on save, with its pointer, because it is a misspelling; so
 * is the output of a step that has not run yet. Templates read no file, run no code, and have limits of time and size.
 */
import { type AgentDefinition, type DefinitionFault, isNew } from "@tropism/domain/agent"
import { promptStep } from "@tropism/domain/flow"
import { Effect, Result, Schema } from "effect"
import { Liquid } from "liquidjs"
import { runLimits } from "../limits.ts"
import { standingAlone } from "../models/script.ts"

/** The root variables of a prompt. */
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

/** Renders a template; fails when it is invalid or exceeds its limits. */
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

/** Finds a prompt that is no valid template or names an unknown variable, with its pointer. */
export const findPromptFault = (
  definition: AgentDefinition,
  before?: AgentDefinition
): DefinitionFault | undefined => {
  const { flowType, prompt, steps, systemPrompt } = definition
  const isNewFlow = isNew("steps", definition, before) || isNew("flowType", definition, before)
  const names = steps.map(({ name }) => name)
  // The first step's prompt cannot use any output; a loop without steps repeats its prompt.
  const inPrompt = flowType === "loop" && names.length === 0 ? [promptStep] : []
  const own: ReadonlyArray<Spoken> = [
    ...(isNewFlow || isNew("prompt", definition, before)
      ? [{ pointer: "/prompt", template: prompt, outputs: inPrompt }]
      : []),
    ...(isNewFlow || isNew("systemPrompt", definition, before)
      ? [{ pointer: "/systemPrompt", template: systemPrompt ?? "", outputs: [] }]
      : [])
  ]
  return findSpokenFault(own, names) ?? (isNewFlow ? findStepPromptFault(definition) : undefined)
}

/** Finds a step's prompt that is no valid template or names an unavailable variable, with its pointer. */
export const findStepPromptFault = ({
  flowType,
  steps
}: Pick<AgentDefinition, "flowType" | "steps">): DefinitionFault | undefined => {
  const names = steps.map(({ name }) => name)
  const spoken = steps.map(({ prompt }, index) => ({
    pointer: `/steps/${index}/prompt`,
    template: prompt,
    outputs: flowType === "loop" ? names : names.slice(0, index)
  }))
  return findSpokenFault(spoken, names)
}

/** A template of a definition, and the steps whose outputs are available to it. */
interface Spoken {
  readonly pointer: string
  readonly template: string
  readonly outputs: ReadonlyArray<string>
}

const findSpokenFault = (
  spoken: ReadonlyArray<Spoken>,
  steps: ReadonlyArray<string>
): DefinitionFault | undefined => {
  for (const each of spoken) {
    const fault = findTemplateFault(each, steps)
    if (fault) return { pointer: each.pointer, message: fault }
  }
  return undefined
}

const findTemplateFault = (
  { outputs, template }: Spoken,
  steps: ReadonlyArray<string>
): string | undefined => {
  const paths = pathsOf(template)
  if (Result.isFailure(paths)) return `The template cannot be read: ${paths.failure}`
  const unknown = paths.success.find(([root]) => !rootNames.some((known) => known === root))
  if (unknown) return `The template speaks of "${unknown[0]}"; it may speak of ${rootNames.join(", ")}`
  const early = paths.success.find(
    ([root, step]) => root === "steps" && typeof step === "string" && !outputs.includes(step)
  )?.[1]
  if (typeof early !== "string") return undefined
  const known = outputs.length === 0 ? "of no step here" : `here of ${outputs.join(", ")}`
  return steps.includes(early)
    ? `The template speaks of steps.${early}, which has said nothing yet when this is said; it may speak ${known}`
    : `The template speaks of steps.${early}, and there is no step of that name; it may speak ${known}`
}

/** Whether any template of an agent uses one of these names. */
export const speaksOf = (
  definition: AgentDefinition,
  ...names: ReadonlyArray<(typeof rootNames)[number]>
): boolean => {
  const spoken = rootsOf(definition)
  return names.some((name) => spoken.has(name))
}

/** Cached by definition: each of its runs needs it, and a version never changes. */
const roots = new WeakMap<AgentDefinition, ReadonlySet<unknown>>()

const rootsOf = (definition: AgentDefinition): ReadonlySet<unknown> => {
  const known = roots.get(definition)
  if (known) return known
  const { prompt, steps, systemPrompt } = definition
  const templates = [prompt, systemPrompt ?? "", ...steps.map((step) => step.prompt)]
  const found = new Set(
    templates.flatMap((template) => Result.getOrElse(pathsOf(template), () => [])).map(([root]) => root)
  )
  roots.set(definition, found)
  return found
}

/** Returns the fields of `input` that prompts use, [] when they use it as a whole; undefined when they do not use it. */
export const inputFieldsOf = (templates: ReadonlyArray<string>): ReadonlyArray<string> | undefined => {
  const spoken = templates
    .flatMap((template) => Result.getOrElse(pathsOf(template), () => []))
    .filter(([root]) => root === "input")
  if (spoken.length === 0) return undefined
  return [...new Set(spoken.flatMap(([, field]) => (typeof field === "string" ? [field] : [])))]
}

/** Returns the names that a template uses, each with its path; a part known only at run time is not a string. */
const pathsOf = (template: string): Result.Result<ReadonlyArray<ReadonlyArray<unknown>>, string> =>
  Result.try({ try: () => engine.globalVariableSegmentsSync(template), catch: messageOf })

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
