/**
 * What is drawn: text that fits, tables, times, and the bar at every width.
 */
import { describe, expect, it } from "@effect/vitest"
import { coloured, plain } from "./paint.ts"
import { drawBar, milestone } from "./progress-bar.ts"
import { type Column, renderTable } from "./table.ts"
import { displayWidth, cutEnd, cutStart, pad, printable } from "./text.ts"
import { formatAge, formatDuration } from "./time.ts"

describe("text", () => {
  it("cuts at a width in columns, not in characters", () => {
    expect([
      cutEnd("日本語", 6),
      cutEnd("日本語", 5),
      cutEnd("abc", 2),
      cutEnd("abc", 1),
      cutEnd("abc", 0)
    ]).toEqual(["日本語", "日本…", "a…", "…", ""])
    expect(cutStart("node_modules/effect", 8)).toBe("…/effect")
    expect(pad("日", 4, "right")).toBe("  日")
  })

  it("never lets a value write to the terminal", () => {
    expect(printable("a\u001B[2Jb\u0007\nc\u202Ed\u009Be")).toBe("a\uFFFD[2Jb\uFFFD c\uFFFDd\uFFFDe")
  })

  it("drops colours from what it cuts instead of cutting through them", () => {
    expect(cutEnd(coloured.good("abcdef"), 4)).toBe("abc…")
    expect(cutEnd(coloured.good("abc"), 3)).toBe(coloured.good("abc"))
  })
})

describe("renderTable", () => {
  interface Row {
    readonly name: string
    readonly count: number
    readonly note: string
  }
  const columns: ReadonlyArray<Column<Row>> = [
    { title: "NAME", cell: (row) => row.name },
    { title: "COUNT", align: "right", cell: (row) => String(row.count) },
    { title: "NOTE", shrinks: "end", cell: (row) => row.note }
  ]
  const rows = [
    { name: "a", count: 5, note: "short" },
    { name: "long-name", count: 12345, note: "a note that is much too long\nfor a line" }
  ]

  it("aligns columns and leaves no space at the end of a line", () => {
    expect(renderTable(rows, columns, { paint: plain, width: undefined })).toEqual([
      "NAME       COUNT  NOTE",
      "a              5  short",
      "long-name  12345  a note that is much too long for a line"
    ])
  })

  it("cuts only the column that may shrink, to exactly the width", () => {
    const lines = renderTable(rows, columns, { paint: plain, width: 40 })
    expect(lines.at(-1)).toBe("long-name  12345  a note that is much t…")
    expect(Math.max(...lines.map(displayWidth))).toBe(40)
  })

  it("counts what is seen and not the colours", () => {
    const painted = [
      { ...columns[0], title: "NAME", cell: (row: Row) => row.name, paint: () => coloured.bad },
      ...columns.slice(1)
    ]
    expect(renderTable(rows, painted, { paint: coloured, width: undefined }).map(displayWidth)).toEqual([
      22, 23, 57
    ])
  })

  it("renders no titles above nothing", () => {
    expect(renderTable([], columns, { paint: plain, width: 80 })).toEqual([])
  })
})

describe("drawBar", () => {
  const progress = { label: "Importing package-lock.json", done: 61, total: 122 }

  it("draws half of the bar for half of the work", () => {
    expect(drawBar(progress, 100, plain)).toBe(
      `Importing package-lock.json  ${"━".repeat(20)}${"─".repeat(20)}   61/122   50 %`
    )
  })

  it("fills any width of a terminal and never more", () => {
    for (let columns = 1; columns <= 200; columns++) {
      for (const done of [0, 1, 121, 122])
        expect(displayWidth(drawBar({ ...progress, done }, columns, coloured))).toBeLessThanOrEqual(columns)
    }
    expect(drawBar(progress, 60, plain)).toMatch(/━─/)
    expect(drawBar(progress, 45, plain)).toBe("Importing package-lock.json   61/122   50 %")
  })

  it("keeps its width from the first drawing to the last", () => {
    const widths = [0, 9, 10, 99, 100, 122].map((done) =>
      displayWidth(drawBar({ ...progress, done }, 100, plain))
    )
    expect(new Set(widths).size).toBe(1)
  })

  it("is full at the end, and when there is nothing to do", () => {
    expect(drawBar({ ...progress, done: 122 }, 100, plain)).toContain(`${"━".repeat(40)}  122/122  100 %`)
    expect(drawBar({ label: "x", done: 0, total: 0 }, 40, plain)).toContain("100 %")
  })
})

describe("milestone", () => {
  it("is due once for each quarter that is passed", () => {
    const steps = [
      [0, 1],
      [1, 30],
      [30, 31],
      [31, 90],
      [90, 122]
    ]
    expect(
      steps.map(([before, done]) => milestone(before ?? 0, { label: "", done: done ?? 0, total: 122 }))
    ).toEqual([undefined, undefined, 25, 50, 100])
    expect(milestone(0, { label: "", done: 0, total: 0 })).toBeUndefined()
  })
})

describe("times", () => {
  it("says durations in the unit a person would use", () => {
    expect(
      [0, 45, 949, 950, 3_240, 59_949, 59_960, 60_000, 245_000, 7_800_000, 7_200_000].map(formatDuration)
    ).toEqual([
      "0 ms",
      "45 ms",
      "949 ms",
      "0.9 s",
      "3.2 s",
      "59.9 s",
      "1 min",
      "1 min",
      "4 min 5 s",
      "2 h 10 min",
      "2 h"
    ])
  })

  it("says ages", () => {
    const now = Date.parse("2026-11-20T12:00:00.000Z")
    const at = (ms: number) => new Date(now - ms).toISOString()
    expect([0, 30_000, 300_000, 3 * 3_600_000, 50 * 3_600_000].map((ms) => formatAge(at(ms), now))).toEqual([
      "now",
      "30 s",
      "5 min",
      "3 h",
      "2 d"
    ])
  })
})
