/**
 * Lays a graph out beside the page: it gets nodes and edges as they are read, and answers with places.
 *
 * A node is its number, in the order in which it came. The work is done in
 * slices, so that what comes meanwhile is heard; it ends by itself.
 */
import { UndirectedGraph } from "graphology"
import forceAtlas2 from "graphology-layout-forceatlas2"
import { layoutLimits, placeOf, type ToLayout } from "./layout-words.ts"

const graph = new UndirectedGraph<{ x: number; y: number }>()
let left = 0
let isWorking = false

addEventListener("message", ({ data }: MessageEvent<ToLayout>) => {
  for (let count = 0; count < data.nodes; count++) {
    const index = graph.order
    graph.addNode(index, placeOf(index))
  }
  for (const [from, to] of data.edges) if (from !== to) graph.mergeEdge(from, to)
  left = layoutLimits.iterations
  if (!isWorking) work()
})

const work = () => {
  isWorking = true
  const settings = {
    ...forceAtlas2.inferSettings(graph),
    barnesHutOptimize: graph.order > layoutLimits.barnesHutNodes
  }
  if (graph.order > 1) forceAtlas2.assign(graph, { iterations: layoutLimits.sliceIterations, settings })
  left -= layoutLimits.sliceIterations
  const places = new Float32Array(graph.order * 2)
  graph.forEachNode((node, { x, y }) => {
    places[Number(node) * 2] = x
    places[Number(node) * 2 + 1] = y
  })
  postMessage(places, { transfer: [places.buffer] })
  if (left > 0)
    setTimeout(work, layoutLimits.pauseMs + (graph.order / 1_000) * layoutLimits.pausePerThousandMs)
  else isWorking = false
}
