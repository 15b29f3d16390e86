/**
 * What is related stands together, what is alike stands together, and nothing stands over anything else.
 */
import { describe, expect, it } from "@effect/vitest"
import { makeArrangement } from "./arrangement.ts"
import { placeOf } from "./layout-words.ts"
import { packCircles } from "./packing.ts"

type Point = readonly [x: number, y: number]

const pointsOf = (places: Float32Array, nodes: ReadonlyArray<number>): ReadonlyArray<Point> =>
  nodes.map((node) => [places[node * 2] ?? Number.NaN, places[node * 2 + 1] ?? Number.NaN])

/** The middle of some points, and how far the last of them is from it. */
const circleOf = (points: ReadonlyArray<Point>) => {
  const x = points.reduce((sum, point) => sum + point[0], 0) / points.length
  const y = points.reduce((sum, point) => sum + point[1], 0) / points.length
  return { x, y, radius: Math.max(...points.map((point) => Math.hypot(point[0] - x, point[1] - y))) }
}

const range = (from: number, count: number) => Array.from({ length: count }, (_, index) => from + index)

describe("the places of a picture", () => {
  it("keeps each related group and each type of what is related to nothing in a circle of its own", () => {
    const arrangement = makeArrangement()
    // 400 unrelated nodes of two types in turn, a star of 60, a ring of 30, and 20 pairs; told in two parts.
    arrangement.add(
      range(0, 300).map((node) => node % 2),
      []
    )
    arrangement.add(
      range(300, 230).map((node) => (node < 400 ? node % 2 : 2)),
      []
    )
    const star = range(400, 60)
    const ring = range(460, 30)
    const pairs = range(490, 40)
    arrangement.add(
      [],
      [
        ...star.slice(1).map((node) => [400, node] as const),
        ...ring.map((node, index) => [node, 460 + ((index + 1) % 30)] as const),
        ...range(0, 20).map((pair) => [490 + pair * 2, 491 + pair * 2] as const)
      ]
    )
    const places = arrangement.places(placeOf)
    expect(places).toHaveLength(530 * 2)
    expect(places.every(Number.isFinite)).toBe(true)
    expect(arrangement.places(placeOf)).toEqual(places)
    const even = range(0, 400).filter((node) => node % 2 === 0)
    const odd = range(0, 400).filter((node) => node % 2 === 1)
    const circles = [star, ring, pairs, even, odd].map((nodes) => circleOf(pointsOf(places, nodes)))
    for (const [index, one] of circles.entries())
      for (const other of circles.slice(index + 1))
        expect(Math.hypot(one.x - other.x, one.y - other.y)).toBeGreaterThan(one.radius + other.radius)
    // No two unrelated nodes stand in one place.
    const standing = pointsOf(places, [...even, ...odd])
    for (const [index, [x, y]] of standing.entries())
      for (const [otherX, otherY] of standing.slice(index + 1))
        expect(Math.hypot(x - otherX, y - otherY)).toBeGreaterThan(0.5)
    expect([star, ring, pairs, even].map(([node = 0]) => arrangement.isShaped(node))).toEqual([
      true,
      true,
      false,
      false
    ])
  })

  it("packs two thousand circles without an overlap, and not much wider than they are", () => {
    const radii = range(1, 2_000)
      .map((n) => 1 + (n % 37))
      .toSorted((a, b) => b - a)
    const middles = packCircles(radii)
    const area = radii.reduce((sum, radius) => sum + radius * radius, 0)
    let widest = 0
    let overlaps = 0
    for (const [index, { x, y }] of middles.entries()) {
      widest = Math.max(widest, Math.hypot(x, y))
      for (let other = 0; other < index; other++) {
        const { x: otherX, y: otherY } = middles[other] ?? { x: 0, y: 0 }
        if (Math.hypot(x - otherX, y - otherY) < (radii[index] ?? 0) + (radii[other] ?? 0)) overlaps += 1
      }
    }
    expect(overlaps).toBe(0)
    expect(widest).toBeLessThan(2 * Math.sqrt(area))
  })
})
