/**
 * One side of two long texts that differ: cut around the place where they do, so that it is seen; people ask for the rest.
 */
import { type ReactNode, useState } from "react"
import { limits } from "../limits.ts"
import { LongText } from "../parts/long-text.tsx"
import { Visible } from "../parts/visible.tsx"
import { cutText } from "../words/cut-text.ts"

export type Parts = readonly [start: string, middle: string, end: string]

interface LongDifferenceProps {
  readonly text: string
  /** What is shared before, what differs, and what is shared behind it. */
  readonly parts: Parts
  readonly mark: string
}

export const LongDifference = ({ text, parts, mark }: LongDifferenceProps): ReactNode => {
  const [isOpen, setIsOpen] = useState(false)
  if (isOpen) return <LongText text={text} exact startsOpen onClose={() => setIsOpen(false)} />
  const [start, middle, end] = parts
  const before = lastOf(start)
  const differing = cutText(middle, limits.maxValueLines, limits.maxValueCharacters)
  const isWhole = differing === middle
  const behind = isWhole ? cutText(end, 2, limits.differenceContextCharacters) : ""
  return (
    <>
      {before !== start && "… "}
      <Visible text={before} exact />
      {differing !== "" && (
        <span className={`rounded-sm ${mark}`}>
          <Visible text={differing} exact />
        </span>
      )}
      <Visible text={behind} exact />
      {(!isWhole || behind !== end) && "… "}
      <button
        type="button"
        aria-expanded={false}
        onClick={() => setIsOpen(true)}
        className="ml-1 rounded font-sans text-xs font-medium text-leaf underline-offset-2 hover:underline"
      >
        Show all
      </button>
    </>
  )
}

/** The end of a text, of two lines at most, and never from inside a character. */
const lastOf = (text: string): string =>
  text
    .slice(-limits.differenceContextCharacters)
    .replace(/^[\udc00-\udfff]/, "")
    .split("\n")
    .slice(-2)
    .join("\n")
