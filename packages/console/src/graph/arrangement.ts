/**
 * Where the nodes of a picture stand: what is related together, and each such group beside the others.
 *
 * A group of a few nodes stands among those like it, and a node that is related
 * to nothing among the others of its type. What is larger has the shape that
 * forces give it, moved to a place of its own and scaled to the room that it
 * needs. Pure but for what it was told; it draws nothing.
 */
import { placeOf } from "./layout-words.ts"
import { packCircles, type Place } from "./packing.ts"

/** The smallest group that has a shape of its own. */
export const leastShaped = 5

const room = {
  /** Half the distance of two nodes that are related to nothing. */
  node: 1,
  /** Of two small groups. */
  group: 2.4,
  /** Of a node in its small group from the group's middle. */
  member: 1.1,
  /** For each node of a large group: edges are to be seen. */
  shaped: 2,
  /** How much of a shape lies within how many standard deviations. */
  spread: 1.9
} as const

/** Groups that stand in one circle: small ones that are alike, or one that has a shape. */
interface Block {
  readonly groups: ReadonlyArray<ReadonlyArray<number>>
  readonly isShaped: boolean
  readonly radius: number
}

export interface Arrangement {
  /** Nodes that are new, by the number of their type, and edges between nodes by theirs. */
  readonly add: (types: ReadonlyArray<number>, edges: ReadonlyArray<readonly [number, number]>) => void
  /** Whether a node is in a group that forces give a shape. */
  readonly isShaped: (node: number) => boolean
  /** The places of all nodes, x and y in turn; `shapeOf` is where forces have put one. */
  readonly places: (shapeOf: (node: number) => Place) => Float32Array<ArrayBuffer>
}

export const makeArrangement = (): Arrangement => {
  const types: Array<number> = []
  const above: Array<number> = []
  const sizes: Array<number> = []
  let blocks: ReadonlyArray<Block & Place> | undefined

  /** The node that stands for the group of another. */
  const rootOf = (node: number): number => {
    let root = node
    while (above[root] !== undefined && above[root] !== root) root = above[root] as number
    for (let at = node; at !== root;) {
      const next = above[at] as number
      above[at] = root
      at = next
    }
    return root
  }

  const sizeOf = (node: number): number => sizes[rootOf(node)] ?? 1

  const unite = (a: number, b: number) => {
    const [one, other] = [rootOf(a), rootOf(b)]
    if (one === other) return
    const [large, small] = (sizes[one] ?? 1) < (sizes[other] ?? 1) ? [other, one] : [one, other]
    above[small] = large
    sizes[large] = (sizes[large] ?? 1) + (sizes[small] ?? 1)
  }

  const groupsNow = (): ReadonlyArray<ReadonlyArray<number>> => {
    const groups = new Map<number, Array<number>>()
    for (let node = 0; node < types.length; node++) {
      const root = rootOf(node)
      const group = groups.get(root)
      if (group) group.push(node)
      else groups.set(root, [node])
    }
    return [...groups.values()]
  }

  const blocksNow = (): ReadonlyArray<Block & Place> => {
    const alike = new Map<string, Array<ReadonlyArray<number>>>()
    const made: Array<Block> = []
    for (const group of groupsNow()) {
      if (group.length >= leastShaped) {
        const radius = room.shaped * Math.sqrt(group.length)
        made.push({ groups: [group], isShaped: true, radius })
        continue
      }
      const kind = group
        .map((node) => types[node] ?? 0)
        .toSorted((a, b) => a - b)
        .join(" ")
      const kin = alike.get(kind)
      if (kin) kin.push(group)
      else alike.set(kind, [group])
    }
    for (const groups of alike.values()) {
      const each = roomOf(groups[0]?.length ?? 1)
      made.push({ groups, isShaped: false, radius: each * (Math.sqrt(groups.length) + 0.5) })
    }
    const bySize = made.toSorted((a, b) => b.radius - a.radius)
    const middles = packCircles(bySize.map(({ radius }) => radius))
    return bySize.map((block, index) => ({ ...block, ...(middles[index] ?? { x: 0, y: 0 }) }))
  }

  return {
    add: (newTypes, edges) => {
      for (const type of newTypes) {
        above.push(types.length)
        sizes.push(1)
        types.push(type)
      }
      for (const [from, to] of edges) unite(from, to)
      blocks = undefined
    },
    isShaped: (node) => sizeOf(node) >= leastShaped,
    places: (shapeOf) => {
      blocks ??= blocksNow()
      const places = new Float32Array(types.length * 2)
      const put = (node: number, x: number, y: number) => {
        places[node * 2] = x
        places[node * 2 + 1] = y
      }
      for (const block of blocks)
        if (block.isShaped) putShaped(block, shapeOf, put)
        else putAlike(block, put)
      return places
    }
  }
}

const roomOf = (size: number): number => (size === 1 ? room.node : room.group)

type Put = (node: number, x: number, y: number) => void

/** Small groups side by side, the nodes of each around its middle. */
const putAlike = ({ groups, x, y }: Block & Place, put: Put): void => {
  for (const [index, group] of groups.entries()) {
    const at = placeOf(index)
    const each = roomOf(group.length)
    const [middleX, middleY] = [x + at.x * each, y + at.y * each]
    const reach = group.length === 1 ? 0 : room.member
    for (const [place, node] of group.entries()) {
      const angle = (place / group.length) * Math.PI * 2
      put(node, middleX + reach * Math.cos(angle), middleY + reach * Math.sin(angle))
    }
  }
}

/** A shape around the middle of its circle, as large as the circle has room for. */
const putShaped = (
  { groups, radius, x, y }: Block & Place,
  shapeOf: (node: number) => Place,
  put: Put
): void => {
  const nodes = groups[0] ?? []
  const shape = nodes.map(shapeOf)
  const middle = {
    x: shape.reduce((sum, place) => sum + place.x, 0) / shape.length,
    y: shape.reduce((sum, place) => sum + place.y, 0) / shape.length
  }
  const square = shape.reduce((sum, place) => sum + (place.x - middle.x) ** 2 + (place.y - middle.y) ** 2, 0)
  const spread = Math.sqrt(square / shape.length) * room.spread
  const scale = spread === 0 ? 0 : radius / spread
  for (const [index, node] of nodes.entries()) {
    const place = shape[index] ?? middle
    // Who stands far out stays at the rim of the circle: beyond it are others.
    const [dx, dy] = [(place.x - middle.x) * scale, (place.y - middle.y) * scale]
    const within = Math.min(1, radius / Math.max(Math.hypot(dx, dy), 1e-9))
    put(node, x + dx * within, y + dy * within)
  }
}
