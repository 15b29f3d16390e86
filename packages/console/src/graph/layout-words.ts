/**
 * What the page and its layout tell one another, and how far a layout goes.
 */

/** Nodes that are new, each by the number of its type, and edges between nodes by theirs. */
export interface ToLayout {
  readonly types: ReadonlyArray<number>
  readonly edges: ReadonlyArray<readonly [from: number, to: number]>
}

export const layoutLimits = {
  /** After the last node or edge came. */
  iterations: 240,
  /** Between two answers. */
  sliceIterations: 24,
  pauseMs: 120,
  /** So much longer for each thousand nodes, which take the page longer to draw. */
  pausePerThousandMs: 60,
  /** Above so many, forces from far away are summed up. */
  barnesHutNodes: 500
} as const

/** Where a node stands before anything moved it: on a spiral, so that no two stand in one place. */
export const placeOf = (index: number): { readonly x: number; readonly y: number } => ({
  x: Math.sqrt(index) * Math.cos(index * goldenAngle),
  y: Math.sqrt(index) * Math.sin(index * goldenAngle)
})

const goldenAngle = Math.PI * (3 - Math.sqrt(5))
