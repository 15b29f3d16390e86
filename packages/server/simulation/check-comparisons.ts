/**
 * Checks comparisons: all variants were asked or none, each in a fork and a run of its own.
 */
import { type Checker, type Remains, unless } from "./remains.ts"
import { variantLabels } from "./wanderers.ts"

/** What the logs say was compared. */
const comparisonsOf = ({ contextEvents }: Remains) =>
  contextEvents.flatMap(({ contextName, event }) =>
    event.type === "ComparisonStartedEvent" && "variants" in event ? [{ contextName, ...event }] : []
  )

/** A comparison asks every variant once, in a fork of where it was asked; and each one that somebody was told of is there. */
const comparisonsWhole: Checker = (remains) => {
  const { acknowledged, contextEvents, contexts, runs } = remains
  const compared = comparisonsOf(remains)
  const contextOf = new Map(contexts.map((context) => [context.name as string, context]))
  const runOf = new Map(runs.map((run) => [run.id as string, run]))
  const told = new Set(compared.flatMap(({ variants }) => variants.map(({ context }) => context as string)))
  return [
    ...compared.flatMap(({ comparison, content, contextName, variants }) => [
      ...unless(
        variants.map(({ label }) => label).join() === variantLabels.join(),
        `comparison ${comparison} of ${contextName} asked ${variants.map(({ label }) => label).join(", ")}`
      ),
      ...variants.flatMap(({ context, label, runId }) => {
        const questions = contextEvents.filter(
          (row) => row.contextName === context && "content" in row.event && row.event.content === content
        )
        return unless(
          contextOf.get(context)?.forkedFrom === contextName &&
            runOf.get(runId)?.contextName === context &&
            questions.length === 1,
          `variant ${label} of comparison ${comparison} was asked ${questions.length} times in ${context}, forked from ${contextOf.get(context)?.forkedFrom}, by the run of ${runOf.get(runId)?.contextName}`
        )
      })
    ]),
    ...contexts.flatMap(({ forkedFrom, name }) =>
      unless(
        forkedFrom === null || !name.startsWith(`${forkedFrom}.`) || told.has(name),
        `${name} is a variant of a comparison that nobody began`
      )
    ),
    ...acknowledged.compared.flatMap((id) =>
      unless(
        compared.some(({ comparison }) => comparison === id),
        `the comparison ${id} is lost`
      )
    )
  ]
}

export const checkComparisons = { comparisonsWhole }
