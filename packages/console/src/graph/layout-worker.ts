/**
 * Lays a graph out beside the page: it gets nodes and edges as they are read, and answers with places.
 *
 * A node is its number, in the order in which it came. Forces shape what is
 * related; `arrangement.ts` says where each such shape, and all that has none,
 * stands. The work is done in slices, so that what comes meanwhile is heard; it
 * ends by itself.
 */
import { UndirectedGraph } from "graphology"
import forceAtlas2 from "graphology-layout-forceatlas2"
import { makeArrangement } from "./arrangement.ts"
import { layoutLimits, placeOf, type ToLayout } from "./layout-words.ts"

/** What has a shape. */
const graph = new UndirectedGraph<{ x: number; y: number }>()
const arrangement = makeArrangement()
/** Edges of groups that are too small to have one. */
let waiting: Array<readonly [number, number]> = []
let left = 0
let isWorking = false

addEventListener("message", ({ data: { types, edges } }: MessageEvent<ToLayout>) => {
  arrangement.add(types, edges)
  const all = [...waiting, ...edges]
  waiting = all.filter(([from]) => !arrangement.isShaped(from))
  for (const [from, to] of all) {
    if (from === to || !arrangement.isShaped(from)) continue
    for (const node of [from, to]) if (!graph.hasNode(node)) graph.addNode(node, placeOf(node))
    graph.mergeEdge(from, to)
  }
  left = layoutLimits.iterations
  if (!isWorking) work()
})

const shapeOf = (node: number) => (graph.hasNode(node) ? graph.getNodeAttributes(node) : placeOf(node))

const work = () => {
  isWorking = true
  if (graph.order > 1) {
    const settings = {
      ...forceAtlas2.inferSettings(graph),
      barnesHutOptimize: graph.order > layoutLimits.barnesHutNodes
    }
    forceAtlas2.assign(graph, { iterations: layoutLimits.sliceIterations, settings })
    left -= layoutLimits.sliceIterations
  } else left = 0
  const places = arrangement.places(shapeOf)
  const nodes = places.length / 2
  postMessage(places, { transfer: [places.buffer] })
  if (left > 0) setTimeout(work, layoutLimits.pauseMs + (nodes / 1_000) * layoutLimits.pausePerThousandMs)
  else isWorking = false
}
