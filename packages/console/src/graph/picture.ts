/**
 * The picture of a graph on a canvas: nodes with the colours of their types, edges, a camera.
 *
 * It draws with WebGL, and lays out in a worker, so a page with ten thousand
 * objects answers while it is drawn. It knows nothing of React.
 */
import type { GraphObject, Relationship } from "@tropism/domain/graph"
import { UndirectedGraph } from "graphology"
import { Sigma } from "sigma"
import { drawDiscNodeLabel } from "sigma/rendering"
import { readClock } from "../parts/read-clock.ts"
import { cutText } from "../words/cut-text.ts"
import { visibleText } from "../words/visible-text.ts"
import { objectName } from "../words/object-name.ts"
import { placeOf, type ToLayout } from "./layout-words.ts"
import { typeColour } from "./type-colours.ts"

export interface Picture {
  /** Objects and relationships that are not drawn yet; a relationship is drawn as soon as both its ends are. */
  readonly add: (objects: ReadonlyArray<GraphObject>, relationships: ReadonlyArray<Relationship>) => void
  /** Marks an object and what it is related to, as soon as it is drawn; undefined marks none. */
  readonly select: (objectId: string | undefined) => void
  readonly move: (x: number, y: number) => void
  readonly zoom: (how: "in" | "out" | "all") => void
  /** Reads the page's colours again. */
  readonly recolour: () => void
  readonly close: () => void
}

/** Whether the browser can draw it. */
export const canDraw = (): boolean => document.createElement("canvas").getContext("webgl2") !== null

export const openPicture = (
  container: HTMLElement,
  onSelect: (objectId: string | undefined) => void
): Picture => {
  const graph = new UndirectedGraph<NodeLook, EdgeLook>()
  const numbers = new Map<string, number>()
  const typeNumbers = new Map<string, number>()
  const typeNumberOf = (type: string): number => {
    const number = typeNumbers.get(type) ?? typeNumbers.size
    typeNumbers.set(type, number)
    return number
  }
  /** The more there are, the smaller each is drawn: a thousand nodes are no blot. */
  const shrink = (look: NodeLook): NodeLook => ({
    ...look,
    size: look.size * Math.min(1, Math.max(leastShrink, Math.sqrt(fullSizeNodes / graph.order)))
  })
  const labels = makeLabels()
  const layout = new Worker(new URL("./layout-worker.ts", import.meta.url), { type: "module" })
  let selected: string | undefined
  const colours = { ...coloursOf(container) }
  const sigma = new Sigma<NodeLook, EdgeLook>(graph, container, {
    allowInvalidContainer: true,
    labelColor: { color: colours.ink },
    labelFont: "inherit",
    labelSize: 12,
    labelRenderedSizeThreshold: 3,
    labelGridCellSize: 120,
    labelDensity: 0.5,
    defaultDrawNodeLabel: labels.draw,
    defaultEdgeColor: colours.line,
    defaultDrawNodeHover: drawDiscNodeLabel,
    hideEdgesOnMove: true,
    minEdgeThickness: 1.2,
    zIndex: true,
    nodeReducer: (node, look) =>
      selected === undefined ||
      !graph.hasNode(selected) ||
      node === selected ||
      graph.areNeighbors(node, selected)
        ? { ...shrink(look), ...(node === selected && { highlighted: true, zIndex: 1 }) }
        : { ...shrink(look), color: colours.line, label: null },
    edgeReducer: (edge, look) =>
      selected === undefined || !graph.hasNode(selected) || graph.hasExtremity(edge, selected)
        ? { ...look, ...(selected !== undefined && { color: colours.ink }) }
        : { ...look, hidden: true }
  })
  sigma.on("beforeRender", labels.begin)
  sigma.on("clickNode", ({ node }) => onSelect(node))
  sigma.on("clickStage", () => onSelect(undefined))
  let places: Float32Array | undefined
  let waiting: Array<Parameters<Picture["add"]>> = []
  const withoutEnds: Array<Relationship> = []
  layout.addEventListener("message", ({ data }: MessageEvent<Float32Array>) => {
    places = data
  })
  // Each change of the graph draws all of it anew, so what comes is drawn together, a few times a second.
  const drawing = repeatedly(() => {
    const parts = waiting
    waiting = []
    draw(
      parts.flatMap(([objects]) => objects),
      parts.flatMap(([, relationships]) => relationships)
    )
    const moved = places
    places = undefined
    if (moved !== undefined) moveTo(moved)
  })
  const moveTo = (moved: Float32Array) =>
    graph.updateEachNodeAttributes((node, look) => {
      const at = (numbers.get(node) ?? 0) * 2
      const [x, y] = [moved[at], moved[at + 1]]
      return x === undefined || y === undefined ? look : { ...look, x, y }
    })
  const draw: Picture["add"] = (objects, relationships) => {
    const types: Array<number> = []
    for (const object of objects) {
      if (numbers.has(object.id)) continue
      const number = numbers.size
      numbers.set(object.id, number)
      types.push(typeNumberOf(object.type))
      graph.addNode(object.id, {
        ...placeOf(number),
        size: 4,
        label: cutText(visibleText(objectName(object)), 1, maxLabelCharacters),
        color: typeColour(object.type)
      })
    }
    const edges: Array<readonly [number, number]> = []
    const all = types.length === 0 ? relationships : [...withoutEnds.splice(0), ...relationships]
    for (const relationship of all) {
      const { fromId, toId } = relationship
      const [from, to] = [numbers.get(fromId), numbers.get(toId)]
      if (from === undefined || to === undefined) {
        withoutEnds.push(relationship)
        continue
      }
      if (from === to || graph.hasEdge(fromId, toId)) continue
      graph.addEdge(fromId, toId, { size: 1.2 })
      edges.push([from, to])
      for (const end of [fromId, toId])
        graph.setNodeAttribute(end, "size", Math.min(14, 4 + Math.sqrt(graph.degree(end))))
    }
    if (types.length === 0 && edges.length === 0) return
    const message: ToLayout = { types, edges }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has no origin
    layout.postMessage(message)
  }
  return {
    add: (objects, relationships) => void waiting.push([objects, relationships]),
    select: (objectId) => {
      selected = objectId
      sigma.refresh()
    },
    move: (x, y) => {
      const camera = sigma.getCamera()
      const { ratio } = camera
      camera.setState({ x: camera.x + x * ratio, y: camera.y + y * ratio })
    },
    zoom: (how) => {
      const camera = sigma.getCamera()
      if (how === "all") camera.setState({ x: 0.5, y: 0.5, ratio: 1 })
      else camera.setState({ ratio: camera.ratio * (how === "in" ? 1 / zoomStep : zoomStep) })
    },
    recolour: () => {
      Object.assign(colours, coloursOf(container))
      sigma.setSetting("labelColor", { color: colours.ink })
      sigma.setSetting("defaultEdgeColor", colours.line)
    },
    close: () => {
      drawing.end()
      layout.terminate()
      sigma.kill()
    }
  }
}

/**
 * Draws again and again, and rests after each drawing for longer than it took: what the page reads
 * meanwhile comes in the rests, and would wait for its turn behind every drawing.
 */
const repeatedly = (draw: () => void) => {
  let timer: ReturnType<typeof setTimeout>
  const turn = () => {
    const beganMs = readClock()
    draw()
    // A canvas is drawn in the next frame; the task after that frame comes when it is done.
    requestAnimationFrame(() =>
      setTimeout(() => {
        if (hasEnded) return
        const tookMs = readClock() - beganMs
        timer = setTimeout(turn, Math.max(drawIntervalMs, tookMs * restsPerDrawing))
      })
    )
  }
  let hasEnded = false
  timer = setTimeout(turn, drawIntervalMs)
  return {
    end: () => {
      hasEnded = true
      clearTimeout(timer)
    }
  }
}

/** Labels of one drawing: one that would stand over another is left out. */
const makeLabels = () => {
  let taken: Array<readonly [left: number, top: number, right: number, bottom: number]> = []
  const draw: typeof drawDiscNodeLabel = (context, node, settings) => {
    if (!node.label) return
    context.font = `${settings.labelWeight} ${settings.labelSize}px ${settings.labelFont}`
    const start = node.x + node.size
    const [left, right] = [start, start + context.measureText(node.label).width + labelGapPx]
    const [top, bottom] = [node.y - settings.labelSize / 2, node.y + settings.labelSize / 2]
    if (taken.some((other) => left < other[2] && other[0] < right && top < other[3] && other[1] < bottom))
      return
    taken.push([left, top, right, bottom])
    drawDiscNodeLabel(context, node, settings)
  }
  return {
    begin: () => {
      taken = []
    },
    draw
  }
}

const maxLabelCharacters = 40
const labelGapPx = 8
/** So many nodes have the size that their relationships give them. */
const fullSizeNodes = 400
const leastShrink = 0.3
const zoomStep = 1.4
const drawIntervalMs = 350
const restsPerDrawing = 3

interface NodeLook {
  readonly x: number
  readonly y: number
  readonly size: number
  readonly label: string | null
  readonly color: string
}

interface EdgeLook {
  readonly size: number
}

/** The page's own colours, as they are in its present scheme. */
const coloursOf = (container: HTMLElement) => {
  const style = getComputedStyle(container)
  return { ink: style.color, line: style.borderTopColor }
}
