/**
 * The picture of what a search finds, with its legend and what is selected beside it.
 */
import type { GraphObject, Relationship } from "@tropism/domain/graph"
import { Effect, Fiber } from "effect"
import { type KeyboardEvent, type ReactNode, useCallback, useEffect, useRef, useState } from "react"
import { useConsole } from "../frame/console-context.tsx"
import { limits } from "../limits.ts"
import { Button } from "../parts/button.tsx"
import { Failure } from "../parts/failure.tsx"
import { useAddress } from "../parts/use-address.ts"
import type { Parameters } from "../server/request.ts"
import { Visible } from "../parts/visible.tsx"
import { countText } from "../words/amounts.ts"
import { loadGraph } from "./load-graph.ts"
import { canDraw, openPicture, type Picture } from "./picture.ts"
import { SelectedObject } from "./selected-object.tsx"
import { typeColour } from "./type-colours.ts"
import { useGraphSearch } from "./use-graph-search.ts"

export const GraphCanvas = (): ReactNode => {
  const { parameters } = useGraphSearch()
  return canDraw() ? (
    <DrawnGraph key={JSON.stringify(parameters)} parameters={parameters} />
  ) : (
    <p className="text-sm text-ink-soft">
      The graph view needs WebGL, which this browser does not support. Use the list instead.
    </p>
  )
}

interface Progress {
  readonly objects: number
  readonly relationships: number
  /** How many of each type, in the order in which they came up. */
  readonly types: ReadonlyMap<string, number>
  readonly state: "reading" | "whole" | "cut"
  readonly error: unknown
}

const nothingYet: Progress = { objects: 0, relationships: 0, types: new Map(), state: "reading", error: null }

interface DrawnGraphProps {
  readonly parameters: Parameters
}

const DrawnGraph = ({ parameters }: DrawnGraphProps): ReactNode => {
  const { project } = useConsole()
  const [{ focus, type }, change] = useAddress()
  const [container, setContainer] = useState<HTMLDivElement | null>(null)
  const picture = useRef<Picture>(undefined)
  const wanted = useRef(focus)
  const [progress, setProgress] = useState(nothingYet)
  const onSelect = useCallback((id: string | undefined) => change({ focus: id }), [change])
  useEffect(() => {
    wanted.current = focus
    picture.current?.select(focus)
  }, [focus])
  useEffect(() => {
    if (container === null) return
    const drawn = openPicture(container, onSelect)
    picture.current = drawn
    drawn.select(wanted.current)
    const reading = Effect.runFork(
      loadGraph(project.id, parameters, ({ objects, relationships }) => {
        drawn.add(objects, relationships)
        setProgress((before) => grown(before, objects, relationships))
      }).pipe(
        Effect.match({
          onSuccess: ({ hasAllObjects, hasAllRelationships }) =>
            setProgress((before) => ({
              ...before,
              state: hasAllObjects && hasAllRelationships ? "whole" : "cut"
            })),
          onFailure: (error) => setProgress((before) => ({ ...before, error }))
        })
      )
    )
    const scheme = matchMedia("(prefers-color-scheme: dark)")
    scheme.addEventListener("change", drawn.recolour)
    return () => {
      scheme.removeEventListener("change", drawn.recolour)
      Effect.runFork(Fiber.interrupt(reading))
      picture.current = undefined
      drawn.close()
    }
  }, [container, project.id, parameters, onSelect])
  return (
    <>
      {progress.error !== null && <Failure error={progress.error} hasOlder={progress.objects > 0} />}
      <p
        role="status"
        data-state={progress.state}
        data-objects={progress.objects}
        data-relationships={progress.relationships}
        className="mb-2 text-xs text-ink-soft"
      >
        {progressText(progress)}
      </p>
      <div className="grid gap-4 lg:grid-cols-[minmax(0,1fr)_18rem]">
        <div className="min-w-0">
          {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- the keys move the picture */}
          <div
            ref={setContainer}
            // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- the keys move the picture
            tabIndex={0}
            role="group"
            aria-label="Graph view: arrow keys pan, plus and minus zoom, 0 fits all"
            onKeyDown={(event) => press(event, picture.current)}
            className="h-[min(70vh,44rem)] overflow-hidden rounded-xl border border-line-strong bg-surface text-ink"
          />
          <Legend types={progress.types} chosen={type} onChoose={(name) => change({ type: name })} />
        </div>
        <aside aria-label="Selected object" className="min-w-0">
          {focus === undefined ? (
            <p className="text-sm text-ink-soft">Select an object to see its relationships.</p>
          ) : (
            <SelectedObject
              key={focus}
              objectId={focus}
              onSelect={onSelect}
              onExpand={(objects, relationships) => {
                picture.current?.add(objects, relationships)
                setProgress((before) => grown(before, objects, relationships))
              }}
            />
          )}
        </aside>
      </div>
    </>
  )
}

const grown = (
  before: Progress,
  objects: ReadonlyArray<GraphObject>,
  relationships: ReadonlyArray<Relationship>
): Progress => {
  const types = new Map(before.types)
  for (const { type } of objects) types.set(type, (types.get(type) ?? 0) + 1)
  return {
    ...before,
    types,
    objects: before.objects + objects.length,
    relationships: before.relationships + relationships.length
  }
}

const progressText = ({ objects, relationships, state, error }: Progress): string => {
  const drawn = `${countText(objects, "object")}, ${countText(relationships, "relationship")}`
  if (state === "whole") return `${drawn} shown.`
  if (state === "cut")
    return `${drawn} shown; there are more than ${limits.maxDrawnObjects.toLocaleString("en")} objects or ${limits.maxDrawnRelationships.toLocaleString("en")} relationships. Use filters to see others.`
  return error === null ? `${drawn} so far, loading more …` : `${drawn} loaded before an error.`
}

const stepOf: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-0.1, 0],
  ArrowRight: [0.1, 0],
  ArrowUp: [0, 0.1],
  ArrowDown: [0, -0.1]
}

const zoomOf: Readonly<Record<string, "in" | "out" | "all">> = {
  "+": "in",
  "=": "in",
  "-": "out",
  "0": "all"
}

const press = (event: KeyboardEvent, picture: Picture | undefined) => {
  const [step, zoom] = [stepOf[event.key], zoomOf[event.key]]
  if (picture === undefined || (step === undefined && zoom === undefined)) return
  event.preventDefault()
  event.stopPropagation()
  if (step !== undefined) picture.move(...step)
  if (zoom !== undefined) picture.zoom(zoom)
}

interface LegendProps {
  readonly types: ReadonlyMap<string, number>
  readonly chosen: string | undefined
  readonly onChoose: (type: string | undefined) => void
}

const Legend = ({ types, chosen, onChoose }: LegendProps): ReactNode => (
  <ul aria-label="Types" className="m-0 mt-3 flex list-none flex-wrap gap-1.5 p-0">
    {[...types.keys()].slice(0, limits.maxLegendTypes).map((name) => (
      <li key={name}>
        <Button
          size="small"
          weight="quiet"
          aria-pressed={chosen === name}
          onClick={() => onChoose(chosen === name ? undefined : name)}
        >
          <span
            aria-hidden="true"
            className="size-2.5 rounded-full"
            style={{ backgroundColor: typeColour(name) }}
          />
          <Visible text={name} /> {types.get(name)?.toLocaleString("en")}
        </Button>
      </li>
    ))}
  </ul>
)
