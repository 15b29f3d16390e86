/**
 * Numbers in columns of CSV files: each is read as its column is written, or refused.
 */
import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { numberEvidence, readNumber } from "./csv.ts"

const formOf = (delimiter: string, ...texts: ReadonlyArray<string>) => {
  const evidence = numberEvidence()
  for (const text of texts) evidence.see(text)
  return evidence.form(delimiter)
}

/** What a column of these texts is read as; null is a bad line. */
const column = (delimiter: string, ...texts: ReadonlyArray<string>) => {
  const form = formOf(delimiter, ...texts)
  return texts.map((text) => Result.getOrNull(Result.map(readNumber(text, form), Number)))
}

describe("The numbers of a column", () => {
  it.each<readonly [string, ReadonlyArray<string>, ReadonlyArray<number | null>]>([
    ["\t", ["1.234", "1,5", "1.234,56", "-12.000"], [1_234, 1.5, 1_234.56, -12_000]],
    ["|", ["1,234", "1.5", "1,234.56", "1,234,567"], [1_234, 1.5, 1_234.56, 1_234_567]],
    [";", ["1.234", "0,125", "1.234.567"], [1_234, 0.125, 1_234_567]],
    [
      ";",
      ["1 234,56", "1 234", "1\u00a0234\u00a0567,5", "1\u202f234"],
      [1_234.56, 1_234, 1_234_567.5, 1_234]
    ],
    ["\t", ["1'234.56", "1.234", "1’234"], [1_234.56, 1.234, 1_234]],
    ["\t", ["0.125", "1.234"], [0.125, 1.234]],
    ["\t", ["1234.567", "1.234"], [1_234.567, 1.234]],
    ["\t", ["1.5e3", "1.234", "7E2"], [1_500, 1.234, 700]],
    // Both marks: what has one meaning is read, what has two is not.
    ["\t", ["1,5", "2.5", "1.234", "1,234", "12"], [1.5, 2.5, null, null, 12]],
    // Neither: only a file with commas between fields has points.
    ["\t", ["1.234", "12", "1,234"], [null, 12, null]],
    [";", ["1.234"], [null]],
    ["|", ["1.234"], [null]],
    [",", ["1.234", "1,234", "12"], [1.234, null, 12]],
    [",", ["1,5", "1.234"], [1.5, 1_234]],
    // No number at all.
    [
      ";",
      [
        "12 %",
        "5 €",
        "$5",
        "1.",
        ".5",
        "007",
        "1.23.456",
        "1,23,456",
        "1.234.5",
        "1 23",
        "1'234 567",
        "(5)",
        "+5",
        ""
      ],
      Array.from({ length: 14 }, () => null)
    ]
  ])("separated by %j that read %j are %j", (delimiter, texts, numbers) => {
    expect(column(delimiter, ...texts)).toEqual(numbers)
  })

  it("refuse the other mark once the beginning of the file has shown one", () => {
    expect(Result.isFailure(readNumber("2.5", formOf("\t", "1,5")))).toBe(true)
    expect(Result.isFailure(readNumber("2,5", formOf("\t", "1.5")))).toBe(true)
    expect(Result.isFailure(readNumber("2,5", formOf(",", "1")))).toBe(true)
    expect(readNumber("2,5", formOf("\t", "1"))).toEqual(Result.succeed("2.5"))
  })
})
