/**
 * Records cut from bytes: whatever pieces they come in, and whatever stands between them.
 */
import { createHash } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { csvFields, csvScanner } from "./csv.ts"
import { lineScanner, makeRecordReader, newHash, type RecordScanner } from "./import-records.ts"

interface Read {
  readonly line: number
  readonly text: string
  readonly fault: string | undefined
}

/** Reads a file that comes in pieces of these sizes, and checks that the place follows. */
const read = (
  file: Uint8Array,
  scanner: RecordScanner,
  pieces: ReadonlyArray<number> = [file.length],
  maxBytes = 1_000
): ReadonlyArray<Read> => {
  const reader = makeRecordReader({ scanner, maxBytes, start: { bytes: 0, lines: 0, hash: newHash() } })
  const records: Array<Read> = []
  const drain = () => {
    for (let record = reader.next(); record; record = reader.next()) {
      records.push({ line: record.line, text: new TextDecoder().decode(record.bytes), fault: record.fault })
      const { bytes, digest } = reader.place()
      expect(digest).toBe(createHash("sha256").update(file.subarray(0, bytes)).digest("hex"))
    }
  }
  let from = 0
  for (let index = 0; from < file.length; index++) {
    const length = Math.max(1, pieces[index % pieces.length] ?? 1)
    reader.push(file.subarray(from, from + length))
    from += length
    drain()
  }
  reader.finish()
  drain()
  expect(reader.place().bytes).toBe(file.length)
  return records
}

const bytesOf = (text: string) => new TextEncoder().encode(text)
const lines = (text: string) => read(bytesOf(text), lineScanner())
const rows = (text: string) =>
  read(bytesOf(text), csvScanner()).map(({ line, text: record, fault }) =>
    fault === undefined ? [line, ...csvFields(record).map((field) => field.text)] : [line, "!"]
  )

const pieceSizes = Arbitrary.schema(
  Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 }))).check(
    Schema.isBetweenLength(1, 4)
  )
)
/** Texts of the characters that matter to CSV, and few others. */
const csvText = Arbitrary.schema(
  Schema.Array(Schema.Literals(['"', '"', ",", "\n", "\r\n", "a", "ä"])).check(Schema.isMaxLength(40))
)
const table = Arbitrary.schema(
  Schema.Array(
    Schema.Array(
      Schema.Array(Schema.Literals(['"', ",", "\n", "\r", "a", "ä", " "])).check(Schema.isMaxLength(6))
    ).check(Schema.isBetweenLength(2, 4))
  ).check(Schema.isBetweenLength(1, 6))
)

const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
const field = (text: string) => (/[",\r\n]/.test(text) ? quoted(text) : text)

describe("lines", () => {
  it("are counted from 1, empty ones too, and the last one needs no break", () => {
    expect(lines("a\n\r\nb").map(({ line, text }) => [line, text])).toEqual([
      [1, "a\n"],
      [2, "\r\n"],
      [3, "b"]
    ])
    expect(lines("")).toEqual([])
    expect(lines("\ufeff")).toEqual([])
    expect(lines("\ufeffa\n")[0]?.text).toBe("a\n")
  })

  it("that are too long are told, and the next one is read", () => {
    for (const pieces of [[1], [7], [100]]) {
      const found = read(bytesOf(`a\n${"b".repeat(50)}\nc\n${"d".repeat(11)}`), lineScanner(), pieces, 10)
      expect(found.map(({ line, text, fault }) => [line, fault === undefined ? text : "!"])).toEqual([
        [1, "a\n"],
        [2, "!"],
        [3, "c\n"],
        [4, "!"]
      ])
    }
  })
})

describe("CSV records", () => {
  it("end outside of quotes only", () => {
    expect(rows('a,b\r\n"1\n2","x ""y"""\n\nlast,"')).toEqual([
      [1, "a", "b"],
      [2, "1\n2", 'x "y"'],
      [4, ""],
      [5, "!"]
    ])
    expect(rows('"",\n"a"')).toEqual([
      [1, "", ""],
      [2, "a"]
    ])
  })

  it("that break the grammar cost their own line", () => {
    expect(rows('x,"y"z\na,b\n')).toEqual([
      [1, "!"],
      [2, "a", "b"]
    ])
    expect(rows('5" nail,1\n"open,2\n"a","b"\nc,d\n')).toEqual([
      [1, "!"],
      [2, "!"],
      [3, "a", "b"],
      [4, "c", "d"]
    ])
    expect(rows(`a,b\n"never closed,1\n${"c,d\n".repeat(500)}`).length).toBe(502)
  })

  it.prop("say what was written, in whatever pieces they come", [table, pieceSizes], ([cells, pieces]) => {
    const texts = cells.map((row) => row.map((parts) => parts.join("")))
    const file = bytesOf(texts.map((row) => `${row.map(field).join(",")}\r\n`).join(""))
    const found = read(file, csvScanner(), pieces).map(({ text, fault }) => {
      expect(fault).toBeUndefined()
      return csvFields(text).map((one) => one.text)
    })
    expect(found).toEqual(texts)
  })

  it.prop(
    "are the same in one piece and in many, however broken",
    [csvText, pieceSizes],
    ([parts, pieces]) => {
      const file = bytesOf(parts.join(""))
      const whole = read(file, csvScanner())
      expect(read(file, csvScanner(), pieces)).toEqual(whole)
      expect(whole.map(({ text }) => text).join("")).toBe(parts.join(""))
      let before = ""
      for (const { line, text } of whole) {
        expect(line).toBe(before.split("\n").length)
        before += text
      }
    }
  )
})
