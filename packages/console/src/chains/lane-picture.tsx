/**
 * The swim lanes of a chain as a picture; the list beside it says the same in words.
 */
import type { ChainLink } from "@tropism/api/chains-api"
import { type ReactNode, useId, useMemo } from "react"
import { Visible } from "../parts/visible.tsx"
import { visibleText } from "../words/visible-text.ts"
import { chainLanes, type LaneArrow } from "./chain-lanes.ts"
import { linkText } from "./chain-words.ts"

const stepPx = 44
const laneHeightPx = 48
const radiusPx = 8

export const LanePicture = ({ links }: { readonly links: ReadonlyArray<ChainLink> }): ReactNode => {
  const { lanes, laneOf, arrows } = useMemo(() => chainLanes(links), [links])
  const head = useId()
  const size = { width: links.length * stepPx + stepPx, height: lanes.length * laneHeightPx }
  return (
    <div className="mb-6 flex rounded-xl border border-line bg-surface" data-testid="lanes">
      <ul className="m-0 max-w-40 shrink-0 list-none border-r border-line p-0 text-xs sm:max-w-56">
        {lanes.map(({ key, name, type }) => (
          <li
            key={key}
            data-lane={type}
            style={{ height: laneHeightPx }}
            className={`flex items-center truncate px-3 ${type === "agent" ? "font-medium" : "text-ink-soft"}`}
          >
            <span className="truncate">
              <Visible text={name} />
            </span>
          </li>
        ))}
      </ul>
      <div
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls can be reached by keyboard
        tabIndex={0}
        role="group"
        aria-label="Chain diagram"
        className="min-w-0 grow overflow-x-auto"
      >
        <svg {...size} aria-hidden="true" className="block min-w-full">
          <defs>
            <marker
              id={head}
              viewBox="0 0 6 6"
              refX="5"
              refY="3"
              markerWidth="6"
              markerHeight="6"
              orient="auto"
            >
              <path d="M0 0 6 3 0 6z" className="fill-ink-faint" />
            </marker>
          </defs>
          {lanes.slice(1).map(({ key }, place) => (
            <line
              key={key}
              x1="0"
              x2="100%"
              y1={(place + 1) * laneHeightPx}
              y2={(place + 1) * laneHeightPx}
              className="stroke-line"
            />
          ))}
          {arrows.map((arrow) => (
            <path
              key={`${arrow.from} ${arrow.to}`}
              d={arrowPath(arrow, laneOf)}
              markerEnd={`url(#${head})`}
              className="fill-none stroke-ink-faint"
            />
          ))}
          {links.map((link, place) => (
            <Mark key={link.id} link={link} x={xOf(place)} y={yOf(laneOf[place] ?? 0)} />
          ))}
        </svg>
      </div>
    </div>
  )
}

const xOf = (place: number): number => (place + 0.75) * stepPx
const yOf = (lane: number): number => (lane + 0.5) * laneHeightPx

/** From the edge of one mark to the edge of another; within a lane as an arc above what lies between. */
const arrowPath = ({ from, to }: LaneArrow, laneOf: ReadonlyArray<number>): string => {
  const [fromLane, toLane] = [laneOf[from] ?? 0, laneOf[to] ?? 0]
  const [x1, y1, x2, y2] = [xOf(from), yOf(fromLane), xOf(to), yOf(toLane)]
  if (fromLane === toLane) {
    const top = y1 - (to - from === 1 ? 0 : laneHeightPx * 0.4)
    return `M${x1 + radiusPx} ${y1} Q${(x1 + x2) / 2} ${top} ${x2 - radiusPx - 2} ${y2}`
  }
  const down = toLane > fromLane ? 1 : -1
  return `M${x1} ${y1 + down * radiusPx} C${x1} ${y2} ${x1} ${y2} ${x2 - radiusPx - 2} ${y2}`
}

interface MarkProps {
  readonly link: ChainLink
  readonly x: number
  readonly y: number
}

/** An event is a dot, a run a square, a task a diamond; what failed or waits has its colour. */
const Mark = ({ link, x, y }: MarkProps): ReactNode => {
  const title = <title>{visibleText(linkText(link))}</title>
  if (link.type === "event")
    return (
      <circle cx={x} cy={y} r={radiusPx - 2} className="fill-ink-soft">
        {title}
      </circle>
    )
  const side = radiusPx * 2 - 2
  const square = { x: x - side / 2, y: y - side / 2, width: side, height: side }
  if (link.type === "run")
    return (
      <rect {...square} rx="4" className={link.run.status === "failed" ? "fill-removed-ink" : "fill-leaf"}>
        {title}
      </rect>
    )
  return (
    <rect
      {...square}
      transform={`rotate(45 ${x} ${y})`}
      className={link.task.status === "pending" ? "fill-caution-ink" : "fill-ink-soft"}
    >
      {title}
    </rect>
  )
}
