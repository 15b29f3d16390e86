/**
 * A text of any length, short at first; people ask for the rest.
 *
 * **Gotchas** Not even then more than `maxShownCharacters` are put on the
 * page; the text says so, because nobody should approve what they cannot see.
 */
import { type ReactNode, useState } from "react"
import { limits } from "../limits.ts"
import { cutText } from "../words/cut-text.ts"
import { Visible } from "./visible.tsx"

interface LongTextProps {
  readonly text: string
  readonly exact?: boolean
  /** Whether it is whole at first. */
  readonly startsOpen?: boolean
  /** Somebody wants to see less, and whoever drew it shows that. */
  readonly onClose?: () => void
}

export const LongText = ({ text, exact = false, startsOpen = false, onClose }: LongTextProps): ReactNode => {
  const [isOpen, setIsOpen] = useState(startsOpen)
  const short = shortOf(text)
  if (short === text) return <Visible text={text} exact={exact} />
  const whole = cutText(text, Infinity, limits.maxShownCharacters)
  return (
    <>
      <Visible text={isOpen ? whole : short} exact={exact} />
      {isOpen && whole !== text && (
        <span className="ml-1 font-sans text-caution-ink">
          … and {(text.length - whole.length).toLocaleString()} more characters not shown
        </span>
      )}
      {!isOpen && "… "}
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => (isOpen && onClose !== undefined ? onClose() : setIsOpen(!isOpen))}
        className="ml-1 rounded font-sans text-xs font-medium text-leaf underline-offset-2 hover:underline"
      >
        {isOpen ? "Show less" : "Show all"}
      </button>
    </>
  )
}

/** Whether a text is cut until somebody asks for all of it. */
export const isLongText = (text: string): boolean => shortOf(text) !== text

const shortOf = (text: string): string => cutText(text, limits.maxValueLines, limits.maxValueCharacters)
