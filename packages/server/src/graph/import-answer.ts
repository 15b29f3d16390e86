/**
 * What an import tells its sender while it works, however slowly the sender reads.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * A sender may send its whole file before it reads one line of the answer, so
 * the import never waits for it: of progress only the newest waits to be read,
 * and bad lines are told in a bounded number.
 */
import type { ImportLine } from "@tropism/api/transfer-api"
import { Effect, Latch, Option, Stream } from "effect"

export interface ImportAnswer {
  readonly tell: (...lines: ReadonlyArray<ImportLine>) => Effect.Effect<void>
  /** Nothing more will be told. */
  readonly end: Effect.Effect<void>
  /** What is told, until the end. */
  readonly lines: Stream.Stream<ImportLine>
}

export const makeImportAnswer: Effect.Effect<ImportAnswer> = Effect.sync(() => {
  const news = Latch.makeUnsafe(false)
  let waiting: Array<ImportLine> = []
  let progress: ImportLine | undefined
  let isOver = false

  const take = Effect.sync(() => {
    news.closeUnsafe()
    const taken = [...waiting.splice(0), ...(progress ? [progress] : [])]
    progress = undefined
    return [taken, isOver ? Option.none<void>() : Option.some<void>(undefined)] as const
  })

  return {
    tell: (...lines) =>
      Effect.sync(() => {
        for (const line of lines) {
          if (line.type === "progress") progress = line
          else if (isLast(line)) {
            waiting = [...waiting, ...(progress ? [progress] : []), line]
            progress = undefined
          } else waiting.push(line)
        }
        news.openUnsafe()
      }),
    end: Effect.sync(() => {
      isOver = true
      news.openUnsafe()
    }),
    lines: Stream.paginate(undefined as void, () => Effect.andThen(news.await, take))
  }
})

/** Nothing is told behind how it ended, by which the sender knows whether to send again. */
const isLast = ({ type }: ImportLine): boolean => type === "finished" || type === "failed"
