/**
 * `--limit`, alike for every list.
 */
import { Schema } from "effect"
import { Flag } from "effect/cli"
import { limits } from "../limits.ts"

export const limitFlag = Flag.Int("limit").pipe(
  Flag.withMetavar("<count>"),
  Flag.withDescription(`Max records to list, newest first (default: ${limits.listedRecords})`),
  Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: limits.listedRecordsMost }))),
  Flag.withDefault(limits.listedRecords)
)
