/**
 * Circles side by side: the largest in the middle, the others around it, none over another.
 *
 * Pure, and the same for the same radii.
 */

export interface Place {
  readonly x: number
  readonly y: number
}

/** Between two circles, as a part of the smaller one's radius, and at least so much. */
const gap = { part: 0.12, least: 1.5 } as const

/** How much smaller a circle is that is looked for a place for from the middle on. */
const fitsBetween = 0.7

/** The middles of circles, which come by their radius, the largest first. */
export const packCircles = (radii: ReadonlyArray<number>): ReadonlyArray<Place> => {
  const placed: Array<Place & { readonly radius: number }> = []
  // Who is hardly smaller finds no place further inside than who came before; who is much smaller fits between the larger ones.
  let angle = 0
  let reach = 0
  let from = Number.POSITIVE_INFINITY
  for (const wanted of radii) {
    const radius = wanted + Math.max(gap.least, wanted * gap.part) / 2
    const isFree = (x: number, y: number) =>
      placed.every((other) => Math.hypot(other.x - x, other.y - y) >= other.radius + radius)
    if (radius < from * fitsBetween) [angle, reach, from] = [0, 0, radius]
    let [x, y] = [reach * Math.cos(angle), reach * Math.sin(angle)]
    while (!isFree(x, y)) {
      const step = radius / 2
      angle += step / Math.max(reach, step)
      reach += (step * step) / (Math.max(reach, step) * Math.PI * 2)
      x = reach * Math.cos(angle)
      y = reach * Math.sin(angle)
    }
    placed.push({ x, y, radius })
  }
  return placed.map(({ x, y }) => ({ x, y }))
}
