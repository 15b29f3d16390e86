/**
 * A run as one line: which agent, at which object, with what outcome, in what time.
 *
 * The columns have fixed widths, because lines come one by one and the widest
 * of them is not known before the last.
 */
import { ObjectId } from "@tropism/domain/ids"
import type { Run } from "@tropism/domain/run"
import { Effect, Schema } from "effect"
import type { Access } from "./access.ts"
import { shortId } from "./change-text.ts"
import { runAgentText, triggerText } from "./event-text.ts"
import { limits } from "./limits.ts"
import { type Paint, paintState } from "./terminal/paint.ts"
import { displayWidth, cutEnd, cutStart, pad, printable } from "./terminal/text.ts"
import { formatDuration } from "./terminal/time.ts"

const subjectColumns = 40
const statusColumns = 9
const durationColumns = 8

export interface RunLine {
  readonly run: Run
  /** The object the run was about, or what triggered it. */
  readonly subject: string
}

/** Renders the line; the summary takes what is left of the width. */
export const renderRunLine = (
  line: RunLine,
  agentColumns: number,
  paint: Paint,
  width: number | undefined
): string => {
  const { run } = line
  const facts = [
    pad(cutEnd(runAgentText(run), agentColumns), agentColumns),
    pad(cutStart(printable(line.subject), subjectColumns), subjectColumns),
    paintState(paint, run.status)(pad(run.status, statusColumns)),
    pad(run.durationMs === null ? "" : formatDuration(run.durationMs), durationColumns, "right")
  ].join("  ")
  const said = printable(saidAtEnd(run))
  const room = width === undefined ? Number.POSITIVE_INFINITY : width - displayWidth(facts) - 3
  return (room < 12 ? facts : `${facts}  ${paint.dim(cutEnd(said, room))}`).trimEnd()
}

/** What came of a run, in its own words; a person who ended it comes first. */
export const saidAtEnd = ({ cancelledBy, errorMessage, summary }: Run): string => {
  const said = errorMessage ?? summary ?? ""
  return cancelledBy === null ? said : `Cancelled by ${cancelledBy}. ${said}`.trimEnd()
}

/** Finds the name of what each run was about; each object is asked for once. */
export const makeSubjects = (access: Access) => {
  const known = new Map<string, string>()
  return (run: Run): Effect.Effect<string> => {
    const event = run.trigger.events?.at(-1)
    if (event === undefined) return Effect.succeed(triggerText(run))
    const cached = known.get(event.objectId)
    if (cached !== undefined) return Effect.succeed(cached)
    // A relationship, or an object that is gone by now, is named by its id: the line is worth more than the name.
    return Schema.decodeUnknownEffect(ObjectId)(event.objectId).pipe(
      Effect.flatMap((objectId) =>
        access.client.objects.get({ params: { ...access.params, objectId }, query: {} })
      ),
      Effect.map((object) => object.key ?? `${object.type} ${shortId(object.id)}`),
      Effect.orElseSucceed(() => `${event.objectType} ${shortId(event.objectId)}`),
      Effect.tap((subject) =>
        Effect.sync(() => {
          if (known.size >= limits.rememberedKeys) known.clear()
          known.set(event.objectId, subject)
        })
      )
    )
  }
}
