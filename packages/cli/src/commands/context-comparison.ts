/**
 * `tropism contexts compare` and `comparison`: one question to several variants of a context, the answers side by side.
 */
import { problemOf } from "@tropism/client/failure-sentence"
import {
  type ComparedVariant,
  type Comparison,
  ComparisonId,
  ComparisonInput
} from "@tropism/domain/comparison"
import { isTerminal } from "@tropism/domain/run"
import { Effect, Option, Schedule, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Access, inProject } from "../access.ts"
import { exitCodes } from "../exit-codes.ts"
import { Failure, failure } from "../failure.ts"
import { limits } from "../limits.ts"
import { showStatus } from "../notice.ts"
import { printOr } from "../print-records.ts"
import { paintState } from "../terminal/paint.ts"
import { Screen } from "../terminal/screen.ts"
import { renderTable } from "../terminal/table.ts"
import { printable, printableLines } from "../terminal/text.ts"
import { formatDuration } from "../terminal/time.ts"
import { typed } from "../typed-input.ts"
import { noticeBegun, withinWait } from "../waiting-for-end.ts"
import { whenAnswered } from "../waiting-for-server.ts"
import { contextArgument } from "./context-log.ts"

const labelled = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description), Flag.between(0, 10))

export const compareCommand = Command.make(
  "compare",
  {
    context: contextArgument,
    question: Argument.String("question").pipe(Argument.withDescription("The question for all variants")),
    variant: labelled("variant", "<label>", "A variant; other flags set how it differs"),
    system: labelled("system", "<label=text>", "The system prompt of this variant"),
    model: labelled("model", "<label=provider:name>", "The model of this variant"),
    ask: labelled("ask", "<label=text>", "A different question for this variant"),
    at: Flag.Int("at").pipe(
      Flag.withMetavar("<event>"),
      Flag.withDescription("The last event to include (default: the last one)"),
      Flag.withSchema(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))),
      Flag.optional
    ),
    allowWrites: Flag.Boolean("allow-writes").pipe(
      Flag.withDescription("Allow the variants to use tools that make changes"),
      Flag.withDefault(false)
    ),
    detach: Flag.Boolean("detach").pipe(
      Flag.withDescription("Do not wait for the answers"),
      Flag.withDefault(false)
    )
  },
  ({ allowWrites, at, context, detach, question, ...flags }) =>
    Effect.gen(function* () {
      const payload = yield* typed(ComparisonInput, {
        content: question,
        variants: yield* readVariants(flags),
        at: Option.getOrNull(at),
        allowWrites
      })
      yield* inProject((access) =>
        Effect.gen(function* () {
          const begun = yield* access.client.comparisons
            .compare({ params: { ...access.params, name: context }, payload })
            .pipe(Effect.mapError(inOwnWords))
          const over = detach ? begun : yield* awaitAll(access, begun)
          yield* printComparison(over)
          const failed = over.variants.filter(({ status }) => status === "failed" || status === "cancelled")
          if (failed.length > 0)
            return yield* failure(
              `${failed.map(({ label }) => label).join(", ")} did not answer. "tropism runs show RUN" shows the reason.`
            )
        })
      )
    })
).pipe(
  Command.withDescription(
    "Ask variants of a context the same question, each in a fork, and show the answers side by side"
  ),
  Command.withShortDescription("Ask variants the same question and compare the answers"),
  Command.withExamples([
    {
      command: 'tropism contexts compare talk "What is a rose?" --variant plain --system brief="Be brief."',
      description: "Compare system prompts"
    },
    {
      command: 'tropism contexts compare talk "And now?" --variant now --model big=openai:gpt-4o',
      description: "Compare models"
    }
  ])
)

/** What the server says of a field of the request, said of the flag that sets it. */
const inOwnWords = <E>(error: E): E | Failure => {
  const problem = Option.getOrUndefined(problemOf(error))
  const fault = problem?.errors?.find(({ pointer }) => pointer === "/allowWrites")
  return fault === undefined
    ? error
    : new Failure({
        message: `${fault.message.replace("send allowWrites true", "pass --allow-writes")}.`,
        exitCode: exitCodes.failed,
        problem
      })
}

interface VariantFlags {
  readonly variant: ReadonlyArray<string>
  readonly system: ReadonlyArray<string>
  readonly model: ReadonlyArray<string>
  readonly ask: ReadonlyArray<string>
}

/** The variants that flags name, in the order in which their labels come first. */
const readVariants = Effect.fnUntraced(function* ({ ask, model, system, variant }: VariantFlags) {
  const variants = new Map<string, object>(variant.map((label) => [label, { label }]))
  const settings = [
    ...system.map((text) => ["system", text] as const),
    ...model.map((text) => ["model", text] as const),
    ...ask.map((text) => ["ask", text] as const)
  ]
  for (const [flag, text] of settings) {
    const equals = text.indexOf("=")
    if (equals < 1)
      return yield* failure(
        `--${flag} wants LABEL=…, and "${printable(text)}" has no label.`,
        exitCodes.usage
      )
    const [label, value] = [text.slice(0, equals), text.slice(equals + 1)]
    variants.set(label, { ...(variants.get(label) ?? { label }), ...(yield* settingOf(flag, value)) })
  }
  return [...variants.values()]
})

const settingOf = (flag: "system" | "model" | "ask", value: string) => {
  if (flag === "system") return Effect.succeed({ systemPrompt: value })
  if (flag === "ask") return Effect.succeed({ content: value })
  const colon = value.indexOf(":")
  return colon < 1
    ? Effect.fail(failure(`--model wants LABEL=provider:name, not "${printable(value)}".`, exitCodes.usage))
    : Effect.succeed({ model: { provider: value.slice(0, colon), name: value.slice(colon + 1) } })
}

/** A variant that has ended, or waits for a person. */
const isAtRest = ({ status }: ComparedVariant): boolean => isTerminal(status) || status === "paused"

const awaitAll = Effect.fnUntraced(function* (access: Access, { context, id, variants }: Comparison) {
  const screen = yield* Screen
  const begun = { name: `The comparison ${id}`, shownBy: `tropism contexts comparison ${context} ${id}` }
  yield* noticeBegun(begun)
  yield* showStatus(`${variants.length} variants are running …`)
  const params = { ...access.params, name: context, comparisonId: id }
  return yield* withinWait(
    access,
    begun,
    whenAnswered(access.client.comparisons.comparison({ params })).pipe(
      Effect.repeat({
        until: ({ variants }) => variants.every(isAtRest),
        schedule: Schedule.spaced(limits.runPollBusyMs)
      }),
      Effect.ensuring(screen.redraw(undefined))
    )
  )
})

export const comparisonCommand = Command.make(
  "comparison",
  {
    context: contextArgument,
    comparison: Argument.String("comparison").pipe(
      Argument.withDescription("The comparison's id, as printed by compare"),
      Argument.withSchema(ComparisonId)
    )
  },
  ({ comparison: comparisonId, context: name }) =>
    inProject(({ client, params }) =>
      Effect.flatMap(
        client.comparisons.comparison({ params: { ...params, name, comparisonId } }),
        printComparison
      )
    )
).pipe(Command.withDescription("Show a comparison and its answers so far"))

const printComparison = (comparison: Comparison) =>
  Effect.gen(function* () {
    const { paint, print, width } = yield* Screen
    const table = renderTable(
      comparison.variants,
      [
        { title: "VARIANT", cell: ({ label }) => label },
        { title: "STATUS", cell: ({ status }) => status, paint: ({ status }) => paintState(paint, status) },
        { title: "MODEL", cell: ({ model }) => model ?? "" },
        {
          title: "TOOK",
          align: "right",
          cell: ({ durationMs }) => (durationMs === null ? "" : formatDuration(durationMs))
        },
        {
          title: "TOKENS",
          align: "right",
          cell: ({ usage }) => `${usage.inputTokens}+${usage.outputTokens}`
        },
        { title: "COST", align: "right", cell: ({ costUsd }) => `$${costUsd}` },
        {
          title: "TOOLS",
          shrinks: "end",
          cell: ({ toolCalls }) => toolCalls.map(({ tool }) => tool).join(", ")
        },
        { title: "CONTEXT", cell: ({ context }) => context, paint: () => paint.dim }
      ],
      { paint, width: yield* width }
    )
    const answers = comparison.variants.flatMap(({ answer, errorMessage, label }) => [
      "",
      paint.bold(label),
      printableLines(answer ?? errorMessage ?? "…")
    ])
    yield* printOr(comparison, print(`Comparison ${comparison.id}`, ...table, ...answers))
  })
