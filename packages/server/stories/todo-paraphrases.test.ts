/**
 * What people say to the assistant on a server without any key: two hundred utterances, each in a list of its own.
 *
 * A soak says all of them, `npm test` a part; `src/model/todo-dialogue.test.ts` has each in the script alone.
 *
 * Each of the two files of lines was written by somebody who was told what the
 * five tools do and had not seen the script's rules; no line was changed since.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { paraphrasesIn, wrongIn } from "../testing/paraphrase-words.ts"
import { asEditors } from "../testing/token-words.ts"
import { sampled } from "../testing/tier.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

/** People who speak at once. */
const speakers = 8

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: the assistant understands people", () => {
    for (const file of ["todo-paraphrases.jsonl", "todo-paraphrases-2.jsonl"])
      it.effect(`P3-MCP-08 S003-R01 does what is said in ${file}, and nothing else`, () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const lines = sampled(paraphrasesIn(file), 7)
          const people = yield* asEditors(story, lines.length)
          const wrong = yield* Effect.forEach(
            people,
            (mine, index) => Effect.forEach(lines.slice(index, index + 1), (line) => wrongIn(mine, line)),
            { concurrency: speakers }
          )
          expect(lines.length).toBeGreaterThan(10)
          expect(wrong.flat().filter((each) => each !== undefined)).toEqual([])
        })
      )
  })
})
