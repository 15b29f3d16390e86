/**
 * What a sender reads of an import that it reads slowly.
 */
import { describe, expect, it } from "@effect/vitest"
import type { ImportLine } from "@tropism/api/transfer-api"
import { Effect, Stream } from "effect"
import { makeImportAnswer } from "./imports.ts"

const progress = (done: number): ImportLine => ({ type: "progress", done, total: 9 })

describe("The answer of an import", () => {
  it.effect.each<ImportLine>([
    { type: "failed", message: "It broke off" },
    {
      type: "finished",
      created: 9,
      updated: 0,
      deleted: 0,
      unchanged: 0,
      relationshipsCreated: 0,
      relationshipsUpdated: 0,
      relationshipsDeleted: 0
    }
  ])("that $type says so last, behind the newest progress", (last) =>
    Effect.gen(function* () {
      const answer = yield* makeImportAnswer
      yield* answer.tell(progress(3))
      yield* answer.tell({ type: "badLine", line: 4, message: "Unreadable" }, progress(6))
      yield* answer.tell(last)
      yield* answer.end
      expect((yield* Stream.runCollect(answer.lines)).map(({ type }) => type)).toEqual([
        "badLine",
        "progress",
        last.type
      ])
    })
  )
})
