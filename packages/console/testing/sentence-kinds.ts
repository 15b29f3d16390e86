/**
 * Checks what a wording function distinguishes, whatever its words are.
 */
import { expect } from "vitest"

/** Every kind has one text, which is not empty, and no other kind has the same. */
export const expectOneSentencePerKind = (
  sentencesByKind: Readonly<Record<string, ReadonlyArray<string>>>
): void => {
  const kinds = Object.entries(sentencesByKind)
  const texts = kinds.map(([kind, sentences]) => [kind, [...new Set(sentences)]] as const)
  for (const [kind, different] of texts)
    expect([kind, different]).toEqual([kind, [expect.stringMatching(/\S/)]])
  expect(new Set(texts.flatMap(([, different]) => different)).size).toBe(kinds.length)
}
