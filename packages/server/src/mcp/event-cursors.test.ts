/**
 * Cursors: each names one place of one project, and nothing else is one.
 */
import { describe, expect, it } from "@effect/vitest"
import { ProjectId } from "@tropism/domain/ids"
import { Arbitrary, Schema } from "effect"
import { cursorAt, positionOf } from "./events.ts"

const here = ProjectId.make("018f0000-0000-7000-8000-000000000001")
const there = ProjectId.make("018f0000-0000-7000-8000-000000000002")
const anyInt = (maximum: number) =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum })))
const places = anyInt(999_999_999_999_999)

const encoded = (text: string): string => Buffer.from(text).toString("base64url")

describe("A cursor", () => {
  it.prop("names its place in its project, and none in another", [places], ([place]) => {
    const cursor = cursorAt(here, place)
    expect(cursor).toMatch(/^[\w-]+$/)
    expect([positionOf(here, cursor), positionOf(there, cursor)]).toEqual([place, undefined])
  })

  it.prop("is another for each place", [places, places], ([one, other]) => {
    expect(cursorAt(here, one) === cursorAt(here, other)).toBe(one === other)
  })

  it.prop("is nothing that somebody made up", [Arbitrary.schema(Schema.String)], ([text]) => {
    expect([positionOf(here, text), positionOf(here, encoded(text))]).toEqual([undefined, undefined])
  })

  it.prop(
    "is none any more with one letter changed",
    [places, anyInt(100), anyInt(63)],
    ([place, at, to]) => {
      const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
      const cursor = cursorAt(here, place)
      const index = at % cursor.length
      const changed = cursor.slice(0, index) + letters.charAt(to) + cursor.slice(index + 1)
      const position = positionOf(here, changed)
      // What still names a place is written as that place is, so no place has two cursors.
      expect(position === undefined || cursorAt(here, position) === changed).toBe(true)
    }
  )

  it.each([
    ["another version", `2.${here}.1`],
    ["a place below none", `1.${here}.-1`],
    ["a place with zeros before it", `1.${here}.007`],
    ["a place between two", `1.${here}.1.5`],
    ["more digits than a place has", `1.${here}.1234567890123456`],
    ["a project in capitals", `1.${here.toUpperCase()}.1`],
    ["something behind it", `1.${here}.1 `],
    ["no place", `1.${here}.`]
  ])("is none with %s", (_, text) => {
    expect(positionOf(here, encoded(text))).toBeUndefined()
  })

  it("is none with padding or in another alphabet", () => {
    const cursor = cursorAt(here, 1)
    expect([`${cursor}=`, `${cursor}\n`, ` ${cursor}`].map((text) => positionOf(here, text))).toEqual([
      undefined,
      undefined,
      undefined
    ])
  })
})
