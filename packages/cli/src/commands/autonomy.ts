/**
 * `tropism autonomy`: what an agent has earned by reviews, and taking it back.
 */
import type { Autonomy, Promotion, ReviewRecord } from "@tropism/domain/autonomy"
import { Reversal } from "@tropism/api/autonomy-api"
import { PromotionId } from "@tropism/domain/ids"
import { Clock, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Access, inProject } from "../access.ts"
import { findAgent } from "../agents-by-name.ts"
import { exitCodes } from "../exit-codes.ts"
import { failure } from "../failure.ts"
import { printOr } from "../print-records.ts"
import type { Paint } from "../terminal/paint.ts"
import { Screen } from "../terminal/screen.ts"
import { type Column, renderTable } from "../terminal/table.ts"
import { printable } from "../terminal/text.ts"
import { formatAge } from "../terminal/time.ts"
import { typed } from "../typed-input.ts"

export const autonomyCommand = Command.make(
  "autonomy",
  {
    agent: Argument.String("agent").pipe(Argument.withDescription("The agent's name or id")),
    version: Flag.Int("version").pipe(
      Flag.withMetavar("<version>"),
      Flag.withDescription("The version of the agent (default: the current one)"),
      Flag.optional
    ),
    reverse: Flag.String("reverse").pipe(
      Flag.withMetavar("<promotion>"),
      Flag.withDescription("Revoke a promotion by id: the agent needs approval again"),
      Flag.optional
    ),
    reason: Flag.String("reason").pipe(Flag.withDescription("Reason for revoking it"), Flag.optional)
  },
  ({ agent, reason, reverse, version }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const { id, name } = yield* findAgent(access, agent)
        if (Option.isSome(reverse)) return yield* takeBack(access, id, name, reverse.value, reason)
        const earned = yield* access.client.autonomy.get({
          params: { ...access.params, agentId: id },
          query: Option.isSome(version) ? { version: version.value } : {}
        })
        yield* printOr(earned, show(name, earned))
      })
    )
).pipe(
  Command.withShortDescription("Show an agent's reviews and promotions"),
  Command.withDescription(
    "Show how an agent's suggestions were reviewed, and which changes need no approval"
  ),
  Command.withExamples([
    { command: "tropism autonomy licence-review", description: "Show reviews and promotions" },
    {
      command: 'tropism autonomy licence-review --reverse ID --reason "Too early"',
      description: "Require approval again"
    }
  ])
)

const takeBack = Effect.fnUntraced(function* (
  access: Access,
  agentId: Promotion["agentId"],
  name: string,
  reference: string,
  reason: Option.Option<string>
) {
  const screen = yield* Screen
  const id = Schema.decodeUnknownOption(PromotionId)(reference)
  if (Option.isNone(id))
    return yield* failure(
      `"${printable(reference)}" is not the id of a promotion. "tropism autonomy ${printable(name)}" lists them.`,
      exitCodes.usage
    )
  const payload = yield* typed(Reversal, { reason: Option.getOrNull(reason) })
  const promotion = yield* access.client.autonomy.reverse({
    params: { ...access.params, agentId, promotionId: id.value },
    payload
  })
  yield* printOr(
    promotion,
    screen.print(
      `${printable(name)} needs approval again: ${promotion.operation} ${printable(promotion.objectType)}.`
    )
  )
})

const show = Effect.fnUntraced(function* (name: string, earned: Autonomy) {
  const screen = yield* Screen
  const { paint } = screen
  const now = yield* Clock.currentTimeMillis
  const width = yield* screen.width
  const table = <A>(records: ReadonlyArray<A>, columns: ReadonlyArray<Column<A>>) =>
    renderTable(records, columns, { paint, width })
  const { promotions, records, withoutEffect } = earned
  if (records.length === 0)
    return yield* screen.print(
      `No reviewed suggestions of version ${earned.agentVersion} of ${printable(name)}.`
    )
  yield* screen.print(
    `${printable(name)}, version ${earned.agentVersion}`,
    ...(withoutEffect === null ? [] : [paint.waiting(printable(withoutEffect))]),
    ...table(records, recordColumns(paint)),
    ...(promotions.length === 0 ? [] : ["", ...table(promotions, promotionColumns(paint, now))]),
    ...(earned.truncated ? [paint.dim("More reviews are not shown.")] : [])
  )
})

const recordColumns = (paint: Paint): ReadonlyArray<Column<ReviewRecord>> => [
  { title: "OPERATION", cell: (record) => record.operation },
  { title: "TYPE", shrinks: "end", cell: (record) => record.objectType },
  ...(["accepted", "edited", "rejected", "expired", "reverted"] as const).map(
    (verdict): Column<ReviewRecord> => ({
      title: verdict.toUpperCase(),
      align: "right",
      cell: (record) => String(record[verdict])
    })
  ),
  { title: "RATE", align: "right", cell: (record) => percent(record.acceptanceRate) },
  {
    title: "COUNTING",
    align: "right",
    cell: ({ counting }) => `${counting.reviews} at ${percent(counting.acceptanceRate) || "–"}`
  },
  {
    title: "APPROVAL",
    cell: (record) => (record.promotionId === null ? "asks" : "promoted"),
    paint: (record) => (record.promotionId === null ? paint.dim : paint.good)
  }
]

const promotionColumns = (paint: Paint, now: number): ReadonlyArray<Column<Promotion>> => [
  { title: "PROMOTION", cell: (promotion) => promotion.id },
  { title: "FOR", shrinks: "end", cell: ({ objectType, operation }) => `${operation} ${objectType}` },
  { title: "REVIEWS", align: "right", cell: (promotion) => String(promotion.reviews) },
  { title: "RATE", align: "right", cell: (promotion) => percent(promotion.acceptanceRate) },
  {
    title: "AGE",
    align: "right",
    cell: ({ promotedAt }) => formatAge(promotedAt, now),
    paint: () => paint.dim
  },
  {
    title: "STATE",
    shrinks: "end",
    cell: stateText,
    paint: ({ endedAt }) => (endedAt === null ? paint.good : paint.waiting)
  }
]

const stateText = ({ endReason, endedBy, note }: Promotion): string =>
  endReason === null ? "stands" : `${endReason} by ${endedBy ?? "?"}${note === null ? "" : `: ${note}`}`

const percent = (rate: number | null): string => (rate === null ? "" : `${Math.round(rate * 100)} %`)
