/**
 * Texts in the order of their code points.
 */
import { expect, it } from "@effect/vitest"
import { byCodePoint } from "./code-points.ts"

/** What UTF-8 has in the order of its bytes is in the order of its code points. */
const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

it("texts are in the order of their code points", () => {
  const parts = ["", "a", "b", "é", "\ud7ff", "\ue000", "～", "\uffff", "😀", "😁", "\u{10ffff}"]
  const texts = parts.flatMap((first) => parts.map((second) => first + second))
  for (const a of texts)
    for (const b of texts) expect([a, b, Math.sign(byCodePoint(a, b))]).toEqual([a, b, byBytes(a, b)])
  expect(["😀b", "～a", "c"].toSorted(byCodePoint)).toEqual(["c", "～a", "😀b"])
})
