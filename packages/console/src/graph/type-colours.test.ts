/**
 * A type has one colour, whatever other types there are, and it is seen on light and on dark.
 */
import { expect, it } from "vitest"
import { typeColour } from "./type-colours.ts"

const types = ["Package", "Person", "Team", "License", "Repository", "Release", "Incident", "Service", "Note"]

it("a type has the same colour whatever came up before it", () => {
  const alone = types.map((type) => typeColour(type))
  const backwards = types.toReversed().map((type) => typeColour(type))
  expect(backwards.toReversed()).toEqual(alone)
  // Written down, because it has to be the same in the next version too.
  expect(typeColour("Package")).toBe("#e725a6")
})

it("few types share a colour, and no colour is lost on a light or a dark page", () => {
  const colours = Array.from({ length: 300 }, (_, n) => typeColour(`Type${n}`))
  expect(new Set(types.map((type) => typeColour(type))).size).toBe(types.length)
  expect(new Set(colours).size).toBeGreaterThan(40)
  for (const colour of colours) {
    expect(contrast(colour, "#ffffff")).toBeGreaterThan(3)
    expect(contrast(colour, "#1b1e1a")).toBeGreaterThan(3)
  }
})

const contrast = (one: string, other: string): number => {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

const luminance = (colour: string): number => {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.040_45 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
